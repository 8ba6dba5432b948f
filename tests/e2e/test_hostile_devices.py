"""A daemon whose device says everything but what it should: nothing of it costs the node its link, its memory or a deadline."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager

from msgspec import json

from rea_edge.client import Client
from rea_edge.mqtt import LinkSettings
from rea_edge.wire import Reply
from tests.brokers import MAINLY_ON_MOSQUITTO, AnyBroker, wait_until
from tests.devices import Device
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import House, timed, wait_online
from tests.e2e.test_devices import house_with_things
from tests.mqtt.station import Station, running

FLOOD = 10_000
FLOOD_S = 8.0
MORE_KIB = 2048
THINGS = f"""
[tell]
description = "Ask for anything."
effect = "read"
publish = "z/odd/tell"
payload = "{{what}}"
await = "z/odd"
timeout_s = 20
[tell.parameters]
required = ["what"]
properties.what = {{ type = "string" }}

[match]
description = "Ask for the answer to this very call."
effect = "read"
publish = "z/odd/match"
payload = {{ id = "{{request_id}}", what = "{{what}}" }}
await = "z/odd"
await_match = {{ id = "{{request_id}}" }}
await_path = "what"
timeout_s = {FLOOD_S}
[match.parameters]
required = ["what"]
properties.what = {{ type = "string" }}
"""

SAID: dict[str, bytes] = {
    "much": b"x" * 65_000,
    "deep": b"[" * 900 + b"]" * 900,
    "deeper": b"[" * 60_000,
    "no utf-8": b"\xff\xfe\x80",
    "nul": b'{"a\\u0000b":"\\u0000"}',
    "raw nul": b"a\0b",
    "digits": b"9" * 20_000,
    "infinite": b"1e999",
    "empty": b"",
}


def answer(device: Device, topic: str, payload: bytes) -> None:
    if topic == "z/odd/tell":
        device.say("z/odd", SAID[payload.decode()])
    elif b"flood" in payload:
        for number in range(FLOOD):
            device.say("z/odd", b'{"id":"r%d","pad":"%s"}' % (number, b"x" * 200))
    else:
        device.say("z/odd", payload)


@contextmanager
def talking_to(house: House, broker: AnyBroker) -> Iterator[Client]:
    with Device(broker.port, "z/odd/+", answers=answer), house.start().client(silent_s=40) as client:
        wait_online(client, 30)
        yield client


def resident_kib(pid: int) -> int:
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * 4


def call(client: Client, tool: str, what: str, **keys: object) -> Reply:
    return client.ask("call", {"args": {"what": what}, **keys}, tool, wait_s=40)


def test_whatever_a_device_says_is_a_result_or_a_failure_of_its_call(broker: AnyBroker, make_house: MakeHouse) -> None:
    house = house_with_things(make_house, broker, things=THINGS)
    with talking_to(house, broker) as client:
        replies = {what: call(client, "tell", what) for what in SAID}
        assert {what for what, reply in replies.items() if not reply.ok} == {"deep"}
        assert replies["deep"].error is not None and replies["deep"].error.code == "tool_failed"
        assert replies["no utf-8"].data == "\ufffd\ufffd\ufffd"
        assert replies["nul"].data == {"a\0b": "\0"}
        assert replies["raw nul"].data == "a\0b"
        assert replies["infinite"].data == "1e999"
        assert str(replies["digits"].data).startswith("999")
        assert {what for what, reply in replies.items() if "'cut': True" in str(reply.data)} == {"much", "deeper"}
        assert call(client, "match", "still here").data == "still here"
    assert house.log.read_bytes().count(b"rea_edge.mqtt event=up") == 1
    assert b"event=devices_down" not in house.log.read_bytes()


@MAINLY_ON_MOSQUITTO
def test_a_flood_on_the_awaited_topic_costs_neither_deadline_nor_memory_nor_other_calls(
    broker: AnyBroker, make_house: MakeHouse
) -> None:
    house = house_with_things(make_house, broker, things=THINGS)
    with talking_to(house, broker) as client, ThreadPoolExecutor(1) as pool:
        call(client, "match", "warm")
        before_kib = peak_kib = resident_kib(house.pid)
        began_s = time.monotonic()
        coming = pool.submit(call, client, "match", "flood")
        with house.client("you", silent_s=40) as you:
            slowest_s = 0.0
            while not coming.done():
                peak_kib = max(peak_kib, resident_kib(house.pid))
                slowest_s = max(slowest_s, timed(lambda: you.data("call", {"args": {"name": "tank"}}, "look")))
                wait([coming], 0.5)  # no faster than a sender may
        took_s = time.monotonic() - began_s
        reply = coming.result()
        assert reply.error is not None and "other message(s) came there" in reply.error.message
        assert FLOOD_S - 0.5 < took_s < FLOOD_S + 5
        assert slowest_s < 5
        assert peak_kib - before_kib < MORE_KIB
        assert call(client, "match", "afterwards").data == "afterwards"
    assert house.log.read_bytes().count(b"rea_edge.mqtt event=up") == 1


def test_fifty_calls_at_once_get_each_its_own_answer(broker: AnyBroker, make_house: MakeHouse) -> None:
    house = house_with_things(make_house, broker, things=THINGS.replace(f"timeout_s = {FLOOD_S}", "timeout_s = 30"))
    base = f"{house.root}/{house.node}"
    senders = Station(LinkSettings(url=broker.url, client_id="senders"), f"{base}/out/+/reply/+")
    with talking_to(house, broker), running(senders):
        words = {f"w{number}" for number in range(50)}
        for word in words:
            keys = {"id": "c1", "args": {"what": word}, "ttl_ms": 60_000}
            senders.post(f"{base}/in/{word}/call/match", json.encode(keys), expires_in_s=60)
        wait_until(lambda: len(senders.accepted) >= 50, "all replies", 50)
        replies = {one.topic.split("/")[4]: json.decode(one.payload, type=Reply) for one in senders.accepted}
        assert {word: reply.data for word, reply in replies.items()} == {word: word for word in words}
