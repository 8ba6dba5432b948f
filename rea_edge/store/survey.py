"""A state file as it is seen by somebody who only looks: what its next start would say, and what is in it.

Reads a copy. Judges by the rules of `checking`, as a start does; moves, mends and deletes nothing.
"""

import tempfile
from pathlib import Path

from msgspec import Struct, field, structs

from rea_edge.errors import StoreUnusable
from rea_edge.store import checking
from rea_edge.store.copy import copy_state, state_file
from rea_edge.store.database import Database, SqlFailed
from rea_edge.store.folder import kept_free, read_sentinel, size_of
from rea_edge.store.layout import FILE, update_tables
from rea_edge.store.seen import Seen, last_seen


class Survey(Struct, frozen=True, kw_only=True):
    """`wrong`: why a start would set the file aside, None if it would take it up. `unreadable`: rows, by name.

    `runs` counts by kind and state. `clean`: it was closed in order. `lost`: what an operator has not released yet.
    """

    file: str
    bytes: int
    wal_bytes: int | None
    wrong: str | None
    unreadable: tuple[str, ...] = ()
    epoch: str | None = None
    sentinel: str | None = None
    seen: Seen | None = None
    newest: int = 0
    clean: bool = False
    lost: str | None = None
    runs: dict[str, int] = field(default_factory=dict)
    messages: int = 0
    broken: tuple[str, ...] = ()  # states that were set aside in this folder


def survey(path: Path) -> Survey:
    """Look at the state in a folder or file. Raises `StoreBusy` where a daemon has it, `StoreUnusable` where there is
    none or a newer version's."""
    source = state_file(path)
    folder = source.parent
    try:
        with kept_free(folder), tempfile.TemporaryDirectory(prefix="rea-edge-") as copy:
            copy_state(path, Path(copy))
            known = source.name == FILE  # a file of another name is a copy: the folder's own files do not speak of it
            return _surveyed(
                source,
                Path(copy) / FILE,
                read_sentinel(folder) if known else None,
                last_seen(folder) if known else None,
            )
    except OSError as error:
        raise StoreUnusable(f"{source}: {error}") from error


def _surveyed(source: Path, copy: Path, sentinel: str | None, seen: Seen | None) -> Survey:
    size, wal_bytes = size_of(copy) or 0, size_of(copy.with_name(f"{FILE}-wal"))
    found = Survey(
        file=str(source),
        bytes=size,
        wal_bytes=wal_bytes,
        wrong="the file is empty" if not size else None,
        sentinel=sentinel,
        seen=seen,
        broken=tuple(sorted(one.name for one in source.parent.glob("broken-*"))),
    )
    if not size:
        return found
    try:
        db = Database(copy, busy_s=1.0)
        try:
            return _with_content(found, db)
        finally:
            db.close()
    except SqlFailed as error:
        return structs.replace(found, wrong=str(error))


def _with_content(found: Survey, db: Database) -> Survey:
    if checking.is_blank(db):
        return structs.replace(found, wrong="it is a database without anything in it")
    if why := checking.foreign(db):
        return structs.replace(found, wrong=why)
    update_tables(db)  # of the copy, as a start does
    found = structs.replace(found, wrong=checking.damage(db, found.sentinel, found.seen))
    try:
        return _counted(found, db)
    except SqlFailed:
        if found.wrong is None:
            raise
        return found  # said already, and by the words of a start


def _counted(found: Survey, db: Database) -> Survey:
    rows = checking.Inspection(db)
    rows.inspect(finished=True)
    counts = db.rows("SELECT kind, state, count(*) FROM run GROUP BY kind, state ORDER BY kind, state")
    return structs.replace(
        found,
        unreadable=tuple(dict.fromkeys((*rows.needed, *rows.spared))),
        epoch=rows.meta_get("epoch"),
        newest=db.number("SELECT max(row) FROM run"),
        clean=rows.meta_get("open") is None,
        lost=rows.meta_get("lost"),
        runs={f"{state!s} {kind!s}s": int(str(count)) for kind, state, count in counts},
        messages=db.number("SELECT count(*) FROM outbox"),
    )
