"""One transaction: rows are written here and nowhere else, each with its CRC. Knows no lock and no commit.

The outbox is bounded in rows and bytes. Over the cap the oldest `state` goes first, since a state can be made again
from its run (see `dropped`); a `reply` goes only when no state is left. What goes is counted. The file is bounded
too: the last quarter of its room is kept for the runs that are in it.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from msgspec import Struct, field

from rea_edge.errors import StoreBroken
from rea_edge.records import Outcome, State
from rea_edge.store.database import Database, SqlFailed
from rea_edge.store.layout import OUTBOX, RUN, place_of, write_meta
from rea_edge.store.reading import NOT_WAITING, RUN_QUERY, Reading, Worth, raise_if_wanted
from rea_edge.store.rows import Column, MessageKind, RunKind, RunRow, Shown, crc_of

OWN_KEYS = frozenset({"epoch", "open", "lost"})  # of `meta`; the others are the callers'
ASIDE_MOST = 20  # messages set aside
FULL_SHARE = 0.75  # of the file's room; above it no run is accepted

_CHANGING = ("state", "outcome", "seq", "shown", "ended_at")
_SET = ", ".join(f"{name} = ?" for name in (*_CHANGING, "crc"))


class OutboxCap(Struct, frozen=True):
    rows: int
    bytes: int


class Changes(Struct):
    """What the store must know once the transaction is committed, and forget if it is not."""

    last_message: int
    published: frozenset[int]
    dropped: int = 0
    lost: str | None = None  # said in this transaction
    released: bool = False
    newest: int = 0  # the highest run row seen by this transaction
    touched: tuple[int, int] | None = None  # the run last written, and its events
    damaged: set[str] = field(default_factory=set)


class Transaction(Reading):
    """All or nothing. Raises `SqlFailed`, which the store translates when the transaction ends."""

    def __init__(self, db: Database, epoch: str, cap: OutboxCap, changes: Changes) -> None:
        super().__init__(epoch)
        self._db: Database | None = db
        self._cap = cap
        self._changes = changes
        self.failed: SqlFailed | None = None

    def add_run(
        self, kind: RunKind, who: str, id: str, body: str, request: bytes, at: float | None
    ) -> tuple[RunRow, bool]:
        """The run of that name, and whether it was made now. An older one is given as it is: compare its `body`.

        Full, long before a statement would be: what room is left belongs to the runs accepted, which need it to end.
        """
        with self._held() as db:
            if self.fullness() > FULL_SHARE:
                raise SqlFailed(
                    "crowded", "what room is left in the state file ([store] max_mib) is for the runs in it"
                )
            row = db.number("SELECT max(row) FROM run") + 1
            columns: list[Column] = [row, kind, who, id, body, "accepted", None, 0, "yes", _real(at), None]
            sql = f"INSERT INTO run VALUES ({_marks(len(RUN) + 1)}) ON CONFLICT (kind, who, id) DO NOTHING"
            made = db.change(sql, *columns, crc_of("run", columns)) == 1
            if made:
                db.change("INSERT INTO request VALUES (?, ?, ?)", row, request, crc_of("request", (row, request)))
                self._touch(row, 0)
            run = self._one_run(db, "WHERE run.kind = ? AND run.who = ? AND run.id = ?", kind, who, id)
        assert run is not None
        return run, made

    def append(self, row: int, first_seq: int, bodies: Sequence[bytes], at: float | None) -> None:
        """Add events to a run. `first_seq` is the number of those it has: another means that somebody else wrote
        what this writer has not seen, and raises `StoreBroken`."""
        with self._held() as db:
            columns = self._columns(db, row)
            if columns["seq"] != first_seq:
                raise StoreBroken(f"event {first_seq} of run {row} does not follow: it has {columns['seq']!r}")
            for seq, body in enumerate(bodies, first_seq):
                event: list[Column] = [row, seq, body, _real(at)]
                db.change(
                    "INSERT INTO event VALUES (?, ?, ?, ?, ?, ?)", place_of(row, seq), *event, crc_of("event", event)
                )
            self._rewrite(db, {**columns, "seq": first_seq + len(bodies)})

    def event_count(self, row: int) -> int:
        """As in `Reading`, without reading what was asked: a writer looks at it in every commit."""
        with self._held() as db:
            return _whole(self._columns(db, row)["seq"])

    def set_state(self, row: int, state: State, outcome: Outcome | None = None, at: float | None = None) -> RunRow:
        """Where a run stands. `at` is kept as its end if it has ended, in seconds of the state's life."""
        with self._held() as db:
            ended_at = _real(at) if state == "ended" else None
            columns = self._columns(db, row)
            self._rewrite(db, {**columns, "state": state, "outcome": outcome, "ended_at": ended_at})
            run = self._one_run(db, "WHERE run.row = ?", row)
        assert run is not None
        return run

    def put(
        self,
        kind: MessageKind,
        topic: str,
        payload: bytes,
        *,
        qos: int = 1,
        retain: bool = False,
        correlation: bytes | None = None,
        run: int | None = None,
    ) -> int:
        """Queue a message, the newest `state` of a topic in place of an older one. Gives its row, never used twice
        in one process; the message may be the one that is dropped where the outbox is full.

        `run` is the run whose state it is, and which then is `shown`; an empty one takes the state off the broker.
        """
        with self._held() as db:
            if run is not None:
                self._show(db, run, "yes" if payload else "cleared")
            if kind == "state":
                db.change("DELETE FROM outbox WHERE topic = ? AND kind = 'state'", topic)
            self._changes.last_message += 1
            row = self._changes.last_message
            columns: list[Column] = [row, kind, run, topic, qos, int(retain), correlation, payload]
            db.change(f"INSERT INTO outbox VALUES ({_marks(len(OUTBOX) + 1)})", *columns, crc_of("outbox", columns))
            self._shrink(db)
            return row

    def set_aside(self, row: int) -> None:
        """Keep a message that the broker will not take, but do not pull it again. Of more than `ASIDE_MOST` the oldest
        goes. Its run, if it is a state, is free to be shown by a newer one."""
        with self._held() as db:
            found = db.one(f"SELECT {', '.join(OUTBOX)} FROM outbox WHERE row = ? AND kind <> 'aside'", row)
            if found is None:
                return
            columns = dict(zip(OUTBOX, found, strict=True)) | {"kind": "aside", "run": None}
            crc = crc_of("outbox", list(columns.values()))
            db.change("UPDATE outbox SET kind = 'aside', run = NULL, crc = ? WHERE row = ?", crc, row)
            db.change(
                "DELETE FROM outbox WHERE kind = 'aside' AND row NOT IN"
                " (SELECT row FROM outbox WHERE kind = 'aside' ORDER BY row DESC LIMIT ?)",
                ASIDE_MOST,
            )

    def meta_set(self, key: str, value: str | None) -> None:
        """Keep a setting of the caller's, or take it away with None."""
        assert key not in OWN_KEYS
        with self._held() as db:
            write_meta(db, key, value)

    def lose(self, why: str) -> None:
        """It has turned out that this state replaces one that is gone: `lost` says so until `release`."""
        with self._held() as db:
            write_meta(db, "lost", why)
            self._changes.lost = why

    def release(self) -> None:
        """An operator has taken note of the loss: `lost` is None from now on."""
        with self._held() as db:
            write_meta(db, "lost", None)
            self._changes.released = True

    def prune(self, older_than: float, keep_rows: int, most: int = 50, spare: Collection[int] = ()) -> list[RunRow]:
        """Delete requests and journals of runs that ended before `older_than`, and of all but the newest `keep_rows`.

        At most `most` of them, the oldest first, so that the transaction stays small; gives them as they were: while
        they are `most` there may be more. Their rows stay, as `pruned`: the same request must not run again. Those
        in `spare` stay whole, and those whose state waits in the outbox or has to be queued again.
        """
        with self._held() as db:
            ended = db.rows(
                "SELECT row FROM (SELECT row, ended_at, shown, row_number() OVER (ORDER BY row DESC) AS rank FROM run"
                " WHERE state = 'ended' AND shown <> 'pruned') WHERE (ended_at < ? OR rank > ?)"
                f" AND shown <> 'dropped' AND {NOT_WAITING} AND row NOT IN ({_marks(len(spare))}) ORDER BY row LIMIT ?",
                older_than, keep_rows, *spare, most,
            )  # fmt: skip
            rows = [_whole(row) for (row,) in ended]
            runs = [run for row in rows for run in self._runs(db.rows(f"{RUN_QUERY} WHERE run.row = ?", row), "listed")]
            for row in rows:
                db.change("DELETE FROM event WHERE place >= ? AND place < ?", place_of(row, 0), place_of(row + 1, 0))
                db.change("DELETE FROM request WHERE run = ?", row)
                self._keep_name(db, row)
            return runs

    def forget(self, row: int) -> None:
        """Delete what is kept of a pruned run: the same request would run again. Not the newest row of all: its number
        must not be given twice."""
        with self._held() as db:
            self._forget(db, "row = ?", row)

    def forget_old(self, older_than: float, keep_undated: int, most: int = 200) -> int:
        """As `forget`, for up to `most` pruned runs that ended before `older_than`. Of those that ended at an unknown
        time, `keep_undated` are kept. Gives how many are gone."""
        with self._held() as db:
            return self._forget(
                db,
                "row IN (SELECT row FROM run WHERE shown = 'pruned' AND (ended_at < ? OR ended_at IS NULL AND row <="
                " (SELECT max(row) FROM run) - ?) ORDER BY row LIMIT ?)",
                older_than, keep_undated, most,
            )  # fmt: skip

    def delete_published(self) -> None:
        with self._held() as db:
            for row in self._changes.published:
                db.change("DELETE FROM outbox WHERE row = ?", row)

    def end(self) -> None:
        """No more use: a reference that outlives its `with` block must not write into another transaction."""
        self._db = None

    @contextmanager
    def _held(self) -> Iterator[Database]:
        assert self._db is not None, "the transaction has ended"
        if self.failed is not None:
            raise self.failed  # SQLite may have rolled back already: no later statement may stand alone
        try:
            yield self._db
        except SqlFailed as error:
            self.failed = error
            raise

    def _damaged(self, what: str, worth: Worth) -> None:
        raise_if_wanted(what, worth)
        self._changes.damaged.add(what)

    def _published(self) -> Collection[int]:
        return self._changes.published

    def _touch(self, row: int, seq: int) -> None:
        self._changes.newest = max(self._changes.newest, row)
        self._changes.touched = (row, seq)

    def _columns(self, db: Database, row: int) -> dict[str, Column]:
        """A run's row without its request, checked."""
        found = db.one(f"SELECT {', '.join(RUN)}, crc FROM run WHERE row = ?", row)
        if found is None:
            raise StoreBroken(f"there is no run {row}")
        *columns, crc = found
        if crc != crc_of("run", columns):
            raise StoreBroken(f"damaged: run {row}")
        return dict(zip(RUN, columns, strict=True))

    def _rewrite(self, db: Database, columns: dict[str, Column]) -> None:
        # Only what changes: naming an indexed column would write the index again too.
        changed = [columns[name] for name in _CHANGING]
        crc = crc_of("run", [columns[name] for name in RUN])
        db.change(f"UPDATE run SET {_SET} WHERE row = ?", *changed, crc, columns["row"])
        self._touch(_whole(columns["row"]), _whole(columns["seq"]))

    def _shrink(self, db: Database) -> None:
        while True:
            # The length of a payload is known without reading it.
            count, size = db.one("SELECT count(*), sum(length(topic) + length(payload)) FROM outbox") or (0, 0)
            if _whole(count) <= self._cap.rows and _whole(size or 0) <= self._cap.bytes:
                return
            for row, run in db.rows("SELECT row, run FROM outbox ORDER BY kind <> 'state', row LIMIT 1"):
                db.change("DELETE FROM outbox WHERE row = ?", row)
                if run is not None:
                    self._show(db, _whole(run), "dropped")
            self._changes.dropped += 1

    def _keep_name(self, db: Database, row: int) -> None:
        try:
            self._show(db, row, "pruned")
        except StoreBroken:  # it has ended and is damaged: nothing else would ever take it away
            self._forget(db, "row = ?", row)

    def _forget(self, db: Database, which: str, *args: Column) -> int:
        return db.change(f"DELETE FROM run WHERE {which} AND row < (SELECT max(row) FROM run)", *args)

    def _show(self, db: Database, row: int, shown: Shown) -> None:
        columns = self._columns(db, row)
        if columns["shown"] != shown:
            self._rewrite(db, {**columns, "shown": shown})


def _real(seconds: float | None) -> float | None:
    """As SQLite gives it back: the CRC tells 1 from 1.0."""
    return None if seconds is None else float(seconds)


def _whole(value: Column) -> int:
    assert isinstance(value, int)
    return value


def _marks(count: int) -> str:
    return ", ".join("?" * count)
