"""All that can be read of a state, however damaged: each row proved by its CRC, and a word on what is missing.

Reads from a copy, first by SQLite. Only where that does not give everything the pages are read without it (`carving`):
then what was deleted may be among it. Decides nothing and writes nothing.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct, field

from rea_edge.store.carving import Row, rows_in
from rea_edge.store.checking import behind, foreign, is_blank
from rea_edge.store.copy import copy_state, state_file
from rea_edge.store.database import Database, SqlFailed
from rea_edge.store.layout import EVENT, FILE, OUTBOX, RUN
from rea_edge.store.rows import Column, crc_of
from rea_edge.store.seen import Seen, last_seen

COLUMNS = {"meta": ("key", "value"), "run": RUN, "request": ("run", "body"), "event": EVENT, "outbox": OUTBOX}
_KEYS = {"meta": 1, "run": 1, "request": 1, "event": 2, "outbox": 1}  # leading columns that name a row
_SEQ, _SHOWN = RUN.index("seq"), RUN.index("shown")
Key = tuple[Column, ...]


class Rescue(Struct):
    """Rows by their table and key. `carved` are those that SQLite did not give, `faults` what it said instead."""

    rows: dict[str, dict[Key, Key]] = field(default_factory=lambda: {table: {} for table in COLUMNS})
    carved: set[tuple[str, Key]] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)

    def of(self, table: str) -> Iterator[tuple[dict[str, Column], bool]]:
        """Rows in the order of their keys, by the names of their columns; and whether each was carved."""
        found = self.rows[table]
        for key in sorted(found, key=in_order):
            yield dict(zip(COLUMNS[table], found[key], strict=True)), (table, key) in self.carved

    def meta(self, key: str) -> str | None:
        found = self.rows["meta"].get((key,))
        return None if found is None else str(found[1])

    def missing(self) -> list[str]:
        """What the rows that are there say of rows that are not."""
        lacking = [] if self.meta("epoch") else ["the epoch is missing, and with it the names of runs"]
        runs, requests, events = self.rows["run"], self.rows["request"], self.rows["event"]
        for (row,), run in sorted(runs.items(), key=lambda item: in_order(item[0])):
            if run[_SHOWN] == "pruned":
                continue
            if (row,) not in requests:
                lacking.append(f"the request of run {row!r} is missing")
            gaps = [str(seq) for seq in _range(run[_SEQ]) if (row, seq) not in events]
            if gaps:
                lacking.append(f"of run {row!r} these events are missing: {', '.join(gaps)}")
        orphans = {key[:1] for key in (*requests, *events)} - set(runs)
        return lacking + [
            f"the row of run {row!r} is missing: who asked for it" for (row,) in sorted(orphans, key=in_order)
        ]

    def take(self, row: Row, *, carved: bool = False) -> None:
        key = row.columns[: _KEYS[row.table]]
        if carved and self._has(row, key):
            return
        self.rows[row.table][key] = row.columns
        if carved:
            self.carved.add((row.table, key))

    def _has(self, row: Row, key: Key) -> bool:
        """A run's row is written again with each event: the furthest holds. Else what SQLite gave, or stands later."""
        known = self.rows[row.table].get(key)
        if known is None:
            return False
        if row.table == "run" and row.columns[_SEQ] != known[_SEQ]:
            return in_order((row.columns[_SEQ],)) < in_order((known[_SEQ],))
        return (row.table, key) not in self.carved


def in_order(key: Key) -> list[tuple[int, str]]:
    """To sort keys by: numbers as numbers, before words."""
    return [(value, "") if isinstance(value, int) else (1 << 63, str(value)) for value in key]


def rescue(path: Path) -> Rescue:
    """All that can be read of the state in a folder or file. Raises `OSError` or `StoreUnusable` if there is none."""
    found = Rescue()
    why = state_file(path).with_name("why")  # beside what was set aside
    if why.exists():
        found.faults.append(f"it was set aside: {why.read_text(encoding='utf-8', errors='replace').strip()}")
    with tempfile.TemporaryDirectory(prefix="rea-edge-") as folder:
        copy_state(path, Path(folder), wal_too=True)
        # Before SQLite has it: opening a file may change it.
        file, wal = _content(Path(folder) / FILE), _content(Path(folder) / f"{FILE}-wal")
        if file:
            _read_by_sqlite(Path(folder) / FILE, last_seen(state_file(path).parent), found)
        else:
            found.faults.append("the file is empty or not there")
    if found.faults or found.missing():
        for row in rows_in(file, wal):
            found.take(row, carved=True)
    return found


def _read_by_sqlite(file: Path, seen: Seen | None, found: Rescue) -> None:
    try:
        db = Database(file, busy_s=1.0)
    except SqlFailed as error:
        found.faults.append(str(error))
        return
    try:
        if is_blank(db):
            found.faults.append("it is a database without anything in it")
            return
        if why := foreign(db):
            found.faults.append(why)
            return
        answer = db.one("PRAGMA integrity_check(1)")
        if answer != ("ok",):
            found.faults.append(f"integrity check: {answer}")
        for table, names in COLUMNS.items():
            _read_table(db, table, names, found)
        if seen is not None and (why := behind(db, found.meta("epoch") or "", seen)):
            found.faults.append(why)
    except SqlFailed as error:
        found.faults.append(str(error))
    finally:
        db.close()


def _read_table(db: Database, table: str, names: tuple[str, ...], found: Rescue) -> None:
    try:
        rows = db.rows(f"SELECT {', '.join(names)}, crc FROM {table}")
    except SqlFailed as error:
        found.faults.append(f"{table}: {error}")
        return
    for *columns, crc in rows:
        if crc == crc_of(table, columns):
            found.take(Row(table, tuple(columns)))
        else:
            found.faults.append(f"the check sum of {table} {columns[: _KEYS[table]]} is wrong")


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def _range(count: Column) -> range:
    return range(count if isinstance(count, int) else 0)
