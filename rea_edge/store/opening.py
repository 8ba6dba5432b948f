"""From a folder to a state that can be relied on: take the lock, open, check, set aside, begin again.

Set aside is what is not a database, damaged, behind its witness, or another state than the folder's sentinel says;
never what is busy, read-only, full or failing to be read. An emptied file opens as a fresh database: only the
sentinel tells.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from rea_edge.errors import StoreBusy, StoreFull, StoreUnusable
from rea_edge.store import checking
from rea_edge.store.database import Database, SqlFailed
from rea_edge.store.folder import FolderLock, holder_of, read_sentinel, read_through, set_aside, size_of, write_sentinel
from rea_edge.store.layout import FILE, apply_settings, create_tables, update_tables, write_meta
from rea_edge.store.rows import Column
from rea_edge.store.seen import Seen, Witness


class Opened(Struct, frozen=True):
    """An open state. `lost`: why an earlier one is gone, until released. `was_clean`: the last stop was in order.
    `damaged`: so many messages could not be read, and were dropped."""

    path: Path
    db: Database
    lock: FolderLock
    witness: Witness
    epoch: str
    lost: str | None
    was_clean: bool
    damaged: int
    newest: int  # row of a run
    last_message: int  # row of the outbox
    settings: dict[str, Column]


def open_state(folder: Path, max_mib: int, busy_s: float) -> Opened:
    """Raises `StoreBusy`, `StoreFull` or `StoreUnusable`; then nothing is held and it may be tried again."""
    with ExitStack() as undo:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = FolderLock(folder, busy_s)
            undo.callback(lock.release)
            witness = Witness(folder)
            undo.callback(witness.close)
            opened = _open_locked(folder, lock, witness, max_mib, busy_s)
        except OSError as error:
            raise StoreUnusable(f"{folder}: {error}") from error
        except SqlFailed as error:
            raise _at_start(folder / FILE, error) from error
        undo.pop_all()
    return opened


def _at_start(path: Path, error: SqlFailed) -> StoreUnusable:
    match error.fault:
        case "busy":
            return StoreBusy(f"{path} is in use by process {holder_of(path)}")
        case "full" | "crowded":
            return StoreFull(f"{path}: {error}")
        case "damaged" | "unusable":
            return StoreUnusable(f"{path}: {error}")


def _open_locked(folder: Path, lock: FolderLock, witness: Witness, max_mib: int, busy_s: float) -> Opened:
    path = folder / FILE
    sentinel = read_sentinel(folder)
    why = _missing(path, sentinel)
    if why is None:
        db = _connect(path, busy_s)
        with _closed_on_error(db):
            why = _wrong(db, sentinel, witness.read(), max_mib)
            if why is None:
                return _begin(folder, lock, witness, db, None, max_mib)
            read_through(folder)
            set_aside(folder, why)  # before the connection is closed: see there
        db.close()
    else:
        set_aside(folder, why)
    db = _connect(path, busy_s)
    with _closed_on_error(db):
        return _begin(folder, lock, witness, db, why, max_mib)


def _connect(path: Path, busy_s: float) -> Database:
    if size_of(path) is None:
        path.touch(mode=0o600)  # nobody has a lock on it yet that this could drop
    return Database(path, busy_s)


def _missing(path: Path, sentinel: str | None) -> str | None:
    """What can be said without opening the file: SQLite would make a new one, and delete the WAL of a lost one."""
    size = size_of(path)
    if size:
        return None
    state = "missing" if size is None else "empty"
    if sentinel is not None:
        return f"the file is {state}, though the folder holds the state {sentinel!r}"
    return f"the file is {state}, its WAL is not" if size_of(path.with_name(f"{FILE}-wal")) else None


def _wrong(db: Database, sentinel: str | None, seen: Seen | None, max_mib: int) -> str | None:
    """Why the file must be set aside, or None. A file that is not ours is not written to."""
    try:
        db.rows("PRAGMA locking_mode = EXCLUSIVE")
        if checking.is_blank(db):
            return None if sentinel is None else f"the file is blank, though the folder holds the state {sentinel!r}"
        if why := checking.foreign(db):
            return why
        update_tables(db)
        apply_settings(db, max_mib)
        return checking.damage(db, sentinel, seen)
    except SqlFailed as error:
        if error.fault != "damaged":
            raise
        return str(error)


def _begin(folder: Path, lock: FolderLock, witness: Witness, db: Database, why: str | None, max_mib: int) -> Opened:
    settings = apply_settings(db, max_mib)
    if checking.is_blank(db):
        create_tables(db, why)
    if (size_of(folder / f"{FILE}-wal") or 0) > 1 << 20:
        # Grown over what SQLite aims at: the last process could not empty it. If we cannot either, we do not begin.
        db.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    meta = checking.Inspection(db)
    epoch, last, lost = meta.meta_get("epoch"), meta.meta_get("open"), meta.meta_get("lost")
    assert epoch is not None
    spoiled = checking.damaged_messages(db)
    db.change("BEGIN IMMEDIATE")
    for row in spoiled:
        db.change("DELETE FROM outbox WHERE row = ?", row)
    write_meta(db, "open", "1")
    db.change("COMMIT")
    # Last: a crash before it leaves a state that nobody has been told of, and that is taken up next time.
    if read_sentinel(folder) != epoch:
        write_sentinel(folder, epoch)
    return Opened(
        path=folder / FILE,
        db=db,
        lock=lock,
        witness=witness,
        epoch=epoch,
        lost=lost,
        was_clean=why is None and last != "1",
        settings=settings,
        damaged=len(spoiled),
        newest=db.number("SELECT max(row) FROM run"),
        last_message=db.number("SELECT max(row) FROM outbox"),
    )


@contextmanager
def _closed_on_error(db: Database) -> Iterator[None]:
    try:
        yield
    except BaseException:
        with suppress(SqlFailed):
            db.close()
        raise
