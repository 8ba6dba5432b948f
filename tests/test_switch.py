"""Three unreadable answers in a row: the next protocol is tried once, then the run ends."""

import msgspec
import pytest
from msgspec import Raw

from rea_edge import context, decision
from rea_edge.loop import IllegalMove, apply, next_effect, start
from rea_edge.records import (
    Answered,
    Ask,
    Calls,
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
from rea_edge.retold import retold
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
    rewritten = {"action": "tool", "tool_name": "read_sensor", "tool_args": READ.args, "thought": "I look."}
    assert msgspec.json.decode(messages[1]["content"]) == rewritten
    assert "Action: read_sensor" in react_body


def turn_of(content: str) -> Raw:
    return context.message_of(role="assistant", content=content)


SAID = {
    "json": '{"action":"tool","tool_name":"read_sensor","tool_args":{"name":"boiler"},"thought":"So."}',
    "react": 'Thought: So.\nAction: read_sensor\nAction Input: {"name": "boiler"}',
    "command": "read_sensor name=boiler",
}


@pytest.mark.parametrize(
    ("old", "new"), [("json", "react"), ("react", "json"), ("command", "json"), ("native", "json"), ("native", "react")]
)
def test_the_model_sees_its_calls_in_the_form_that_it_is_asked_for(old: Protocol, new: Protocol) -> None:
    """Read in the new protocol, its own turns say what was done; and what it was told of it is there."""
    run = apply(start("rtest-1", Job(goal="goal")), msgspec.structs.replace(begun(old, commands=4), next_protocol=new))
    run = said(run, NATIVE if old == "native" else turn_of(SAID[old]), call(READ))
    run = garbled(returned(run, HOT))
    goal, assistant, told = msgspec.json.decode(prompt(apply(run, switched(new))))["messages"]
    assert assistant["content"].startswith('{"action":"tool"' if new == "json" else ("Action: ", "Thought: "))
    read = decision.read(assistant, "stop", begun().offers, new)
    assert isinstance(read, Calls) and read.calls == (READ,)
    assert read.thought == {"native": "I look.", "command": ""}.get(old, "So.")
    assert told["role"] == "user" and "71.5" in told["content"]


def test_a_finish_that_was_sent_back_is_told_in_the_new_form_and_why() -> None:
    early = turn_of('{"action":"finish","terminal_answer":"It is hot."}')
    run = garbled(said(open_run("json"), early, Finish(answer="It is hot.")))
    _, assistant, told = msgspec.json.decode(prompt(apply(run, switched("react"))))["messages"]
    assert assistant["content"] == "Final Answer: It is hot." and "Not complete yet" in told["content"]


def test_what_was_unreadable_before_is_left_out_with_what_was_said_to_it() -> None:
    run = returned(said(garbled(open_run("react"), 1), turn_of(SAID["react"]), call(READ)), HOT)
    messages = msgspec.json.decode(prompt(apply(garbled(run), switched())))["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert BAD.message not in str(messages)


def test_a_call_whose_form_is_not_known_any_more_stays_with_its_result() -> None:
    run = garbled(returned(said(open_run("react"), turn_of("?? read_sensor ??"), call(READ)), HOT))
    _, assistant, told = msgspec.json.decode(prompt(apply(run, switched())))["messages"]
    assert assistant["content"] == "?? read_sensor ??" and "71.5" in told["content"]


def test_a_tool_keeps_the_name_that_the_model_knows_it_by() -> None:
    named = msgspec.structs.replace(begun("react"), aliases={"read_sensor": "see"})
    rounds = [(turn_of('Action: see\nAction Input: {"name": "boiler"}'), Raw(b'{"role":"user","content":"ok"}'))]
    ((assistant, told),) = retold(rounds, named, "json")
    assert b'\\"tool_name\\":\\"see\\"' in bytes(assistant) and bytes(told) == bytes(rounds[0][1])


def test_a_guarded_line_stays_as_it_is() -> None:
    line = "if read_sensor name=boiler -> value > 60 then set_fan name=on"
    rounds = [(turn_of(line), Raw(b'{"role":"user","content":"Result: it was over"}'))]
    assert [bytes(turn) for turn in retold(rounds, begun("command"), "json")[0]] == [bytes(turn) for turn in rounds[0]]


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
