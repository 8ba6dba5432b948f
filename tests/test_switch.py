"""Three unreadable answers in a row: the next protocol is tried once, then the run ends."""

import msgspec
import pytest
from msgspec import Raw

from rea_edge import context
from rea_edge.loop import IllegalMove, apply, next_effect, start
from rea_edge.records import (
    Answered,
    Ask,
    Decision,
    Event,
    Finish,
    Job,
    Limits,
    Malformed,
    Protocol,
    Run,
    Switch,
    Switched,
)  # fmt: skip
from tests.test_loop import HOT, READ, answer, asked, begun, call, end_of, ready, returned

BAD = Malformed(error="unparseable", message="There is no decision in the reply.")
NATIVE = Raw(
    b'{"role":"assistant","content":"I look.","tool_calls":[{"id":"call_1_1","type":"function",'
    b'"function":{"name":"read_sensor","arguments":"{\\"name\\":\\"boiler\\"}"}}]}'
)


def switched(protocol: Protocol = "json") -> Switched:
    first = Raw(b'{"role":"user","content":"the goal, anew"}')
    return Switched(protocol=protocol, opening=(first,), ask='"temperature":1', answer_tokens=50)


def open_run(protocol: Protocol = "native", limits: Limits | None = None) -> Run:
    run = start("rtest-1", Job(goal="goal", limits=limits or Limits(steps=20)))
    return apply(run, msgspec.structs.replace(begun(protocol), next_protocol="json"))


def said(run: Run, turn: Raw, decision: Decision | Malformed) -> Run:
    run = asked(run)
    event = Answered(
        step=run.used.steps, turn=turn, decision=decision, prompt_tokens=9, completion_tokens=9, seconds=1.0
    )
    return apply(run, event)


def garbled(run: Run, times: int = 3) -> Run:
    for _ in range(times):
        run = said(run, Raw(b'{"role":"assistant","content":"blah blah"}'), BAD)
    return run


def prompt(run: Run) -> str:
    effect = next_effect(run)
    assert isinstance(effect, Ask), effect
    return context.body(apply(run, effect.asked), effect.asked).decode()


def test_the_third_unreadable_answer_in_a_row_asks_for_the_next_protocol() -> None:
    run = garbled(open_run(), 2)
    assert isinstance(next_effect(run), Ask)
    run = garbled(run, 1)
    assert next_effect(run) == Switch(protocol="json") == next_effect(run)


def test_the_run_goes_on_in_the_new_protocol_without_what_was_unreadable() -> None:
    run = garbled(returned(said(open_run(), NATIVE, call(READ)), HOT))
    body = prompt(apply(run, switched()))
    assert "the goal, anew" in body and '"temperature":1' in body and '"max_tokens":50' in body
    assert "blah" not in body and BAD.message not in body
    assert "71.5" in body, "what was observed stays"


def test_native_calls_and_results_become_text_in_the_form_of_the_new_protocol() -> None:
    run = garbled(returned(said(open_run(), NATIVE, call(READ)), HOT))
    json_body, react_body = prompt(apply(run, switched())), prompt(apply(run, switched("react")))
    for body in (json_body, react_body):
        assert "tool_calls" not in body and '"role":"tool"' not in body and "tool_call_id" not in body
        assert "I look." in body and "Observation of read_sensor: " in body
    messages = msgspec.json.decode(json_body)["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert context.written_call("json", READ) in messages[1]["content"]
    assert "Action: read_sensor" in react_body


def test_a_text_history_keeps_its_bytes() -> None:
    rounds = ((Raw(b'{"role":"assistant","content":"x"}'), Raw(b'{"role":"user","content":"y"}')),)
    assert [bytes(turn) for turn in context.as_text(rounds, "react")[0]] == [bytes(turn) for turn in rounds[0]]


def test_the_next_protocol_is_tried_once_and_then_the_run_gives_up_and_says_so() -> None:
    run = garbled(apply(garbled(open_run()), switched()))
    end = end_of(run)
    assert end.outcome == "gave_up" and "in protocol json" in end.reason and BAD.message in end.reason


def test_a_protocol_that_was_fixed_is_not_changed() -> None:
    assert end_of(garbled(ready("native"))).outcome == "gave_up"


def test_a_limit_that_is_met_ends_the_run_before_another_protocol_is_tried() -> None:
    run = garbled(open_run(limits=Limits(steps=3)))
    assert end_of(run).limit == "steps"


def test_a_run_that_went_on_in_another_protocol_can_finish() -> None:
    run = returned(answer(apply(garbled(open_run()), switched()), call(READ)), HOT)
    assert end_of(answer(run, Finish(answer="It is 71.5 C."))).outcome == "achieved"


def test_a_switch_out_of_place_is_refused() -> None:
    with pytest.raises(IllegalMove):
        apply(open_run(), switched())


def test_the_journal_of_a_switch_gives_the_same_run_again() -> None:
    events: list[Event] = [msgspec.structs.replace(begun("native"), next_protocol="json")]
    run = apply(start("rtest-1", Job(goal="goal")), events[0])
    for _ in range(3):
        effect = next_effect(run)
        assert isinstance(effect, Ask)
        turn = Raw(b'{"role":"assistant","content":"blah"}')
        given = Answered(step=1, turn=turn, decision=BAD, prompt_tokens=1, completion_tokens=1, seconds=1)
        run = apply(apply(run, effect.asked), given)
        events += [effect.asked, given]
    events.append(switched())
    run = apply(run, events[-1])
    again = start("rtest-1", Job(goal="goal"))
    for event in msgspec.json.decode(msgspec.json.encode(events), type=list[Event]):
        again = apply(again, event)
    assert msgspec.json.encode(again) == msgspec.json.encode(run)
    assert prompt(again) == prompt(run)
