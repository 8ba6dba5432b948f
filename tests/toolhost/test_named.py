"""Values that a setting names: what becomes of the parameter, of the examples, and of a setting that cannot be used."""

import pytest

from rea_edge.errors import ToolInvalid
from rea_edge.records import Args, Tool
from rea_edge.toolhost.named import with_names
from rea_edge.toolhost.tables import from_toml

PUMPS = """
[pump_set]
description = "Run a pump."
effect = "idempotent"
publish = "{name}/set"
payload = "{state}"
examples = [
    ["Start the main.", { name = "main", state = "ON" }],
    ["Main pump off, please.", { name = "main", state = "OFF" }],
    ["Let it flow.", { name = "main", state = "ON" }],
    ["Remain calm.", { name = "main", state = "OFF" }],
    ["Sing.", "cannot"],
]
[pump_set.parameters]
required = ["name", "state"]
properties.name = { type = "string", pattern = '^[a-z]+$', enum_from = "PUMPS", description = "which" }
properties.state = { enum = ["ON", "OFF"] }
"""


def of(monkeypatch: pytest.MonkeyPatch, said: str | None, text: str = PUMPS) -> Tool:
    monkeypatch.delenv("REA_TOOL_PUMPS", raising=False)
    if said is not None:
        monkeypatch.setenv("REA_TOOL_PUMPS", said)
    return from_toml(text, "/t/x.toml")[0]


def shape(tool: Tool) -> object:
    properties = tool.parameters["properties"]
    assert isinstance(properties, dict)
    return properties["name"]


@pytest.mark.parametrize("said", [None, "", " , "])
def test_while_nothing_is_named_the_parameter_takes_what_it_takes(
    monkeypatch: pytest.MonkeyPatch, said: str | None
) -> None:
    tool = of(monkeypatch, said)
    assert shape(tool) == {"type": "string", "pattern": "^[a-z]+$", "description": "which"}
    assert len(tool.examples) == 5


def test_what_a_setting_names_is_all_that_the_parameter_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    tool = of(monkeypatch, "north, south/west,north")
    assert shape(tool) == {"enum": ["north", "south/west"], "description": "which"}


def test_several_settings_name_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REA_TOOL_SPARES", "east,north")
    text = PUMPS.replace('enum_from = "PUMPS"', 'enum_from = ["PUMPS", "SPARES"]')
    assert shape(of(monkeypatch, "north,south", text)) == {"enum": ["north", "south", "east"], "description": "which"}


def test_examples_are_told_of_what_is_named_where_they_say_it(monkeypatch: pytest.MonkeyPatch) -> None:
    tool = of(monkeypatch, "north,south")
    assert [(example.say, example.answer) for example in tool.examples] == [
        ("Start the north.", {"name": "north", "state": "ON"}),
        ("south pump off, please.", {"name": "south", "state": "OFF"}),
        ("Sing.", "cannot"),
    ]


def test_examples_of_what_is_named_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    tool = of(monkeypatch, "spare,main")
    assert [example.say for example in tool.examples] == [
        "Start the main.", "Main pump off, please.", "Let it flow.", "Remain calm.", "Sing.",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        pytest.param("north,+", "publish: the topic '+/set' cannot be used: '+' is a wildcard", id="a wildcard"),
        pytest.param("$SYS", "publish: the topic '$SYS/set' cannot be used", id="the broker's own"),
        pytest.param(",".join(map(str, range(257))), "REA_TOOL_PUMPS holds 257 names; 256 are the most", id="too many"),
    ],
)
def test_names_that_cannot_be_used_are_a_fault_of_the_tool(
    monkeypatch: pytest.MonkeyPatch, said: str, fault: str
) -> None:
    with pytest.raises(ToolInvalid) as refused:
        of(monkeypatch, said)
    assert fault in f"{refused.value.place}: {refused.value}"


@pytest.mark.parametrize(
    ("shape", "fault"),
    [
        pytest.param({"type": "string", "enum_from": "pumps"}, "'pumps' is no name of a setting", id="small letters"),
        pytest.param({"type": "string", "enum_from": 1}, "'1' is no name of a setting", id="no text"),
        pytest.param({"type": "integer", "enum_from": "PUMPS"}, 'type = "string"', id="no text to name"),
        pytest.param({"type": "string", "enum": ["a"], "enum_from": "PUMPS"}, "without enum", id="an enum too"),
    ],
)
def test_a_parameter_that_cannot_be_named_so_is_refused(shape: Args, fault: str) -> None:
    with pytest.raises(ToolInvalid) as refused:
        with_names("/t/x.toml: t", {"parameters": {"properties": {"name": shape}}}, {})
    assert fault in str(refused.value) and refused.value.place == "/t/x.toml: t.parameters.name.enum_from"


@pytest.mark.parametrize("table", [{}, {"parameters": 1}, {"parameters": {"properties": 1}}])
def test_what_is_no_schema_is_left_to_those_who_check_it(table: Args) -> None:
    assert with_names("t", table, {}) == table
