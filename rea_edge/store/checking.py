"""Is this file ours, and is it whole? Reads only; what follows from the answer is decided in `opening`."""

import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from rea_edge.errors import StoreUnusable
from rea_edge.store.database import Database
from rea_edge.store.layout import APPLICATION_ID, TABLES, VERSION
from rea_edge.store.reading import Reading, Worth
from rea_edge.store.rows import RunRow
from rea_edge.store.seen import Seen


class Inspection(Reading):
    """Reads a database and notes what is damaged in it, `needed` first, instead of raising."""

    def __init__(self, db: Database, epoch: str = "") -> None:
        super().__init__(epoch)
        self.needed: list[str] = []
        self.spared: list[str] = []
        self._db = db

    def inspect(self, *, finished: bool) -> None:
        """Read settings, runs and the events of those that have not ended; `finished`: of all, and the outbox."""
        for (key,) in self._db.rows("SELECT key FROM meta"):
            self.meta_get(str(key))
        for run in self._all_runs():
            if finished or run.state != "ended":
                self.journal(run.row)
        if finished:
            self.pull()

    @contextmanager
    def _held(self) -> Iterator[Database]:
        yield self._db

    def _damaged(self, what: str, worth: Worth) -> None:
        (self.needed if worth == "needed" else self.spared).append(what)

    def _published(self) -> Collection[int]:
        return ()

    def _all_runs(self) -> Iterator[RunRow]:
        rows = [row for (row,) in self._db.rows("SELECT row FROM run ORDER BY row")]
        for row in rows:
            if isinstance(row, int) and (run := self.run(row)):
                yield run


def is_blank(db: Database) -> bool:
    """No table was ever made in it: a new file, or a first start that was cut off."""
    return db.number("PRAGMA application_id") == 0 and db.number("SELECT count(*) FROM sqlite_master") == 0


def foreign(db: Database) -> str | None:
    """Why this is not a file of ours, or None. A file of ours by a newer version raises `StoreUnusable`."""
    application_id = db.number("PRAGMA application_id")
    if application_id != APPLICATION_ID:
        return f"it is another program's database (application id {application_id})"
    version = db.number("PRAGMA user_version")
    if version > VERSION:
        raise StoreUnusable(f"the state file is of version {version}, this program knows up to {VERSION}")
    return None


def damage(db: Database, sentinel: str | None, seen: Seen | None) -> str | None:
    """Why a file of ours cannot be relied on, or None."""
    # Not quick_check: it does not compare an index with its table, and a task missing in the index would run twice.
    (answer,) = db.one("PRAGMA integrity_check(1)") or ("",)
    if answer != "ok":
        return f"integrity check: {answer!r}"
    made = db.rows("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    if set(made) != set(TABLES.items()):
        return "its tables are not as they were made"
    found = Inspection(db)
    found.inspect(finished=False)
    if found.needed:
        return f"the check sum is wrong: {', '.join(found.needed[:3])}"
    epoch = found.meta_get("epoch")
    if epoch is None or not _is_uuid(epoch):
        return f"its epoch is {epoch!r}"
    if sentinel not in {None, epoch} and not _just_begun(db, found):
        return f"it is of epoch {epoch}, the folder of {sentinel!r}"
    return behind(db, epoch, seen) if seen is not None else None


def _just_begun(db: Database, found: Inspection) -> bool:
    """A state begun in place of a lost one; a crash came before the folder's sentinel was replaced."""
    return found.meta_get("lost") is not None and db.number("SELECT count(*) FROM run") == 0


def behind(db: Database, epoch: str, seen: Seen) -> str | None:
    """What the witness says that this state had, and has no more; None too if it speaks of another."""
    if seen.epoch != epoch:
        return None
    newest = db.number("SELECT max(row) FROM run")
    if newest < seen.newest:
        return f"runs up to {seen.newest} were accepted, it ends at {newest}: its WAL was lost, or it is an old copy"
    events = db.one("SELECT seq FROM run WHERE row = ?", seen.row)
    if events is not None and isinstance(events[0], int) and events[0] < seen.seq:
        return f"run {seen.row} had {seen.seq} events, it has {events[0]}: its WAL was lost, or it is an old copy"
    return None


def damaged_messages(db: Database) -> list[int]:
    """Rows of the outbox that must not be sent. They cost an answer, not the state."""
    inspection = Inspection(db)
    whole = {message.row for message in (*inspection.pull(), *inspection.aside())}
    rows = [row for (row,) in db.rows("SELECT row FROM outbox") if isinstance(row, int)]
    return [row for row in rows if row not in whole]


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False
