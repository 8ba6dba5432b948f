"""A run and its rows: load it, note what happened, commit before anything is done about it.

The one writer of events. Other threads add theirs (a cancel) by `add`; the lane that holds the run meets them at its
next commit, in the order of the rows. What a commit publishes is put into the outbox in the same transaction.
"""

from collections.abc import Callable
from typing import Protocol

import msgspec

from rea_edge.records import Ended, Event, Job, Resumed, Run, State
from rea_edge.store import Reading, RunRow, Store, Transaction

_EVENT = msgspec.json.Decoder(Event)
_JOB = msgspec.json.Decoder(Job)
_ENCODER = msgspec.json.Encoder()


class Publish(Protocol):
    """Puts what people are told about a run into the outbox, inside the transaction that makes it true."""

    def __call__(self, tx: Transaction, row: RunRow, run: Run) -> None: ...


def decode_event(body: bytes) -> Event:
    return _EVENT.decode(body)


def decode_job(row: RunRow) -> Job:
    return _JOB.decode(row.request)


def encode(value: Event | Job) -> bytes:
    return _ENCODER.encode(value)


def run_from(reading: Reading, row: RunRow) -> Run:
    """The run as its rows add up, read inside a transaction, outside, or from a copy."""
    from rea_edge import loop

    run = loop.start(reading.run_name(row.row), decode_job(row))
    for body in reading.events(row.row):
        run = applied(run, decode_event(body))
    return run


def applied(run: Run, event: Event) -> Run:
    """The run after this event. The machine is loaded at the first: a node that waits for work does not need it."""
    from rea_edge import loop

    return loop.apply(run, event)


class Journal:
    """The journal of one store. `clock` gives wall seconds, or None while it is not trusted."""

    def __init__(self, store: Store, publish: Publish, clock: Callable[[], float | None]) -> None:
        self._store = store
        self._publish = publish
        self._clock = clock

    def load(self, row: RunRow) -> "Held":
        """Take up a run from its rows."""
        return Held(self._store, self._publish, self._clock, row, run_from(self._store, row))

    def add(self, tx: Transaction, row: RunRow, event: Event) -> None:
        """Append an event from outside the lane. The caller has seen that the run has not ended."""
        tx.append(row.row, tx.event_count(row.row), [encode(event)], self._clock())


class Held:
    """A run in the hands of one lane: `run` is its state with the noted events, `seen` those already on disk."""

    def __init__(
        self, store: Store, publish: Publish, clock: Callable[[], float | None], row: RunRow, run: Run
    ) -> None:
        self.row = row
        self.run = run
        self._store = store
        self._publish = publish
        self._clock = clock
        self._base = run  # the run as the disk has it
        self._noted: list[Event] = []

    def note(self, event: Event) -> None:
        """Take in an event whose row goes with the next commit. Nothing may act on it before that."""
        self.run = applied(self.run, event)
        self._noted.append(event)

    def sync(self) -> None:
        """Meet what other threads have added, ahead of what is noted: the order in which the rows will stand."""
        run = self._base
        for body in self._store.events(self.row.row, after=run.seq):
            run = applied(run, decode_event(body))
        for event in self._noted:
            run = applied(run, event)
        self.run = run

    def commit(self, *events: Event) -> list[tuple[Run, Event]]:
        """Write all noted events and these, after those that other threads have added.

        Returns all that is new to this lane since its last commit, each with the run as it was after it.

        Raises `StoreFull` (nothing written, the run as before) or `StoreBroken`.
        """
        wanted = [*self._noted, *events]
        news: list[tuple[Run, Event]] = []
        with self._store.transaction() as tx:
            run = self._base
            fresh = tx.event_count(self.row.row) > run.seq
            added = [decode_event(body) for body in tx.events(self.row.row, after=run.seq)] if fresh else []
            for event in [*added, *wanted]:
                run = applied(run, event)
                news.append((run, event))
            if wanted:
                tx.append(self.row.row, run.seq - len(wanted), [encode(event) for event in wanted], self._clock())
            state: State = "ended" if run.phase == "ended" else "running"
            if state != self.row.state:
                self.row = tx.set_state(self.row.row, state, run.ended.outcome if run.ended else None, self._clock())
            if any(is_kept(event) for event in wanted):
                self._publish(tx, self.row, run)
        self.run = self._base = run
        self._noted = []
        return news


def is_kept(event: Event) -> bool:
    """Whether the state after this event goes through the outbox. How a run gets on in between is told from memory:
    the newest is enough, and a row for every step would wear the flash."""
    return isinstance(event, Ended | Resumed)
