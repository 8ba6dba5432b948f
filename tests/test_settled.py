"""What a person's word on an unknown call changes: in a run that goes on, in one that has ended, and never twice."""

import msgspec
import pytest
from msgspec import Raw

from rea_edge import context
from rea_edge.loop import IllegalMove, apply, next_effect, start
from rea_edge.records import (
    Ask,
    Asked,
    Call,
    Fault,
    Intended,
    Job,
    Protocol,
    Record,
    Resumed,
    Returned,
    Run,
    Settled,
)
from tests.test_loop import ALARM, READ, answer, asked, call, ready, returned
from tests.test_switch import garbled, switched

LOST = Fault(fault="crashed", message="killed")
NATIVE = Raw(
    b'{"role":"assistant","content":"","tool_calls":[{"id":"call_1_1","type":"function",'
    b'"function":{"name":"sound_alarm","arguments":"{}"}}]}'
)


def doubtful(protocol: Protocol = "json") -> Run:
    """Its call 1 is unknown, and its model is about to be told so."""
    return returned(answer(ready(protocol), call(ALARM)), LOST, unknown=True)


def said(run: Run) -> list[dict[str, str]]:
    """The messages that the next question adds."""
    effect = next_effect(run)
    assert isinstance(effect, Ask)
    return [msgspec.json.decode(turn) for turn in effect.asked.turns]


@pytest.mark.parametrize(("outcome", "result"), [("done", "ok"), ("not_done", "failed")])
def test_a_settled_call_counts_as_the_person_says_and_the_model_is_told(outcome: str, result: str) -> None:
    run = apply(doubtful(), msgspec.convert({"kind": "settled", "n": 1, "outcome": outcome, "by": "ann"}, Settled))
    assert [(done.result, done.settled) for done in run.done] == [(result, "ann")]
    (message,) = said(run)
    assert message["content"].startswith("Observation of sound_alarm")
    took = "took effect" if outcome == "done" else "did not take effect"
    assert message["content"].endswith(f"call 1, sound_alarm, whose outcome was unknown, {took}.")


def test_results_of_native_calls_come_right_behind_them_and_the_word_of_a_person_after() -> None:
    run = doubtful("native")
    run = msgspec.structs.replace(run, history=((NATIVE,),))
    told = said(apply(run, Settled(n=1, outcome="done", by="ann")))
    assert [message["role"] for message in told] == ["tool", "user"]


def test_what_is_said_while_a_question_is_out_goes_with_the_next_one_and_only_once() -> None:
    run = asked(doubtful())
    run = apply(run, Settled(n=1, outcome="done", by="ann"))
    run = apply(run, Resumed(clean=True))
    assert "whose outcome was unknown" in said(run)[-1]["content"]
    effect = next_effect(run)
    assert isinstance(effect, Ask)
    body = context.body(apply(run, effect.asked), effect.asked)
    assert body.count(b"whose outcome was unknown") == 1
    run = answer(run, call(READ))
    assert run.notes == ()


def test_what_is_said_between_a_question_and_its_row_is_not_lost() -> None:
    run = doubtful()
    effect = next_effect(run)
    assert isinstance(effect, Ask) and isinstance(effect.asked, Asked)
    run = apply(run, Settled(n=1, outcome="done", by="ann"))
    run = apply(run, effect.asked)  # made before the word came in
    assert len(run.notes) == 1
    assert b"whose outcome was unknown" not in context.body(run, effect.asked)


def test_what_was_said_between_answers_that_could_not_be_read_is_said_again_in_the_next_protocol() -> None:
    run = doubtful("react")
    assert run.begun is not None
    run = msgspec.structs.replace(run, begun=msgspec.structs.replace(run.begun, next_protocol="json"))
    run = apply(garbled(run, 1), Settled(n=1, outcome="done", by="ann"))
    run = apply(garbled(run, 2), switched())
    effect = next_effect(run)
    assert isinstance(effect, Ask)
    body = context.body(apply(run, effect.asked), effect.asked)
    assert body.count(b"whose outcome was unknown") == 1


def test_a_call_is_settled_after_the_end_of_its_run_and_nothing_else_changes() -> None:
    run = start("rtest-2", Job(call=ALARM, effect="once"))
    run = apply(apply(run, Intended(n=1)), Returned(n=1, result=LOST, seconds=1.0, unknown=True))
    end = next_effect(run)
    assert isinstance(end, Record)
    ended = apply(run, end.event)
    settled = apply(ended, Settled(n=1, outcome="done", by="ann"))
    assert [(done.result, done.settled) for done in settled.done] == [("ok", "ann")]
    assert msgspec.structs.replace(settled, done=ended.done, seq=ended.seq) == ended


@pytest.mark.parametrize(
    "run",
    [
        pytest.param(ready(), id="no such call"),
        pytest.param(answer(ready(), call(ALARM)), id="not started"),
        pytest.param(apply(answer(ready(), call(ALARM)), Intended(n=1)), id="under way"),
        pytest.param(returned(answer(ready(), call(READ)), LOST), id="known"),
        pytest.param(apply(doubtful(), Settled(n=1, outcome="done", by="ann")), id="settled"),
    ],
)
def test_only_an_unknown_call_is_settled(run: Run) -> None:
    with pytest.raises(IllegalMove):
        apply(run, Settled(n=1, outcome="not_done", by="bob"))


def test_what_people_say_between_two_crashes_is_no_sign_of_life() -> None:
    run = answer(doubtful(), call(Call(name="sound_alarm", args={"name": "two"})))
    for number in range(3):
        run = apply(run, Resumed(clean=False))
        if not number:
            run = apply(run, Settled(n=1, outcome="done", by="ann"))
    effect = next_effect(run)
    assert isinstance(effect, Record) and "restarts in a row" in str(effect.event)
