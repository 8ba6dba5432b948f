"""Exchanges with a device that shares no code with us, on the emulated broker and on Mosquitto, in both protocols."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rea_edge.mqtt import Outgoing
from rea_edge.mqtt.exchange import Exchange
from rea_edge.mqtt.talk import Ask, Heard, Missed
from tests.brokers import AnyBroker, Mosquitto, free_port, wait_until
from tests.devices import Device, replying
from tests.emulated.client import Client
from tests.mqtt.conftest import Settings

LONG_S = 20.0
SHORT_S = 0.8

MakeExchange = Callable[[str], Exchange]


@pytest.fixture
def make_exchange(settings: Settings) -> Iterator[MakeExchange]:
    made: list[Exchange] = []

    def make(url: str) -> Exchange:
        made.append(Exchange(settings(url, "n1.dev", session_expiry_s=0, packet_max=65_536)))
        return made[-1]

    yield make
    for exchange in made:
        exchange.stop()


@pytest.fixture
def exchange(broker: AnyBroker, make_exchange: MakeExchange) -> Exchange:
    return make_exchange(broker.url)


def asking(
    exchange: Exchange, ask: Ask, seconds: float = LONG_S, cancel: threading.Event | None = None
) -> Heard | Missed:
    return exchange.ask(ask, seconds, cancel or threading.Event())


def to_lamp(payload: bytes = b"ON", *, qos: int = 1, **more: object) -> Ask:
    fields: dict[str, object] = {"reply": "lamp/state", **more}
    return Ask(out=Outgoing(topic="lamp/set", payload=payload, qos=qos), **fields)  # type: ignore[arg-type]  # by each test


def missed(end: Heard | Missed) -> Missed:
    assert isinstance(end, Missed), end
    return end


@pytest.mark.parametrize("qos", [0, 1])
def test_what_a_device_answers_comes_back_and_the_request_is_not_retained(
    broker: AnyBroker, exchange: Exchange, qos: int
) -> None:
    with Device(broker.port, "lamp/set", answers=replying("lamp/state", "is ON")) as lamp:
        assert asking(exchange, to_lamp(qos=qos)) == Heard(payload=b"is ON")
        message = lamp.heard.get(timeout=5)
        assert (message.topic, message.payload, message.qos, message.retain) == ("lamp/set", b"ON", qos, False)


def test_a_device_that_answers_where_it_is_asked_is_told_from_the_request(
    broker: AnyBroker, exchange: Exchange
) -> None:
    ask = Ask(out=Outgoing(topic="lamp", payload=b"ON"), reply="lamp")
    end = missed(asking(exchange, ask, SHORT_S))
    assert (end.why, end.sent, end.others) == ("no_reply", True, 0)
    with Device(
        broker.port, "lamp", answers=lambda lamp, _topic, said: lamp.say("lamp", "is ON") if said == b"ON" else None
    ):
        assert asking(exchange, ask) == Heard(payload=b"is ON")


def test_one_connection_serves_one_exchange_after_the_other(broker: AnyBroker, exchange: Exchange) -> None:
    with Device(broker.port, "lamp/set", answers=lambda lamp, _topic, said: lamp.say("lamp/state", said)):
        for number in range(20):
            assert asking(exchange, to_lamp(b"%d" % number)) == Heard(payload=b"%d" % number)


def test_what_was_retained_is_no_answer_to_a_request(broker: AnyBroker, exchange: Exchange) -> None:
    with Device(broker.port, "lamp/set") as lamp:
        lamp.keep("lamp/state", "stale")
        end = missed(asking(exchange, to_lamp(), SHORT_S))
        assert (end.why, end.sent, end.others) == ("no_reply", True, 0)


def test_a_retained_reply_that_is_said_after_the_request_is_an_answer(broker: AnyBroker, exchange: Exchange) -> None:
    def answer(lamp: Device, _topic: str, _payload: bytes) -> None:
        lamp.say("lamp/state", "fresh", retain=True)

    with Device(broker.port, "lamp/set", answers=answer) as lamp:
        lamp.keep("lamp/state", "stale")
        assert asking(exchange, to_lamp()) == Heard(payload=b"fresh")


def test_what_is_retained_answers_a_mere_read(broker: AnyBroker, exchange: Exchange) -> None:
    with Device(broker.port) as lamp:
        lamp.keep("lamp/state", "kept")
        for _ in range(3):  # also where the topic was heard before
            assert asking(exchange, Ask(reply="lamp/state")) == Heard(payload=b"kept")


def test_a_mere_read_of_what_was_never_said_says_that_nothing_came(broker: AnyBroker, exchange: Exchange) -> None:
    end = missed(asking(exchange, Ask(reply="nobody/state"), SHORT_S))
    assert (end.why, end.sent) == ("no_reply", False)


def test_messages_that_do_not_match_are_counted_and_passed_over(broker: AnyBroker, exchange: Exchange) -> None:
    with Device(broker.port, "lamp/set", answers=replying("lamp/state", "id 1", "id 2", "id 3")):
        ask = to_lamp(matches=lambda payload: payload == b"id 3")
        assert asking(exchange, ask) == Heard(payload=b"id 3")
        end = missed(asking(exchange, to_lamp(matches=lambda payload: payload == b"id 9"), SHORT_S))
        assert (end.why, end.others) == ("no_reply", 3)


def test_exchanges_at_the_same_time_get_each_its_own_answer(broker: AnyBroker, exchange: Exchange) -> None:
    asked: list[bytes] = []

    def answer(lamp: Device, _topic: str, payload: bytes) -> None:
        asked.append(payload)
        if len(asked) == 8:  # all of them, the last first
            for one in reversed(asked):
                lamp.say("lamp/state", one)

    def one(number: int) -> Heard | Missed:
        mine = b"%d" % number
        return asking(exchange, to_lamp(mine, matches=lambda payload: payload == mine))

    with Device(broker.port, "lamp/set", answers=answer), ThreadPoolExecutor(8) as pool:
        assert list(pool.map(one, range(8))) == [Heard(payload=b"%d" % number) for number in range(8)]


def test_a_reply_that_comes_late_answers_nothing_else(broker: AnyBroker, exchange: Exchange) -> None:
    with Device(broker.port, "lamp/set") as lamp:
        assert missed(asking(exchange, to_lamp(b"first"), SHORT_S)).why == "no_reply"
        lamp.say("lamp/state", "late")
        lamp.answers = replying("lamp/state", "second")
        # Heard or not by then, it was said before the second request went out.
        lamp.keep("other", "behind it")
        assert asking(exchange, to_lamp(b"second")) == Heard(payload=b"second")


def test_a_request_can_expire_with_its_call(broker: AnyBroker, make_exchange: MakeExchange, protocol: str) -> None:
    exchange = make_exchange(broker.url)
    with Client(broker.port, "peer", "5") as peer:
        peer.subscribe("peer/in")
        ask = Ask(out=Outgoing(topic="peer/in", payload=b"call", expires_in_s=9), reply="peer/out")
        missed(asking(exchange, ask, SHORT_S))
        # 3.1.1 has no way to say it.
        expected = None if protocol == "3.1.1" else 9
        assert getattr(peer.next_properties(b"call"), "MessageExpiryInterval", None) == expected


@pytest.mark.parametrize("qos", [0, 1])
def test_without_a_reply_it_is_done_when_it_is_out(broker: AnyBroker, exchange: Exchange, qos: int) -> None:
    with Device(broker.port, "lamp/set") as lamp:
        assert asking(exchange, to_lamp(b"OFF", qos=qos, reply="")) == Heard()
        assert lamp.next() == ("lamp/set", b"OFF")


# --- whether the device is there


def away(_topic: str, payload: bytes) -> bool:
    return payload == b"offline"


def test_to_a_device_that_says_it_is_away_nothing_is_sent(broker: AnyBroker, exchange: Exchange) -> None:
    with Device(broker.port, "lamp/set", answers=replying("lamp/state", "on")) as lamp:
        lamp.keep("lamp/here", "offline")
        end = missed(asking(exchange, to_lamp(presence=("lamp/here",), away=away)))
        assert (end.why, end.sent, end.detail) == ("offline", False, "lamp/here says offline")
        lamp.keep("lamp/here", "online")
        assert asking(exchange, to_lamp(b"now", presence=("lamp/here",), away=away)) == Heard(payload=b"on")
        assert lamp.next() == ("lamp/set", b"now")


def test_what_is_kept_of_a_device_that_is_away_is_no_answer(broker: AnyBroker, exchange: Exchange) -> None:
    with Device(broker.port) as lamp:
        lamp.keep("lamp/state", "old")
        lamp.keep("lamp/here", "offline")
        assert missed(asking(exchange, Ask(reply="lamp/state", presence=("lamp/here",), away=away))).why == "offline"
        lamp.keep("lamp/here", "online")
        assert asking(exchange, Ask(reply="lamp/state", presence=("lamp/here",), away=away)) == Heard(payload=b"old")


def test_a_device_that_says_nothing_of_being_there_may_be(broker: AnyBroker, exchange: Exchange) -> None:
    with Device(broker.port, "lamp/set", answers=replying("lamp/state", "on")):
        assert asking(exchange, to_lamp(presence=("lamp/here", "hub/here"), away=away)) == Heard(payload=b"on")


# --- what goes wrong


def test_a_broker_that_is_not_there_is_named_within_the_time(make_exchange: MakeExchange) -> None:
    exchange = make_exchange(f"mqtt://127.0.0.1:{free_port()}")
    began_s = time.monotonic()
    end = missed(asking(exchange, to_lamp(), SHORT_S))
    assert (end.why, end.sent) == ("no_broker", False)
    assert "refused" in end.detail
    assert time.monotonic() - began_s < SHORT_S + 2


def test_it_waits_for_a_broker_that_comes_in_time(broker: AnyBroker, exchange: Exchange) -> None:
    broker.stop()
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(asking, exchange, to_lamp(reply=""))
        assert missed(asking(exchange, to_lamp(), SHORT_S)).why == "no_broker"
        broker.start()
        assert coming.result(LONG_S) == Heard()


def test_a_broker_that_goes_in_the_middle_leaves_it_open_and_the_next_one_connects_again(
    broker: AnyBroker, exchange: Exchange
) -> None:
    with Device(broker.port, "lamp/set") as lamp, ThreadPoolExecutor(1) as pool:
        coming = pool.submit(asking, exchange, to_lamp())
        assert lamp.next() == ("lamp/set", b"ON")
        broker.stop()
        end = missed(coming.result(LONG_S))
        assert (end.why, end.sent) == ("broker_gone", True)
    broker.start()
    with Device(broker.port, "lamp/set", answers=replying("lamp/state", "on")):
        assert asking(exchange, to_lamp()) == Heard(payload=b"on")


def test_a_cancel_ends_it_at_once(broker: AnyBroker, exchange: Exchange) -> None:
    cancel = threading.Event()
    with Device(broker.port, "lamp/set") as lamp, ThreadPoolExecutor(1) as pool:
        coming = pool.submit(asking, exchange, to_lamp(), LONG_S, cancel)
        lamp.next()
        began_s = time.monotonic()
        cancel.set()
        end = missed(coming.result(LONG_S))
        assert (end.why, end.sent) == ("cancelled", True)
        assert time.monotonic() - began_s < 2


def test_a_reply_that_is_too_large_is_never_held(broker: AnyBroker, exchange: Exchange, protocol: str) -> None:
    with Device(broker.port, "lamp/set", answers=replying("lamp/state", bytes(100_000))):
        end = missed(asking(exchange, to_lamp(), 2.0))
        # An MQTT 5 broker does not even send it; then all that is known is that nothing came.
        assert (end.why, end.sent) == ("no_reply" if protocol == "5" else "too_large", True)
    with Device(broker.port, "lamp/set", answers=replying("lamp/state", "small")):
        assert asking(exchange, to_lamp()) == Heard(payload=b"small")


def test_after_a_stop_nothing_is_asked(broker: AnyBroker, exchange: Exchange) -> None:
    assert asking(exchange, to_lamp(reply="")) == Heard()
    exchange.stop()
    assert missed(asking(exchange, to_lamp())).why == "no_broker"


def test_a_stop_ends_what_is_under_way(broker: AnyBroker, exchange: Exchange) -> None:
    with Device(broker.port, "lamp/set") as lamp, ThreadPoolExecutor(1) as pool:
        coming = pool.submit(asking, exchange, to_lamp())
        lamp.next()
        exchange.stop()
        assert missed(coming.result(LONG_S)).sent


def test_nothing_is_connected_before_the_first_exchange(mosquitto: Mosquitto, make_exchange: MakeExchange) -> None:
    exchange = make_exchange(mosquitto.url)
    with Device(mosquitto.port):
        assert "n1.dev" not in mosquitto.log.read_text()
    assert asking(exchange, to_lamp(reply="")) == Heard()
    wait_until(lambda: "n1.dev" in mosquitto.log.read_text(), "the broker tells of the connection")


def test_what_nobody_waits_for_is_no_longer_heard(tmp_path: Path, make_exchange: MakeExchange) -> None:
    broker = Mosquitto(tmp_path, extra=["log_type all"])
    try:
        exchange = make_exchange(broker.start().url)
        missed(asking(exchange, to_lamp(), SHORT_S))
        wait_until(lambda: "Received UNSUBSCRIBE from n1.dev" in broker.log.read_text(), "the topic is given back")
    finally:
        broker.kill()
