"""The store: one connection behind one lock, and what an error while running means.

Nothing but the transaction may happen under the lock. A full disk undoes the transaction and the store goes on; any
other error latches it: what is on disk is then only known to the next start.
"""

import threading
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rea_edge.errors import StoreBroken, StoreFull, StoreUnusable
from rea_edge.store.database import Database, SqlFailed
from rea_edge.store.folder import free_bytes, size_of
from rea_edge.store.layout import PAGE_BYTES, write_meta
from rea_edge.store.opening import Opened, open_state
from rea_edge.store.reading import Reading, Worth, raise_if_wanted
from rea_edge.store.rows import Column, StoreUsage
from rea_edge.store.seen import Seen
from rea_edge.store.writing import FULL_SHARE, Changes, OutboxCap, Transaction

LEAST_FREE_BYTES = 256 << 10  # a small commit may still fit where the next one does not
WAL_MAX_BYTES = 4 << 20  # 4 x what SQLite aims at. A dying disk shows here first: failed checkpoints are not reported


class Store(Reading):
    """The state of this node. Made by `open`, used by any thread, ended by `close`.

    Every use may raise `StoreFull` (only transactions; nothing was written), `StoreBroken` (from then on always), or
    plain `StoreUnusable`, where what was asked for belongs to a run that has ended and is damaged. They are raised
    when a transaction ends: what fails inside it is not caught there.
    """

    def __init__(self, opened: Opened, cap: OutboxCap) -> None:
        super().__init__(opened.epoch)
        self.was_clean = opened.was_clean
        self.settings: dict[str, Column] = opened.settings
        self._opened = opened
        self._wal = opened.path.with_name(f"{opened.path.name}-wal")
        self._cap = cap
        self._lock = threading.Lock()
        self._owner = 0
        self._broken = ""
        self._full: str | None = None
        self._closed = False
        self._lost = opened.lost
        self._sent_lock = threading.Lock()
        self._sent: set[int] = set()
        self._last_message = opened.last_message
        self._newest = opened.newest
        self._dropped = 0
        self._spoiled: set[str] = set()

    @classmethod
    def open(
        cls,
        folder: Path,
        *,
        max_mib: int = 16,
        busy_s: float = 2.0,
        outbox_rows: int = 1000,
        outbox_bytes: int = 1 << 20,
    ) -> "Store":
        """Open the state of a folder, or begin one.

        `StoreBusy`: another process has it. `StoreUnusable`: it cannot be opened or written now; try again later.
        A file that is damaged or not the folder's is moved to `broken-N` and a new state is begun: see `lost`.
        """
        return cls(open_state(folder, max_mib, busy_s), OutboxCap(outbox_rows, outbox_bytes))

    @property
    def max_bytes(self) -> int:
        """The most that the file may take."""
        pages = self.settings["max_page_count"]
        assert isinstance(pages, int)
        return pages * PAGE_BYTES

    @property
    def lost(self) -> str | None:
        """Why an earlier state of this folder is gone; kept over restarts until `Transaction.release`."""
        return self._lost

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Commit when the block ends, undo all of it when it raises. When this returns, it is on disk."""
        with self._held() as db:
            changes = Changes(self._last_message, self._take_sent())
            tx = Transaction(db, self.epoch, self._cap, changes)
            try:
                db.change("BEGIN IMMEDIATE")
                tx.delete_published()
                yield tx
                if tx.failed is not None:
                    raise tx.failed
                db.change("COMMIT")
            except BaseException:
                self._undo(db)
                raise
            finally:
                tx.end()
                self._last_message = changes.last_message  # also when undone: a row is never given twice
            self._committed(db, changes)

    def sent(self, rows: Iterable[int]) -> None:
        """These messages have arrived: the next transaction deletes them, and until then they are not pulled."""
        with self._sent_lock:
            self._sent.update(rows)

    def idle(self) -> None:
        """Move the WAL into the main file. For a quiet moment; the WAL keeps its room, so that a commit stays one
        flush."""
        with self._held() as db:
            db.rows("PRAGMA wal_checkpoint(PASSIVE)")

    def wal_bytes(self) -> int:
        return size_of(self._wal) or 0

    @property
    def full(self) -> str | None:
        """What said that the disk has no room, until something is committed again and there is a little more."""
        return self._full

    @property
    def crowded(self) -> bool:
        """What room is left in the file is for the runs in it: none is accepted."""
        return self.fullness() > FULL_SHARE

    def has_room(self) -> bool:
        """Whether the outbox is less than half full: what was dropped may be queued again."""
        usage = self.usage()
        return usage.outbox_rows < self._cap.rows // 2 and usage.outbox_bytes < self._cap.bytes // 2

    def usage(self) -> StoreUsage:
        with self._held() as db:
            free = db.number("PRAGMA freelist_count")
            return StoreUsage(
                used_bytes=(db.number("PRAGMA page_count") - free) * PAGE_BYTES,
                max_bytes=db.number("PRAGMA max_page_count") * PAGE_BYTES,
                wal_bytes=self.wal_bytes(),
                runs=db.number("SELECT count(*) FROM run"),
                outbox_rows=db.number("SELECT count(*) FROM outbox"),
                outbox_bytes=db.number("SELECT sum(length(topic) + length(payload)) FROM outbox"),
                outbox_published=len(self._take_sent()),
                outbox_aside=db.number("SELECT count(*) FROM outbox WHERE kind = 'aside'"),
                dropped=self._dropped,
                damaged=self._opened.damaged + len(self._spoiled),
            )

    def close(self) -> None:
        """End in order, so that the next start finds `was_clean`. Never raises; no use afterwards."""
        if self._closed:
            return
        self._closed = True
        with suppress(StoreUnusable), self._held() as db:
            db.change("BEGIN IMMEDIATE")
            for row in self._take_sent():
                db.change("DELETE FROM outbox WHERE row = ?", row)
            write_meta(db, "open", None)
            db.change("COMMIT")
            db.rows("PRAGMA wal_checkpoint(TRUNCATE)")
        with self._lock:
            self._broken = self._broken or "the store is closed"
            with suppress(SqlFailed):
                self._opened.db.close()
            self._opened.witness.close()
            self._opened.lock.release()

    @contextmanager
    def _held(self) -> Iterator[Database]:
        """The connection for this thread alone; errors leave it as what they mean while running."""
        assert self._owner != threading.get_ident(), "inside a transaction use the transaction"
        with self._lock:
            if self._broken:
                raise StoreBroken(self._broken)
            self._owner = threading.get_ident()
            try:
                yield self._opened.db
            except SqlFailed as error:
                if error.fault in {"full", "crowded"}:
                    self._full = str(error) if error.fault == "full" else self._full
                    raise StoreFull(str(error)) from error
                self._broken = str(error)
                raise StoreBroken(self._broken) from error
            except StoreBroken as error:
                self._broken = str(error)
                raise
            finally:
                self._owner = 0

    def _undo(self, db: Database) -> None:
        try:
            db.roll_back()
        except SqlFailed as error:
            raise StoreBroken(f"a transaction could not be undone: {error}") from error

    def _committed(self, db: Database, changes: Changes) -> None:
        with self._sent_lock:
            self._sent -= changes.published
        self._dropped += changes.dropped
        self._spoiled |= changes.damaged
        if changes.lost is not None or changes.released:
            self._lost = None if changes.released else changes.lost
        self._newest = max(self._newest, changes.newest)
        if changes.touched is not None:
            self._opened.witness.write(Seen(self.epoch, self._newest, *changes.touched))
        if self._full is not None and free_bytes(self._opened.path) > LEAST_FREE_BYTES:
            self._full = None
        if self.wal_bytes() > WAL_MAX_BYTES:
            self._empty_wal(db)

    def _empty_wal(self, db: Database) -> None:
        """One large transaction may have grown it. If it cannot be emptied now, the disk is going."""
        why = ""
        try:
            db.rows("PRAGMA wal_checkpoint(TRUNCATE)")
        except SqlFailed as error:
            if error.fault == "full":
                return  # what was asked is committed; the next one will say that there is no room
            why = f": {error}"
        if why or self.wal_bytes() > WAL_MAX_BYTES:
            raise StoreBroken(f"the WAL has {self.wal_bytes()} bytes and cannot be emptied{why}")

    def _take_sent(self) -> frozenset[int]:
        with self._sent_lock:
            return frozenset(self._sent)

    def _published(self) -> Collection[int]:
        return self._take_sent()

    def _damaged(self, what: str, worth: Worth) -> None:
        raise_if_wanted(what, worth)
        self._spoiled.add(what)
