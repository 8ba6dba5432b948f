"""One look at what is retained below a filter: behind the fence, bounded, and over when its echo is back."""

from itertools import count

from rea_edge.mqtt import Incoming, Link, Outgoing
from rea_edge.mqtt.look import LOOK_S, MOST, Look
from tests.brokers import AnyBroker, wait_until
from tests.mqtt.conftest import Settings
from tests.mqtt.station import Station, running


def test_what_is_retained_is_found_and_what_is_said_meanwhile_is_not(broker: AnyBroker, settings: Settings) -> None:
    with running(sender := Station(settings(broker.url, "s"))):
        for leaf in ("a", "b/c"):
            sender.post(f"own/{leaf}", leaf.encode(), retain=True)
        sender.wait_empty()
    found: list[Incoming] = []
    accepted: list[Incoming] = []
    link = Link(
        settings(broker.url, "n"),
        subscriptions=("own/_self/+", "mark"),
        accept=lambda incoming: bool(accepted.append(incoming)) or True,
        pull=lambda _limit: (),
        published=lambda *_: None,
        before_connect=lambda: None,
        on_up=lambda _session: [Outgoing(topic="own/birth", payload=b"now", retain=True)],
        on_down=lambda _reason: None,
        fence=lambda: "own/_self/1",
        look="own/#",
        found=found.append,
    )
    link.start()
    try:
        wait_until(lambda: len(found) == 3, "all that is retained")
        assert {one.payload for one in found} == {b"a", b"b/c", b"now"}
        numbers = count()
        # The broker may not have read yet that nothing more of it is asked for.
        wait_until(lambda: not heard_again(link, accepted, b"%d" % next(numbers)), "it has ended", 20.0)
    finally:
        link.stop(None, 2.0)
    assert {one.payload for one in found} == {b"a", b"b/c", b"now"}


def heard_again(link: Link, accepted: list[Incoming], payload: bytes) -> bool:
    """Whether something that is said now on a topic that was looked at comes, before a mark that is said behind it."""
    link.tell(Outgoing(topic="own/late", payload=payload, retain=True), Outgoing(topic="mark", payload=payload))
    said = lambda topic: any((one.topic, one.payload) == (topic, payload) for one in accepted)  # noqa: E731
    wait_until(lambda: said("mark"), "the mark", 20.0)
    return said("own/late")


def test_a_look_without_an_echo_ends_after_a_while() -> None:
    look = Look("own/#")
    look.begin(0.0)
    assert [look.over_due(seconds) for seconds in (LOOK_S - 0.1, LOOK_S)] == [False, True]
    look.end()
    assert not look.hears("own/x")


def test_a_look_ends_after_so_many_messages() -> None:
    look = Look("own/#")
    look.begin(0.0)
    for _ in range(MOST):
        assert not look.over_due(0.0)
        look.found()
    assert look.over_due(0.0)
