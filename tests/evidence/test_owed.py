"""What a goal asks for is done, or said not to be done: part of it never passes for the whole."""

import pytest

from rea_edge.records import Call, Run
from tests.evidence.houses import tools_of
from tests.evidence.playing import acted, begun, played

BOILER = tools_of("boiler")
FAN, PUMP = "set_fan on", "set_pump on"
BOTH = "If the boiler is over 60, start the fan and the pump."
HOT = "if read_sensor boiler -> value > 60 then "


def hot(_: Call) -> object:
    return {"value": 72.0, "unit": "C"}


def cold(_: Call) -> object:
    return {"value": 45.0, "unit": "C"}


def end(run: Run) -> tuple[str, str]:
    assert run.ended is not None
    return run.ended.outcome, f"{run.ended.answer} | {run.ended.reason}"


@pytest.mark.parametrize(
    ("goal", "line"),
    [
        pytest.param(BOTH, HOT + FAN, id="the first of two acts under a condition"),
        pytest.param("Turn the fan on and the pump on.", FAN, id="the first of two acts"),
        pytest.param("Turn the fan on, then call Bob.", FAN, id="an act, and something that no tool does"),
        pytest.param("Turn the fan on and tell me the temperature of the boiler.", FAN, id="an act and a reading"),
    ],
)
def test_one_line_for_a_goal_that_asks_for_more_does_nothing_and_says_so(goal: str, line: str) -> None:
    run = played(begun(goal, BOILER), [line, "cannot"], hot)
    outcome, said = end(run)
    assert (outcome, acted(run, BOILER)) == ("gave_up", [])
    assert "one may run" in said or "do not say for certain" in said


def test_each_of_several_acts_is_done_before_the_goal_is_achieved() -> None:
    run = played(begun(BOTH, BOILER, 3), [HOT + FAN, HOT + PUMP, "done"], hot)
    outcome, said = end(run)
    assert outcome == "achieved" and "set_fan" in said and "set_pump" in said
    assert [call.name for call in acted(run, BOILER)] == ["set_fan", "set_pump"]


def test_done_too_early_is_sent_back_with_what_is_missing() -> None:
    run = played(begun(BOTH, BOILER, 3), [HOT + FAN, "done", HOT + PUMP, "done"], hot)
    assert end(run)[0] == "achieved"
    assert b"set_pump on was not run" in b"".join(bytes(turn) for turns in run.history for turn in turns)


@pytest.mark.parametrize(
    ("lines", "commands"),
    [
        pytest.param([HOT + FAN, "done", "done"], 3, id="the model insists"),
        pytest.param([HOT + FAN, "read_sensor boiler"], 2, id="a reading took the last line"),
        pytest.param([HOT + FAN, "cannot"], 3, id="the model gives up in the middle"),
    ],
)
def test_a_goal_of_which_a_part_was_not_done_is_not_achieved(lines: list[str], commands: int) -> None:
    outcome, said = end(played(begun(BOTH, BOILER, commands), lines, hot))
    assert outcome == "gave_up" and "set_fan" in said
    assert "set_pump on was not run" in said or "no command that fits" in said


def test_acts_whose_condition_does_not_hold_are_owed_no_longer() -> None:
    run = played(begun(BOTH, BOILER, 3), [HOT + FAN, HOT + PUMP, "done"], cold)
    outcome, said = end(run)
    assert (outcome, acted(run, BOILER)) == ("achieved", [])
    assert "set_fan was not run" in said and "set_pump was not run" in said
