"""The machine: `apply(run, event) -> run` and `next_effect(run) -> effect`. Pure; reads nothing but its arguments.

The rules live in two tables: `apply` says which event may come in which phase, `next_effect` what each phase asks
of the shell. An event that the table does not know in a phase is our own bug: `IllegalMove`, the run untouched.

    accepted --Begun--> ready --Asked--> asked --Answered--> acting --Returned/Refused of the last call--> ready
     Switched, Moved: --+ ^----------------+ Unanswered         |  closing --Ended--> ended
                          +-------------------------------------+
    acting --AskedApproval--> waiting --Decided--> acting, or as Refused
The shell writes an event before it gives it to `apply`; so a run is always the sum of its journal.
"""

from typing import Literal, assert_never

import msgspec

from rea_edge import (
    approval,
    budget,
    circles,
    context,
    criteria,
    doubt,
    lines,
    outcome,
    premise,
    questions,
    settled,
    taint,
)
from rea_edge.changes import as_known, changed, closed, failed, gone_on, opened, told, told_result
from rea_edge.errors import Code
from rea_edge.markup import plain
from rea_edge.records import (
    Act,
    Answered,
    Ask,
    Asked,
    AskedApproval,
    Begin,
    Begun,
    Calls,
    CancelAsked,
    CutOff,
    Decided,
    Done,
    Doubted,
    Effect,
    Ended,
    Event,
    Fault,
    Finish,
    GiveUp,
    Guard,
    Intended,
    Job,
    Malformed,
    Moved,
    Ok,
    OpenCall,
    Record,
    Refused,
    Rest,
    Result,
    Resumed,
    Returned,
    Run,
    Settled,
    Switch,
    Switched,
    Unanswered,
    Verified,
    Wait,
)

Word = Literal["ok", "failed", "denied", "unknown"]
MALFORMED_IN_A_ROW = 3
STRIKES = 3
UNANSWERED_IN_A_ROW = 8  # whatever the shell hopes for: a run does not turn for ever around an endpoint
# A `once` call that ended in one of these ways may have taken effect all the same.
OPEN_ENDS = frozenset(
    {
        "timeout",
        "cancelled",
        "memory",
        "cpu",
        "output",
        "crashed",
        "bad_result",
        "host_gone",
        "broker_gone",
        "unknown",
        "unclear",
    }  # fmt: skip
)


class IllegalMove(AssertionError):
    """An event that cannot come in this phase. Only our own bug makes one."""


def start(run_id: str, job: Job) -> Run:
    """The run of a job just accepted. A direct call is call 1 of a run of its own, with nothing to ask."""
    if job.call is None:
        return Run(id=run_id, job=job, tainted_by=job.tainted_by)
    only = OpenCall(n=1, call=job.call, effect=job.effect, tainted=bool(job.tainted_by))
    return Run(id=run_id, job=job, phase="acting", calls=1, open=(only,), tainted_by=job.tainted_by)


def apply(run: Run, event: Event) -> Run:
    """The run after this event. Raises `IllegalMove` for an event that has no place in the run's phase."""
    # What a person says of an earlier call is no sign of life.
    taken_up = isinstance(event, Resumed) or (run.taken_up and isinstance(event, Settled))
    return msgspec.structs.replace(_apply(run, event), seq=run.seq + 1, taken_up=taken_up)


def _apply(run: Run, event: Event) -> Run:
    match run.phase, event:
        case "accepted", Begun():
            used = budget.spend_seconds(run.used, event.seconds)
            return changed(run, phase="ready", begun=event, used=used, strikes=0)
        case "ready", Switched() if run.malformed >= MALFORMED_IN_A_ROW:
            return questions.switched(run, event)
        case "ready", Moved():
            return questions.moved(run, event)
        case "ready", Asked():
            return questions.asked(run, event)
        case "asked", Answered():
            return _answered(run, event)
        case "asked", Unanswered():
            return _unanswered(run, event)
        case "acting", Refused():
            return _refused(run, event)
        case "acting", AskedApproval(n=n) if run.ask is None and not run.open[0].intended and run.open[0].n == n:
            return approval.asked(run, event)
        case "waiting", Decided(answer="yes") if approval.is_about(run, event):
            return approval.allowed(run, event)
        case "waiting", Decided(n=n) if approval.is_about(run, event):
            code: Code = "approval_timeout" if event.answer == "expired" else "policy_denied"
            return _refused(run, Refused(n=n, reason=approval.refusal(event)), code)
        case "acting", Intended(n=n) if not run.open[0].intended and run.open[0].n == n:
            return approval.used(doubt.intended(run, event))
        case "acting", Doubted(n=n) if run.open[0].verify is not None and run.open[0].n == n:
            return doubt.doubted(run, event)
        case "acting", Verified(n=n) if run.open[0].verify is not None and run.open[0].n == n:
            return doubt.verified(run, event)
        case "acting", CutOff(n=n) if run.open[0].n == n:
            return doubt.cut_off(run, event)
        case "acting", Returned(n=n) if run.open[0].n == n:
            return _returned(run, event)
        case (("accepted" | "ready" | "asked" | "acting" | "waiting" | "closing"), Resumed()):
            return _resumed(run, event)
        case (("accepted" | "ready" | "asked" | "acting" | "waiting" | "closing" | "ended"), CancelAsked()):
            words = f"cancelled by {event.by}" + (f": {event.text}" if event.text else "")
            return run if run.ended or run.cancel else changed(run, cancel=words)
        case _, Settled(n=n) if settled.is_open(run, n):
            return settled.settled(run, event)
        case (("accepted" | "ready" | "acting" | "waiting" | "closing"), Ended()):
            done = (*run.done, *outcome.left_open(run))
            return changed(run, phase="ended", ended=event, done=done, open=(), guard=None, told=())
        case _:
            raise IllegalMove(f"{run.id}: {type(event).__name__} in phase {run.phase}")


def next_effect(run: Run) -> Effect:
    """What the shell is to do now. Asked again about the same run it says the same."""
    if run.phase == "ended":
        return Rest()
    if run.phase == "closing":
        assert run.ended is not None
        # A cancel that stands before what ended the run was told that it counts.
        return Record(event=run.ended if run.cancel is None else outcome.cancelled(run))
    # What took effect is found out before anything else, also for a run that is over: it must be told.
    if run.phase == "acting" and run.open[0].intended:
        return doubt.next_effect(run, probing=run.strikes < STRIKES)
    if run.strikes >= STRIKES:
        return Record(event=_crash_loop(run))
    if run.cancel is not None:
        return Record(event=outcome.cancelled(run))
    if run.recheck and not context.begins_as_sent(run):
        return Record(event=outcome.altered(run))
    match run.phase:
        case "accepted":
            return Begin()
        case "ready":
            return _next_question(run)
        case "acting":
            return _next_call(run)
        case "waiting":
            return Wait()
        case "asked":
            raise IllegalMove(f"{run.id}: a question is under way; only its answer or a restart goes on")
        case _:
            assert_never(run.phase)


# --- what to do next


def _next_question(run: Run) -> Ask | Switch | Record:
    assert run.begun is not None
    if limit := budget.limit_met(run.job.limits, run.used):
        return Record(event=outcome.exceeded(run, limit))
    if run.malformed >= MALFORMED_IN_A_ROW and run.begun.next_protocol is not None:
        return Switch(protocol=run.begun.next_protocol)
    turns = context.told_turns(run)
    first = context.first_round(run, turns)
    prompt = context.prompt_tokens(run, first, turns)
    cap = budget.answer_cap(run.job.limits, run.used, prompt, run.begun.context_tokens, run.begun.answer_tokens)
    if cap < budget.LEAST_ANSWER:
        return Record(event=outcome.no_room(run, prompt))
    named = context.prefix(run, first, turns)
    asked = Asked(
        step=run.used.steps + 1,
        reserved=prompt + cap,
        cap=cap,
        first=first,
        turns=turns,
        prefix=named,
        notes=len(run.notes),
    )
    return Ask(asked=asked, seconds=_seconds_left(run))


def _next_call(run: Run) -> Act | Record:
    if run.used.seconds >= run.job.limits.task_s:
        return Record(event=outcome.exceeded(run, "seconds"))
    head = run.open[0]
    if run.begun is not None and (why := circles.endless(run, head.call)):
        return Record(event=outcome.gave_up(run, why))
    if run.begun is not None and (why := circles.refusal(run, head.call)):
        return Record(event=Refused(n=head.n, reason=why))
    seconds = min(run.job.limits.tool_s, _seconds_left(run))
    return Act(n=head.n, call=head.call, effect=head.effect, seconds=seconds, tainted=head.tainted)


def _seconds_left(run: Run) -> float:
    return run.job.limits.task_s - run.used.seconds


def _crash_loop(run: Run) -> Ended:
    reason = f"{STRIKES} restarts in a row, each while the same effect of this task was under way"
    return Ended(outcome="failed", answer=outcome.fallback(run), reason=reason, error="internal")


# --- what an event changes


def _answered(run: Run, event: Answered) -> Run:
    tokens = event.prompt_tokens + event.completion_tokens
    used = budget.settle(run.used, run.reserved, tokens, estimated=event.estimated)
    run = changed(
        run,
        phase="ready",
        used=budget.spend_seconds(used, event.seconds),
        reserved=0,
        strikes=0,
        history=(*run.history, (event.turn,)),
        malformed=run.malformed + 1 if isinstance(event.decision, Malformed) else 0,
        unanswered=0,
        trouble="",
    )
    match event.decision:
        case Malformed():
            return _malformed(run, event.decision)
        case Calls(calls=calls):
            return opened(run, calls, tainted=bool(run.tainted_by))
        case Guard(read=read):
            return changed(opened(run, (read,), tainted=bool(run.tainted_by)), guard=event.decision)
        case Finish():
            return _finish(run, event.decision)
        case GiveUp():
            return closed(run, outcome.given_up(run, event.decision))
        case _:
            assert_never(event.decision)


def _malformed(run: Run, decision: Malformed) -> Run:
    assert run.begun is not None
    if run.malformed < MALFORMED_IN_A_ROW:
        return told(run, decision.message)
    if run.begun.next_protocol is not None:
        return run
    many = f"{MALFORMED_IN_A_ROW} times in a row in protocol {run.begun.protocol}"
    return closed(run, outcome.gave_up(run, f"no readable decision {many}; the last: {decision.message}"))


def _finish(run: Run, finish: Finish) -> Run:
    missing = outcome.incomplete(run, finish)
    if missing is None:
        return closed(run, outcome.finished(run, finish))
    if run.finish_refused:
        return closed(run, outcome.gave_up(run, f"finished twice too early. {missing}"))
    # A criterion that is not met quotes what a tool returned.
    return told(changed(run, finish_refused=True), plain(as_known(run, missing)))


def _unanswered(run: Run, event: Unanswered) -> Run:
    run = questions.unanswered(run, event)
    if run.cancel is not None or not (event.final or run.unanswered >= UNANSWERED_IN_A_ROW):
        return run
    if run.used.seconds >= run.job.limits.task_s:
        return closed(run, outcome.exceeded(run, "seconds"))
    return closed(run, failed(run, "endpoint_unavailable", run.trouble))


def _refused(run: Run, event: Refused, code: Code = "policy_denied") -> Run:
    head, *rest = run.open
    assert head.n == event.n, (head.n, event.n)
    if head.begun:
        event, code = doubt.refused(event), "outcome_unknown"
    done = Done(n=head.n, tool=head.call.name, args=head.call.args, result="unknown" if head.begun else "denied")
    used = budget.spend_seconds(run.used, event.seconds)
    run = changed(approval.used(run), open=tuple(rest), done=(*run.done, done), used=used, strikes=0)
    if run.job.call is not None:
        return closed(run, failed(run, code, event.reason))
    run = circles.after_refusal(run, head.call, event.reason)
    if lines.is_one_line(run):
        ended = outcome.gave_up(run, event.reason)
        return closed(run, msgspec.structs.replace(ended, error=code))
    said = Fault(fault="denied", message=as_known(run, event.reason))
    text = context.observation(doubt.unknown(said) if head.begun else said)
    return gone_on(told(changed(run, guard=None), text, head))


def _returned(run: Run, event: Returned) -> Run:
    head, *rest = run.open
    ok = isinstance(event.result, Ok)
    word: Word = "ok" if ok else "unknown" if event.unknown else _failure(event.result)
    free = taint.in_result(run, head, event.result)
    text = context.observation(event.result, free=free)
    run = changed(
        approval.used(run),
        open=tuple(rest),
        done=(*run.done, Done(n=head.n, tool=head.call.name, args=head.call.args, result=word)),
        used=budget.spend_seconds(run.used, event.seconds),
        observations=run.observations + ok,
        finish_refused=run.finish_refused and not ok,  # new evidence: the next finish is another one
        strikes=0,
        last=f"{head.call.name}: {text}",
    )
    if run.job.call is not None:
        return closed(run, _end_of_call(run, event))
    run = taint.after(run, head) if free else run
    run = premise.after(circles.after(run, head, event.result), head, event.result)
    run = criteria.after(run, head, event.result)
    if run.begun is not None and run.begun.protocol == "command":
        return lines.returned(run, head, event)
    return told_result(run, head, _observed(run, event.result, free=free))


def _failure(result: Result) -> Word:
    """Whoever carries a call out may have a gate of his own."""
    return "denied" if isinstance(result, Fault) and result.fault == "denied" else "failed"


def _observed(run: Run, result: Result, *, free: bool) -> str:
    """A result for the model. What a tool said itself stays; all other failures are words of ours."""
    if isinstance(result, Fault) and result.fault != "tool_error":
        message, suggestion = as_known(run, result.message), as_known(run, result.suggestion)
        result = msgspec.structs.replace(result, message=message, suggestion=suggestion)
    return context.observation(result, free=free)


def _end_of_call(run: Run, event: Returned) -> Ended:
    match event.result:
        case Ok():
            return Ended(outcome="achieved", answer="")
        case Fault(fault="busy", message=message) if not event.unknown:
            return failed(run, "busy", message)
        case Fault(fault="denied", message=message):
            return failed(run, "policy_denied", message)
        case Fault(message=message):
            return failed(run, "outcome_unknown" if event.unknown else "tool_failed", message)
        case _:
            assert_never(event.result)


def _resumed(run: Run, event: Resumed) -> Run:
    # The shell writes down that it begins, asks or acts before it does. In the other phases a run lies on disk only
    # where a stop or a start left it, and has been at work since if it was taken up.
    under_way = run.taken_up or run.phase in {"accepted", "asked", "acting"}
    strikes = run.strikes + 1 if under_way and not event.clean else run.strikes
    # The reservation of a question that was cut off stays charged: a crash loop pays for what it asks.
    used = budget.write_off(run.used, run.reserved)
    phase = "ready" if run.phase == "asked" else run.phase
    run = run if event.clean or run.phase != "acting" else doubt.begun(run)
    return changed(run, phase=phase, used=used, reserved=0, strikes=strikes, recheck=True)
