"""What goes in and out over a link, on the emulated broker and on Mosquitto, in both protocols."""

import threading
import time

import pytest

from rea_edge.mqtt import Incoming, Outgoing
from tests.brokers import AnyBroker, wait_until
from tests.mqtt.conftest import Settings
from tests.mqtt.station import Station, running


def test_every_message_posted_is_accepted_once_and_in_order(broker: AnyBroker, settings: Settings) -> None:
    sender, receiver = Station(settings(broker.url, "s")), Station(settings(broker.url, "r"), "t/#")
    sent = [b"%d" % n for n in range(60)]
    with running(receiver, sender):
        for payload in sent:
            sender.post("t/x", payload)
        sender.wait_empty()
        receiver.wait_payloads(*sent)
    assert receiver.payloads == sent
    assert [(out.payload, reason) for out, reason in sender.published] == [(payload, None) for payload in sent]


def test_an_accepted_message_is_acknowledged_and_never_delivered_again(broker: AnyBroker, settings: Settings) -> None:
    sender, receiver = Station(settings(broker.url, "s")), Station(settings(broker.url, "r"), "t/#")
    with running(receiver, sender):
        sender.post("t/x", b"first")
        receiver.wait_payloads(b"first")
    again = Station(settings(broker.url, "r"), "t/#")
    sender = Station(settings(broker.url, "s"))
    with running(again, sender):
        assert again.ups[0].present
        sender.post("t/x", b"second")
        again.wait_payloads(b"second")
    assert again.payloads == [b"second"]


def test_nothing_is_lost_when_storing_fails_at_first(broker: AnyBroker, settings: Settings) -> None:
    sender, receiver = Station(settings(broker.url, "s")), Station(settings(broker.url, "r"), "t/#")
    failures = iter([False, True, False])  # says no, raises, says no

    def answer(_incoming: Incoming) -> bool:
        raises = next(failures, None)
        if raises:
            raise RuntimeError("the disk is full")
        return raises is None

    receiver.answer = answer
    sent = [b"%d" % n for n in range(25)]
    with running(receiver, sender):
        for payload in sent:
            sender.post("t/x", payload)
        receiver.wait_payloads(*sent)
    assert receiver.connects >= 4
    assert receiver.downs[0] == "a message could not be stored"
    assert sorted(receiver.payloads, key=int) == sent


def test_what_came_while_the_link_was_away_is_delivered_when_it_is_back(broker: AnyBroker, settings: Settings) -> None:
    with running(Station(settings(broker.url, "r"), "t/#")):
        pass
    sender, receiver = Station(settings(broker.url, "s")), Station(settings(broker.url, "r"), "t/#")
    sent = [b"%d" % n for n in range(30)]
    with running(sender):
        for payload in sent:
            sender.post("t/x", payload)
        sender.wait_empty()
        with running(receiver):
            receiver.wait_payloads(*sent)
    assert receiver.payloads == sent


def test_a_clean_session_leaves_nothing_behind_at_the_broker(broker: AnyBroker, settings: Settings) -> None:
    for _ in range(2):
        client = Station(settings(broker.url, "c", session_expiry_s=0), "t/#")
        with running(client):
            assert not client.ups[0].present


def test_a_message_too_large_is_skipped_and_does_not_come_again(
    broker: AnyBroker, settings: Settings, protocol: str
) -> None:
    sender = Station(settings(broker.url, "s"))
    receiver = Station(settings(broker.url, "r", packet_max=20_000), "t/#")
    with running(receiver, sender):
        for payload in (b"before", bytes(300_000), b"after"):
            sender.post("t/x", payload)
        receiver.wait_payloads(b"before", b"after")
        assert receiver.link.state.too_large == (0 if protocol == "5" else 1)
    assert len(receiver.ups) == 1
    with running(again := Station(settings(broker.url, "r", packet_max=20_000), "t/#")):
        again.link.tell(Outgoing(topic="t/x", payload=b"last"))
        again.wait_payloads(b"last")
    assert again.payloads == [b"last"]
    assert again.link.state.too_large == 0


def test_a_retained_message_is_seen_as_such_where_the_protocol_can(
    broker: AnyBroker, settings: Settings, protocol: str
) -> None:
    sender, early = Station(settings(broker.url, "s")), Station(settings(broker.url, "e"), "t/#")
    late = Station(settings(broker.url, "l"), "t/#")
    with running(early, sender):
        sender.post("t/x", b"kept", retain=True)
        early.wait_payloads(b"kept")
        with running(late):
            late.wait_payloads(b"kept")
    assert [late.accepted[0].retained, early.accepted[0].retained] == [True, protocol == "5"]


def test_expiry_response_topic_and_correlation_cross_the_link_in_mqtt_5(
    broker: AnyBroker, settings: Settings, protocol: str
) -> None:
    out = Outgoing(topic="t/x", payload=b"ask", expires_in_s=60, response_topic="back", correlation=b"\x00\xff")
    with running(both := Station(settings(broker.url, "b"), "t/#")):
        both.link.tell(out)
        both.wait_payloads(b"ask")
    got = both.accepted[0]
    if protocol == "5":
        assert (got.response_topic, got.correlation) == ("back", b"\x00\xff")
        assert got.expires_in_s in (59, 60)
    else:
        assert (got.response_topic, got.correlation, got.expires_in_s) == (None, None, None)


def test_what_waited_in_the_brokers_queue_is_told_from_what_is_fresh(broker: AnyBroker, settings: Settings) -> None:
    def station() -> Station:
        return Station(settings(broker.url, "r"), "own/+", "t/#", fence=lambda: "own/7")

    with running(station()):
        pass
    sender, receiver = Station(settings(broker.url, "s")), station()
    with running(sender):
        for n in range(25):
            sender.post("t/x", b"old %d" % n)
        sender.wait_empty()
        with running(receiver):
            wait_until(lambda: receiver.link.state.fenced, "the fence is seen")
            sender.post("t/x", b"fresh")
            receiver.wait_payloads(b"fresh")
    assert [incoming.waited for incoming in receiver.accepted] == [True] * 25 + [False]
    assert {incoming.topic for incoming in receiver.accepted} == {"t/x"}


def test_birth_messages_come_before_what_waits(broker: AnyBroker, settings: Settings) -> None:
    births = (Outgoing(topic="t/status", payload=b"online", retain=True),)
    station = Station(settings(broker.url, "b"), "t/#", births=births)
    station.post("t/result", b"result")
    station.link.tell(Outgoing(topic="t/reply", payload=b"reply"))
    with running(station):
        station.wait_payloads(b"online", b"reply", b"result")
    assert station.payloads == [b"online", b"reply", b"result"]


def test_only_what_is_worth_keeping_is_kept_while_offline(broker: AnyBroker, settings: Settings) -> None:
    station = Station(settings(broker.url, "b"), "t/#")
    station.link.tell(Outgoing(topic="t/x", payload=b"event", qos=0))
    for n in range(205):
        station.link.tell(Outgoing(topic="t/x", payload=b"%d" % n))
    assert (station.link.state.dropped_qos0, station.link.state.dropped_qos1) == (1, 5)
    with running(station):
        station.wait_payloads(b"204")
        station.link.tell(Outgoing(topic="t/x", payload=b"now", qos=0))
        station.wait_payloads(b"now")
    assert station.payloads[0] == b"5"


def test_a_wake_from_any_thread_sends_at_once(broker: AnyBroker, settings: Settings) -> None:
    with running(station := Station(settings(broker.url, "b"), "t/#")):
        station.wait_up()
        threads = [threading.Thread(target=station.post, args=("t/x", b"%d" % n)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wait_until(lambda: len(station.accepted) == 8, "all eight", 3.0)  # a turn without a wake takes up to 7.5 s


@pytest.mark.parametrize("topic", ["t/#", "t/\ud800", "", "t/\0"], ids=["wildcard", "surrogate", "empty", "nul"])
def test_a_message_that_can_never_be_sent_is_reported_and_does_not_block(
    broker: AnyBroker, settings: Settings, topic: str
) -> None:
    with running(station := Station(settings(broker.url, "b"), "t/#")):
        station.post(topic, b"bad")
        station.post("t/x", b"good")
        station.wait_payloads(b"good")
        station.wait_empty()
    assert [reason for _, reason in station.published] == [0x90, None]
    assert len(station.ups) == 1


def test_what_has_outlived_its_use_is_not_sent_and_the_rest_says_what_is_left(
    broker: AnyBroker, settings: Settings, protocol: str
) -> None:
    sender, receiver = Station(settings(broker.url, "s")), Station(settings(broker.url, "r"), "t/#")
    now_s = time.monotonic()
    for payload, until_s in (
        (b"over", now_s),
        (b"soon over", now_s + 0.2),
        (b"of use", now_s + 100.0),
        (b"always", None),
    ):
        sender.link.tell(Outgoing(topic="t/x", payload=payload, until_s=until_s))
    wait_until(lambda: time.monotonic() > now_s + 0.2, "it is over")
    with running(receiver), running(sender):
        receiver.wait_payloads(b"always")
    assert receiver.payloads == [b"of use", b"always"]
    if protocol == "5":
        assert 90 <= (receiver.accepted[0].expires_in_s or 0) <= 100
