"""Retained messages and subscription options, asked of the emulated broker and of a real Mosquitto alike."""

import pytest

from tests.brokers import AnyBroker
from tests.emulated.client import Client


@pytest.mark.parametrize("topic_filter", ["t/s", "t/#", "+/s"])
def test_a_retained_message_is_given_to_a_new_subscriber(broker: AnyBroker, protocol: str, topic_filter: str) -> None:
    with Client(broker.port, "a", protocol) as client:
        client.publish("t/s", "old", retain=True)
        client.publish("t/s", "kept", retain=True)
        client.subscribe(topic_filter)
        message = client.next()
    assert (message.topic, message.payload, message.retain) == ("t/s", b"kept", True)


def test_an_empty_retained_message_clears_and_is_delivered_itself(broker: AnyBroker, protocol: str) -> None:
    with Client(broker.port, "a", protocol) as client, Client(broker.port, "b", protocol) as other:
        client.publish("t/s", "kept", retain=True)
        client.subscribe("t/#")
        assert client.next().payload == b"kept"
        client.publish("t/s", "", retain=True)
        assert client.next().payload == b""
        other.subscribe("t/#")
        other.publish("t/x", "end")
        assert other.until("end") == []


def test_a_live_message_carries_the_retain_flag_only_where_asked_for(broker: AnyBroker) -> None:
    with Client(broker.port, "a") as client:
        client.subscribe("t/plain")
        client.subscribe("t/as", retainAsPublished=True)
        for topic in ("t/plain", "t/as"):
            client.publish(topic, "x", retain=True)
        assert [(m.topic, m.retain) for m in (client.next(), client.next())] == [("t/plain", False), ("t/as", True)]


def test_a_live_message_never_carries_the_retain_flag_in_3_1_1(broker: AnyBroker) -> None:
    with Client(broker.port, "a", "3.1.1") as client:
        client.subscribe("t/x")
        client.publish("t/x", "x", retain=True)
        assert client.next().retain is False


@pytest.mark.parametrize(("handling", "times"), [(0, 2), (1, 1), (2, 0)], ids=["always", "new filters", "never"])
def test_retain_handling_says_when_retained_messages_are_sent(broker: AnyBroker, handling: int, times: int) -> None:
    with Client(broker.port, "a") as client:
        client.publish("t/s", "kept", retain=True)
        for _ in range(2):
            client.subscribe("t/s", retainHandling=handling)
        client.publish("t/s", "end")
        assert client.until("end") == ["kept"] * times


def test_no_local_keeps_a_clients_own_messages_away(broker: AnyBroker) -> None:
    with Client(broker.port, "a") as client, Client(broker.port, "b") as other:
        client.subscribe("t/x", noLocal=True)
        client.publish("t/x", "own")
        other.publish("t/x", "end")
        assert client.until("end") == []
