"""When a run is over and what is then said: completion, and the answer that a limit or a fault leaves. Pure.

What was done is taken from the journal; the model's words are never the proof.
"""

from msgspec import structs

from rea_edge import budget, criteria
from rea_edge.errors import Code
from rea_edge.records import Call, Done, Ended, Finish, GiveUp, LimitName, OpenCall, Outcome, Run

LIMIT_WORDS: dict[LimitName, str] = {
    "steps": "questions to the model",
    "tokens": "tokens",
    "seconds": "active seconds",
    "day_tokens": "tokens of all tasks in a day",
    "month_tokens": "tokens of all tasks in a month",
    "day_cost": "cost of all calls in a day",
    "month_cost": "cost of all calls in a month",
}


def incomplete(run: Run, finish: Finish) -> str | None:
    """Why this finish cannot be believed, in words for the model; None if it can."""
    assert run.begun is not None
    least = run.begun.min_observations
    if run.observations < least:
        wanted = "one tool result" if least == 1 else f"{least} tool results"
        return f"Not complete yet: an answer must rest on at least {wanted} of this task; there are {run.observations}."
    if missing := criteria.unmet(run) or _owed(run):
        return f"Not complete yet: {missing}."
    if run.begun.protocol == "command":
        return None  # code writes the answer, and a line has no thought
    fault = _fault(finish, [run.begun.aliases.get(offer.name, offer.name) for offer in run.begun.offers])
    return f"Not complete yet: {fault}" if fault else None


def _owed(run: Run) -> str | None:
    """Which act that the goal's words ask for was neither done nor found to be under a condition that does not hold."""
    bounds = run.begun.bounds if run.begun else None
    if bounds is None or not bounds.acts or run.begun is None or run.begun.protocol != "command":
        return None
    settled = [(one.tool, one.args) for one in run.done if one.result == "ok"]
    settled += [(one.name, one.args) for one in run.spared]
    for asked in bounds.acts:
        if not any(asked.is_done_by(tool, args) for tool, args in settled):
            from rea_edge import telling  # for a run of command lines alone

            return f"{telling.label(Call(name=asked.tool, args=asked.args))} was not run"
    return None


def _fault(finish: Finish, tools: list[str]) -> str | None:
    """What is wrong with the words of a finish. Where no tool is on offer, asking back and promising may be all."""
    if not finish.answer.strip():
        return "the answer is empty."
    from rea_edge import phrasing  # its patterns are for a node that thinks, not for one that waits

    if phrasing.breaks_off(finish.answer):
        return "the answer breaks off. Give it whole."
    if not tools:
        return None
    if tool := phrasing.announced(finish.thought, tools):
        return f"the thought announces a call of {tool}, but the message finishes. Call it, or finish without it."
    if phrasing.promises(finish.answer):
        return "the answer announces an act that was not done. Do it with a tool, or say what is so."
    if phrasing.only_asks(finish.answer):
        return "the answer only asks, and nobody replies during a task. Use the tools, say what is known, or give up."
    return None


def finished(run: Run, finish: Finish) -> Ended:
    """The end of a run whose finish is believed. In protocol `command` code writes the answer from the results.

    There the last line ends a run without the model's word for it, so that a criterion may be open still.
    """
    if missing := criteria.unmet(run) or _owed(run):
        return gave_up(run, f"not complete: {missing}")
    answer = "; ".join(run.answers) if run.begun and run.begun.protocol == "command" else finish.answer.strip()
    return Ended(outcome="achieved", answer=answer)


def gave_up(run: Run, reason: str) -> Ended:
    return Ended(outcome="gave_up", answer=fallback(run), reason=reason)


def given_up(run: Run, decision: GiveUp) -> Ended:
    """The model itself gives up."""
    bounds = run.begun.bounds if run.begun else None
    reasons = [decision.reason or "the model gave no reason", *([bounds.why] if bounds and bounds.why else [])]
    return gave_up(run, ": ".join(reasons))


def exceeded(run: Run, limit: LimitName, how: str = "") -> Ended:
    reason = how or f"the limit of {LIMIT_WORDS[limit]} was reached"
    if run.trouble:
        reason += f" while the endpoint failed: {run.trouble}"
    return Ended(outcome="exceeded", answer=fallback(run), reason=reason, limit=limit)


def no_room(run: Run, prompt_tokens: int) -> Ended:
    """The next question cannot be asked: the run has too few tokens left, or they do not fit the endpoint's context."""
    size = run.begun.context_tokens if run.begun else 0
    if size - prompt_tokens >= budget.LEAST_ANSWER:
        return exceeded(run, "tokens")
    how = f"a prompt of about {prompt_tokens} tokens leaves no room for an answer in a context of {size}: "
    how += "give the model server a larger one, or the task type fewer tools"
    return exceeded(run, "tokens", how)


def too_long(run: Run, size: int) -> Ended:
    """Its journal has grown to `size` bytes, which leaves too little room in the state file for others."""
    reason = f"its journal has {size >> 10} KiB: no task may keep more of its results, or others would find no room"
    return Ended(outcome="exceeded", answer=fallback(run), reason=reason, error="budget_exceeded")


def altered(run: Run) -> Ended:
    """The journal does not add up to what the model was sent before the restart."""
    reason = "the prompt would not begin with the bytes that were sent before the restart: the journal was altered, "
    return Ended(
        outcome="failed",
        answer=fallback(run),
        reason=f"{reason}or is read in another way by this version",
        error="internal",
    )


def cancelled(run: Run) -> Ended:
    return Ended(outcome="cancelled", answer=fallback(run), reason=run.cancel or "cancelled")


def pruned(word: Outcome) -> Ended:
    """The end of a run of which only that is left."""
    error: Code | None = None if word == "achieved" else "store_failed"
    reason = "its journal was deleted, for its age or to make room: only how it ended is known"
    return Ended(outcome=word, answer="", reason=reason, error=error)


def unreadable(reason: str) -> Ended:
    """The end of a run that the machine cannot follow. Says nothing of what was done: the calls in the state do."""
    return Ended(outcome="failed", answer="A fault of the node ended this task.", reason=reason, error="internal")


def broken_off(run: Run, ended: Ended, events: int) -> Run:
    """A run as far as the machine could follow it, with the end it was given for that; `events` are in its journal.

    An open call that acts may have taken effect if its start was read, or may stand among what was not.
    """
    unread = events - 1 > run.seq
    unknown = tuple(
        _unknown(head) for head in run.open if head.intended or head.begun or (unread and head.effect != "read")
    )
    changes = {"open": (), "guard": None, "told": (), "done": (*run.done, *unknown), "seq": events}
    return structs.replace(run, phase="ended", ended=ended, **changes)


def left_open(run: Run) -> tuple[Done, ...]:
    """Calls that a run leaves open whose effect may have taken place all the same."""
    return tuple(_unknown(head) for head in run.open if head.intended or head.begun)


def _unknown(head: OpenCall) -> Done:
    return Done(n=head.n, tool=head.call.name, args=head.call.args, result="unknown")


def fallback(run: Run) -> str:
    """What can be said without a finish: what was done, and the newest result."""
    done = (*run.done, *left_open(run))
    acts = f"Done before the end: {_listed(done)}." if done else "Nothing was done."
    return f"{acts} Last result: {run.last}" if run.last else acts


def _listed(done: tuple[Done, ...]) -> str:
    shown = [f"{item.tool} ({item.result})" for item in done[-6:]]
    hidden = len(done) - len(shown)
    return ", ".join(([f"{hidden} earlier calls"] if hidden else []) + shown)
