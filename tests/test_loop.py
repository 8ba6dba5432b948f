"""The machine: give it events, look at the effect."""

from typing import get_args

import msgspec
import pytest
from msgspec import Raw

from rea_edge import context
from rea_edge.errors import Code
from rea_edge.loop import OPEN_ENDS, IllegalMove, apply, next_effect, start
from rea_edge.records import (
    Act,
    Answered,
    Ask,
    Begin,
    Begun,
    Call,
    Calls,
    CancelAsked,
    Decision,
    EffectClass,
    Ended,
    Event,
    Fault,
    Finish,
    GiveUp,
    Guard,
    Intended,
    Job,
    Limits,
    Malformed,
    Moved,
    Offer,
    Ok,
    Outcome,
    Protocol,
    Record,
    Refused,
    Rest,
    Resumed,
    Returned,
    Run,
    Unanswered,
)
from rea_edge.toolhost.faults import FaultName

PARAMETERS: dict[str, object] = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
READ = Call(name="read_sensor", args={"name": "boiler"})
FAN = Call(name="set_fan", args={"name": "on"})
ALARM = Call(name="sound_alarm", args={"name": "all"})
HOT = Ok(data=Raw(b'{"value":71.5,"unit":"C"}'))
COLD = Ok(data=Raw(b'{"value":45,"unit":"C"}'))
DONE = Ok(data=Raw(b'{"on":true}'))
BROKEN = Fault(fault="tool_error", message="OSError: no such device")


def offer(name: str, effect: EffectClass) -> Offer:
    return Offer(name=name, effect=effect, parameters=PARAMETERS)


def begun(protocol: Protocol = "json", *, least: int = 1, commands: int = 1, context_tokens: int = 8192) -> Begun:
    return Begun(
        endpoint="local",
        model="any",
        protocol=protocol,
        offers=(offer("read_sensor", "read"), offer("set_fan", "idempotent"), offer("sound_alarm", "once")),
        opening=(Raw(b'{"role":"system","content":"rules"}'), Raw(b'{"role":"user","content":"goal"}')),
        ask='"temperature":0',
        context_tokens=context_tokens,
        min_observations=least,
        answer_tokens=100,
        commands=commands,
    )


def ready(protocol: Protocol = "json", limits: Limits | None = None, **changes: int) -> Run:
    run = start("rtest-1", Job(goal="goal", limits=limits or Limits()))
    return apply(run, begun(protocol, **changes))


def asked(run: Run) -> Run:
    effect = next_effect(run)
    assert isinstance(effect, Ask), effect
    return apply(run, effect.asked)


def answer(run: Run, decision: Decision | Malformed, *, tokens: int = 50, seconds: float = 1.0) -> Run:
    """Ask the next question and give this decision as its answer."""
    run = asked(run)
    event = Answered(
        step=run.used.steps,
        turn=Raw(b'{"role":"assistant","content":"..."}'),
        decision=decision,
        prompt_tokens=tokens - 10,
        completion_tokens=10,
        seconds=seconds,
    )
    return apply(run, event)


def call(*calls: Call) -> Calls:
    return Calls(calls=calls)


def returned(run: Run, result: Ok | Fault, *, unknown: bool = False) -> Run:
    effect = next_effect(run)
    assert isinstance(effect, Act), effect
    if effect.effect == "once":
        run = apply(run, Intended(n=effect.n))
    return apply(run, Returned(n=effect.n, result=result, seconds=0.5, unknown=unknown))


def end_of(run: Run) -> Ended:
    effect = next_effect(run)
    assert isinstance(effect, Record) and isinstance(effect.event, Ended), effect
    return effect.event


def test_a_whole_run_in_order() -> None:
    run = start("rtest-1", Job(goal="goal"))
    assert next_effect(run) == Begin()
    run = answer(apply(run, begun()), call(READ))
    assert next_effect(run) == Act(n=1, call=READ, effect="read", seconds=10.0)
    run = answer(returned(run, HOT), Finish(answer="It is 71.5 C."))
    end = end_of(run)
    assert (end.outcome, end.answer) == ("achieved", "It is 71.5 C.")
    run = apply(run, end)
    assert next_effect(run) == Rest()
    assert run.used.steps == 2 and run.used.tokens == 100 and run.used.seconds == pytest.approx(2.5)
    assert [(done.n, done.tool, done.result) for done in run.done] == [(1, "read_sensor", "ok")]


def test_a_journal_gives_the_same_run_again() -> None:
    run = ready()
    events: list[Event] = [begun()]
    for _ in range(3):
        effect = next_effect(run)
        assert isinstance(effect, Ask)
        more: list[Event] = [
            effect.asked,
            Answered(step=1, turn=Raw(b"{}"), decision=call(READ), prompt_tokens=5, completion_tokens=5, seconds=1),
            Returned(n=run.calls + 1, result=HOT, seconds=0.25),
        ]
        for event in more:
            run = apply(run, event)
        events += more
    again = start("rtest-1", Job(goal="goal"))
    for event in msgspec.json.decode(msgspec.json.encode(events), type=list[Event]):
        again = apply(again, event)
    assert msgspec.json.encode(again) == msgspec.json.encode(run)


@pytest.mark.parametrize(
    ("limits", "steps_taken", "limit"),
    [
        pytest.param(Limits(steps=3), 3, "steps", id="exactly as many questions as allowed"),
        pytest.param(Limits(tokens=400), 2, "tokens", id="a question that could overshoot is not asked"),
        pytest.param(Limits(task_s=3.0), 2, "seconds", id="time inside effects"),
    ],
)
def test_a_limit_ends_the_run_with_what_is_known(limits: Limits, steps_taken: int, limit: str) -> None:
    run = ready(limits=limits)
    while isinstance(next_effect(run), Ask):
        run = answer(run, call(READ), tokens=130)
        if isinstance(next_effect(run), Act):
            run = returned(run, COLD if run.calls % 2 else HOT)
    end = end_of(run)
    assert (end.outcome, end.limit) == ("exceeded", limit)
    assert "Last result" in end.answer and "value" in end.answer
    assert run.used.steps == steps_taken
    assert run.used.tokens <= limits.tokens


def test_a_reservation_is_charged_when_asked_and_settled_when_answered() -> None:
    run = ready()
    effect = next_effect(run)
    assert isinstance(effect, Ask)
    during = apply(run, effect.asked)
    assert during.used.tokens == effect.asked.reserved > effect.asked.cap == 100
    assert answer(run, call(READ), tokens=42).used.tokens == 42


def test_a_reservation_cut_off_by_a_crash_stays_charged() -> None:
    run = asked(ready())
    resumed = apply(run, Resumed(clean=False))
    assert resumed.used.tokens == run.used.tokens
    assert isinstance(next_effect(resumed), Ask)


def test_a_crash_loop_ends_after_three_unclean_starts() -> None:
    run = asked(ready())
    for strike in (1, 2):
        run = apply(run, Resumed(clean=False))
        assert isinstance(next_effect(run), Ask), strike
        run = asked(run)
    run = apply(run, Resumed(clean=False))
    assert end_of(run).outcome == "failed"
    assert run.used.steps == 3


def test_clean_stops_and_rows_that_follow_do_not_count_as_strikes() -> None:
    run = asked(ready())
    for _ in range(5):
        run = asked(apply(run, Resumed(clean=True)))
    for _ in range(5):
        run = apply(run, Resumed(clean=False))
        run = answer(run, call(READ)) if run.used.steps < 8 else run
        if not isinstance(next_effect(run), Act):
            break
        run = asked(returned(run, HOT)) if run.used.steps < 8 else returned(run, HOT)
    assert run.strikes <= 1


def test_three_unclean_starts_in_a_row_while_it_begins_end_a_run_too() -> None:
    run = start("r1", Job(goal="g"))
    for strike in (1, 2):
        run = apply(run, Resumed(clean=False))
        assert isinstance(next_effect(run), Begin), strike
    run = apply(run, Resumed(clean=False))
    assert (end_of(run).outcome, end_of(run).error) == ("failed", "internal")
    after = apply(apply(start("r1", Job(goal="g")), Resumed(clean=False)), begun())
    assert after.strikes == 0, "the row that follows says that it has begun"


def test_what_a_run_does_after_it_was_taken_up_counts_as_under_way_in_every_phase() -> None:
    run = apply(ready(), Resumed(clean=True))
    assert (run.phase, run.strikes) == ("ready", 0), "a clean stop had left it between two effects"
    run = apply(run, Resumed(clean=False))
    assert (run.phase, run.strikes) == ("ready", 1)
    assert apply(run, Resumed(clean=True)).strikes == 1
    assert apply(apply(run, CancelAsked(by="me")), Resumed(clean=False)).strikes == 1


def test_a_once_call_in_doubt_is_reported_unknown_and_never_run() -> None:
    run = answer(ready(), call(ALARM))
    run = apply(run, Intended(n=1))
    run = apply(run, Resumed(clean=False))
    effect = next_effect(run)
    assert isinstance(effect, Record) and isinstance(effect.event, Returned)
    assert effect.event.unknown
    run = apply(run, effect.event)
    assert run.done[0].result == "unknown"
    asking = next_effect(run)
    assert isinstance(asking, Ask)
    assert b"unknown" in bytes(asking.asked.turns[0])


def test_a_read_that_was_under_way_runs_again_with_the_same_number() -> None:
    run = apply(answer(ready(), call(READ)), Resumed(clean=False))
    assert next_effect(run) == Act(n=1, call=READ, effect="read", seconds=10.0)


def test_a_finish_without_an_observation_is_sent_back_once() -> None:
    run = answer(ready(), Finish(answer="It is 20 C."))
    asking = next_effect(run)
    assert isinstance(asking, Ask)
    assert b"Not complete yet" in bytes(asking.asked.turns[0])
    assert end_of(answer(run, Finish(answer="It is 20 C."))).outcome == "gave_up"


def test_a_failed_call_is_no_observation_that_a_finish_can_rest_on() -> None:
    run = returned(answer(ready(), call(READ)), BROKEN)
    run = answer(run, Finish(answer="It is 20 C."))
    assert run.finish_refused


def test_a_finish_is_believed_at_once_where_no_tool_is_needed() -> None:
    assert end_of(answer(ready(least=0), Finish(answer="Paris."))).answer == "Paris."


def test_three_malformed_answers_in_a_row_end_the_run() -> None:
    bad = Malformed(error="unparseable", message="no decision")
    run = answer(answer(ready(), bad), bad)
    assert isinstance(next_effect(run), Ask)
    assert end_of(answer(run, bad)).outcome == "gave_up"


def test_a_good_answer_between_malformed_ones_starts_the_count_again() -> None:
    bad = Malformed(error="unparseable", message="no decision")
    run = returned(answer(answer(answer(ready(), bad), bad), call(READ)), HOT)
    run = answer(answer(run, bad), bad)
    assert isinstance(next_effect(run), Ask)


def test_several_calls_of_one_answer_run_in_order_and_are_told_together() -> None:
    run = answer(ready(), call(READ, FAN))
    run = returned(run, HOT)
    assert isinstance(next_effect(run), Act)
    run = returned(run, DONE)
    asking = next_effect(run)
    assert isinstance(asking, Ask)
    assert [done.n for done in run.done] == [1, 2]
    assert b"71.5" in bytes(asking.asked.turns[0]) and b"set_fan" in bytes(asking.asked.turns[0])


@pytest.mark.parametrize(
    ("result", "outcome", "said", "acts"),
    [
        pytest.param(HOT, "achieved", "over 60", 2, id="true: the act runs"),
        pytest.param(COLD, "achieved", "not over 60: set_fan was not run", 1, id="false: it does not"),
        pytest.param(Ok(data=Raw(b'{"other":1}')), "gave_up", "not run", 1, id="a missing path runs nothing"),
        pytest.param(Ok(data=Raw(b'{"value":"hot"}')), "gave_up", "not run", 1, id="another type runs nothing"),
        pytest.param(BROKEN, "failed", "no such device", 1, id="a failed reading runs nothing"),
    ],
)
def test_a_guard_is_compared_by_code(result: Ok | Fault, outcome: Outcome, said: str, acts: int) -> None:
    guard = Guard(read=READ, path="value", op=">", value=60, then=FAN)
    run = returned(answer(ready("command"), guard), result)
    if acts == 2:
        effect = next_effect(run)
        assert isinstance(effect, Act) and effect.call == FAN and effect.n == 2
        run = returned(run, DONE)
    end = end_of(run)
    assert end.outcome == outcome
    assert said in f"{end.answer} {end.reason}"
    assert len(run.done) == acts


def test_a_command_run_ends_with_its_first_line() -> None:
    run = returned(answer(ready("command"), call(READ)), HOT)
    assert "71.5" in end_of(run).answer


def test_more_command_lines_are_asked_where_the_task_type_allows_them() -> None:
    run = returned(answer(ready("command", commands=2), call(READ)), HOT)
    run = returned(answer(run, call(FAN)), DONE)
    end = end_of(run)
    assert end.outcome == "achieved" and "71.5" in end.answer and "set_fan" in end.answer


def test_a_command_line_that_repeats_an_act_is_refused_and_the_model_is_told() -> None:
    run = returned(answer(ready("command", commands=4), call(ALARM)), DONE)
    again = answer(run, call(ALARM))
    refused = next_effect(again)
    assert isinstance(refused, Record) and isinstance(refused.event, Refused)
    asking = next_effect(apply(again, refused.event))
    assert isinstance(asking, Ask) and b"done already" in bytes(asking.asked.turns[0])
    assert isinstance(next_effect(answer(run, call(FAN))), Act)


def test_done_ends_a_command_run_with_the_answers_so_far() -> None:
    run = returned(answer(ready("command", commands=3), call(READ)), HOT)
    assert "71.5" in end_of(answer(run, Finish(answer=""))).answer


@pytest.mark.parametrize(
    ("result", "unknown", "error"),
    [
        pytest.param(BROKEN, False, "tool_failed", id="failed"),
        pytest.param(Fault(fault="timeout", message="too long"), True, "outcome_unknown", id="unknown"),
    ],
)
def test_a_command_whose_call_failed_fails_and_says_how(result: Fault, unknown: bool, error: Code) -> None:
    run = returned(answer(ready("command"), call(ALARM)), result, unknown=unknown)
    end = end_of(run)
    assert (end.outcome, end.error) == ("failed", error)


def test_a_refusal_is_told_to_the_model_and_the_call_never_starts() -> None:
    run = apply(answer(ready(), call(ALARM)), Refused(n=1, reason="not allowed"))
    assert run.done[0].result == "denied"
    asking = next_effect(run)
    assert isinstance(asking, Ask) and b"not allowed" in bytes(asking.asked.turns[0])


@pytest.mark.parametrize("phase", ["accepted", "ready", "asked", "acting", "between"])
def test_a_cancel_ends_the_run_at_the_next_border(phase: str) -> None:
    runs = {
        "accepted": start("rtest-1", Job(goal="goal")),
        "ready": ready(),
        "asked": asked(ready()),
        "acting": answer(ready(), call(READ)),
        "between": returned(answer(ready(), call(READ, FAN)), HOT),
    }
    run = apply(runs[phase], CancelAsked(by="me", text="enough"))
    if phase == "asked":
        run = apply(run, Unanswered(step=1, fault="cancelled", message="cancelled", seconds=0.1))
    end = end_of(run)
    assert end.outcome == "cancelled" and "enough" in end.reason


def test_a_cancel_does_not_hide_a_call_that_may_have_taken_effect() -> None:
    run = apply(answer(ready(), call(ALARM)), Intended(n=1))
    run = apply(run, CancelAsked(by="me"))
    run = apply(run, Returned(n=1, result=Fault(fault="cancelled", message="x"), seconds=1, unknown=True))
    assert end_of(run).outcome == "cancelled"
    assert run.done[0].result == "unknown"


def test_an_endpoint_that_gives_nothing_fails_the_run_by_name() -> None:
    run = apply(asked(ready()), Unanswered(step=1, fault="connect", message="refused", seconds=2.0))
    end = end_of(run)
    assert (end.outcome, end.error) == ("failed", "endpoint_unavailable") and "connect" in end.reason


def failed(run: Run, fault: str, *, charged: bool, **more: int) -> Run:
    run = asked(run)
    return apply(
        run,
        Unanswered(step=run.used.steps, fault=fault, message="x", seconds=1.0, final=False, charged=charged, **more),
    )


def test_a_question_refused_before_it_could_cost_anything_is_given_back() -> None:
    run = failed(ready(), "connect", charged=False)
    assert (run.used.steps, run.used.tokens, run.used.estimated) == (0, 0, False)
    assert isinstance(next_effect(run), Ask)


def test_a_question_that_may_have_cost_tokens_stays_charged_and_the_next_is_a_step_of_its_own() -> None:
    run = failed(ready(), "cut", charged=True)
    charged = run.used.tokens
    assert charged > 100 and run.used.estimated
    run = asked(run)
    assert (run.used.steps, run.used.tokens) == (2, 2 * charged)


def test_a_run_does_not_turn_for_ever_around_an_endpoint_that_gives_nothing() -> None:
    run, turns = ready(), 0
    while isinstance(next_effect(run), Ask):
        run, turns = failed(run, "connect", charged=False), turns + 1
    assert turns == 8
    assert "connect" in end_of(run).reason


def test_a_limit_met_while_the_endpoint_fails_names_the_failure() -> None:
    run = failed(ready(limits=Limits(task_s=1.0)), "timeout_header", charged=True)
    end = end_of(run)
    assert (end.outcome, end.limit) == ("exceeded", "seconds") and "timeout_header" in end.reason


def reads(run: Run, count: int) -> Run:
    for number in range(count):
        run = returned(answer(run, call(Call(name="read_sensor", args={"name": f"s{number}"}))), HOT)
    return run


@pytest.mark.parametrize(
    ("told", "most"),
    [
        pytest.param({"context_tokens": 300}, 300, id="the size the server tells"),
        pytest.param({"context_tokens": 400, "prompt_tokens": 2000}, 200, id="where it counts more than we estimate"),
        pytest.param({}, None, id="no size told"),
        pytest.param({"context_tokens": 1_000_000}, None, id="a size that cannot be the reason"),
    ],
)
def test_a_prompt_that_did_not_fit_is_asked_again_shorter(told: dict[str, int], most: int | None) -> None:
    run = reads(ready(limits=Limits(steps=99, tokens=1_000_000)), 12)
    before = next_effect(run)
    run = failed(run, "context_overflow", charged=False, **told)
    after = next_effect(run)
    assert isinstance(before, Ask) and isinstance(after, Ask)
    assert after.asked.reserved < before.asked.reserved
    assert most is None or after.asked.reserved <= most
    assert after.asked.first > before.asked.first
    assert run.history[-1][-1] == before.asked.turns[-1], "what was told is not lost"


def test_a_prompt_that_no_context_has_room_for_ends_the_run_and_says_so() -> None:
    run = apply(start("rtest-1", Job(goal="goal")), begun(context_tokens=40))
    end = end_of(run)
    assert (end.outcome, end.limit) == ("exceeded", "tokens") and "in a context of 40" in end.reason
    assert "give the model server a larger one, or the task type fewer tools" in end.reason
    assert "the limit of tokens" in end_of(ready(limits=Limits(tokens=40))).reason


def test_a_server_that_never_finds_a_prompt_short_enough_ends_the_run_by_name() -> None:
    run = reads(ready(limits=Limits(steps=99, tokens=1_000_000)), 3)
    while isinstance(next_effect(run), Ask):
        run = failed(run, "context_overflow", charged=False)
    assert "context_overflow" in end_of(run).reason


def test_a_switch_changes_who_is_asked_and_nothing_of_what_was_said() -> None:
    run = reads(ready(), 2)
    there = Moved(endpoint="far", model="big", ask='"top_k":1', context_tokens=1000, why="local: connect", seconds=2.0)
    moved = apply(run, there)
    assert moved.begun is not None and run.begun is not None
    assert (moved.begun.endpoint, moved.begun.model, moved.begun.context_tokens) == ("far", "big", 1000)
    assert moved.begun.opening == run.begun.opening and moved.history == run.history
    assert moved.used.seconds == run.used.seconds + 2.0
    asking = next_effect(moved)
    assert isinstance(asking, Ask)
    body = context.body(apply(moved, asking.asked), asking.asked)
    assert body.startswith(b'{"model":"big","messages":[') and b'"top_k":1' in body


def test_a_run_taken_up_asks_nothing_if_its_prompt_would_not_begin_as_the_last_one_did() -> None:
    run = asked(returned(answer(ready(), call(READ)), HOT))
    same = apply(run, Resumed(clean=False))
    assert isinstance(next_effect(same), Ask)
    other = (*run.history[:-1], (Raw(b'{"role":"assistant","content":"!!!"}'), *run.history[-1][1:]))
    altered = apply(msgspec.structs.replace(run, history=other), Resumed(clean=False))
    end = end_of(altered)
    assert (end.outcome, end.error) == ("failed", "internal") and "read_sensor" in end.answer


def test_a_call_in_doubt_is_told_also_where_the_prompt_was_altered() -> None:
    run = apply(answer(ready(), call(ALARM)), Intended(n=1))
    assert run.begun is not None
    other = msgspec.structs.replace(run.begun, opening=run.begun.opening[1:])
    run = apply(msgspec.structs.replace(run, begun=other), Resumed(clean=False))
    doubt = next_effect(run)
    assert isinstance(doubt, Record) and isinstance(doubt.event, Returned) and doubt.event.unknown
    end = end_of(apply(run, doubt.event))
    assert end.error == "internal" and "sound_alarm (unknown)" in end.answer


@pytest.mark.parametrize(
    ("result", "unknown", "outcome", "error"),
    [
        pytest.param(DONE, False, "achieved", None, id="ok"),
        pytest.param(BROKEN, False, "failed", "tool_failed", id="failed"),
        pytest.param(Fault(fault="host_gone", message="x"), True, "failed", "outcome_unknown", id="unknown"),
        pytest.param(Fault(fault="busy", message="x"), False, "failed", "busy", id="its device was not free"),
    ],
)
def test_a_direct_call_is_a_run_of_one_call(
    result: Ok | Fault, unknown: bool, outcome: Outcome, error: Code | None
) -> None:
    run = start("rtest-2", Job(call=ALARM, effect="once"))
    run = returned(run, result, unknown=unknown)
    end = end_of(run)
    assert (end.outcome, end.error) == (outcome, error)


def test_every_way_a_tool_can_fail_is_known_to_have_run_or_not() -> None:
    sure = {"tool_error", "unconfined", "missing_program", "bad_args", "unknown_tool", "no_host", "busy"}
    sure |= {"no_broker", "offline", "denied_by_broker", "not_sent"}
    sure |= {"denied", "refused"}
    assert {*get_args(FaultName), "unknown"} - OPEN_ENDS == sure


def test_a_second_cancel_does_not_change_who_asked_first() -> None:
    run = apply(ready(), CancelAsked(by="ann", text="too late"))
    assert end_of(apply(run, CancelAsked(by="bob"))).reason == "cancelled by ann: too late"


def test_a_cancel_before_the_answer_that_finishes_counts_and_one_after_it_does_not() -> None:
    before = apply(asked(returned(answer(ready(), call(READ)), HOT)), CancelAsked(by="ann"))
    done = Answered(
        step=2,
        turn=Raw(b'{"role":"assistant","content":"..."}'),
        decision=Finish(answer="It is 71.5 C."),
        prompt_tokens=40,
        completion_tokens=10,
        seconds=1.0,
    )
    assert end_of(apply(before, done)).outcome == "cancelled"
    after = answer(returned(answer(ready(), call(READ)), HOT), Finish(answer="It is 71.5 C."))
    assert end_of(apply(after, CancelAsked(by="ann"))).outcome == "achieved"


def test_an_answer_between_crashes_starts_their_count_again() -> None:
    run = ready()
    for _ in range(2):
        run = apply(asked(run), Resumed(clean=False))
    run = apply(answer(run, call(READ)), Resumed(clean=False))
    assert isinstance(next_effect(run), Act)


def test_no_call_starts_once_the_seconds_of_the_run_are_spent() -> None:
    run = answer(ready(limits=Limits(task_s=5.0)), call(READ, FAN), seconds=4.8)
    assert isinstance(next_effect(run), Act)
    end = end_of(returned(run, HOT))
    assert (end.outcome, end.limit) == ("exceeded", "seconds")


def test_a_give_up_keeps_its_reason() -> None:
    end = end_of(answer(ready(), GiveUp(reason="no tool fits")))
    assert (end.outcome, end.reason) == ("gave_up", "no tool fits")


@pytest.mark.parametrize(
    ("run", "event"),
    [
        pytest.param(ready(), begun(), id="begun twice"),
        pytest.param(ready(), Returned(n=1, result=HOT, seconds=0), id="a result of no call"),
        pytest.param(answer(ready(), call(READ)), Returned(n=2, result=HOT, seconds=0), id="a result of another call"),
        pytest.param(asked(ready()), Intended(n=1), id="an intent while asking"),
        pytest.param(
            asked(ready()),
            Moved(endpoint="a", model="b", ask="", context_tokens=1000, why="x"),
            id="a switch while asking",
        ),
        pytest.param(apply(answer(ready(), call(ALARM)), Intended(n=1)), Intended(n=1), id="the same intent twice"),
    ],
)
def test_an_event_out_of_place_is_refused_and_changes_nothing(run: Run, event: Event) -> None:
    before = msgspec.json.encode(run)
    with pytest.raises(IllegalMove):
        apply(run, event)
    assert msgspec.json.encode(run) == before


def test_next_effect_says_the_same_when_asked_again() -> None:
    for run in (ready(), answer(ready(), call(READ)), returned(answer(ready(), call(READ)), HOT)):
        assert msgspec.json.encode(next_effect(run)) == msgspec.json.encode(next_effect(run))


def test_a_long_run_fits_the_context_and_its_cost_grows_linearly() -> None:
    run = ready(limits=Limits(steps=160, tokens=10_000_000, task_s=1e6), context_tokens=2000)
    prompts = []
    for number in range(150):
        effect = next_effect(run)
        assert isinstance(effect, Ask)
        prompts.append(effect.asked.reserved - effect.asked.cap)
        run = returned(answer(run, call(READ)), COLD if number % 2 else HOT)
    assert max(prompts) + 100 <= 2000
    assert sum(prompts[100:]) < 1.1 * sum(prompts[50:100])
