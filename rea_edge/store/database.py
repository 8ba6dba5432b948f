"""One SQLite connection. The only place that knows `sqlite3` and its exceptions; knows no table.

Results are lists: no cursor stays open, so no reader ever holds the WAL back.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from rea_edge.store.rows import Column

SqlFault = Literal["full", "crowded", "busy", "damaged", "unusable"]  # crowded: our own bound, not the disk's

# What SQLite says where the file is not what we wrote. ERROR is "no such table" and the like: our statements are
# correct, so the tables are not.
_DAMAGE = frozenset(
    {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_FORMAT}
    | {sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_SCHEMA}
)


class SqlFailed(Exception):
    """SQLite could not do it. Stays inside this package, which says what it means: at the start or while running."""

    def __init__(self, fault: SqlFault, message: str) -> None:
        super().__init__(message)
        self.fault: SqlFault = fault


class Database:
    """Callers hold a lock: one thread at a time. Every method raises `SqlFailed` only."""

    def __init__(self, path: Path, busy_s: float) -> None:
        with _translated():
            self._connection = sqlite3.connect(path, timeout=busy_s, isolation_level=None, check_same_thread=False)
            # Damaged text must reach the CRC check, not end in a decoding error.
            self._connection.text_factory = lambda raw: raw.decode("utf-8", "replace")

    def rows(self, sql: str, *args: Column) -> list[tuple[Column, ...]]:
        with _translated():
            found: list[tuple[Column, ...]] = self._connection.execute(sql, args).fetchall()
            return found

    def one(self, sql: str, *args: Column) -> tuple[Column, ...] | None:
        found = self.rows(sql, *args)
        return found[0] if found else None

    def number(self, sql: str, *args: Column) -> int:
        """The one whole number that a statement gives; 0 for NULL."""
        found = self.one(sql, *args)
        value = found[0] if found else 0
        return value if isinstance(value, int) else 0

    def change(self, sql: str, *args: Column) -> int:
        """Run a statement that writes; gives the number of rows it changed."""
        with _translated():
            return self._connection.execute(sql, args).rowcount

    def roll_back(self) -> None:
        """Undo what is open. After some errors SQLite has already done it, and would refuse to do it again."""
        if self._connection.in_transaction:
            self.change("ROLLBACK")

    def close(self) -> None:
        with _translated():
            self._connection.close()


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        # Errors of the module itself, as opposed to those of the library, carry no code.
        code: int | None = getattr(error, "sqlite_errorcode", None)
        raise SqlFailed(
            _fault(code), f"{error} ({getattr(error, 'sqlite_errorname', type(error).__name__)})"
        ) from error


def _fault(code: int | None) -> SqlFault:
    primary = None if code is None else code & 0xFF
    if primary == sqlite3.SQLITE_FULL:
        return "full"
    if primary in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return "busy"
    return "damaged" if primary in _DAMAGE else "unusable"
