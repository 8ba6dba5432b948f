"""In every protocol, a goal whose condition is certain acts only where it was read and holds, whatever the model says."""

import json
from itertools import permutations

import pytest

from rea_edge import evidence
from rea_edge.records import Call
from tests.evidence.houses import tools_of
from tests.evidence.playing import acted, begun, played
from tests.evidence.test_guarded import CASES, OPERATORS, Case, borders, path_of

SOME = CASES[:: len(CASES) // 20] + CASES[-4:]


def says(call: Call) -> str:
    return json.dumps({"action": "tool", "tool_name": call.name, "tool_args": call.args})


@pytest.mark.parametrize("case", SOME, ids=[case.goal for case in SOME])
def test_a_model_that_acts_whatever_it_reads_acts_only_where_the_condition_holds(case: Case) -> None:
    tools = tools_of(case.house)
    start = begun(case.goal, tools, protocol="json")
    for value in borders(case):
        said = [says(case.act), says(case.read), says(case.act)]
        run = played(start, said, lambda call, value=value: {path_of(call): value})
        assert acted(run, tools) == ([case.act] if OPERATORS[case.op](value, case.value) else []), value


@pytest.mark.parametrize("case", CASES, ids=[case.goal for case in CASES])
def test_every_guarded_goal_has_a_condition_that_code_keeps(case: Case) -> None:
    found = evidence.condition_of(case.goal, tools_of(case.house))
    assert found is not None
    assert (found.tool, found.args, found.path) == (case.read.name, case.read.args, path_of(case.read))
    assert (found.op, found.value) == (case.op, case.value)


def test_neither_another_reading_nor_an_older_one_opens_the_way() -> None:
    tools = tools_of("boiler")
    start = begun("Start the fan if the boiler is over 60.", tools, protocol="json")
    boiler, room = (Call(name="read_sensor", args={"name": name}) for name in ("boiler", "room"))
    fan = Call(name="set_fan", args={"state": "on"})
    readings = iter([72.0, 45.0])
    hot = played(start, [says(room), says(fan)], lambda call: {"value": 72.0})
    assert acted(hot, tools) == []
    cooled = played(start, [says(boiler), says(boiler), says(fan)], lambda call: {"value": next(readings)})
    assert acted(cooled, tools) == []
    assert [one.result for one in cooled.done] == ["ok", "ok", "denied"]


@pytest.mark.parametrize(
    "goal",
    [
        pytest.param("Turn the fan on.", id="no condition"),
        pytest.param("If the boiler is over 60, turn the fan on, else turn it off.", id="acts on both sides"),
        pytest.param("Turn the fan on if it gets too hot.", id="not certain what is compared"),
        pytest.param(
            "Start the pump. If the boiler is over 60, start the fan.", id="not all of it is under the condition"
        ),
        pytest.param("Is the boiler over 60?", id="a question"),
    ],
)
def test_where_a_condition_is_not_certain_the_model_decides(goal: str) -> None:
    assert evidence.condition_of(goal, tools_of("boiler")) is None


def test_the_order_in_which_tools_are_declared_changes_nothing() -> None:
    goal = "Start the fan if the boiler is over 60."
    found = {repr(evidence.condition_of(goal, tools)) for tools in permutations(tools_of("boiler"))}
    assert len(found) == 1
