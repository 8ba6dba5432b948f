"""An operator's halt: kept in the store until a release, and what ends calls under way. Owns the row `halted`.

Holds no policy: what may not run while it lasts is the gate's to say. Thread-safe.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from rea_edge.errors import StoreFull
from rea_edge.records import Frozen
from rea_edge.report import rfc3339
from rea_edge.store import Reading, Store, Transaction

_KEY = "halted"

log = logging.getLogger("rea_edge.halt")


class Halted(Frozen, frozen=True, kw_only=True):
    """Who has halted the node, and when: wall seconds, None where the clock was not trusted."""

    by: str
    at: float | None = None

    def words(self) -> str:
        since = rfc3339(self.at)
        return f"the node is halted by {self.by}" + (f" since {since}" if since else "")


class Halt:
    """`clock` gives wall seconds, or None while it is not trusted."""

    def __init__(self, store: Store, clock: Callable[[], float | None]) -> None:
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._under_way: set[threading.Event] = set()
        self._standing = standing(store)
        self._unwritten = False

    @property
    def why(self) -> str | None:
        """Why nothing acts, or None."""
        found = self._standing
        return None if found is None else found.words()

    @property
    def fault(self) -> str | None:
        why = self.why
        return why and why + (", and that is not on disk: the disk is full" if self._unwritten else "")

    def order(self, by: str) -> int:
        """Halt, and end every call under way; gives how many. The first one that halts stays the one who did.

        On disk before it holds. Where the disk has no room it holds all the same, and `StoreFull` is raised.
        """
        halted = self._standing or Halted(by=by, at=self._clock())
        try:
            with self._store.transaction() as tx:
                tx.meta_set(_KEY, msgspec.json.encode(halted).decode())
            self._unwritten = False
        except StoreFull:
            self._unwritten = True
            raise
        finally:
            ended = self._end_all(halted)
            log.warning("event=halted by=%s ended=%d", by, ended)
        return ended

    @contextmanager
    def lifting(self) -> Iterator[None]:
        """Around the transaction that has `lift` in it; with its end nothing is halted any more."""
        with self._writing:
            yield
            with self._lock:
                self._standing, self._unwritten = None, False

    def turn(self) -> None:
        """Write down what found no room. Raises `StoreFull` where there still is none."""
        if not self._unwritten:
            return
        with self._writing:  # or it might be written down once more by the side of its release
            found = self._standing
            if found is not None:
                with self._store.transaction() as tx:
                    tx.meta_set(_KEY, msgspec.json.encode(found).decode())
            self._unwritten = False

    @contextmanager
    def ends(self, call: threading.Event) -> Iterator[None]:
        """While the block lasts a halt sets this event. One that stands already does not: what only reads may run."""
        with self._lock:
            self._under_way.add(call)
        try:
            yield
        finally:
            with self._lock:
                self._under_way.discard(call)

    def _end_all(self, halted: Halted) -> int:
        # Under the lock: a call is either seen here, or looks after this and finds that the node is halted.
        with self._lock:
            self._standing = halted
            for call in self._under_way:
                call.set()
            return len(self._under_way)


def standing(reading: Reading) -> Halted | None:
    """The halt that a state is under."""
    kept = reading.meta_get(_KEY)
    return msgspec.json.decode(kept, type=Halted) if kept else None


def lift(tx: Transaction) -> None:
    """Write down that nothing is halted any more."""
    tx.meta_set(_KEY, None)
