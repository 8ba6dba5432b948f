"""Reading rows, each checked by its CRC. Read only; how the connection is come by is left to the three that inherit.

A damaged row is never delivered. What follows depends on its worth: `needed` (an unfinished run, a setting), `asked`
(somebody wants exactly this), `listed` (one of many, left out).
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from typing import Literal

import msgspec

from rea_edge.errors import StoreBroken, StoreUnusable
from rea_edge.store.database import Database
from rea_edge.store.layout import EVENT, OUTBOX, RUN, place_of
from rea_edge.store.rows import Column, EventRow, OutboxRow, RunKind, RunRow, crc_of, run_name

Worth = Literal["needed", "asked", "listed"]

RUN_QUERY = f"SELECT {', '.join(f'run.{name}' for name in RUN)}, run.crc, request.body, request.crc" + (
    " FROM run LEFT JOIN request ON request.run = run.row"
)
_EVENT = f"SELECT {', '.join(EVENT)}, crc FROM event WHERE place >= ? AND place < ? ORDER BY place LIMIT ?"
# Nothing of a run is on its way to the broker.
NOT_WAITING = "row NOT IN (SELECT run FROM outbox WHERE run IS NOT NULL)"
_OUTBOX = f"SELECT {', '.join(OUTBOX)}, crc FROM outbox WHERE kind <> 'aside' ORDER BY row LIMIT ?"
_ASIDE = f"SELECT {', '.join(OUTBOX)}, crc FROM outbox WHERE kind = 'aside' ORDER BY row"


class Reading(ABC):
    """What can be read, inside a transaction (`Transaction`), outside (`Store`) and from a copy (`StoreCopy`)."""

    def __init__(self, epoch: str) -> None:
        self.epoch = epoch

    @abstractmethod
    def _held(self) -> AbstractContextManager[Database]:
        """The connection, for this thread alone while the context lasts."""

    @abstractmethod
    def _damaged(self, what: str, worth: Worth) -> None:
        """Told of each damaged row; raises, or returns to have it left out."""

    @abstractmethod
    def _published(self) -> Collection[int]:
        """Outbox rows that have been published and wait for the next transaction to delete them."""

    def fullness(self) -> float:
        """The share of the file's room that is in use, 0 to 1."""
        with self._held() as db:
            return _fullness(db)

    def run_name(self, row: int) -> str:
        return run_name(self.epoch, row)

    def run(self, row: int) -> RunRow | None:
        with self._held() as db:
            return self._one_run(db, "WHERE run.row = ?", row)

    def run_of(self, kind: RunKind, who: str, id: str) -> RunRow | None:
        with self._held() as db:
            return self._one_run(db, "WHERE run.kind = ? AND run.who = ? AND run.id = ?", kind, who, id)

    def event_count(self, row: int) -> int:
        """Events of a run so far, which is also the `seq` of its next; 0 if there is no such run."""
        run = self.run(row)
        return run.seq if run else 0

    def events(self, row: int, after: int = 0) -> list[bytes]:
        """The bodies of a run's events in order, without the first `after`; empty if there is no such run."""
        return [event.body for event in self.journal(row, after)]

    def journal(self, row: int, after: int = 0, limit: int | None = None) -> list[EventRow]:
        """As `events`, with their times and at most `limit` of them."""
        with self._held() as db:
            run = self._one_run(db, "WHERE run.row = ?", row)
            return [] if run is None else self._events(db, run, after, limit)

    def queue(self, kind: RunKind | None = None) -> list[RunRow]:
        """Runs that have not ended, in the order in which they were accepted."""
        wanted = "" if kind is None else " AND run.kind = ?"
        with self._held() as db:
            rows = db.rows(
                f"{RUN_QUERY} WHERE run.state <> 'ended'{wanted} ORDER BY run.row", *([kind] if kind else [])
            )
            return self._runs(rows, "listed")

    def count_waiting(self, kind: RunKind = "task", who: str | None = None) -> int:
        """Runs that were accepted and have not been started, of this sender or of all."""
        own, whose = ("", ()) if who is None else (" AND who = ?", (who,))
        with self._held() as db:
            return db.number(f"SELECT count(*) FROM run WHERE state = 'accepted' AND kind = ?{own}", kind, *whose)

    def count_asking(self, who: str | None = None) -> int:
        """Runs that wait for a person, of this sender or of all."""
        own, whose = ("", ()) if who is None else (" AND who = ?", (who,))
        with self._held() as db:
            return db.number(f"SELECT count(*) FROM run WHERE state = 'waiting'{own}", *whose)

    def runs(
        self, limit: int, before: int | None = None, who: str | None = None, kind: RunKind | None = None
    ) -> list[RunRow]:
        """Up to `limit` runs, the newest first, with rows below `before`. Damaged ones that ended are left out."""
        parts: list[tuple[str, Column]] = [("run.row < ?", before), ("run.who = ?", who), ("run.kind = ?", kind)]
        asked = [(part, value) for part, value in parts if value is not None]
        where = " AND ".join(["1", *(part for part, _ in asked)])
        values = [value for _, value in asked]
        with self._held() as db:
            return self._runs(
                db.rows(f"{RUN_QUERY} WHERE {where} ORDER BY run.row DESC LIMIT ?", *values, limit), "listed"
            )

    def dropped(self, limit: int) -> list[RunRow]:
        """Up to `limit` runs whose newest state was dropped from a full outbox: it is to be queued again."""
        with self._held() as db:
            return self._runs(
                db.rows(f"{RUN_QUERY} WHERE run.shown = 'dropped' ORDER BY run.row LIMIT ?", limit), "listed"
            )

    def standing(self) -> list[tuple[int, float | None]]:
        """Row and end (None: not known) of each task that has ended and whose state stands on the broker."""
        with self._held() as db:
            rows = db.rows(
                "SELECT row, ended_at FROM run WHERE state = 'ended' AND kind = 'task' AND shown = 'yes'"
                f" AND {NOT_WAITING} ORDER BY row"
            )
            return msgspec.convert(rows, list[tuple[int, float | None]])

    def pull(self, limit: int | None = None, not_in: Collection[int] = ()) -> list[OutboxRow]:
        """Up to `limit` messages in order, without those in `not_in` (under way) and those that were published."""
        with self._held() as db:
            skip = {*not_in, *self._published()}
            rows = db.rows(_OUTBOX, -1 if limit is None else limit + len(skip))
            wanted = [row for row in rows if row[0] not in skip][:limit]
            return [message for row in wanted if (message := self._message(row))]

    def aside(self) -> list[OutboxRow]:
        """The messages that were set aside, the oldest first."""
        with self._held() as db:
            return [message for row in db.rows(_ASIDE) if (message := self._message(row))]

    def meta_get(self, key: str) -> str | None:
        with self._held() as db:
            row = db.one("SELECT value, crc FROM meta WHERE key = ?", key)
            if row is None:
                return None
            value, crc = row
            if not isinstance(value, str) or crc != crc_of("meta", (key, value)):
                self._damaged(f"meta {key}", "needed")
                return None
            return value

    def _one_run(self, db: Database, where: str, *args: Column) -> RunRow | None:
        runs = self._runs(db.rows(f"{RUN_QUERY} {where}", *args), "asked")
        return runs[0] if runs else None

    def _runs(self, rows: Sequence[tuple[Column, ...]], worth: Worth) -> list[RunRow]:
        return [run for row in rows if (run := self._whole_run(row, worth))]

    def _whole_run(self, row: tuple[Column, ...], worth: Worth) -> RunRow | None:
        *columns, crc, request, request_crc = row
        values = dict(zip(RUN, columns, strict=True))
        pruned = values["shown"] == "pruned"
        whole = crc == crc_of("run", columns)
        if not whole or (not pruned and request_crc != crc_of("request", (columns[0], request))):
            self._damaged(f"run {columns[0]!r}", worth if values["state"] == "ended" else "needed")
            return None
        return msgspec.convert({**values, "request": b"" if pruned else request}, RunRow)

    def _events(self, db: Database, run: RunRow, after: int, limit: int | None) -> list[EventRow]:
        if run.shown == "pruned":
            return []
        end = run.seq if limit is None else min(run.seq, after + limit)
        where = (place_of(run.row, after), place_of(run.row + 1, 0))
        found = db.rows(_EVENT, *where, -1 if limit is None else limit)
        worth: Worth = "asked" if run.state == "ended" else "needed"
        events: list[EventRow] = []
        for *columns, crc in found:
            if crc == crc_of("event", columns) and columns[0] == run.row:
                _, seq, body, at = columns
                events.append(msgspec.convert({"seq": seq, "body": body, "at": at}, EventRow))
            else:
                self._damaged(f"event {columns[1]!r} of run {run.row}", worth)
        if [event.seq for event in events] != list(range(after, end)):
            self._damaged(f"events {after} to {end} of run {run.row}: not all are there", worth)
        return events

    def _message(self, row: tuple[Column, ...]) -> OutboxRow | None:
        *columns, crc = row
        if crc != crc_of("outbox", columns):
            self._damaged(f"message {columns[0]!r}", "needed")
            return None
        values = dict(zip(OUTBOX, columns, strict=True))
        return msgspec.convert({**values, "retain": values["retain"] == 1}, OutboxRow)


def raise_if_wanted(what: str, worth: Worth) -> None:
    """Raises what a damaged row means while running; returns for one of many, which is left out."""
    match worth:
        case "needed":
            raise StoreBroken(f"damaged: {what}")
        case "asked":
            raise StoreUnusable(f"damaged: {what}")
        case "listed":
            return


def _fullness(db: Database) -> float:
    used = db.number("PRAGMA page_count") - db.number("PRAGMA freelist_count")
    return used / max(1, db.number("PRAGMA max_page_count"))
