"""Messages that the broker will not take, or does not survive: each is met by its reason, and the rest goes on."""

import pytest

from rea_edge.emulated.broker import Broker
from rea_edge.emulated.packets import Packet, Puback, Publish
from rea_edge.mqtt import BROKE, LinkSettings, Outgoing, Session, verdict
from rea_edge.mqtt.fence import UNHEARD_S
from rea_edge.mqtt.refusals import DENIED_S, LATER_S, MOST, Resting
from rea_edge.mqtt.suspects import Suspects
from tests.brokers import AnyBroker, Emulated, wait_until
from tests.mqtt.conftest import Settings
from tests.mqtt.station import Station, running


def no_writing() -> Broker:
    return Broker(access=lambda _peer, action, _topic: action != "write")


def fenced(settings: LinkSettings) -> Station:
    return Station(settings, "own/+", fence=lambda: "own/1")


class Poison:
    """An `on_recv` that breaks the connection whenever a message to this topic comes."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.seen: list[str] = []

    def __call__(self, _client_id: str, packet: Packet) -> str | None:
        if not isinstance(packet, Publish):
            return None
        self.seen.append(packet.topic)
        return "cut" if packet.topic == self.topic else None


def test_a_row_that_breaks_three_connections_is_given_up_and_the_rest_goes_on(settings: Settings) -> None:
    with Emulated() as broker:
        broker.on_recv = poison = Poison("t/13")  # type: ignore[assignment]  # a str is wider than the verdicts
        station = Station(settings(broker.url, "b"))
        for number in range(40):
            station.post(f"t/{number}", b"x")
        with running(station):
            station.wait_empty()
    assert [out.topic for out, reason in station.published if reason == BROKE] == ["t/13"]
    assert {out.topic for out, reason in station.published if reason is None} == {
        f"t/{n}" for n in range(40) if n != 13
    }
    assert poison.seen.count("t/13") == 3
    assert len(station.ups) == 4


def test_what_was_told_and_breaks_three_connections_is_given_up(settings: Settings) -> None:
    with Emulated() as broker:
        broker.on_recv = Poison("t/bad")  # type: ignore[assignment]  # as above
        with running(station := Station(settings(broker.url, "b"), "t/#")):
            station.link.tell(Outgoing(topic="t/bad", payload=b"bad"))
            station.link.tell(Outgoing(topic="t/good", payload=b"good"))
            wait_until(lambda: any(reason == BROKE for _, reason in station.published), "it is given up", 10)
            station.wait_payloads(b"good")
    assert station.payloads == [b"good"]


def test_a_birth_that_breaks_three_connections_is_left_out_from_then_on(settings: Settings) -> None:
    births = (Outgoing(topic="t/status", payload=b"online"), Outgoing(topic="t/card", payload=b"card"))
    with Emulated() as broker:
        broker.on_recv = Poison("t/card")  # type: ignore[assignment]  # as above
        with running(station := Station(settings(broker.url, "b"), "t/#", births=births)):
            station.post("t/row", b"row")
            station.wait_payloads(b"online", b"row")
    assert [out.topic for out, reason in station.published if reason == BROKE] == ["t/card"]


def test_connections_that_end_with_others_on_the_way_blame_nobody(settings: Settings) -> None:
    with Emulated() as broker:
        station = Station(settings(broker.url, "b"), "t/#")
        cuts = iter(range(6))

        def cut(_client_id: str, packet: Packet) -> str | None:
            # Each time another one: the link is bad, not the message.
            return "cut" if isinstance(packet, Publish) and packet.payload == b"%d" % next(cuts, -1) else None

        broker.on_recv = cut  # type: ignore[assignment]  # as above
        for number in range(6):
            station.post("t/x", b"%d" % number)
        with running(station):
            station.wait_empty()
    assert {reason for _, reason in station.published} == {None}


def test_a_suspect_that_is_replaced_before_it_is_sent_again_holds_nothing_up(settings: Settings) -> None:
    with Emulated() as broker:
        first = iter([True])
        broker.on_recv = lambda _id, packet: "cut" if isinstance(packet, Publish) and next(first, False) else None
        station = Station(settings(broker.url, "b"), "t/#")

        def replace(session: Session) -> tuple[Outgoing, ...]:
            if session.count == 2:
                station.drop(1)
                for number in range(30):
                    station.post("t/x", b"%d" % number)
            return ()

        station.greet = replace
        station.post("t/x", b"old")
        with running(station):
            station.wait_up(2)
            station.wait_payloads(*(b"%d" % number for number in range(30)))
    assert b"old" not in station.payloads


@pytest.mark.parametrize("protocol", ["5"])
@pytest.mark.parametrize(
    ("code", "again"),
    [
        pytest.param(0x87, True, id="denied"),
        pytest.param(0x80, True, id="unspecified"),
        pytest.param(0x97, False, id="over a quota"),
        pytest.param(0x99, False, id="a payload it does not like"),
        pytest.param(0x90, False, id="a topic it does not like"),
    ],
)
def test_a_refused_row_rests_or_is_given_up_by_its_reason(settings: Settings, code: int, *, again: bool) -> None:
    with Emulated() as broker:
        refused: set[int] = set()

        def receive(_client_id: str, packet: Packet) -> None:
            if isinstance(packet, Publish) and packet.topic == "t/bad":
                refused.add(packet.packet_id)

        def send(_client_id: str, packet: Packet) -> Puback | None:
            if isinstance(packet, Puback) and packet.packet_id in refused:
                return Puback(packet.packet_id, code)
            return None

        broker.on_recv, broker.on_send = receive, send
        station = Station(settings(broker.url, "b"))
        with running(station):
            station.post("t/bad", b"x")
            station.post("t/good", b"x")
            wait_until(lambda: len(station.published) + len(station.refused) == 2, "both are settled")
            assert [(out.topic, reason) for out, reason in station.refused] == ([("t/bad", code)] if again else [])
            if again:  # the next connection may meet other rules
                broker.on_send = None
                broker.kick("b")
                station.wait_empty()
    assert [reason for out, reason in station.published if out.topic == "t/bad"] == [None if again else code]


@pytest.mark.parametrize("protocol", ["5"])
def test_many_denied_rows_do_not_hold_up_those_behind_them(settings: Settings) -> None:
    with Broker(access=lambda _peer, action, topic: action != "write" or not topic.startswith("no/")) as broker:
        station = Station(settings(broker.url, "b"), "t/#")
        for number in range(MOST + 20):
            station.post(f"no/{number}", b"x")
        station.post("t/x", b"x")
        with running(station):
            station.wait_payloads(b"x")
            wait_until(lambda: len(station.published) == 21, "what does not fit is given up")
            assert len(station.refused) == MOST


def test_a_reason_has_one_verdict() -> None:
    assert [verdict(code) for code in (0x80, 0x83, 0x91, 0x87, 0x97, 0x95, 0x99, BROKE)] == [
        "later", "later", "later", "denied", "never", "never", "never", "never",
    ]  # fmt: skip


def test_a_row_refused_in_passing_is_tried_three_times_and_a_denied_one_for_ever() -> None:
    resting = Resting()
    now_s = 0.0
    for tries in range(1, 4):
        assert resting.refused(1, 0x80, now_s)
        assert resting.rests(1, now_s + LATER_S * tries - 1)
        now_s += LATER_S * tries
        assert not resting.rests(1, now_s)
    assert not resting.refused(1, 0x80, now_s)
    for _ in range(9):
        assert resting.refused(2, 0x87, now_s)
        now_s += DENIED_S
        assert not resting.rests(2, now_s)


def test_rows_that_are_gone_from_the_outbox_rest_no_longer() -> None:
    resting = Resting()
    for row in (1, 2, 9):
        resting.refused(row, 0x87, 0.0)
    resting.keep({2}, up_to=5)
    assert [row for row in (1, 2, 9) if resting.rests(row, 1.0)] == [2, 9]


def test_only_a_message_that_was_alone_is_ever_named() -> None:
    suspects = Suspects()
    pair = [Outgoing(row=row, topic="t", payload=b"") for row in (1, 2)]
    for _ in range(5):
        assert suspects.ended(pair) is None
    assert suspects.ended(pair[:1]) is pair[0]
    assert suspects
    suspects.clear(pair[1])
    assert not suspects


@pytest.mark.parametrize("protocol", ["5"])
def test_a_fence_that_is_refused_shows_at_once(settings: Settings) -> None:
    with no_writing() as broker, running(station := fenced(settings(broker.url, "b"))):
        wait_until(lambda: station.link.state.unheard, "the fence is refused")


def test_a_fence_that_comes_back_is_no_fault(broker: AnyBroker, settings: Settings) -> None:
    with running(station := fenced(settings(broker.url, "b"))):
        wait_until(lambda: station.link.state.fenced, "the fence")
        assert not station.link.state.unheard


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["3.1.1"])
def test_a_fence_that_vanishes_shows_after_a_while(settings: Settings) -> None:
    with no_writing() as broker, running(station := fenced(settings(broker.url, "b"))):
        wait_until(lambda: station.link.state.unheard, "nothing comes back", UNHEARD_S + 5)


def test_the_next_message_to_a_topic_that_was_given_up_costs_one_connection(settings: Settings) -> None:
    with Emulated() as broker:
        broker.on_recv = poison = Poison("t/bad")  # type: ignore[assignment]  # as above
        with running(station := Station(settings(broker.url, "b"))):
            station.post("t/bad", b"x")
            station.wait_empty()
            for _ in range(3):
                station.post("t/x", b"x")
            station.post("t/bad", b"y")
            for _ in range(3):
                station.post("t/x", b"x")
            station.wait_empty()
    assert [reason for out, reason in station.published if out.topic == "t/bad"] == [BROKE, BROKE]
    assert poison.seen.count("t/bad") == 4
    assert poison.seen.count("t/x") == 6
