"""What a person's word on an unknown call changes in a run. Pure; whether he may say it is decided elsewhere."""

from msgspec import structs

from rea_edge.changes import changed
from rea_edge.records import Run, Settled


def is_open(run: Run, n: int) -> bool:
    """Whether call n has ended and nobody knows whether it took effect."""
    return any(done.n == n and done.result == "unknown" for done in run.done)


def settled(run: Run, event: Settled) -> Run:
    """The call counts as the person says, and says that he did; a run that goes on tells its model."""
    done = tuple(
        structs.replace(one, result="ok" if event.outcome == "done" else "failed", settled=event.by)
        if one.n == event.n
        else one
        for one in run.done
    )
    notes = run.notes if run.ended else (*run.notes, _note(run, event))
    return changed(run, done=done, notes=notes)


def _note(run: Run, event: Settled) -> str:
    tool = next(one.tool for one in run.done if one.n == event.n)
    name = run.begun.aliases.get(tool, tool) if run.begun else tool
    took = "took effect" if event.outcome == "done" else "did not take effect"
    return f"A person has looked: call {event.n}, {name}, whose outcome was unknown, {took}."
