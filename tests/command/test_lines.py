"""Lines that are listed, and their patterns where they cannot be."""

import re

import pytest

from rea_edge.bounds import Bounds
from rea_edge.decision.command import read_line
from rea_edge.decision.grammar import grammar
from rea_edge.decision.lines import MOST, line_schema, lines
from rea_edge.records import Decision, Tool
from tests.command.gbnf import Grammar
from tests.command.tools import OFFERS, TOOLS

BOUNDS = Bounds(plain=True, tests=((">", 60),), paths={"read_sensor": ("value",)})


def anything(decision: Decision) -> bool:
    return True


def test_every_line_within_the_bounds_is_listed_and_can_be_read() -> None:
    found = lines(TOOLS[:2], 1, BOUNDS, anything)
    assert found == [
        "read_sensor boiler", "read_sensor flow", "read_sensor room", "set_fan on=true", "set_fan on=false",
        *(f"if read_sensor {name} -> value > 60 then set_fan on={on}" for name in ("boiler", "flow", "room") for on in ("true", "false")),
        "cannot",
    ]  # fmt: skip
    for line in found:
        read_line(line, OFFERS)


def test_what_is_refused_is_not_listed_and_the_ends_always_are() -> None:
    assert lines(TOOLS[:2], 2, BOUNDS, lambda decision: False) == ["cannot", "done"]


@pytest.mark.parametrize(
    ("bounds", "left_out"),
    [
        pytest.param(Bounds(plain=False), "set_fan", id="no act without its condition"),
        pytest.param(Bounds(plain=True, reads=False), "read_sensor", id="no reading for an order"),
    ],
)
def test_the_bounds_leave_sorts_of_lines_out_of_every_form(bounds: Bounds, left_out: str) -> None:
    found = lines(TOOLS[:2], 1, bounds, anything)
    assert found is not None and not any(line.startswith(left_out) for line in found)
    free = (*TOOLS[:2], TOOLS[3])
    written = Grammar(grammar(free, 1, bounds))
    assert not any(written.sentence(seed).startswith(left_out) for seed in range(200))
    pattern = schema_pattern(free, bounds)
    assert not any(re.search(pattern, line) for line in (f"{left_out} on=true", f"{left_out} boiler"))


def test_free_texts_and_very_many_lines_are_not_listed() -> None:
    assert lines(TOOLS, 1, BOUNDS, anything) is None
    wide = {"type": "object", "properties": {key: {"enum": list(range(50))} for key in "ab"}, "required": ["a", "b"]}
    assert MOST < 2500
    assert lines([Tool(name="wide", description="x", parameters=wide, effect="once")], 1, BOUNDS, anything) is None


def test_a_server_without_grammars_gets_the_lines_as_alternatives_of_one_text() -> None:
    schema = line_schema(["set_fan on=true", "cannot"], TOOLS, 1, BOUNDS)
    assert schema["properties"] == {"command": {"type": "string", "enum": ["set_fan on=true", "cannot"]}}
    assert (schema["required"], schema["additionalProperties"]) == (["command"], False)


def schema_pattern(tools: tuple[Tool, ...], bounds: Bounds, commands: int = 1) -> str:
    command = line_schema(None, tools, commands, bounds)["properties"]["command"]  # type: ignore[index] # a test's own reading
    return "|".join(branch["pattern"] for branch in command["anyOf"])


def test_what_the_grammar_says_the_patterns_say_too() -> None:
    written, pattern = Grammar(grammar(TOOLS, 2, BOUNDS)), schema_pattern(TOOLS, BOUNDS, 2)
    for seed in range(1000):
        line = written.sentence(seed)
        # The patterns are the narrower form: texts without escapes.
        assert re.search(pattern, line) or "\\" in line, line
        read_line(line, OFFERS)
