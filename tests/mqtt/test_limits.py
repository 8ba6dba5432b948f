"""What a broker allows is read from its CONNACK and kept to, on a Mosquitto that enforces it and on one that only says so."""

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from rea_edge.daemon.fitting import shorter
from rea_edge.emulated import packets as p
from rea_edge.mqtt import Outgoing, Will
from tests.brokers import AnyBroker, Emulated, Mosquitto, wait_until
from tests.mqtt.conftest import Settings
from tests.mqtt.station import Station, running

RETAIN_AVAILABLE, WILDCARDS_AVAILABLE, SERVER_KEEPALIVE = 0x25, 0x28, 0x13
Strict = Callable[..., Mosquitto]


@pytest.fixture
def protocol() -> str:
    """3.1.1 has no way to say any of this."""
    return "5"


@pytest.fixture
def strict(tmp_path: Path) -> Iterator[Strict]:
    """A Mosquitto with these lines in its configuration."""
    made: list[Mosquitto] = []

    def start(*lines: str) -> Mosquitto:
        made.append(Mosquitto(tmp_path, extra=lines))
        return made[-1].start()

    yield start
    for mosquitto in made:
        mosquitto.kill()


def saying(broker: Emulated, *properties: tuple[int, bytes]) -> None:
    """From now on its CONNACKs say this on top."""

    def send(_client_id: str, packet: p.Packet) -> p.Connack | None:
        if isinstance(packet, p.Connack):
            kept = tuple(pair for pair in packet.properties if pair[0] not in dict(properties))
            return packet._replace(properties=kept + properties)
        return None

    broker.on_send = send


def test_where_nothing_can_be_retained_nothing_is_and_the_will_neither(strict: Strict, settings: Settings) -> None:
    broker = strict("retain_available false")
    watcher = Station(settings(broker.url, "w"), "t/#")
    will = Will(topic="t/status", payload=b"offline")
    station = Station(settings(broker.url, "b"), will=will)
    with running(watcher, station):
        limits = station.link.state.limits
        assert limits is not None
        assert not limits.retain
        assert "no retained messages" in " ".join(limits.words(0))
        station.post("t/state", b"kept", retain=True)
        station.post("t/state", b"", retain=True)
        station.wait_empty()
        watcher.wait_payloads(b"kept")
        assert len(station.ups) == 1
    assert {reason for _, reason in station.published} == {None}
    assert b"" not in watcher.payloads


def test_where_only_qos_0_is_allowed_it_is_used_and_said(strict: Strict, settings: Settings) -> None:
    broker = strict("max_qos 0")
    station = Station(settings(broker.url, "b"), "t/#", will=Will(topic="t/status", payload=b"offline"))
    with running(station):
        station.post("t/x", b"x")
        station.wait_payloads(b"x")
        station.wait_empty()
        assert station.link.state.limits is not None
        assert "QoS 0 only" in " ".join(station.link.state.limits.words(0))
    assert [one.qos for one in station.accepted] == [0]
    assert len(station.ups) == 1


def test_a_message_above_the_brokers_limit_is_sent_shorter_or_reported(strict: Strict, settings: Settings) -> None:
    broker = strict("max_packet_size 2000")
    station = Station(settings(broker.url, "b", packet_max=2000), "t/#", shorter=shorter)
    large = msgspec.json.encode({"id": "t1", "seq": 7, "answer": "x" * 5000, "done": [{"n": n} for n in range(300)]})
    with running(station):
        station.post("t/large", large)
        station.post("t/list", msgspec.json.encode(["x" * 3000]))
        station.post("t/small", b"{}")
        station.wait_empty()
        station.wait_payloads(b"{}")
        assert len(station.ups) == 1
        assert station.link.state.limits is not None
        assert "at most 2000 bytes" in station.link.state.limits.words(32_768)[0]
    got = msgspec.json.decode(station.accepted[0].payload)
    assert (got["id"], got["seq"]) == ("t1", 7)
    assert "query" in got["cut"]
    assert got["done"][-1] == {"n": 299}
    assert [(out.topic, reason) for out, reason in station.published] == [
        ("t/list", 0x95), ("t/large", None), ("t/small", None),
    ]  # fmt: skip


def test_filters_with_wildcards_are_not_asked_for_where_they_end_the_connection(settings: Settings) -> None:
    with Emulated() as broker:
        asked: list[str] = []

        def receive(_client_id: str, packet: p.Packet) -> str | None:
            if isinstance(packet, p.Subscribe):
                asked.extend(wanted.topic_filter for wanted in packet.wanted)
            return None

        broker.on_recv = receive  # type: ignore[assignment]  # a str is wider than the verdicts
        saying(broker, (WILDCARDS_AVAILABLE, b"\0"))
        with running(station := Station(settings(broker.url, "b"), "t/#", "plain")):
            assert station.link.state.refused == ("t/#",)
            assert station.link.state.limits is not None
            assert "no wildcard" in " ".join(station.link.state.limits.words(0))
    assert asked == ["plain"]


def test_a_keepalive_that_the_broker_sets_is_kept(settings: Settings) -> None:
    with Emulated() as broker:
        pings: list[p.Packet] = []

        def receive(_client_id: str, packet: p.Packet) -> None:
            if isinstance(packet, p.Pingreq):
                pings.append(packet)

        broker.on_recv = receive
        saying(broker, (SERVER_KEEPALIVE, b"\0\1"))
        with running(Station(settings(broker.url, "b", keepalive_s=60))):
            wait_until(lambda: pings, "a sign of life")


def test_a_session_that_is_kept_shortly_is_said(settings: Settings) -> None:
    with Emulated() as broker:
        saying(broker, (p.SESSION_EXPIRY, (60).to_bytes(4)))
        with running(station := Station(settings(broker.url, "b"))):
            assert station.link.state.limits is not None
            assert "for 60 s only" in " ".join(station.link.state.limits.words(0))


def test_no_more_is_on_the_way_than_the_broker_receives_at_a_time(settings: Settings) -> None:
    with Emulated() as broker:
        received: list[bytes] = []

        def receive(_client_id: str, packet: p.Packet) -> None:
            if isinstance(packet, p.Publish):
                received.append(packet.payload)

        def send(_client_id: str, packet: p.Packet) -> p.Connack | str | None:
            if isinstance(packet, p.Connack):
                return packet._replace(properties=((p.RECEIVE_MAXIMUM, b"\0\2"),))
            return "drop" if isinstance(packet, p.Puback) else None

        broker.on_recv, broker.on_send = receive, send  # type: ignore[assignment]  # as above
        station = Station(settings(broker.url, "b", keepalive_s=1))
        for number in range(30):
            station.post("t/x", b"%d" % number)
        with running(station):
            wait_until(lambda: station.downs, "it waits for the acknowledgement of two")
    assert received[:2] == [b"0", b"1"]
    assert received[2:3] != [b"2"]


@pytest.mark.parametrize(("length", "reason"), [(256, None), (257, 0x90)])
def test_a_topic_of_more_than_256_bytes_is_not_sent(
    broker: AnyBroker, settings: Settings, length: int, reason: int | None
) -> None:
    with running(station := Station(settings(broker.url, "b"), "t/#")):
        station.link.tell(Outgoing(topic="t/" + "x" * (length - 2), payload=b"x"))
        wait_until(lambda: station.published, "it is settled")
    assert [found for _, found in station.published] == [reason]


@pytest.mark.parametrize(
    ("payload", "most", "expected"),
    [
        pytest.param(b"a plain text", 100, b"a plain text...", id="text is cut"),
        pytest.param(b"[1,2]", 3, None, id="a list has no head to keep"),
        pytest.param(b'{"a":1}', 20, None, id="even the word on it has no room"),
    ],
)
def test_what_cannot_be_made_shorter_is_none(payload: bytes, most: int, expected: bytes | None) -> None:
    assert shorter(payload, most) == expected


@pytest.mark.parametrize("most", [200, 400, 1000, 5000])
def test_a_shorter_message_is_within_its_bound_and_keeps_what_it_is_about(most: int) -> None:
    state = {"id": "t1", "seq": 3, "data": {"deep": ["x" * 9000]}, "answer": "ä" * 3000, "done": list(range(2000))}
    found = shorter(msgspec.json.encode(state), most)
    assert found is not None
    assert len(found) <= most
    assert (msgspec.json.decode(found)["id"], msgspec.json.decode(found)["seq"]) == ("t1", 3)
