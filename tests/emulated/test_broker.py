"""What a client may rely on, asked of the emulated broker and of a real Mosquitto with the same assertions."""

import socket
import time

import pytest
from paho.mqtt.packettypes import PacketTypes

from tests.brokers import AnyBroker, answers, wait_until
from tests.emulated.client import Client, properties

# Expiry of a second: Mosquitto counts whole seconds, so that there it may last more than two.
A_WHILE_S = {"emulated": 1.3, "mosquitto": 2.3}

# Tests that wait for time to pass run against Mosquitto with the slow ones only.
takes_seconds = pytest.mark.parametrize(
    "broker", ["emulated", pytest.param("mosquitto", marks=pytest.mark.slow)], indirect=True
)


def test_a_client_connects_and_its_session_is_new(broker: AnyBroker, protocol: str) -> None:
    with Client(broker.port, "a", protocol) as client:
        assert (client.code, client.present) == (0, False)


@pytest.mark.parametrize(
    ("wanted", "sent", "arrives"), [(0, 0, 0), (0, 1, 0), (1, 0, 0), (1, 1, 1)], ids=["0-0", "0-1", "1-0", "1-1"]
)
def test_a_message_arrives_with_the_lower_qos_of_both_sides(
    broker: AnyBroker, protocol: str, wanted: int, sent: int, arrives: int
) -> None:
    with Client(broker.port, "a", protocol) as client:
        assert client.subscribe("t/x", wanted) == wanted
        client.publish("t/x", "hello", sent)
        message = client.next()
    assert (message.topic, message.payload, message.qos, message.retain) == ("t/x", b"hello", arrives, False)


def test_wildcards_match_levels_and_not_dollar_topics(broker: AnyBroker, protocol: str) -> None:
    with Client(broker.port, "a", protocol) as client:
        for topic_filter in ("a/+/c", "b/#", "+/$x", "end"):
            client.subscribe(topic_filter)
        for topic in ("a/b/c", "a/b/c/d", "a/c", "b", "b/x/y", "bb", "q/$x", "$q/$x", "a//c", "end"):
            client.publish(topic, topic)
        assert client.until("end") == ["a/b/c", "b", "b/x/y", "q/$x", "a//c"]


def test_topics_may_hold_spaces_dots_stars_and_letters_of_any_language(broker: AnyBroker, protocol: str) -> None:
    topics = ["/lead/x", "sp ace/x", "do.t/x", "üñ/日本", "e//x", "star*/x", "gt>/x"]
    with Client(broker.port, "a", protocol) as client:
        client.subscribe("#")
        for topic in topics:
            client.publish(topic, topic)
        assert client.payloads(len(topics)) == topics


def test_overlapping_filters_of_a_3_1_1_client_give_one_copy(broker: AnyBroker) -> None:
    # Of a client of version 5 brokers differ: Mosquitto 2.0 sends one copy per filter, the emulated one a single one.
    with Client(broker.port, "a", "3.1.1") as client:
        for topic_filter in ("t/#", "t/+", "t/x"):
            client.subscribe(topic_filter)
        client.publish("t/x", "one")
        client.publish("t/x", "end")
        assert [(m.payload, m.qos) for m in (client.next(), client.next())] == [(b"one", 1), (b"end", 1)]


def test_after_unsubscribing_nothing_more_arrives(broker: AnyBroker, protocol: str) -> None:
    with Client(broker.port, "a", protocol) as client:
        client.subscribe("t/x")
        client.subscribe("t/end")
        client.paho.unsubscribe("t/x")
        client.publish("t/x", "late")
        client.publish("t/end", "end")
        assert client.until("end") == []


# --- wills


def test_the_will_is_published_when_the_connection_breaks(broker: AnyBroker, protocol: str) -> None:
    will = {"topic": "t/w", "payload": "gone", "qos": 1, "retain": True}
    with Client(broker.port, "a", protocol) as watch:
        watch.subscribe("t/w")
        Client(broker.port, "w", protocol, will=will).drop()
        assert watch.next().payload == b"gone"
        watch.subscribe("t/+")
        assert watch.next().retain is True


def test_an_orderly_disconnect_publishes_no_will(broker: AnyBroker, protocol: str) -> None:
    with Client(broker.port, "a", protocol) as watch:
        watch.subscribe("t/#")
        Client(broker.port, "w", protocol, will={"topic": "t/w", "payload": "gone"}).close()
        # The same id again: the broker has done with the first connection when the second is answered.
        with Client(broker.port, "w", protocol):
            watch.publish("t/x", "end")
            assert watch.until("end") == []


@takes_seconds
def test_a_will_is_published_when_the_client_falls_silent(broker: AnyBroker, protocol: str) -> None:
    with Client(broker.port, "a", protocol) as watch, socket.create_connection(("127.0.0.1", broker.port)) as raw:
        watch.subscribe("t/w")
        properties = b"\0" if protocol == "5" else b""
        version = b"\5" if protocol == "5" else b"\4"
        # CONNECT with a keepalive of 1 s, clean, will QoS 0 "gone" on t/w; then never a word again.
        body = b"\0\4MQTT" + version + b"\6\0\1" + properties + b"\0\1w" + properties + b"\0\3t/w\0\4gone"
        raw.sendall(b"\x10" + bytes([len(body)]) + body)
        began_s = time.monotonic()
        # Mosquitto looks for silent clients every five seconds only.
        assert watch.messages.get(timeout=12).payload == b"gone"
        assert time.monotonic() - began_s > 1.0


@takes_seconds
def test_a_delayed_will_is_not_published_when_the_client_is_back_in_time(broker: AnyBroker) -> None:
    with Client(broker.port, "a") as watch:
        watch.subscribe("t/#")
        Client(broker.port, "w", keep=True, will=_will_after(1)).drop()
        with Client(broker.port, "w", keep=True) as back:
            assert back.present
            time.sleep(A_WHILE_S[broker.kind])
            watch.publish("t/x", "end")
            assert watch.until("end") == []


@takes_seconds
def test_a_delayed_will_is_published_after_its_delay(broker: AnyBroker) -> None:
    with Client(broker.port, "a") as watch:
        watch.subscribe("t/#")
        Client(broker.port, "w", keep=True, will=_will_after(1)).drop()
        watch.publish("t/x", "first")
        assert watch.payloads(2) == ["first", "gone"]


# --- sessions


def test_what_is_published_while_a_client_is_away_waits_for_it_in_order(broker: AnyBroker, protocol: str) -> None:
    Client(broker.port, "d", protocol, keep=True).close()
    with Client(broker.port, "d", protocol, keep=True) as client:
        assert client.present
        client.subscribe("t/#")
    with Client(broker.port, "p", protocol) as sender:
        sender.publish("t/x", "qos 0 does not wait", 0)
        for number in range(50):
            sender.publish("t/x", str(number))
    with Client(broker.port, "d", protocol, keep=True) as client:
        assert client.payloads(50) == [str(number) for number in range(50)]


def test_a_clean_start_forgets_the_session(broker: AnyBroker, protocol: str) -> None:
    with Client(broker.port, "d", protocol, keep=True) as client:
        client.subscribe("t/#")
    Client(broker.port, "d", protocol).close()
    with Client(broker.port, "d", protocol, keep=True) as client:
        assert not client.present
        client.publish("t/x", "nobody")
        client.subscribe("t/end")
        client.publish("t/end", "end")
        assert client.until("end") == []


@takes_seconds
def test_a_session_ends_when_its_expiry_has_passed(broker: AnyBroker) -> None:
    Client(broker.port, "short", expiry_s=1, clean=False).drop()
    Client(broker.port, "long", expiry_s=60, clean=False).drop()
    time.sleep(A_WHILE_S[broker.kind])
    with Client(broker.port, "short", clean=False) as short, Client(broker.port, "long", clean=False) as long:
        assert (short.present, long.present) == (False, True)


def test_what_was_not_acknowledged_comes_again_marked_dup(broker: AnyBroker, protocol: str) -> None:
    client = Client(broker.port, "d", protocol, keep=True, manual=True)
    client.subscribe("t/#")
    with Client(broker.port, "p", protocol) as sender:
        for payload in ("0", "1", "2"):
            sender.publish("t/x", payload)
        first = [client.next() for _ in range(3)]
        client.paho.ack(first[1].mid, 1)
        client.publish("other", "answered after the acknowledgement was read")
        sender.publish("t/x", "3")
        first.append(client.next())
        client.drop()
        with Client(broker.port, "d", protocol, keep=True, manual=True) as client:
            again = [client.next() for _ in range(3)]
            assert [(m.payload, m.dup, m.mid) for m in again] == [
                (m.payload, True, m.mid) for m in first if m.payload != b"1"
            ]
            for message in again:
                client.paho.ack(message.mid, 1)
            sender.publish("t/x", "end")
            assert client.until("end") == []
        assert [m.dup for m in first] == [False] * 4


def test_a_client_gets_no_more_unacknowledged_messages_than_its_receive_maximum(broker: AnyBroker) -> None:
    with Client(broker.port, "d", manual=True, ReceiveMaximum=3) as client, Client(broker.port, "p") as sender:
        client.subscribe("t/#", 1)
        client.subscribe("end", 0)
        for number in range(10):
            sender.publish("t/x", str(number))
        sender.publish("end", "end", 0)
        first = [client.next() for _ in range(4)]
        assert [m.payload for m in first] == [b"0", b"1", b"2", b"end"]
        client.paho.ack(first[0].mid, 1)
        assert client.next().payload == b"3"


def test_a_client_of_3_1_1_gets_twenty_unacknowledged_messages_at_most(broker: AnyBroker) -> None:
    with Client(broker.port, "d", "3.1.1", manual=True) as client, Client(broker.port, "p") as sender:
        client.subscribe("t/#", 1)
        client.subscribe("end", 0)
        for number in range(30):
            sender.publish("t/x", str(number))
        sender.publish("end", "end", 0)
        assert client.until("end") == [str(number) for number in range(20)]


def test_a_second_client_with_the_same_id_takes_the_session_over(broker: AnyBroker, protocol: str) -> None:
    old = Client(broker.port, "d", protocol, keep=True)
    old.subscribe("t/#")
    with Client(broker.port, "d", protocol, keep=True) as new:
        old.disconnects.get(timeout=5)
        assert new.present
        new.publish("t/x", "here")
        assert new.payloads(1) == ["here"]
        assert old.messages.empty()
    old.paho.loop_stop()


def test_a_takeover_with_a_clean_start_publishes_the_will_of_the_old_connection_first(
    broker: AnyBroker, protocol: str
) -> None:
    with Client(broker.port, "watch", protocol) as watch:
        watch.subscribe("t/#")
        old = Client(broker.port, "d", protocol, will={"topic": "t/w", "payload": "gone", "qos": 1})
        with Client(broker.port, "d", protocol) as new:
            new.publish("t/x", "here")
            assert watch.payloads(2) == ["gone", "here"]
        old.paho.loop_stop()


def test_sessions_and_retained_messages_outlive_a_stop_and_a_start(broker: AnyBroker, protocol: str) -> None:
    with Client(broker.port, "d", protocol, keep=True) as client:
        client.subscribe("t/#")
    with Client(broker.port, "p", protocol) as sender:
        sender.publish("t/x", "queued")
        sender.publish("r/x", "kept", retain=True)
    broker.stop()
    assert not answers(broker.port)
    broker.start()
    with Client(broker.port, "d", protocol, keep=True) as client:
        assert client.present
        assert client.payloads(1) == ["queued"]
        client.subscribe("r/x")
        assert client.payloads(1) == ["kept"]


def test_a_broker_that_is_stopped_publishes_the_wills_of_its_clients(broker: AnyBroker, protocol: str) -> None:
    client = Client(broker.port, "w", protocol, will={"topic": "t/w", "payload": "gone", "qos": 1, "retain": True})
    broker.stop()
    client.disconnects.get(timeout=5)
    client.paho.loop_stop()
    broker.start()
    with Client(broker.port, "a", protocol) as watch:
        watch.subscribe("t/w")
        assert watch.payloads(1) == ["gone"]


# --- MQTT 5


def test_the_properties_of_a_request_reach_the_receiver(broker: AnyBroker) -> None:
    with Client(broker.port, "a") as client:
        client.subscribe("t/x")
        client.publish(
            "t/x", "m", ResponseTopic="answer/here", CorrelationData=b"\0\1", ContentType="application/json",
            UserProperty=[("trace", "1"), ("trace", "2")], PayloadFormatIndicator=1, MessageExpiryInterval=90,
        )  # fmt: skip
        got = client.next_properties()
    assert got.ResponseTopic == "answer/here"
    assert got.CorrelationData == b"\0\1"
    assert got.ContentType == "application/json"
    assert got.UserProperty == [("trace", "1"), ("trace", "2")]
    assert got.PayloadFormatIndicator == 1
    assert 85 <= got.MessageExpiryInterval <= 90


@takes_seconds
def test_a_message_expires_in_the_queue_and_its_age_is_counted(broker: AnyBroker) -> None:
    with Client(broker.port, "d", keep=True) as client:
        client.subscribe("t/#")
    with Client(broker.port, "p") as sender:
        sender.publish("t/x", "dies", MessageExpiryInterval=1)
        sender.publish("t/x", "lives", MessageExpiryInterval=60)
        sender.publish("t/x", "stays")
    time.sleep(A_WHILE_S[broker.kind])
    with Client(broker.port, "d", keep=True) as client:
        assert 50 <= client.next_properties(b"lives").MessageExpiryInterval <= 59
        assert not hasattr(client.next_properties(b"stays"), "MessageExpiryInterval")


def test_a_message_larger_than_the_client_takes_is_left_out(broker: AnyBroker) -> None:
    with Client(broker.port, "a", MaximumPacketSize=1000) as client, Client(broker.port, "p") as sender:
        client.subscribe("t/#")
        sender.publish("t/x", "x" * 1000)
        sender.publish("t/x", "end")
        assert client.until("end") == []


def test_the_sender_is_told_that_nobody_is_subscribed(broker: AnyBroker) -> None:
    with Client(broker.port, "p") as sender:
        assert sender.publish("nobody/here", "x") == 0x10


def test_a_client_without_an_id_is_given_one(broker: AnyBroker) -> None:
    with Client(broker.port, "") as one, Client(broker.port, "") as two:
        names = {client.connack.AssignedClientIdentifier for client in (one, two)}
    assert len(names) == 2


def test_a_large_payload_arrives_whole(broker: AnyBroker, protocol: str) -> None:
    payload = bytes(range(256)) * 4096
    with Client(broker.port, "a", protocol) as client:
        client.subscribe("t/x")
        client.publish("t/x", payload)
        assert client.next().payload == payload


def test_fifteen_hundred_messages_at_once_arrive_in_order(broker: AnyBroker, protocol: str) -> None:
    with Client(broker.port, "a", protocol) as client, Client(broker.port, "p", protocol) as sender:
        client.subscribe("t/x")
        for number in range(1500):
            sender.paho.publish("t/x", str(number), 1)
        assert client.payloads(1500) == [str(number) for number in range(1500)]


def test_a_port_that_was_stopped_refuses_and_answers_again(broker: AnyBroker) -> None:
    port = broker.port
    broker.stop()
    assert not answers(port)
    broker.start()
    assert broker.port == port
    wait_until(lambda: answers(port), "the port answers")


def _will_after(delay_s: int) -> dict[str, object]:
    return {
        "topic": "t/w",
        "payload": "gone",
        "qos": 1,
        "properties": properties(PacketTypes.WILLMESSAGE, WillDelayInterval=delay_s),
    }
