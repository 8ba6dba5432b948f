"""Fifty transactions on a real store, the same ones each time, each said on standard output once it is acknowledged.

    python -m tests.durability.workload FOLDER STEPS [PRAGMA ...]

A step is one transaction. Which steps a store has had stands in the store itself, so that a run goes on where it was
cut off. PRAGMAs are set on the open connection: so a test shows what weaker settings would cost.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from rea_edge.store import EventRow, OutboxRow, RunRow, Store, Transaction

STEPS = 50
IDLE_AFTER = frozenset({34, 37, 46})  # steps: the WAL is moved into the main file, and begins anew
REOPEN_AFTER = frozenset({30, 41})
SIZES = (90, 700, 2600, 9000, 26_000, 52_000)  # bytes of an event: enough for a checkpoint by SQLite itself


class Snapshot(Struct, frozen=True):
    """All that a store gives, but its epoch and what its last stop was like."""

    steps: int
    runs: tuple[RunRow, ...]
    events: tuple[tuple[EventRow, ...], ...]
    messages: tuple[OutboxRow, ...]


def snapshot(store: Store) -> Snapshot:
    runs = store.runs(1000)
    return Snapshot(
        steps=steps_of(store),
        runs=tuple(runs),
        events=tuple(tuple(store.journal(run.row)) for run in runs),
        messages=tuple(store.pull()),
    )


def steps_of(store: Store) -> int:
    return int(store.meta_get("steps") or 0)


def step(store: Store, number: int) -> None:
    """Transaction `number`, from 0. Every fifth accepts a run; the others write to a run that has not ended."""
    if number % 3 == 0:  # what waits has been published, and goes with this transaction
        store.sent([message.row for message in store.pull(2)])
    with store.transaction() as tx:
        tx.meta_set("steps", str(number + 1))
        if number % 5 == 0:
            run, _ = tx.add_run("task", "me", f"t{number}", f"sha256:{number}", b"%d" % number * 40, 1.0)
            tx.put("reply", f"reply/{number}", b"accepted")
        else:
            _write(tx, number)


def _write(tx: Transaction, number: int) -> None:
    run = tx.queue()[number % 2 - 1]
    body = (b"%d." % number * SIZES[number % 6])[: SIZES[number % 6]]
    tx.append(run.row, run.seq, [body, b"%d" % number], float(number))
    if number % 10 == 9:
        tx.set_state(run.row, "ended", "achieved", float(number))
    tx.put("state", f"state/{run.row}", body[:500], retain=True, run=run.row)
    if number % 11 == 10:
        tx.prune(older_than=0.0, keep_rows=2)


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


def open_with(folder: Path, pragmas: Sequence[str]) -> Store:
    say("opening")
    store = Store.open(folder, busy_s=0.0)
    for pragma in pragmas:
        store._opened.db.rows(f"PRAGMA {pragma}")
    say(f"open {store.epoch} {steps_of(store)}")
    return store


def main(folder: Path, steps: int, pragmas: Sequence[str]) -> None:
    store = open_with(folder, pragmas)
    for number in range(steps_of(store), steps):
        step(store, number)
        say(f"step {number + 1}")
        if number in IDLE_AFTER:
            store.idle()
        if number in REOPEN_AFTER:
            say("closing")
            store.close()
            say("closed")
            store = open_with(folder, pragmas)
    say("closing")
    store.close()
    say("closed")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
