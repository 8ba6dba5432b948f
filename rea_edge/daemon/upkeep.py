"""What the store and the broker's retained states need from time to time. Turned by the main thread; runs nothing."""

import logging
import time
from collections.abc import Callable

import msgspec

from rea_edge import doubts, outcome
from rea_edge.clock import boot_s
from rea_edge.errors import RunUnreadable, StoreBroken, StoreFull, StoreUnusable
from rea_edge.journal import decode_job, followed, run_from
from rea_edge.records import Ended, Frozen, Run
from rea_edge.report import Report
from rea_edge.store import RunRow, Store, Transaction

log = logging.getLogger("rea_edge.upkeep")

STATE_KEEP_S = 86_400.0  # after the end of a task its state is taken off the broker: time enough to be read
RESEND_S = 86_400.0  # that a sender may go on to send a request; early cancels and states wait as long
KEEP_UNDATED = 20_000  # names of runs that ended while the clock was not trusted
CROWDED = 0.6  # of the file's room; well below where the store accepts no run
EVERY_S = 300.0  # also how often the time is written down at which the node is known to have been up
AT_ONCE = 20  # runs in one transaction, which keeps others waiting


class Keep(Frozen, frozen=True, kw_only=True):
    """What is kept of runs that have ended: the journals of so many, for so long; and for so long the names, with the
    hash of what was asked, so that the same request does not run again however late the broker brings it."""

    journal_s: float = 30 * 86_400.0
    journals: int = 2000
    name_s: float = 604_800.0 + RESEND_S


class Upkeep:
    """`clock` is wall seconds or None while it is not trusted; `uptime` boot-time seconds, always trusted."""

    def __init__(
        self,
        store: Store,
        report: Report,
        clock: Callable[[], float | None],
        keep: Keep,
        uptime: Callable[[], float] = boot_s,
    ) -> None:
        self._keep = keep
        self._store = store
        self._report = report
        self._clock = clock
        self._uptime = uptime
        self._due_s = 0.0
        self._seen_ended_s: dict[int, float] = {}  # by row: for ends that cannot be compared with the wall clock

    def turn(self) -> bool:
        """Do what is due; True if something waits in the outbox because of it."""
        try:
            queued = self._make_room()  # first: where there is none, nothing below can be written
            queued |= self._queue_dropped()
            if time.monotonic() >= self._due_s or self._store.full:  # whether there is room again, only a commit tells
                self._due_s = time.monotonic() + EVERY_S
                queued |= self.keep()
        except StoreFull as exc:
            log.error("event=disk_full detail=%r", str(exc))
            return False
        return queued

    def keep(self) -> bool:
        """Write down that the node was up at this time, clear old states, prune old runs."""
        now = self._clock()
        due = self._states_due(now)
        with self._store.transaction() as tx:
            if now is not None:
                tx.meta_set("seen_at", repr(now))
            cleared = self._clear(tx, due)
            pruned = self.prune(tx, now - self._keep.journal_s if now is not None else 0.0, self._keep.journals)
            tx.forget_old(now - self._keep.name_s if now is not None else 0.0, KEEP_UNDATED)
        return cleared or pruned

    def _make_room(self) -> bool:
        """Runs that have ended give way, the oldest first, however new: a file that is full for good refuses all."""
        made = False
        while self._store.fullness() > CROWDED:
            with self._store.transaction() as tx:
                if not self.prune(tx, 0.0, 0):
                    break
                made = True
        return made

    def prune(self, tx: Transaction, older_than: float, keep: int) -> bool:
        """Take away the journals of runs that ended before, and of all but the newest `keep`; False: there were none."""
        pruned = tx.prune(older_than, keep, AT_ONCE)
        doubts.forget(tx, pruned)
        for row in pruned:
            if row.kind == "task" and row.shown == "yes":
                self._report.clear(tx, row, pruned=True)
            if _only_read(row):
                tx.forget(row.row)
        return bool(pruned)

    def _clear(self, tx: Transaction, due: list[int]) -> bool:
        for number in due:
            if row := _whole(tx, number):
                self._report.clear(tx, row)
        return bool(due)

    def _states_due(self, now: float | None) -> list[int]:
        standing = self._store.standing()
        up_s = self._uptime()
        unknown = [row for row, ended_at in standing if now is None or ended_at is None]
        self._seen_ended_s = {row: self._seen_ended_s.get(row, up_s) for row in unknown}
        due = [row for row, seen_s in self._seen_ended_s.items() if up_s - seen_s >= STATE_KEEP_S]
        if now is not None:
            due += [row for row, ended_at in standing if ended_at is not None and now - ended_at >= STATE_KEEP_S]
        return due[:AT_ONCE]

    def _queue_dropped(self) -> bool:
        """States that went from a full outbox are made again from their runs, once it is half empty."""
        rows = self._store.dropped(AT_ONCE)
        if not rows or not self._store.has_room():
            return False
        with self._store.transaction() as tx:
            for row in rows:
                if (fresh := _whole(tx, row.row)) and (run := _told_of(tx, fresh)):
                    self._report.publish_again(tx, fresh, run)
        return True


def _only_read(row: RunRow) -> bool:
    """A direct call that does no harm if it is made again: a dashboard makes them every few seconds, and the names of all
    would fill the file."""
    try:
        return row.kind == "call" and decode_job(row).effect == "read"
    except msgspec.MsgspecError:
        return False


def _whole(tx: Transaction, number: int) -> RunRow | None:
    """A run's row; None if it is damaged, and with it the topic that its state stands on: it goes when it is pruned."""
    try:
        return tx.run(number)
    except StoreBroken:
        raise
    except StoreUnusable:
        return None


def _told_of(tx: Transaction, row: RunRow) -> Run | None:
    """The run that a state is made of. Of one that ended and is damaged, what its row says; None: a lane will tell."""
    try:
        return run_from(tx, row)
    except RunUnreadable:
        return None
    except StoreBroken:
        raise
    except StoreUnusable as damaged:
        assert row.outcome is not None
        ended = Ended(outcome=row.outcome, answer="", reason=str(damaged), error="store_failed")
        return outcome.broken_off(followed(tx.run_name(row.row), row, [])[0], ended, row.seq)
