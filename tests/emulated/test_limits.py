"""What the emulated broker refuses and what it keeps at most: versions, logins, access rules, caps."""

import socket
from collections.abc import Iterator

import pytest

from rea_edge.emulated.broker import Action, Broker, Caps, Peer
from rea_edge.emulated.packets import Pingreq
from tests.brokers import wait_until
from tests.emulated.client import Client


@pytest.fixture
def here() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def test_an_old_broker_tells_clients_of_version_5_that_it_does_not_speak_it() -> None:
    with Broker(v5=False) as broker:
        refused = Client(broker.port, "d", "5")
        assert refused.code == 0x84
        refused.paho.loop_stop()
        with Client(broker.port, "d", "3.1.1") as client:
            assert client.code == 0


def test_only_who_logs_in_is_let_in(protocol: str) -> None:
    def login(client_id: str, username: str | None, password: bytes | None) -> bool:
        return (client_id, username, password) == ("d", "bob", b"secret")

    with Broker(login=login) as broker:
        with Client(broker.port, "d", protocol, login=("bob", "secret")) as client:
            assert client.code == 0
        for wrong in (("bob", "guess"), None):
            refused = Client(broker.port, "d", protocol, login=wrong)
            assert refused.code in (0x86, 0x87)
            refused.paho.loop_stop()


def test_access_is_asked_for_each_publish_subscription_and_delivery(protocol: str) -> None:
    asked: list[tuple[str, Action, str]] = []

    def access(peer: Peer, action: Action, topic: str) -> bool:
        asked.append((peer.client_id, action, topic))
        return not topic.endswith({"write": "/w", "read": "/r", "subscribe": "/s"}[action])

    with Broker(access=access) as broker, Client(broker.port, "d", protocol) as client:
        denied_publish = 0x87 if protocol == "5" else 0
        denied_subscribe = 0x87 if protocol == "5" else 0x80
        assert client.subscribe("t/+") == 1
        assert client.subscribe("t/s") == denied_subscribe
        assert client.publish("t/w", "denied") == denied_publish
        client.publish("t/r", "unreadable")
        client.publish("t/r", "unreadable", 0)
        client.publish("t/x", "end")
        assert client.until("end") == []
    assert asked == [
        ("d", "subscribe", "t/+"), ("d", "subscribe", "t/s"), ("d", "write", "t/w"), ("d", "write", "t/r"),
        ("d", "read", "t/r"), ("d", "write", "t/r"), ("d", "read", "t/r"), ("d", "write", "t/x"), ("d", "read", "t/x"),
    ]  # fmt: skip


def test_a_qos_2_publish_is_refused_and_a_qos_2_subscription_granted_1(here: Broker, protocol: str) -> None:
    client = Client(here.port, "d", protocol)
    assert client.subscribe("t/x", 2) == 1
    client.paho.publish("t/x", "m", 2)
    code = client.disconnects.get(timeout=5)
    client.paho.loop_stop()
    assert client.messages.empty()
    if protocol == "5":
        assert code == 0x9B
        assert client.connack.MaximumQoS == 1


def test_what_is_not_offered_is_refused_by_code(here: Broker) -> None:
    with Client(here.port, "d") as client:
        assert client.subscribe("$share/g/t") == 0x9E
        assert client.connack.SharedSubscriptionAvailable == 0
        assert client.connack.SubscriptionIdentifierAvailable == 0


# --- limits


def test_a_queue_holds_what_its_cap_allows_and_the_rest_is_counted() -> None:
    with Broker(caps=Caps(queued=5)) as broker, Client(broker.port, "p") as sender:
        with Client(broker.port, "d", keep=True) as client:
            client.subscribe("t/#")
        for number in range(8):
            sender.publish("t/x", str(number))
        assert broker.dropped == 3
        with Client(broker.port, "d", keep=True) as client:
            sender.publish("t/x", "end")
            assert client.until("end") == ["0", "1", "2", "3", "4"]


def test_all_that_is_kept_together_stays_under_its_cap() -> None:
    with Broker(caps=Caps(kept_bytes=100_000)) as broker, Client(broker.port, "p") as sender:
        for name in ("d", "e"):
            with Client(broker.port, name, keep=True) as client:
                client.subscribe("t/#")
        assert sender.publish("r/x", b"x" * 40_000, retain=True) == 0x10
        for _ in range(10):
            sender.publish("t/x", b"x" * 10_000)
        assert broker.dropped == 15
        assert sender.publish("r/y", b"x" * 20_000, retain=True) == 0x97
        # What is acknowledged or cleared makes room again.
        sender.publish("r/x", b"", retain=True)
        for name in ("d", "e"):
            with Client(broker.port, name, keep=True) as client:
                while not client.messages.qsize():
                    client.messages.put(client.next())
            Client(broker.port, name).close()
        assert sender.publish("r/y", b"x" * 99_000, retain=True) == 0x10


def test_a_packet_over_the_limit_closes_the_connection(protocol: str) -> None:
    with Broker(caps=Caps(packet_bytes=1000)) as broker:
        client = Client(broker.port, "d", protocol)
        client.paho.publish("t/x", b"x" * 2000, 1)
        code = client.disconnects.get(timeout=5)
        client.paho.loop_stop()
        if protocol == "5":
            assert code == 0x95
            assert client.connack.MaximumPacketSize == 1000


def test_sessions_and_subscriptions_are_bounded() -> None:
    caps = Caps(sessions=2, subscriptions=1)
    with Broker(caps=caps) as broker, Client(broker.port, "a") as one, Client(broker.port, "b"):
        assert (one.subscribe("t/1"), one.subscribe("t/2"), one.subscribe("t/1")) == (1, 0x97, 1)
        refused = Client(broker.port, "c")
        assert refused.code == 0x97
        refused.disconnects.get(timeout=5)
        refused.paho.loop_stop()


def test_connections_are_bounded() -> None:
    with Broker(caps=Caps(connections=1)) as broker, _raw(broker) as first, _raw(broker) as second:
        assert second.recv(1) == b""
        first.sendall(_connect(b"a"))
        assert first.recv(4) == b"\x20\2\0\0"


def test_a_client_that_does_not_read_costs_a_bounded_amount_and_harms_nobody(here: Broker) -> None:
    with _raw(here) as deaf, Client(here.port, "p") as sender:
        deaf.sendall(_connect(b"deaf") + b"\x82\x06\0\1\0\1t\0")
        wait_until(lambda: b"\x90" in deaf.recv(64), "subscribed")
        for _ in range(400):
            sender.publish("t", b"x" * 50_000, 0)
        sender.publish("other", "still served")
        assert here.dropped > 100


def test_a_connection_that_says_nothing_is_closed() -> None:
    with Broker(connect_s=0.1) as broker, _raw(broker) as mute:
        assert mute.recv(1) == b""


def test_a_client_that_pings_is_not_taken_for_silent(here: Broker) -> None:
    pings: list[str] = []
    here.on_recv = lambda client_id, packet: pings.append(client_id) if isinstance(packet, Pingreq) else None
    with Client(here.port, "d", keepalive_s=1) as client:
        wait_until(lambda: len(pings) >= 2, "two pings")
        client.subscribe("t/x")
        assert client.disconnects.empty()


def _raw(broker: Broker) -> socket.socket:
    return socket.create_connection(("127.0.0.1", broker.port), 5.0)


def _connect(client_id: bytes) -> bytes:
    body = b"\0\4MQTT\4\2\0\0" + len(client_id).to_bytes(2, "big") + client_id
    return b"\x10" + bytes([len(body)]) + body
