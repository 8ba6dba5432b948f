"""Going in circles: the same call with the same result, a tool that only fails, a call that was refused. Pure.

A call that gave the same result twice (`repeats`) is refused, and asked for once more it ends the run; a tool that
failed three times in a row is closed; what the gate refused stays refused for the run. An act that ran makes every
other reading new, since the world may be another.
"""

from hashlib import sha256

import msgspec

from rea_edge import premise
from rea_edge.records import Call, Fault, Ok, OpenCall, Result, Run, Seen

FAILURES = 3
_REMEMBERED = 32  # different calls; a circle that is wider meets the limit of steps


def after(run: Run, head: OpenCall, result: Result) -> Run:
    """The run with what this result says about repetition."""
    name, key = head.call.name, _key(head.call)
    seen = [item for item in run.seen if item.call != key and head.effect == "read"]
    failing = {tool: times for tool, times in run.failing.items() if tool != name}
    match result:
        case Ok(data=data):
            digest = _digest(bytes(data))
            times = next((item.times for item in run.seen if item.call == key and item.result == digest), 0)
            seen.append(Seen(call=key, result=digest, times=times + 1))
        case Fault():
            failing[name] = run.failing.get(name, 0) + 1
    return msgspec.structs.replace(run, seen=tuple(seen[-_REMEMBERED:]), failing=failing)


def remark(run: Run, call: Call) -> str:
    """What the model is told beside the result that `after` has just taken in; empty if nothing."""
    if run.failing.get(call.name, 0) == FAILURES:
        return f"{_named(run, call)} failed {FAILURES} times in a row and is closed for this task: go on without it."
    if _times(run, call) >= _most(run):
        return "This call gave the same result before: this is a conclusion, decide from it."
    return ""


def refusal(run: Run, call: Call) -> str | None:
    """Why this call is not started, or None."""
    if why := run.denied.get(_key(call)):
        return f"not run: it was refused before, and stays so for this task: {why}"
    if run.failing.get(call.name, 0) >= FAILURES:
        return f"{call.name} is closed for this task: it failed {FAILURES} times in a row"
    if (times := _times(run, call)) >= _most(run):
        return f"not run: it gave the same result {times} times already; this is a conclusion, decide from it"
    if _done_before(run, call):
        return "not run: it is done already; give the next command, or done"
    return premise.refusal(run, call)


def after_refusal(run: Run, call: Call, reason: str) -> Run:
    """The run with this call refused: by the gate, which is told once, or for going in circles."""
    if refusal(run, call) is None:
        return msgspec.structs.replace(run, denied={**run.denied, _key(call): reason})
    return msgspec.structs.replace(run, warned=(*run.warned, _subject(run, call)))


def endless(run: Run, call: Call) -> str | None:
    """Why the run has to end instead of refusing this call a second time, or None."""
    if refusal(run, call) is None or _subject(run, call) not in run.warned:
        return None
    closed = run.failing.get(call.name, 0) >= FAILURES
    why = "a tool that is closed" if closed else "a call whose result is known"
    why = "a call that was refused" if _key(call) in run.denied or premise.refusal(run, call) else why
    return f"going in circles: {call.name} was asked for again, {why}"


def _most(run: Run) -> int:
    assert run.begun is not None
    return run.begun.repeats


def _named(run: Run, call: Call) -> str:
    """The tool as the model knows it."""
    return run.begun.aliases.get(call.name, call.name) if run.begun else call.name


def _subject(run: Run, call: Call) -> str:
    return call.name if run.failing.get(call.name, 0) >= FAILURES else _key(call)


def _done_before(run: Run, call: Call) -> bool:
    """Whether a command line repeats an act: a model small enough for this protocol forgets what it has done."""
    if run.begun is None or run.begun.protocol != "command":
        return False
    return not run.begun.reads(call.name) and any(
        (one.tool, one.args, one.result) == (call.name, call.args, "ok") for one in run.done
    )


def _times(run: Run, call: Call) -> int:
    key = _key(call)
    return next((item.times for item in run.seen if item.call == key), 0)


def _key(call: Call) -> str:
    return f"{call.name} {_digest(msgspec.json.encode(call.args, order='deterministic'))}"


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()[:16]
