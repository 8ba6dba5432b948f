"""MQTT tools as TOML tables: taken as they were meant, or refused with file, tool and key."""

import tomllib
from pathlib import Path

import pytest

from rea_edge.device.message import qos_of
from rea_edge.errors import ToolInvalid
from rea_edge.records import Availability, Exchange, Tool
from rea_edge.toolhost.tables import from_toml
from tests.toolhost.rig import started

HEAD = 'description = "Do it."\neffect = "idempotent"\n'
LAMP = f"""
[lamp_set]
{HEAD}
publish = "zigbee2mqtt/{{name}}/set"
payload = {{ state = "{{state}}", brightness = "{{level}}" }}
await = "zigbee2mqtt/{{name}}"
await_path = "state"
await_match = {{ state = "{{state}}", info.id = "{{request_id}}" }}
availability = ["zigbee2mqtt/bridge/state", {{ topic = "zigbee2mqtt/{{name}}/availability", path = "s", online = [1] }}]
timeout_s = 4
[lamp_set.parameters]
required = ["name", "state"]
properties.name = {{ enum = ["lamp", "desk/lamp"] }}
properties.state = {{ enum = ["ON", "OFF"] }}
properties.level = {{ type = "integer" }}
"""
TAKES = """
[t.parameters]
required = ["name", "level"]
properties.name = { type = "string" }
properties.level = { type = "integer" }
"""


def of(text: str) -> Tool:
    return from_toml(text, "/t/x.toml")[0]


def table(lines: str, head: str = HEAD, takes: str = "") -> str:
    return f"[t]\n{head}{lines}\n{takes}"


def test_a_table_is_taken_as_it_was_meant() -> None:
    tool = of(LAMP)
    assert (tool.name, tool.kind, tool.effect, tool.timeout_s, tool.command) == (
        "lamp_set",
        "mqtt",
        "idempotent",
        4,
        (),
    )
    assert tool.exchange == Exchange(
        publish="zigbee2mqtt/{name}/set",
        payload={"state": "{state}", "brightness": "{level}"},
        reply="zigbee2mqtt/{name}",
        path="state",
        match={"state": "{state}", "info.id": "{request_id}"},
        availability=(
            Availability(topic="zigbee2mqtt/bridge/state"),
            Availability(topic="zigbee2mqtt/{name}/availability", path="s", online=(1,)),
        ),
    )


def test_commands_and_devices_may_stand_in_one_file(tmp_path: Path) -> None:
    command = f'[beep]\n{HEAD}command = ["true"]\n'
    with started(tmp_path, {"both.toml": LAMP + command}) as rig:
        assert rig.loaded.faults == ()
        assert {name: tool.kind for name, tool in rig.tools.items()} == {"lamp_set": "mqtt", "beep": "command"}
        assert rig.tools["lamp_set"].exchange == of(LAMP).exchange


@pytest.mark.parametrize("payload", ["'ON'", "''", "{a = [1, {b = 2.5}]}", "5", "true", "['x']"])
def test_a_payload_is_a_text_or_any_value(payload: str) -> None:
    exchange = of(table(f"publish = 'a/b'\npayload = {payload}")).exchange
    assert exchange is not None
    assert exchange.payload == tomllib.loads(f"payload = {payload}")["payload"]


def test_a_reply_that_is_compared_as_a_whole_needs_no_path() -> None:
    exchange = of(table("publish = 'a/b'\nawait = 'a/c'\nawait_match = 'ON'")).exchange
    assert exchange is not None
    assert exchange.match == {"": "ON"}


@pytest.mark.parametrize(("lines", "place", "words"), [
    pytest.param("payload = 'x'\nawait = 'a/b'", ".payload", "without publish", id="a payload for nobody"),
    pytest.param("qos = 1\nawait = 'a/b'", ".qos", "without publish", id="a QoS for nobody"),
    pytest.param("publish = 'a/b'\nawait_path = 'x'", ".await_path", "without await", id="a path into nothing"),
    pytest.param("publish = 'a/b'\nawait_match = 'x'", ".await_match", "without await", id="a match of nothing"),
    pytest.param("publish = 'a/b'\nawait_error = 'x'", ".await_error", "without await", id="an error of nothing"),
    pytest.param("publish = 'a/b'\nawait = 'c'\nawait_error = 'x y'", ".await_error", "no path", id="no path to an error"),
    pytest.param("availability = 'a/b'", "", "publish, await or both", id="nothing to say and to hear"),
    pytest.param("", "", "neither a command nor an MQTT tool", id="nothing at all"),
    pytest.param("publish = 'a/b'\ncommand = ['true']", ".publish", "beside command", id="two kinds at once"),
    pytest.param("publish = 'a/b'\nretain = true", ".retain", "never set", id="retained"),
    pytest.param("publish = 'a/b'\nsandbox = {}", ".sandbox", "runs on this machine", id="a sandbox"),
    pytest.param("publish = 'a/b'\nquality = 1", ".quality", "'quality' is not a key", id="another key"),
    pytest.param("publish = 5", ".publish", "5 is not a topic", id="a number as a topic"),
    pytest.param("publish = ''", ".publish", "empty", id="an empty topic"),
    pytest.param("publish = 'a/+/b'", ".publish", "wildcard", id="a wildcard"),
    pytest.param("await = 'a/#'", ".await", "wildcard", id="a wildcard to hear"),
    pytest.param("publish = 'a/b'\navailability = 'a/+'", ".availability.topic", "wildcard", id="a wildcard of presence"),
    pytest.param("publish = '$SYS/x'", ".publish", "the broker's own", id="of the broker"),
    pytest.param('publish = "a\\u0000b"', ".publish", "control character", id="NUL"),
    pytest.param(f"publish = '{'x' * 257}'", ".publish", "256 bytes", id="too long"),
    pytest.param("publish = 'a/{who}'", ".publish", "{who} is not a parameter", id="a place without a parameter"),
    pytest.param("publish = 'a/b'\npayload = {x = '{who}'}", ".payload.x", "{who} is not a parameter", id="in a payload"),
    pytest.param("publish = 'a/b'\npayload = 2020-01-01", ".payload", "no place in JSON", id="a date"),
    pytest.param("publish = 'a/b'\npayload = {x = inf}", ".payload.x", "no place in JSON", id="infinity"),
    pytest.param("publish = 'a/b'\nqos = 2", ".qos", "neither 0 nor 1", id="QoS 2"),
    pytest.param("publish = 'a/b'\nqos = true", ".qos", "neither 0 nor 1", id="QoS true"),
    pytest.param("publish = 'a/b'\nawait = 'a/c'\nawait_path = 'a b'", ".await_path", "no path", id="no path"),
    pytest.param("publish = 'a/b'\nawait = 'a/c'\nawait_match = {'a b' = 1}", ".await_match", "no path", id="no path to match"),
    pytest.param("publish = 'a/b'\nawait = 'a/c'\nawait_match = {a = [1]}", ".await_match", "is a list", id="a list to match"),
    pytest.param("publish = 'a/b'\navailability = {topic = 'a/c', up = 1}", ".availability", "'up' is not a key", id="an odd key"),
    pytest.param("publish = 'a/b'\navailability = {topic = 'a/c', online = []}", ".availability.online", "empty", id="never there"),
    pytest.param("publish = 'a/b'\navailability = 5", ".availability", "is no topic", id="no availability"),
    pytest.param("publish = 'a/b'\nawait = 'a/b'", ".await", "what anybody asks", id="an answer like a request"),
    pytest.param("publish = 'a/b'\npayload = 'TOGGLE'", ".payload", "that is effect 'once'", id="a toggle"),
    pytest.param("publish = 'a/toggle'", ".payload", "that is effect 'once'", id="a toggle as a topic"),
    pytest.param("publish = 'a/b'\npayload = {brightness_step = 5}", ".payload", "that is effect 'once'", id="a step"),
    pytest.param("await = 'a/b'", ".effect", "publishes nothing reads", id="an act without a message"),
])  # fmt: skip
def test_what_is_wrong_is_named_with_its_place(lines: str, place: str, words: str) -> None:
    with pytest.raises(ToolInvalid) as caught:
        of(table(lines))
    assert str(caught.value).startswith(f"/t/x.toml: t{place}: ")
    assert words in str(caught.value)


@pytest.mark.parametrize(("lines", "place", "words"), [
    pytest.param("publish = 'a/{name}'", "", "'level' is used nowhere", id="a parameter that does nothing"),
    pytest.param("publish = 'a/{name}'\npayload = '{\"l\": {level}}'", ".payload", "break out of", id="JSON as a text"),
    pytest.param("publish = 'a/{name}/{request_id}'\npayload = '{level}'\nqos = 0", None, "", id="all is used"),
    pytest.param("publish = 'a/b'\npayload = ['{name}', 'x{level}']", None, "", id="places in a list"),
])  # fmt: skip
def test_parameters_are_used_as_they_can_be(lines: str, place: str | None, words: str) -> None:
    if place is None:
        of(table(lines, takes=TAKES))
        return
    with pytest.raises(ToolInvalid, match=f"^/t/x.toml: t{place}: ") as caught:
        of(table(lines, takes=TAKES))
    assert words in str(caught.value)


@pytest.mark.parametrize(("shape", "words"), [
    pytest.param('{ type = "array" }', "must be one of", id="a list in a topic"),
    pytest.param('{ enum = ["a", "b/+"] }', "wildcard", id="a wildcard that is listed"),
    pytest.param('{ enum = ["on", "toggle"] }', "effect 'once'", id="a toggle that is listed"),
])  # fmt: skip
def test_what_a_parameter_can_be_is_looked_at_too(shape: str, words: str) -> None:
    takes = f'[t.parameters]\nrequired = ["x"]\nproperties.x = {shape}\n'
    with pytest.raises(ToolInvalid, match=words):
        of(table("publish = 'a/{x}'", takes=takes))


def test_an_optional_argument_may_be_absent_from_a_table_but_not_from_a_topic() -> None:
    takes = '[t.parameters]\nproperties.x = { type = "string" }\n'
    of(table("publish = 'a/b'\npayload = { x = '{x}' }", takes=takes))
    for lines in ("publish = 'a/{x}'", "publish = 'a/b'\npayload = '{x}'", "publish = 'a/b'\npayload = { x = 'x{x}' }"):
        with pytest.raises(ToolInvalid, match="neither required nor has it a default"):
            of(table(lines, takes=takes))


def test_a_parameter_is_not_named_as_the_id_of_the_call() -> None:
    takes = '[t.parameters]\nrequired = ["request_id"]\nproperties.request_id = { type = "string" }\n'
    with pytest.raises(ToolInvalid, match="stands for the id of the call"):
        of(table("publish = 'a/{request_id}'", takes=takes))


@pytest.mark.parametrize(("head", "said", "qos"), [
    pytest.param("idempotent", "", 1, id="what may be done twice"),
    pytest.param("once", "", 0, id="what must not"),
    pytest.param("once", "verify = { tool = 'look', equals = 1 }", 0, id="a probe tells of what is lost, not of two"),
    pytest.param("once", "qos = 1\nverify = { tool = 'look', equals = 1 }", 1, id="the author takes it upon himself"),
])  # fmt: skip
def test_what_acts_once_goes_once_unless_its_declaration_says_otherwise(head: str, said: str, qos: int) -> None:
    tool = of(table(f"publish = 'a/b'\n{said}", head=f'description = "Do it."\neffect = "{head}"\n'))
    assert qos_of(tool) == qos


def test_a_once_tool_goes_with_qos_0_unless_it_can_be_verified() -> None:
    once = HEAD.replace("idempotent", "once")
    of(table("publish = 'a/b'\npayload = 'TOGGLE'", head=once))
    with pytest.raises(ToolInvalid, match="deliver QoS 1 twice"):
        of(table("publish = 'a/b'\nqos = 1", head=once))
    of(table("publish = 'a/b'\nqos = 1\nverify = { tool = 'look', equals = 1 }", head=once))
