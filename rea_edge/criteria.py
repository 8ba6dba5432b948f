"""Whether what a task type demands has come true, by what its tools returned. Pure; never by what the model says.

A criterion is met by the newest result of its call. Any act makes a reading old, and an act what its own tool did before.
"""

import msgspec

from rea_edge import condition
from rea_edge.records import Call, Criterion, Ok, OpenCall, Result, Run


def after(run: Run, head: OpenCall, result: Result) -> Run:
    """The run with what this result says about its criteria."""
    wanted = run.begun.done_when if run.begun else ()
    if not wanted:
        return run
    found = dict(run.found)
    for place, criterion in enumerate(wanted):
        if not _asks_for(criterion, head.call):
            if head.effect != "read" and (criterion.tool == head.call.name or _reads(run, criterion.tool)):
                found.pop(place, None)
        elif isinstance(result, Ok):
            found[place] = _lacking(criterion, msgspec.json.decode(result.data))
        else:
            found[place] = "the call failed"
    return msgspec.structs.replace(run, found=found)


def unmet(run: Run) -> str | None:
    """The first criterion that is not met, in words for the model; None if all are."""
    for place, criterion in enumerate(run.begun.done_when if run.begun else ()):
        lacking = run.found.get(place, "it was not called since the last act")
        if lacking:
            return f"{in_words(criterion)} is required; {lacking}"
    return None


def in_words(criterion: Criterion) -> str:
    args = f" {msgspec.json.encode(criterion.args).decode()}" if criterion.args else ""
    value = msgspec.json.encode(criterion.value).decode()
    return f"a result of {criterion.tool}{args} with {criterion.path or 'the whole'} {criterion.op} {value}"


def _reads(run: Run, tool: str) -> bool:
    return any(offer.name == tool and offer.effect == "read" for offer in (run.begun.offers if run.begun else ()))


def _asks_for(criterion: Criterion, call: Call) -> bool:
    given = call.args
    return call.name == criterion.tool and all(
        key in given and _equal(given[key], value) for key, value in criterion.args.items()
    )


def _lacking(criterion: Criterion, data: object) -> str:
    """What a result lacks; empty if it meets the criterion."""
    value = condition.lookup(data, criterion.path) if criterion.path else data
    if value is msgspec.UNSET:
        return f"there is no {criterion.path} in the result"
    if criterion.op in ("==", "!="):
        met: bool | condition.Incomparable = _equal(value, criterion.value) == (criterion.op == "==")
    else:
        met = condition.compare(value, criterion.op, criterion.value)
    return "" if met is True else f"it is {msgspec.json.encode(value).decode()[:200]}"


def _equal(first: object, second: object) -> bool:
    """Equal as JSON values, where 6 is 6.0 and 1 is not true."""
    return condition.compare(first, "==", second) is True or condition.same(first, second)
