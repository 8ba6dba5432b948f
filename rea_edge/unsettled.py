"""Calls of which nobody knows whether they took effect: kept for the operator, over restarts, until they are settled.

One short list in the store, beside the journals that say the same: so that nobody has to read all of them to know.
"""

import msgspec

from rea_edge.records import Frozen, Run
from rea_edge.store import Reading, RunRow, Transaction

KEY = "unknown_calls"
MOST = 200  # the newest; what falls out still says `unknown` in its task's state
SHOWN = 20  # in health


class Unsettled(Frozen, frozen=True, kw_only=True, omit_defaults=False):
    """Call `n` of the task (or direct call) `id` of `who`; `row` is the run's, `at` in wall seconds."""

    row: int
    run: str
    who: str
    id: str
    n: int
    tool: str
    at: float | None = None


_LIST = msgspec.json.Decoder(tuple[Unsettled, ...])


def listed(reading: Reading) -> tuple[Unsettled, ...]:
    """All that are open, the oldest first."""
    kept = reading.meta_get(KEY)
    return _LIST.decode(kept) if kept else ()


def add(tx: Transaction, row: RunRow, run: Run, known: int, at: float | None) -> None:
    """Keep what has become unknown in this run since it had `known` calls done."""
    new = [
        Unsettled(row=row.row, run=run.id, who=row.who, id=row.id, n=done.n, tool=done.tool, at=at)
        for done in run.done[known:]
        if done.result == "unknown"
    ]
    if new:
        _write(tx, (*listed(tx), *new)[-MOST:])


def settled(tx: Transaction, row: RunRow, n: int) -> None:
    before = listed(tx)
    after = tuple(one for one in before if (one.row, one.n) != (row.row, n))
    if len(after) < len(before):
        _write(tx, after)


def _write(tx: Transaction, calls: tuple[Unsettled, ...]) -> None:
    tx.meta_set(KEY, msgspec.json.encode(calls).decode() if calls else None)
