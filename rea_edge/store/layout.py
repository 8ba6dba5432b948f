"""Tables, settings and the statements that make them. Knows SQL; must not know files or what a row means.

A run's request stands in a table of its own: the run's row is written again with every event, the request never is.
"""

import uuid

from rea_edge.store.database import Database, SqlFailed, SqlFault
from rea_edge.store.rows import Column, crc_of

APPLICATION_ID = 0x52456167  # "REag": tells our file from another program's
VERSION = 2  # of the tables; a file of a newer version is left alone
PAGE_BYTES = 4096
FILE = "state.db"

RUN = ("row", "kind", "who", "id", "body", "state", "outcome", "seq", "shown", "at", "ended_at")
EVENT = ("run", "seq", "body", "at")
OUTBOX = ("row", "kind", "run", "topic", "qos", "retain", "correlation", "payload")

TABLES = {
    "meta": "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID",
    "run": "CREATE TABLE run (row INTEGER PRIMARY KEY, kind TEXT NOT NULL, who TEXT NOT NULL, id TEXT NOT NULL,"
    " body TEXT NOT NULL, state TEXT NOT NULL, outcome TEXT, seq INTEGER NOT NULL, shown TEXT NOT NULL,"
    " at REAL, ended_at REAL, crc INTEGER NOT NULL, UNIQUE (kind, who, id))",
    "request": "CREATE TABLE request (run INTEGER PRIMARY KEY, body BLOB NOT NULL, crc INTEGER NOT NULL)",
    # Run and number in one key, `place_of`: a table without one puts all above 1000 bytes of a row into pages of its own.
    "event": "CREATE TABLE event (place INTEGER PRIMARY KEY, run INTEGER NOT NULL, seq INTEGER NOT NULL,"
    " body BLOB NOT NULL, at REAL, crc INTEGER NOT NULL)",
    # The small columns first: choosing rows then never reads the pages a payload overflows to.
    "outbox": "CREATE TABLE outbox (row INTEGER PRIMARY KEY, kind TEXT NOT NULL, run INTEGER, topic TEXT NOT NULL,"
    " qos INTEGER NOT NULL, retain INTEGER NOT NULL, correlation BLOB, payload BLOB NOT NULL, crc INTEGER NOT NULL)",
}


def place_of(run: int, seq: int) -> int:
    """Where an event stands in its table: those of a run side by side, in order."""
    return run << 20 | seq


def settings_of(max_mib: int) -> tuple[tuple[str, str, Column], ...]:
    """Name, value to set, value that must be read back. Builds differ in their defaults, so all of them are set."""
    pages = max_mib * (1 << 20) // PAGE_BYTES
    return (
        ("page_size", str(PAGE_BYTES), PAGE_BYTES),
        ("locking_mode", "EXCLUSIVE", "exclusive"),  # before the first read: no -shm file, no second reader
        ("journal_mode", "WAL", "wal"),
        ("synchronous", "FULL", 2),  # a commit that returned is on disk
        ("wal_autocheckpoint", "256", 256),
        ("journal_size_limit", str(1 << 20), 1 << 20),
        ("cache_size", "-256", -256),  # KiB
        ("temp_store", "MEMORY", 2),
        ("secure_delete", "OFF", 0),  # Debian's default costs flash a second write of what is deleted
        ("cell_size_check", "ON", 1),
        ("max_page_count", str(pages), pages),
    )


def apply_settings(db: Database, max_mib: int) -> dict[str, Column]:
    """Set them all and read each back; raises `SqlFailed` naming the first that was not taken."""
    found: dict[str, Column] = {}
    for name, wanted, due in settings_of(max_mib):
        db.rows(f"PRAGMA {name} = {wanted}")
        answer = db.one(f"PRAGMA {name}")
        found[name] = answer[0] if answer else None
        expected = due
        if name == "max_page_count" and isinstance(due, int):  # the cap cannot go below what is in use
            expected = max(due, db.number("PRAGMA page_count"))
        if found[name] != expected:
            # The page size stands in the file: another one than ours means that the file is not as we made it.
            fault: SqlFault = "damaged" if name == "page_size" else "unusable"
            raise SqlFailed(fault, f"{name} is {found[name]!r} after it was set to {wanted}")
    return found


def create_tables(db: Database, lost: str | None) -> str:
    """Make an empty state; gives its epoch. `lost` says what it replaces, and stays until it is released."""
    epoch = str(uuid.uuid4())
    db.change("BEGIN IMMEDIATE")
    db.rows(f"PRAGMA application_id = {APPLICATION_ID}")
    db.rows(f"PRAGMA user_version = {VERSION}")
    for statement in TABLES.values():
        db.change(statement)
    write_meta(db, "epoch", epoch)
    if lost is not None:
        write_meta(db, "lost", lost)
    db.change("COMMIT")
    return epoch


def update_tables(db: Database) -> None:
    """Bring a file of ours of an older version to this one. All or nothing; before our bound on its size is set, since
    for a moment it needs room for both."""
    if db.number("PRAGMA user_version") != 1:
        return
    db.rows("PRAGMA synchronous = FULL")
    db.change("BEGIN IMMEDIATE")
    db.change("ALTER TABLE event RENAME TO event_1")
    db.change(TABLES["event"])
    db.change("INSERT INTO event SELECT run << 20 | seq, run, seq, body, at, crc FROM event_1")
    db.change("DROP TABLE event_1")
    db.rows(f"PRAGMA user_version = {VERSION}")
    db.change("COMMIT")


def write_meta(db: Database, key: str, value: str | None) -> None:
    """Set a value, or take it away with None."""
    if value is None:
        db.change("DELETE FROM meta WHERE key = ?", key)
    else:
        crc = crc_of("meta", (key, value))
        db.change("INSERT OR REPLACE INTO meta (key, value, crc) VALUES (?, ?, ?)", key, value, crc)
