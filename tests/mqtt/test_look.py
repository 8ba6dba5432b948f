"""One look at what is retained below a filter: behind the fence, bounded, and over when its echo is back."""

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
        subscriptions=("own/_self/+",),
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
        link.tell(Outgoing(topic="own/late", payload=b"x", retain=True))
        link.tell(Outgoing(topic="own/_self/x", payload=b"x"))
        wait_until(lambda: link.state.in_flight == 0 and not link.state.waiting, "it is said")
    finally:
        link.stop(None, 2.0)
    assert {one.payload for one in found} == {b"a", b"b/c", b"now"}
    assert not accepted


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
