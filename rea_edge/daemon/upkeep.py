"""What the store and the broker's retained states need from time to time. Turned by the main thread; runs nothing."""

import logging
import time
from contextlib import suppress

import msgspec

from rea_edge import unsettled
from rea_edge.daemon.life import Life
from rea_edge.errors import RunUnreadable, StoreBroken, StoreFull, StoreUnusable
from rea_edge.journal import decode_job, followed, run_from
from rea_edge.records import Ended, Frozen, Run
from rea_edge.report import STATE_KEEP_S, Report
from rea_edge.store import RunRow, Store, Transaction

log = logging.getLogger("rea_edge.upkeep")

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
    """Turned by one thread. Ages are in seconds of the state's life, so that a clock that jumps ages nothing."""

    def __init__(self, store: Store, report: Report, life: Life, keep: Keep) -> None:
        self._keep = keep
        self._store = store
        self._report = report
        self._life = life
        self._due_s = 0.0

    def turn(self) -> bool:
        """Do what is due; True if something waits in the outbox because of it."""
        try:
            queued = self._make_room()  # first: where there is none, nothing below can be written
            queued |= self._queue_dropped()
            # Whether there is room again only a commit tells. A connection that begins or ends is written down soon: after
            # a kill it says how old what waits may be.
            if time.monotonic() >= self._due_s or self._store.full or self._life.news:
                self._due_s = time.monotonic() + EVERY_S
                queued |= self.keep()
        except StoreFull as exc:
            log.error("event=disk_full detail=%r", str(exc))
            return False
        return queued

    def keep(self) -> bool:
        """Write down that the node was up at this time, clear old states, prune old runs."""
        now_s = self._life.lived_s()
        due = self._states_due(now_s)
        with self._store.transaction() as tx:
            self._life.keep(tx)
            cleared = self._clear(tx, due)
            pruned = self.prune(tx, now_s - self._keep.journal_s, self._keep.journals)
            tx.forget_old(now_s - self._keep.name_s, KEEP_UNDATED)
        return cleared or pruned

    def stop(self) -> None:
        """The last words of a node that stops in order: until when it was up."""
        with suppress(StoreUnusable), self._store.transaction() as tx:
            self._life.keep(tx)

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
        # What a person still has to look at, and to say, needs its journal.
        pruned = tx.prune(older_than, keep, AT_ONCE, spare={call.row for call in unsettled.listed(tx)})
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

    def _states_due(self, now_s: float) -> list[int]:
        ended = [(row, ended_s) for row, ended_s in self._store.standing() if ended_s is not None]
        return [row for row, ended_s in ended if now_s - ended_s >= STATE_KEEP_S][:AT_ONCE]

    def _queue_dropped(self) -> bool:
        """States that went from a full outbox are made again from their runs, once it is half empty."""
        rows = self._store.dropped(AT_ONCE)
        if not rows:
            return False
        if self._store.usage().outbox_published:
            with self._store.transaction():  # what was published goes with it, and nobody else may write for long
                pass
        if not self._store.has_room():
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
        from rea_edge import outcome  # a node that waits for work does not need it

        assert row.outcome is not None
        ended = Ended(outcome=row.outcome, answer="", reason=str(damaged), error="store_failed")
        return outcome.broken_off(followed(tx.run_name(row.row), row, [])[0], ended, row.seq)
