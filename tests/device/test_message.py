"""A call as the message it is: places filled, bounds kept; and what a device said, read."""

import pytest
from msgspec import UNSET

from rea_edge.device.message import message_of
from rea_edge.device.places import Unfit
from rea_edge.device.reply import answer_in, is_away
from rea_edge.records import Args, Availability, Criterion, EffectClass, Exchange, Tool

PARAMETERS: Args = {
    "properties": {
        "name": {"type": "string"},
        "state": {"enum": ["ON", "OFF"]},
        "level": {"type": "integer"},
        "dim": {"type": "boolean", "default": True},
        "parts": {"type": "array"},
    },
    "required": ["name"],
}
PROBE = Criterion(tool="look", args={}, path="", op="==", value=1)


def tool(effect: EffectClass = "idempotent", verify: Criterion | None = None, **keys: object) -> Tool:
    exchange = Exchange(**{"publish": "z/{name}/set", **keys})  # type: ignore[arg-type]  # by each test
    return Tool(
        name="t", description="T.", parameters=PARAMETERS, effect=effect, kind="mqtt", exchange=exchange, verify=verify
    )


@pytest.mark.parametrize(("payload", "args", "body"), [
    pytest.param("", {}, b"", id="nothing"),
    pytest.param("ON", {}, b"ON", id="a text is sent as it is"),
    pytest.param("{state}", {"state": "ON"}, b"ON", id="a text that is a place is no JSON"),
    pytest.param("{level}", {"level": 7}, b"7", id="a number as a text"),
    pytest.param("level {level} {dim}", {"level": 7}, b"level 7 true", id="places in a text, and a default"),
    pytest.param({"state": "{state}"}, {"state": "ON"}, b'{"state":"ON"}', id="a table is JSON"),
    pytest.param({"level": "{level}"}, {"level": 7}, b'{"level":7}', id="a place alone keeps its type"),
    pytest.param({"level": "L{level}"}, {"level": 7}, b'{"level":"L7"}', id="a place in a text is text"),
    pytest.param({"dim": "{dim}"}, {}, b'{"dim":true}', id="a default"),
    pytest.param({"a": "{level}", "b": 1}, {}, b'{"b":1}', id="what is not given is left out"),
    pytest.param({"a": ["{level}", 2]}, {}, b'{"a":[2]}', id="also of a list"),
    pytest.param({"a": {"b": ["{parts}"]}}, {"parts": [1, {"c": 2}]}, b'{"a":{"b":[[1,{"c":2}]]}}', id="any value, deep"),
    pytest.param({"id": "{request_id}"}, {}, b'{"id":"r1-1"}', id="the id of the call"),
    pytest.param({"s": "{name}"}, {"name": 'a","x":"'}, b'{"s":"a\\",\\"x\\":\\""}', id="a quote stays in its text"),
    pytest.param(5, {}, b"5", id="a number"),
    pytest.param(True, {}, b"true", id="a boolean"),
    pytest.param("{name}", {"name": "x" * 65_536}, b"x" * 65_536, id="the largest"),
    pytest.param("{name}{name}", {"name": "x" * 40_000}, None, id="too large"),
    pytest.param("{name}", {"name": "a\ud800"}, None, id="half a character"),
    pytest.param("{level} x", {}, None, id="a text needs its arguments"),
    pytest.param("{parts} x", {"parts": [1]}, None, id="a list is no text"),
])  # fmt: skip
def test_a_payload_is_filled_as_it_was_declared(payload: object, args: Args, body: bytes | None) -> None:
    args = {"name": "lamp", **args}
    asked = tool(publish="z/set", payload=payload)
    if body is None:
        with pytest.raises(Unfit):
            message_of(asked, args, "r1-1", "rea/v1")
    else:
        assert message_of(asked, args, "r1-1", "rea/v1").payload == body


def test_all_that_is_filled_is_filled_with_the_same_arguments() -> None:
    asked = tool(
        reply="z/{name}", match={"id": "{request_id}", "level": "{level}"}, availability=(Availability(topic="z/{name}/here"),)
    )  # fmt: skip
    message = message_of(asked, {"name": "lamp"}, "r1-1", "rea/v1")
    assert (message.publish, message.reply, message.match) == ("z/lamp/set", "z/lamp", {"id": "r1-1"})
    assert [one.topic for one in message.availability] == ["z/lamp/here"]


@pytest.mark.parametrize("key", ["publish", "reply"])
def test_a_call_never_reaches_the_nodes_own_topics(key: str) -> None:
    with pytest.raises(Unfit, match="requests to nodes"):
        message_of(tool(**{key: "{name}/v1/n1/in/me/task"}), {"name": "rea"}, "r1-1", "rea/v1")


@pytest.mark.parametrize(("effect", "goes"), [("read", False), ("idempotent", False), ("once", True)])
def test_only_a_tool_that_says_once_toggles(effect: EffectClass, goes: bool) -> None:
    asked = tool(effect, payload="{name}")
    if goes:
        assert message_of(asked, {"name": "Toggle"}, "r1-1", "rea/v1").payload == b"Toggle"
    else:
        with pytest.raises(Unfit, match="something else each time"):
            message_of(asked, {"name": "Toggle"}, "r1-1", "rea/v1")


@pytest.mark.parametrize(("effect", "verify", "qos"), [
    pytest.param("read", None, 1, id="a read"),
    pytest.param("idempotent", None, 1, id="what may be done twice"),
    pytest.param("once", None, 0, id="what must not"),
    pytest.param("once", PROBE, 1, id="what must not, but can be verified"),
])  # fmt: skip
def test_what_must_not_be_done_twice_is_not_delivered_twice(
    effect: EffectClass, verify: Criterion | None, qos: int
) -> None:
    assert message_of(tool(effect, verify), {"name": "lamp"}, "r1-1", "rea/v1").qos == qos


@pytest.mark.parametrize(("payload", "path", "match", "answer"), [
    pytest.param(b'{"state":"ON","l":{"c":3}}', "", {}, {"state": "ON", "l": {"c": 3}}, id="all of it"),
    pytest.param(b'{"state":"ON","l":{"c":3}}', "l.c", {}, 3, id="a path"),
    pytest.param(b'{"state":null}', "state", {}, None, id="null is a value"),
    pytest.param(b'{"state":"ON"}', "level", {}, UNSET, id="a path that is not there"),
    pytest.param(b"ON", "", {}, "ON", id="a text"),
    pytest.param(b"", "", {}, "", id="an empty text"),
    pytest.param(b"\xff\xfe", "", {}, "\ufffd\ufffd", id="no text at all"),
    pytest.param(b"12.5", "", {}, 12.5, id="a number"),
    pytest.param(b"ON", "state", {}, UNSET, id="a text has no paths"),
    pytest.param(b'{"id":"a","v":1}', "v", {"id": "a"}, 1, id="the one asked for"),
    pytest.param(b'{"id":"b","v":1}', "v", {"id": "a"}, UNSET, id="another id"),
    pytest.param(b'{"v":1}', "v", {"id": "a"}, UNSET, id="no id"),
    pytest.param(b'{"a":{"b":1},"c":1}', "", {"a.b": 1, "c": 1.0}, {"a": {"b": 1}, "c": 1}, id="several, numbers by value"),
    pytest.param(b'{"a":1}', "", {"a": True}, UNSET, id="1 is not true"),
    pytest.param(b"ON", "", {"": "ON"}, "ON", id="the whole"),
    pytest.param(b"OFF", "", {"": "ON"}, UNSET, id="another whole"),
    pytest.param(b"true", "", {"": "true"}, True, id="the whole by its text"),
    pytest.param(b"50", "", {"": 50}, 50, id="the whole by its value"),
    pytest.param(b'{"a":' * 3000, "", {}, '{"a":' * 3000, id="no JSON, and deep"),
])  # fmt: skip
def test_a_reply_is_an_answer_where_it_has_what_was_asked_for(
    payload: bytes, path: str, match: Args, answer: object
) -> None:
    assert answer_in(payload, path, match) == answer


@pytest.mark.parametrize(("payload", "keys", "away"), [
    pytest.param(b"online", {}, False, id="a text"),
    pytest.param(b"Online", {}, False, id="Tasmota"),
    pytest.param(b"true", {}, False, id="Shelly"),
    pytest.param(b'{"state":"online"}', {}, False, id="Zigbee2MQTT"),
    pytest.param(b"offline", {}, True, id="a text that says no"),
    pytest.param(b"Offline", {}, True, id="Tasmota says no"),
    pytest.param(b"false", {}, True, id="Shelly says no"),
    pytest.param(b'{"state":"offline"}', {}, True, id="Zigbee2MQTT says no"),
    pytest.param(b"???", {}, True, id="anything else"),
    pytest.param(b"", {}, False, id="nothing"),
    pytest.param(b'{"a":{"up":1}}', {"path": "a.up", "online": (1,)}, False, id="a path of its own"),
    pytest.param(b'{"a":{"up":0}}', {"path": "a.up", "online": (1,)}, True, id="a path of its own says no"),
    pytest.param(b'{"a":1}', {"path": "a.up", "online": (1,)}, True, id="nothing at that path"),
])  # fmt: skip
def test_a_device_is_away_when_it_says_anything_but_that_it_is_there(
    payload: bytes, keys: dict[str, object], away: bool
) -> None:
    assert is_away(Availability(topic="t", **keys), payload) == away  # type: ignore[arg-type]  # by each row
