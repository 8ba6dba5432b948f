"""What the journal says right after a crash, compared with what took effect outside: it must never be behind."""

from pathlib import Path

from rea_edge.journal import decode_event, run_from
from rea_edge.records import Asked, Run
from rea_edge.store.copy import StoreCopy


def lines(folder: Path, word: str) -> list[str]:
    """What the ledger outside says, by its first word; empty where nothing took effect yet."""
    ledger = folder / "ledger"
    text = ledger.read_text() if ledger.exists() else ""
    return [line.split(" ", 1)[1] for line in text.splitlines() if line.startswith(word)]


def check_journal_ahead(folder: Path) -> int:
    """Each question that was put and each call that ran stands in the journal, a `once` call with its intent.

    Gives the tokens that the run has cost so far.
    """
    found = _read(folder / "state")
    asked, ran = lines(folder, "asked"), lines(folder, "ran")
    if found is None:
        assert not asked and not ran
        return 0
    run, questions = found
    assert len(asked) <= questions, "a question was put that the journal does not know"
    known = {f"{done.tool} {run.id}-{done.n}" for done in run.done}
    known |= {f"{head.call.name} {run.id}-{head.n}" for head in run.open if head.intended or head.effect != "once"}
    assert set(ran) <= known, "a call ran that the journal does not know"
    return run.used.tokens


def _read(state: Path) -> tuple[Run, int] | None:
    if not (state / "state.id").exists():
        return None
    with StoreCopy(state) as copy:
        row = copy.run_of("task", "me", "t1")
        if row is None:
            return None
        events = [decode_event(body) for body in copy.events(row.row)]
        return run_from(copy, row), sum(isinstance(event, Asked) for event in events)
