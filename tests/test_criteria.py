"""A task is done when its tools say so."""

import msgspec
import pytest
from msgspec import Raw

from rea_edge.loop import apply, next_effect, start
from rea_edge.records import Ask, Call, Criterion, Fault, Finish, Guard, Job, Limits, Ok, Protocol, Run
from tests.test_loop import ALARM, BROKEN, COLD, DONE, FAN, HOT, READ, answer, begun, call, end_of, returned

OVER_60 = Criterion(tool="read_sensor", args={"name": "boiler"}, path="value", op=">", value=60)
FAN_ON = Criterion(tool="set_fan", args={}, path="on", op="==", value=True)
END = Finish(answer="Done.")


def ready(*wanted: Criterion, protocol: Protocol = "json", commands: int = 1) -> Run:
    asked = msgspec.structs.replace(begun(protocol, commands=commands), done_when=wanted)
    return apply(start("rtest-1", Job(goal="goal", limits=Limits(steps=20))), asked)


def did(run: Run, what: Call, result: Ok | Fault) -> Run:
    return returned(answer(run, call(what)), result)


def told(run: Run) -> str:
    effect = next_effect(run)
    assert isinstance(effect, Ask), effect
    return bytes(effect.asked.turns[-1]).decode().replace("\\", "")


def test_a_finish_whose_criterion_is_met_is_believed() -> None:
    assert end_of(answer(did(ready(OVER_60), READ, HOT), END)).outcome == "achieved"


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        pytest.param([(FAN, DONE)], "was not called", id="never read"),
        pytest.param([(READ, COLD)], "it is 45", id="not true"),
        pytest.param([(READ, HOT), (READ, COLD)], "it is 45", id="not true any more"),
        pytest.param([(READ, HOT), (FAN, DONE)], "since the last act", id="read before the last act"),
        pytest.param([(READ, HOT), (ALARM, BROKEN)], "since the last act", id="an act that failed counts"),
        pytest.param([(READ, Ok(data=Raw(b'{"x":1}')))], "there is no value", id="nothing at the path"),
        pytest.param([(READ, Ok(data=Raw(b'{"value":"hot"}')))], 'it is "hot"', id="another type"),
        pytest.param([(READ, HOT), (READ, BROKEN)], "the call failed", id="the newest reading failed"),
        pytest.param(
            [(Call(name="read_sensor", args={"name": "tank"}), HOT)], "was not called", id="with other arguments"
        ),
    ],
)
def test_an_open_criterion_sends_the_finish_back_with_what_is_lacking_and_the_loop_goes_on(
    steps: list[tuple[Call, Ok | Fault]], said: str
) -> None:
    run = ready(OVER_60)
    for what, result in steps:
        run = did(run, what, result)
    run = answer(run, END)
    assert "Not complete yet" in told(run) and said in told(run)
    assert end_of(answer(did(run, READ, HOT), END)).outcome == "achieved"


def test_a_criterion_that_stays_open_ends_as_gave_up_never_as_achieved() -> None:
    end = end_of(answer(answer(did(ready(OVER_60), READ, COLD), END), END))
    assert end.outcome == "gave_up" and "read_sensor" in end.reason


def test_all_criteria_count_and_an_act_can_prove_itself() -> None:
    run = answer(did(ready(OVER_60, FAN_ON), READ, HOT), END)
    assert "set_fan" in told(run)
    run = did(did(run, FAN, DONE), READ, HOT)
    assert end_of(answer(run, END)).outcome == "achieved"


def test_two_acts_can_both_be_required_and_each_is_undone_only_by_its_own_tool() -> None:
    on = Criterion(tool="set_fan", args={"name": "on"}, path="on", op="==", value=True)
    rang = Criterion(tool="sound_alarm", args={}, path="on", op="==", value=True)
    run = did(did(ready(on, rang), FAN, DONE), ALARM, DONE)
    assert end_of(answer(run, END)).outcome == "achieved"
    off = did(run, Call(name="set_fan", args={"name": "off"}), Ok(data=Raw(b'{"on":false}')))
    assert "set_fan" in told(answer(off, END))


@pytest.mark.parametrize(
    ("data", "op", "value", "met"),
    [
        (b"45", "==", 45.0, True),
        (b"1", "==", True, False),
        (b"null", "!=", 3, True),
        (b'"on"', "==", "on", True),
        (b'"a"', "<", "b", True),
        (b"3", ">=", "3", False),
    ],
)
def test_values_are_compared_as_what_they_are(data: bytes, op: str, value: object, met: bool) -> None:
    criterion = msgspec.convert({"tool": "read_sensor", "args": {}, "path": "", "op": op, "value": value}, Criterion)
    run = answer(did(ready(criterion), READ, Ok(data=Raw(data))), END)
    assert (run.phase == "closing") is met


def test_a_command_run_whose_criterion_is_open_is_not_achieved() -> None:
    end = end_of(did(ready(OVER_60, protocol="command"), FAN, DONE))
    assert end.outcome == "gave_up" and "not complete" in end.reason
    assert end_of(did(ready(OVER_60, protocol="command"), READ, HOT)).outcome == "achieved"
    guard = Guard(read=READ, path="value", op=">", value=60, then=FAN)
    assert end_of(returned(answer(ready(OVER_60, protocol="command"), guard), COLD)).outcome == "gave_up"


def test_criteria_survive_the_journal() -> None:
    run = did(ready(OVER_60), READ, COLD)
    again = msgspec.json.decode(msgspec.json.encode(run), type=Run)
    assert again.found == run.found and again.found[0].startswith("it is 45")
