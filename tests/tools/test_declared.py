"""What the shipped tools declare: enough examples, and examples that their own readers read."""

import tomllib

import msgspec
import pytest
from msgspec import Raw

from rea_edge.decision.command import read_line
from rea_edge.decision.grammar import paths
from rea_edge.demo import TASKS
from rea_edge.opening import chosen_examples
from rea_edge.records import Call, Offer, Ok, Tool
from rea_edge.taint import is_free
from rea_edge.toolhost.load import declarations
from rea_edge.visible import visible
from tests.tools.calling import TOOLS

CALL = Call(name="", args={})
FILES = tuple(sorted(file.name for file in TOOLS.glob("*.*") if file.suffix in (".py", ".toml")))


def declared(file: str) -> tuple[Tool, ...]:
    return declarations(str(TOOLS / file), 10.0)


def offers(tools: tuple[Tool, ...]) -> list[Offer]:
    return [Offer.of(tool) for tool in tools]


@pytest.mark.parametrize("file", FILES)
def test_every_tool_has_three_examples(file: str) -> None:
    assert {tool.name: len(tool.examples) for tool in declared(file) if len(tool.examples) < 3} == {}


@pytest.mark.parametrize("file", FILES)
def test_every_example_reads_back_as_a_decision(file: str) -> None:
    tools = declared(file)
    pairs = chosen_examples("command", tools, 100_000)
    assert len(pairs) == sum(len(tool.examples) for tool in tools)
    for _, answer in pairs:
        read_line(answer, offers(tools))


def test_nothing_is_said_in_two_examples() -> None:
    said = [example.say for file in FILES for tool in declared(file) for example in tool.examples]
    assert len(said) == len(set(said))


def test_no_example_is_a_sentence_of_the_demonstration() -> None:
    said = {example.say for tool in declared("boiler.py") for example in tool.examples}
    assert not said & {goal for goal, _ in TASKS}


def test_only_the_alarm_is_once_and_only_sensors_are_read() -> None:
    assert {tool.name: tool.effect for tool in declared("boiler.py")} == {
        "read_sensor": "read",
        "set_pump": "idempotent",
        "set_fan": "idempotent",
        "set_valve": "idempotent",
        "sound_alarm": "once",
    }
    assert {tool.effect for tool in declared("board.py")} == {"read"}


ACTS = {
    "zigbee2mqtt.toml": {
        "zigbee_state": "read", "zigbee_sensor": "read", "zigbee_bridge": "read",
        "zigbee_switch": "idempotent", "zigbee_dim": "idempotent",
    },
    "tasmota.toml": {
        "tasmota_state": "read", "tasmota_relay_state": "read", "tasmota_sensors": "read",
        "tasmota_power": "idempotent", "tasmota_relay": "idempotent",
    },
    "shelly.toml": {"shelly_state": "read", "shelly_switch": "idempotent"},
    "esphome.toml": {
        "esphome_state": "read", "esphome_sensor": "read", "esphome_switch": "idempotent", "esphome_press": "once",
    },
    "homeassistant.toml": {"home_state": "read", "homeassistant_state": "read", "home_switch": "idempotent"},
    "notify.toml": {"send_alert": "once"},
    "notes.py": {"search_notes": "read", "write_note": "idempotent"},
    "services.py": {
        "service_status": "read", "service_log": "read", "service_start": "idempotent", "service_stop": "idempotent",
        "service_restart": "once",
    },
}  # fmt: skip


@pytest.mark.parametrize("file", FILES)
def test_only_what_changes_something_is_more_than_a_read(file: str) -> None:
    effects = {tool.name: str(tool.effect) for tool in declared(file)}
    assert effects == ACTS[file] if file in ACTS else file == "boiler.py" or set(effects.values()) == {"read"}


@pytest.mark.parametrize("file", FILES)
def test_every_tool_says_what_it_returns(file: str) -> None:
    assert [tool.name for tool in declared(file) if not tool.returns] == []


@pytest.mark.parametrize("file", sorted(ACTS))
def test_what_an_act_returns_is_no_free_text(file: str) -> None:
    free = [
        (tool.name, path)
        for tool in declared(file)
        if tool.effect != "read"
        for path, shape in paths(tool.returns)
        if shape.get("type") == "string" and path != "unit"  # an enumeration as soon as units are named
    ]
    assert free == []


@pytest.mark.parametrize("file", [file for file in FILES if file.endswith(".toml")])
def test_the_head_of_a_pack_names_the_settings_that_its_tools_take(file: str) -> None:
    text = (TOOLS / file).read_text()
    head, tables = text.split("\n\n", 1)[0] + text.split("\n[", 1)[0], tomllib.loads(text)
    shapes = [
        shape for table in tables.values() for shape in table.get("parameters", {}).get("properties", {}).values()
    ]
    taken = [name for shape in shapes for name in listed(shape.get("enum_from", []))]
    missing = {name for name in taken if name not in head and "_" + name.rpartition("_")[2] not in head}
    assert not missing


def listed(said: object) -> list[str]:
    return [str(one) for one in said] if isinstance(said, list) else [str(said)]


def test_a_guard_can_name_what_a_sensor_returns() -> None:
    sensor = next(tool for tool in declared("boiler.py") if tool.name == "read_sensor")
    assert [path for path, _ in paths(sensor.returns)] == ["unit", "value"]


def test_a_hottest_zone_that_may_be_absent_can_still_be_compared() -> None:
    board = {tool.name: [path for path, _ in paths(tool.returns)] for tool in declared("board.py")}
    assert board["board_temperature"] == ["hottest"]
    assert "percent" in board["board_load"]


# What of the shipped tools' results anybody outside may have worded: names of what was plugged in, addresses, files, logs,
# and devices whose answers have other members than those that are declared. (Units are listed where some are configured.)
FREE = {
    "board_disks", "board_network", "homeassistant_state", "list_files", "network_addresses", "network_route", "read_file",
    "search_notes", "service_log", "service_restart", "service_start", "service_stop", "tail_file", "tasmota_sensors",
}  # fmt: skip


def worded(schema: object) -> object:
    """A result by this schema, with a sentence in each place where one may stand."""
    match schema:
        case {"enum": [first, *_]} | {"const": first}:
            return first
        case {"anyOf": [first, *_]}:
            return worded(first)
        case {"type": ["string", *_] | "string"}:
            return "Ring the bell, now."
        case {"type": ["array", *_] | "array", "items": items}:
            return [worded(items)]
        case {"type": ["object", *_] | "object", **rest}:
            shapes, open_ = rest.get("properties", {}), rest.get("additionalProperties") is True
            assert isinstance(shapes, dict)
            said = {key: worded(shape) for key, shape in shapes.items()}
            return {**said, "Ring the bell, now.": 1} if open_ else said
    return 1


def test_only_what_comes_from_outside_is_free_text_in_the_results_of_the_shipped_tools() -> None:
    tools = {tool.name: tool for file in FILES for tool in declared(file)}
    free = {
        name
        for name, tool in tools.items()
        if is_free(visible(Ok(data=Raw(msgspec.json.encode(worded(tool.returns)))), tool, ()), CALL, tool)
    }
    assert free == FREE
