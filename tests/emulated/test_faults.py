"""What only the emulated broker can show: faults on demand, stopping, losing its state."""

import socket
import time
from collections.abc import Iterator

import pytest
from paho.mqtt.packettypes import PacketTypes

from rea_edge.emulated.broker import Broker, Verdict
from rea_edge.emulated.packets import Connect, Packet, Puback, Publish, Suback
from tests.brokers import answers, wait_until
from tests.emulated.client import Client, properties


@pytest.fixture
def here() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


# --- faults


def test_a_lost_puback_to_the_sender_makes_it_send_again(here: Broker) -> None:
    lost: list[Packet] = []

    def lose_one(client_id: str, packet: Packet) -> Verdict:
        if client_id == "p" and isinstance(packet, Puback) and not lost:
            lost.append(packet)
            return "drop"
        return None

    here.on_send = lose_one
    with Client(here.port, "d") as watch:
        watch.subscribe("t/#")
        sender = Client(here.port, "p", keep=True, reconnect=True)
        sent = sender.paho.publish("t/x", "once", 1)
        assert watch.payloads(1) == ["once"]
        wait_until(lambda: lost, "the acknowledgement was lost")
        assert not sent.is_published()
        here.kick("p")
        assert watch.payloads(1) == ["once"]
        sent.wait_for_publish(5)
        sender.close()


def test_a_lost_puback_of_the_receiver_makes_the_broker_send_again(here: Broker, protocol: str) -> None:
    seen: list[Packet] = []

    def lose(client_id: str, packet: Packet) -> Verdict:
        if client_id == "d" and isinstance(packet, Puback):
            seen.append(packet)
            return "drop"
        return None

    here.on_recv = lose
    with Client(here.port, "d", protocol, keep=True) as client:
        client.subscribe("t/#")
        client.publish("t/x", "m")
        assert client.next().dup is False
        wait_until(lambda: seen, "the acknowledgement was lost")
    here.on_recv = None
    with Client(here.port, "d", protocol, keep=True) as client:
        assert client.next().dup is True


def test_a_hook_sees_client_and_packet(here: Broker) -> None:
    received: list[tuple[str, Packet]] = []
    sent: list[tuple[str, Packet]] = []
    here.on_recv = lambda client_id, packet: received.append((client_id, packet))
    here.on_send = lambda client_id, packet: sent.append((client_id, packet))
    with Client(here.port, "d") as client:
        client.subscribe("t/x")
        client.publish("t/x", "m")
        client.next()
    assert isinstance(received[0][1], Connect)
    assert [client_id for client_id, _ in received + sent] == ["d"] * len(received + sent)
    assert [packet.payload for _, packet in received if isinstance(packet, Publish)] == [b"m"]
    assert [packet.topic for _, packet in sent if isinstance(packet, Publish)] == ["t/x"]


def test_a_cut_breaks_the_connection_at_that_packet_and_sends_the_will(here: Broker, protocol: str) -> None:
    with Client(here.port, "watch", protocol) as watch:
        watch.subscribe("t/#")
        here.on_recv = lambda client_id, packet: "cut" if client_id == "d" and isinstance(packet, Publish) else None
        client = Client(here.port, "d", protocol, will={"topic": "t/w", "payload": "gone"})
        client.paho.publish("t/x", "never seen", 1)
        client.disconnects.get(timeout=5)
        client.paho.loop_stop()
        assert watch.payloads(1) == ["gone"]


def test_a_cut_while_sending_leaves_the_message_in_flight(here: Broker) -> None:
    here.on_send = lambda client_id, packet: "cut" if isinstance(packet, Publish) else None
    client = Client(here.port, "d", keep=True)
    client.subscribe("t/x")
    client.paho.publish("t/x", "m", 1)
    client.disconnects.get(timeout=5)
    client.paho.loop_stop()
    assert client.messages.empty()
    here.on_send = None
    with Client(here.port, "d", keep=True) as client:
        assert client.payloads(1) == ["m"]


@pytest.mark.parametrize("direction", ["on_recv", "on_send"])
def test_a_delay_holds_a_packet_and_all_behind_it(here: Broker, direction: str) -> None:
    with Client(here.port, "d") as client, Client(here.port, "p") as sender:
        client.subscribe("t/#")
        slow = "p" if direction == "on_recv" else "d"

        def hold(client_id: str, packet: Packet) -> Verdict:
            return 0.3 if client_id == slow and isinstance(packet, Publish) and packet.payload == b"slow" else None

        setattr(here, direction, hold)
        began_s = time.monotonic()
        sender.paho.publish("t/x", "slow", 1)
        sender.paho.publish("t/x", "behind", 1)
        assert client.payloads(2) == ["slow", "behind"]
        assert 0.29 < time.monotonic() - began_s < 2.0


def test_a_suback_can_be_lost(here: Broker) -> None:
    here.on_send = lambda client_id, packet: "drop" if isinstance(packet, Suback) else None
    with Client(here.port, "d") as client:
        client.paho.subscribe("t/x", 1)
        client.publish("t/x", "m")
        assert client.payloads(1) == ["m"]
        assert client.subacks.empty()


def test_what_arrived_together_with_a_held_packet_is_acted_on_after_it(here: Broker) -> None:
    def hold(client_id: str, packet: Packet) -> Verdict:
        return 0.05 if isinstance(packet, Publish) and packet.payload == b"slow" else None

    with Client(here.port, "d") as client, _raw(here) as sender:
        client.subscribe("t")
        here.on_recv = hold
        sender.sendall(_connect(b"p") + b"\x30\x07\0\1tslow" + b"\x30\x05\0\1tab")
        assert client.payloads(2) == ["slow", "ab"]


def test_a_connect_that_is_dropped_is_never_answered(here: Broker) -> None:
    here.on_recv = lambda client_id, packet: "drop" if client_id == "d" else None
    client = Client(here.port, "d", wait=False)
    with Client(here.port, "other") as other:
        other.subscribe("t/x")
        other.publish("t/x", "m")
        other.next()
    assert client.connects.empty()
    wait_until(lambda: here.clients() == (), "the other one has left, and nobody else was there")
    client.close()


def test_a_kicked_client_is_cut_off_and_its_will_is_published(here: Broker, protocol: str) -> None:
    with Client(here.port, "watch", protocol) as watch:
        watch.subscribe("t/w")
        client = Client(here.port, "d", protocol, will={"topic": "t/w", "payload": "gone"})
        assert set(here.clients()) == {"watch", "d"}
        here.kick("nobody")
        here.kick("d")
        client.disconnects.get(timeout=5)
        client.paho.loop_stop()
        assert watch.payloads(1) == ["gone"]
        assert here.clients() == ("watch",)


def test_an_exception_in_a_hook_closes_everything_and_stop_raises_it() -> None:
    broker = Broker().start()

    def fail(client_id: str, packet: Packet) -> None:
        if isinstance(packet, Publish):
            raise ValueError("hook")

    client = Client(broker.port, "d")
    broker.on_recv = fail
    client.paho.publish("t/x", "m", 1)
    client.disconnects.get(timeout=5)
    client.paho.loop_stop()
    wait_until(lambda: not answers(broker.port), "the port refuses")
    with pytest.raises(ValueError, match="hook"):
        broker.stop()
    broker.on_recv = None
    with broker, Client(broker.port, "d") as again:
        assert again.code == 0


# --- stop and start


def test_a_broker_that_lost_its_state_knows_no_sessions_and_no_retained_messages(here: Broker, protocol: str) -> None:
    with Client(here.port, "d", protocol, keep=True) as client:
        client.subscribe("t/#")
        client.publish("r/x", "kept", retain=True)
    assert here.retained() == {"r/x": b"kept"}
    here.stop(lose=True)
    here.start()
    assert here.retained() == {}
    with Client(here.port, "d", protocol, keep=True) as client:
        assert not client.present


def test_a_client_that_reconnects_after_a_restart_gets_what_it_had_not_acknowledged(here: Broker) -> None:
    client = Client(here.port, "d", keep=True, manual=True)
    client.subscribe("t/#")
    client.publish("t/x", "m")
    assert client.next().dup is False
    here.stop()
    client.disconnects.get(timeout=5)
    client.paho.loop_stop()
    here.start()
    with Client(here.port, "d", keep=True) as client:
        assert client.next().dup is True


def test_a_client_that_is_back_gets_the_unacknowledged_first_and_then_the_rest_within_its_window(
    here: Broker,
) -> None:
    client = Client(here.port, "d", keep=True, manual=True)
    client.subscribe("t/#")
    with Client(here.port, "p") as sender:
        for number in range(5):
            sender.publish("t/x", str(number))
        client.payloads(5)
        client.drop()
        wait_until(lambda: "d" not in here.clients(), "the broker has noticed")
        for number in range(5, 8):
            sender.publish("t/x", str(number))
        with Client(here.port, "d", keep=True, manual=True, ReceiveMaximum=3) as client:
            client.subscribe("end", 0)
            sender.publish("end", "end", 0)
            first = [client.next() for _ in range(4)]
            assert [m.payload for m in first] == [b"0", b"1", b"2", b"end"]
            for message in first[:3]:
                client.paho.ack(message.mid, 1)
            for number in range(3, 8):
                message = client.next()
                assert (message.payload, message.dup) == (str(number).encode(), number < 5)
                client.paho.ack(message.mid, 1)


def test_a_takeover_of_a_kept_session_publishes_the_will_of_the_old_connection_first(
    here: Broker, protocol: str
) -> None:
    # As the standard says; Mosquitto 2.0.11 publishes it only where the new connection starts clean.
    with Client(here.port, "watch", protocol) as watch:
        watch.subscribe("t/#")
        old = Client(here.port, "d", protocol, keep=True, will={"topic": "t/w", "payload": "gone", "qos": 1})
        with Client(here.port, "d", protocol, keep=True) as new:
            new.publish("t/x", "here")
            assert watch.payloads(2) == ["gone", "here"]
        old.disconnects.get(timeout=5)
        old.paho.loop_stop()


def test_a_broker_with_nothing_to_do_does_nothing(here: Broker) -> None:
    delayed = properties(PacketTypes.WILLMESSAGE, WillDelayInterval=1)
    will = {"topic": "t/w", "payload": "gone", "qos": 1, "properties": delayed}
    Client(here.port, "d", keep=True, will=will).drop()
    Client(here.port, "d", keep=True).drop()
    Client(here.port, "d", keep=True).close()
    wait_until(lambda: here.clients() == (), "all have left")
    time.sleep(1.0)
    used_s = time.process_time()
    time.sleep(0.5)
    assert time.process_time() - used_s < 0.1


def test_stop_may_be_called_twice_and_start_may_not() -> None:
    broker = Broker()
    broker.stop()
    broker.start()
    with pytest.raises(RuntimeError):
        broker.start()
    broker.stop()
    broker.stop()


def test_a_taken_port_is_an_error_at_once(here: Broker) -> None:
    with pytest.raises(OSError, match="in use"):
        Broker(here.port).start()


def _raw(broker: Broker) -> socket.socket:
    return socket.create_connection(("127.0.0.1", broker.port), 5.0)


def _connect(client_id: bytes) -> bytes:
    body = b"\0\4MQTT\4\2\0\0" + len(client_id).to_bytes(2, "big") + client_id
    return b"\x10" + bytes([len(body)]) + body
