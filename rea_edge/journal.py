"""A run and its rows: load it, note what happened, commit before anything is done about it.

The one writer of events. Other threads add theirs (a cancel) by `add`; the lane that holds the run meets them at its
next commit, in the order of the rows. What a commit publishes is put into the outbox in the same transaction.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Protocol

import msgspec

from rea_edge import unsettled
from rea_edge.allowance import Left
from rea_edge.clock import boot_s
from rea_edge.errors import RunUnreadable
from rea_edge.records import Asked, AskedApproval, CancelAsked, Effect, Ended, Event, Job, Resumed, Run, Settled, State
from rea_edge.store import Reading, RunRow, Store, Transaction

log = logging.getLogger("rea_edge.journal")

JOURNAL_SHARE = 1 / 8  # of the file's room, for one run: half of what is kept for those that were accepted

_EVENT = msgspec.json.Decoder(Event)
_JOB = msgspec.json.Decoder(Job)
_ENCODER = msgspec.json.Encoder()


class Publish(Protocol):
    """Puts what people are told about a run into the outbox, inside the transaction that makes it true."""

    def __call__(self, tx: Transaction, row: RunRow, run: Run) -> None: ...


class Books(Protocol):
    """What all runs of a node share: the time the state has lived, and what may be spent."""

    def lived_s(self) -> float:
        """Seconds, counted on over restarts."""
        ...

    def charge(self, tx: Transaction, tokens: int, reserved: int) -> None:
        """A run has spent tokens more (or less, settled), of which `reserved` more are open."""
        ...

    def pay(self, tx: Transaction, cost: float) -> None:
        """A call that costs so much is about to start. Raises `RequestRefused` where that may not be."""
        ...

    def too_dear(self, cost: float) -> str | None:
        """Why no call may start now that costs so much, or None."""
        ...

    def left(self) -> Left | None:
        """What tokens may still be spent; None: whatever a run may."""
        ...


class NoBooks:
    """Nothing is shared: runs are bounded by their own limits alone."""

    def lived_s(self) -> float:
        return boot_s()

    def charge(self, tx: Transaction, tokens: int, reserved: int) -> None: ...

    def pay(self, tx: Transaction, cost: float) -> None: ...

    def too_dear(self, cost: float) -> str | None:
        return None

    def left(self) -> Left | None:
        return None


def decode_event(body: bytes) -> Event:
    return _EVENT.decode(body)


def decode_job(row: RunRow) -> Job:
    return _JOB.decode(row.request)


def encode(value: Event | Job) -> bytes:
    return _ENCODER.encode(value)


def run_from(reading: Reading, row: RunRow) -> Run:
    """The run as its rows add up, read inside a transaction, outside, or from a copy.

    Raises `RunUnreadable` where they do not, unless the run was ended for that: then it is given as far as it can be
    followed, with that end.
    """
    return _run_of(reading, row, reading.events(row.row))


def _run_of(reading: Reading, row: RunRow, bodies: Sequence[bytes]) -> Run:
    run, fault = followed(reading.run_name(row.row), row, bodies)
    if fault is not None and run.phase != "ended":
        raise fault
    return run


def followed(
    name: str, row: RunRow, bodies: Sequence[bytes], seen: Callable[[Run, Event], None] = lambda run, event: None
) -> tuple[Run, RunUnreadable | None]:
    """A run as far as the machine can follow its journal, and what it stopped at. `seen` is told each event, with the
    run right after it."""
    from rea_edge import loop, outcome

    run = loop.start(name, Job())
    if row.shown == "pruned":
        assert row.outcome is not None
        return outcome.broken_off(run, outcome.pruned(row.outcome), row.seq), None
    try:
        with machine(run, "its request"):
            run = loop.start(name, decode_job(row))
        for body in bodies:
            with machine(run, f"event {run.seq} of its journal"):
                event = decode_event(body)
                run = loop.apply(run, event)
            seen(run, event)
    except RunUnreadable as fault:
        return _broken_off(run, row, bodies), fault
    return run, None


def _broken_off(run: Run, row: RunRow, bodies: Sequence[bytes]) -> Run:
    """A run that was ended because it cannot be followed, with that end and what people have settled since."""
    from rea_edge import loop, outcome

    last: list[Settled] = []
    for body in reversed(bodies if row.state == "ended" else []):
        match next(readable([body]), None):
            case Settled() as event:
                last.insert(0, event)
            case Ended() as ended:
                run = outcome.broken_off(run, ended, len(bodies) - len(last))
                for event in last:
                    run = loop.apply(run, event)
                return run
            case _:
                break
    return run


def readable(bodies: Iterable[bytes]) -> Iterator[Event]:
    """The events up to the first that this version does not know."""
    with suppress(msgspec.MsgspecError):
        yield from map(decode_event, bodies)


@contextmanager
def machine(run: Run, at: str) -> Iterator[None]:
    """The machine is pure: what it raises about a run, it raises at every start. That ends the run, not the node."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as exc:
        row = run.id.rpartition("-")[2]
        raise RunUnreadable(f"row {row} (run {run.id}), {at}: {type(exc).__name__}: {exc}"[:1000]) from exc


def applied(run: Run, event: Event) -> Run:
    """The run after this event. The machine is loaded at the first: a node that waits for work does not need it."""
    from rea_edge import loop

    with machine(run, f"event {run.seq} of its journal"):
        return loop.apply(run, event)


class Journal:
    """The journal of one store. `clock` gives wall seconds, or None while it is not trusted."""

    def __init__(
        self, store: Store, publish: Publish, clock: Callable[[], float | None], books: Books | None = None
    ) -> None:
        self._store = store
        self._publish = publish
        self._clock = clock
        self._books = books or NoBooks()

    def load(self, row: RunRow) -> "Held":
        """Take up a run from its rows."""
        bodies = self._store.events(row.row)
        run = _run_of(self._store, row, bodies)
        return Held(self._store, self._publish, self._clock, self._books, row, run, sum(map(len, bodies)))

    def give_up(self, row: RunRow, fault: RunUnreadable) -> tuple[Run, RunRow]:
        """End a run that the machine cannot follow, as failed, and tell its sender. Raises as `Held.commit` does."""
        from rea_edge import outcome

        log.error("event=run_unreadable row=%d who=%s task_id=%s", row.row, row.who, row.id, exc_info=fault)
        ended = outcome.unreadable(str(fault))
        with self._store.transaction() as tx:
            bodies = tx.events(row.row)
            run, _ = followed(tx.run_name(row.row), row, bodies)
            known = len(run.done)
            run = outcome.broken_off(run, ended, len(bodies) + 1)
            tx.append(row.row, len(bodies), [encode(ended)], self._clock())
            row = tx.set_state(row.row, "ended", ended.outcome, self._books.lived_s())
            self._books.charge(tx, 0, -run.reserved)  # of a question that nobody will settle: it stays charged
            unsettled.add(tx, row, run, known, self._clock())
            self._publish(tx, row, run)
        return run, row

    def add(self, tx: Transaction, row: RunRow, event: Event) -> None:
        """Append an event from outside the lane. The caller has seen that it may come."""
        tx.append(row.row, tx.event_count(row.row), [encode(event)], self._clock())


class Held:
    """A run in the hands of one lane: `run` is its state with the noted events, `size` their bytes in the journal."""

    def __init__(
        self,
        store: Store,
        publish: Publish,
        clock: Callable[[], float | None],
        books: Books,
        row: RunRow,
        run: Run,
        size: int,
    ) -> None:
        self.size = size
        self.row = row
        self.run = run
        self._store = store
        self._publish = publish
        self._clock = clock
        self._books = books
        self._base = run  # the run as the disk has it
        self._noted: list[Event] = []
        self._bodies: list[bytes] = []  # of the noted events

    @property
    def room(self) -> int:
        """Bytes that its journal may still grow by. Beyond, the room that is kept for accepted runs would not do for all."""
        return int(self._store.max_bytes * JOURNAL_SHARE) - self.size

    def next_effect(self) -> Effect:
        """What is to be done now."""
        from rea_edge import loop

        with machine(self.run, "what follows"):
            return loop.next_effect(self.run)

    def body(self, asked: Asked) -> bytes:
        """The request that puts this question."""
        from rea_edge import context

        with machine(self.run, "its next question"):
            return context.body(self.run, asked)

    def note(self, event: Event) -> None:
        """Take in an event whose row goes with the next commit. Nothing may act on it before that."""
        self.run = applied(self.run, event)
        self._noted.append(event)
        self._bodies.append(encode(event))
        self.size += len(self._bodies[-1])

    def left(self) -> Left | None:
        """What all runs together may still spend, by the limit that leaves least; None where there is no such limit."""
        return self._books.left()

    def too_dear(self, cost: float) -> str | None:
        """Why no call that costs so much may start now, for what all runs together may spend; or None."""
        return self._books.too_dear(cost)

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

        Raises `StoreFull` or, for what a call costs, `RequestRefused` (nothing written, the run as before) or `StoreBroken`.
        """
        wanted = [*self._noted, *events]
        more = [encode(event) for event in events]
        news: list[tuple[Run, Event]] = []
        with self._store.transaction() as tx:
            run = self._base
            fresh = tx.event_count(self.row.row) > run.seq
            added = [decode_event(body) for body in tx.events(self.row.row, after=run.seq)] if fresh else []
            if wanted and isinstance(wanted[-1], Ended) and any(isinstance(event, CancelAsked) for event in added):
                # It was accepted before this end is on disk, so it counts: the end is made anew, with it in view.
                more = more[: len(events) - 1]
                wanted.pop()
            for event in [*added, *wanted]:
                run = applied(run, event)
                news.append((run, event))
            self._charge(tx, run)
            if wanted:
                tx.append(self.row.row, run.seq - len(wanted), [*self._bodies, *more], self._clock())
            row, state = self.row, _state(run)
            if state != row.state:
                outcome = run.ended.outcome if run.ended else None
                row = tx.set_state(row.row, state, outcome, self._books.lived_s())
            unsettled.add(tx, row, run, len(self._base.done), self._clock())
            if any(is_kept(event) for event in wanted):
                self._publish(tx, row, run)
        # Only what is on disk is true: after a full disk the same commit is made once more, row and all.
        self.row = row
        self.run = self._base = run
        self.size += sum(map(len, more))
        self._noted, self._bodies = [], []
        return news

    def _charge(self, tx: Transaction, run: Run) -> None:
        tokens, reserved = run.used.tokens - self._base.used.tokens, run.reserved - self._base.reserved
        if tokens or reserved:
            self._books.charge(tx, tokens, reserved)
        if cost := run.used.cost - self._base.used.cost:
            self._books.pay(tx, cost)


def _state(run: Run) -> State:
    """What stands in the row of a run that a lane has: one that waits for a person is not taken up after a restart."""
    match run.phase:
        case "ended" | "waiting":
            return run.phase
        case _:
            return "running"


def is_kept(event: Event) -> bool:
    """Whether the state after this event goes through the outbox. How a run gets on in between is told from memory:
    the newest is enough, and a row for every step would wear the flash."""
    return isinstance(event, Ended | Resumed | AskedApproval)
