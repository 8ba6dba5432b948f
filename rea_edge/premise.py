"""The condition that a goal's own words put on all its acts, kept by code where the model itself compares. Pure.

Models read the right value and compare it wrongly, or not at all. Where a goal says for certain under which condition it
is to be acted (see `evidence`), nothing acts before that was read, and nothing while it does not hold. In protocol
command a guard says it anew in each line, and this is not used.
"""

import msgspec

from rea_edge import condition
from rea_edge.records import Call, Ok, OpenCall, Result, Run


def after(run: Run, head: OpenCall, result: Result) -> Run:
    """The run with what this result says of its condition: the newest reading counts."""
    premise = run.begun.only_if if run.begun else None
    if premise is None or not condition.asks_for(premise, head.call.name, head.call.args):
        return run
    lacking = condition.lacking(premise, msgspec.json.decode(result.data)) if isinstance(result, Ok) else None
    return msgspec.structs.replace(run, premise=lacking)


def refusal(run: Run, call: Call) -> str | None:
    """Why this call is not started, or None."""
    premise = run.begun.only_if if run.begun else None
    if run.begun is None or premise is None or run.premise == "":
        return None
    if run.begun.reads(call.name):
        return None
    known = "read it first" if run.premise is None else f"{run.premise}: do not act"
    return f"not run: the goal acts only on {condition.in_words(premise)}; {known}"
