"""Whether what a task type demands has come true, by what its tools returned. Pure; never by what the model says.

A criterion is met by the newest result of its call. Any act makes a reading old, and an act what its own tool did before.
"""

import msgspec

from rea_edge import condition
from rea_edge.records import Ok, OpenCall, Result, Run


def after(run: Run, head: OpenCall, result: Result) -> Run:
    """The run with what this result says about its criteria."""
    begun = run.begun
    if begun is None or not begun.done_when:
        return run
    found = dict(run.found)
    for place, criterion in enumerate(begun.done_when):
        if not condition.asks_for(criterion, head.call.name, head.call.args):
            if head.effect != "read" and (criterion.tool == head.call.name or begun.reads(criterion.tool)):
                found.pop(place, None)
        elif isinstance(result, Ok):
            found[place] = condition.lacking(criterion, msgspec.json.decode(result.data))
        else:
            found[place] = "the call failed"
    return msgspec.structs.replace(run, found=found)


def unmet(run: Run) -> str | None:
    """The first criterion that is not met, in words for the model; None if all are."""
    for place, criterion in enumerate(run.begun.done_when if run.begun else ()):
        lacking = run.found.get(place, "it was not called since the last act")
        if lacking:
            return f"{condition.in_words(criterion)} is required; {lacking}"
    return None
