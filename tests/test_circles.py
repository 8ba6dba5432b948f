"""Going in circles is seen: answered, refused, ended; a tool that only fails is closed."""

import msgspec
import pytest
from msgspec import Raw

from rea_edge.loop import apply, next_effect, start
from rea_edge.records import Act, Ask, Call, Fault, Job, Ok, Record, Refused, Run
from tests.test_loop import ALARM, BROKEN, COLD, DONE, FAN, HOT, READ, answer, begun, call, end_of, ready, returned

TANK = Call(name="read_sensor", args={"name": "tank"})


def told(run: Run) -> str:
    effect = next_effect(run)
    assert isinstance(effect, Ask), effect
    return b"".join(bytes(turn) for turn in effect.asked.turns).decode()


def did(run: Run, what: Call, result: Ok | Fault) -> Run:
    return returned(answer(run, call(what)), result)


def refused(run: Run, what: Call) -> Run:
    """Ask for a call that the loop itself refuses."""
    run = answer(run, call(what))
    effect = next_effect(run)
    assert isinstance(effect, Record) and isinstance(effect.event, Refused), effect
    return apply(run, effect.event)


def test_the_same_call_with_the_same_result_is_answered_then_refused_then_ends_the_task() -> None:
    run = did(ready(), READ, HOT)
    assert "conclusion" not in told(run)
    run = did(run, READ, HOT)
    assert "71.5" in told(run) and "this is a conclusion, decide from it" in told(run)
    run = refused(run, READ)
    assert "not run" in told(run) and run.done[-1].result == "denied"
    end = end_of(answer(run, call(READ)))
    assert end.outcome == "gave_up" and "circles" in end.reason and "71.5" in end.answer


def test_a_journal_of_a_circle_gives_the_same_run_again() -> None:
    run = answer(did(did(ready(), READ, HOT), READ, HOT), call(READ))
    assert next_effect(run) == next_effect(run)


@pytest.mark.parametrize(
    "between",
    [
        pytest.param((READ, COLD), id="another result"),
        pytest.param((FAN, DONE), id="an act: the world may be another"),
        pytest.param((ALARM, BROKEN), id="an act that failed may have acted too"),
    ],
)
def test_what_may_give_something_new_is_no_circle(between: tuple[Call, Ok | Fault]) -> None:
    run = did(did(ready(), READ, HOT), *between)
    run = did(run, READ, HOT)
    assert "conclusion" not in told(run)


def test_reading_something_else_in_between_does_not_hide_a_circle() -> None:
    run = did(did(ready(), READ, HOT), TANK, COLD)
    assert "conclusion" not in told(run)
    assert "conclusion" in told(did(run, READ, HOT))


def test_the_order_of_arguments_makes_no_other_call() -> None:
    first = Call(name="read_sensor", args={"name": "tank", "unit": "C"})
    second = Call(name="read_sensor", args={"unit": "C", "name": "tank"})
    assert "conclusion" in told(did(did(ready(), first, HOT), second, HOT))


def test_two_equal_calls_in_one_answer_are_one_repetition() -> None:
    run = returned(returned(answer(ready(), call(READ, READ)), HOT), HOT)
    assert told(run).count("conclusion") == 1


def test_a_tool_that_fails_three_times_in_a_row_is_closed_and_the_model_is_told() -> None:
    run = did(did(ready(), READ, BROKEN), TANK, BROKEN)
    assert "closed" not in told(run)
    run = did(run, READ, BROKEN)
    assert "no such device" in told(run) and "is closed for this task" in told(run)
    run = refused(run, TANK)
    assert "closed" in told(run)
    assert isinstance(next_effect(answer(run, call(FAN))), Act), "other tools stay open"
    end = end_of(answer(run, call(READ)))
    assert end.outcome == "gave_up" and "closed" in end.reason


def test_a_success_in_between_starts_the_count_of_failures_again() -> None:
    run = did(did(did(did(ready(), READ, BROKEN), READ, BROKEN), READ, HOT), READ, BROKEN)
    assert "closed" not in told(run)
    assert isinstance(next_effect(answer(run, call(READ))), Act)


def test_what_the_gate_refused_is_told_once_then_refused_unasked_then_the_end() -> None:
    run = answer(ready(), call(ALARM))
    assert isinstance(next_effect(run), Act)
    run = apply(run, Refused(n=run.calls, reason="not before seven"))
    assert "not before seven" in told(run)
    run = refused(run, ALARM)
    assert "refused before" in told(run) and "not before seven" in told(run)
    assert isinstance(next_effect(answer(run, call(FAN))), Act), "other calls stay open"
    end = end_of(answer(run, call(ALARM)))
    assert end.outcome == "gave_up" and "a call that was refused" in end.reason


def test_a_task_type_may_allow_more_repetitions() -> None:
    run = apply(start("rtest-1", Job(goal="goal")), msgspec.structs.replace(begun(), repeats=4))
    for _ in range(3):
        run = did(run, ALARM, DONE)
        assert "conclusion" not in told(run)
    run = did(run, ALARM, DONE)
    assert "conclusion" in told(run)
    refused(run, ALARM)


def test_command_lines_go_in_circles_too() -> None:
    run = did(did(ready("command", commands=6), READ, HOT), READ, HOT)
    assert "conclusion" in told(run)
    assert end_of(answer(refused(run, READ), call(READ))).outcome == "gave_up"


def test_what_is_remembered_for_circles_does_not_grow_without_end() -> None:
    run = ready()
    for number in range(7):
        calls = [Call(name="read_sensor", args={"name": str(number * 10 + place)}) for place in range(10)]
        run = answer(run, call(*calls))
        for place in range(10):
            run = returned(run, Ok(data=Raw(str(place).encode())))
    assert len(run.seen) <= 32
