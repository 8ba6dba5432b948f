"""Which run is next and who holds it: in memory, made again from the store at each start. Knows no run's content."""

import threading
import time
from typing import Literal

from rea_edge.cancel import Cancel
from rea_edge.store import RunRow

Kind = Literal["task", "call"]
ADMIT_S = 5.0  # for the broker to say whether another node acts in our name
SENDERS_MAX = 256  # whose turn is remembered


class Waiting:
    """Runs that wait for a lane, and the cancels of those that are held. Senders take turns: the next is the one whose
    last turn is longest ago, with the first of his runs that was accepted.

    None is given for the first `ADMIT_S`, unless `admit` says earlier that this node is the one to run them; without a
    broker nobody can say so.
    """

    def __init__(self) -> None:
        self._admitted: bool | None = None
        self._undecided_until_s = time.monotonic() + ADMIT_S
        self._changed = threading.Condition()
        self._waiting: dict[Kind, dict[int, RunRow]] = {"task": {}, "call": {}}
        self._held: dict[int, Cancel] = {}
        self._news: set[int] = set()  # held runs of which somebody has said something
        self._turns: dict[Kind, dict[str, None]] = {"task": {}, "call": {}}  # senders, the one served last at the end
        self._closed = False

    def put(self, row: RunRow) -> None:
        with self._changed:
            if row.row in self._held:
                self._news.add(row.row)
            else:
                self._waiting[row.kind][row.row] = row
                self._changed.notify_all()

    def take(self, kind: Kind) -> tuple[RunRow, Cancel] | None:
        """The next run and the cancel that ends its effects; blocks. None once the queue is closed."""
        with self._changed:
            while not self._closed and not (self._waiting[kind] and self._may_run()):
                left_s = self._undecided_until_s - time.monotonic()
                self._changed.wait(left_s if self._admitted is None and left_s > 0 else None)
            if self._closed:
                return None
            turns = self._turns[kind]
            order = {who: place for place, who in enumerate(turns)}
            row = min(self._waiting[kind].values(), key=lambda row: (order.get(row.who, -1), row.row))
            turns.pop(row.who, None)
            turns[row.who] = None
            if len(turns) > SENDERS_MAX:
                del turns[next(iter(turns))]
            return self._hold(self._waiting[kind].pop(row.row))

    def admit(self, admitted: bool) -> None:  # noqa: FBT001  # the answer itself
        """Whether this node may start runs; those under way go on."""
        with self._changed:
            self._admitted = admitted
            self._changed.notify_all()

    def claim(self, row: int, kind: Kind) -> tuple[RunRow, Cancel] | None:
        """Take this very run out of the queue, if it waits there."""
        with self._changed:
            found = self._waiting[kind].pop(row, None)
            return None if found is None else self._hold(found)

    def put_back(self, row: RunRow) -> None:
        """Let go of a run that has not ended: it waits again."""
        with self._changed:
            self._let_go(row.row)
            self.put(row)

    def leave(self, row: RunRow) -> None:
        """Let go of a run that waits for a person: it comes again by `put`, or now, where that came meanwhile."""
        with self._changed:
            if self._let_go(row.row):
                self.put(row)

    def drop(self, row: int) -> None:
        """The lane has let go of a run."""
        with self._changed:
            self._let_go(row)

    def cancel(self, row: int) -> bool:
        """End the effect under way of a held run; False if no lane holds it."""
        with self._changed:
            found = self._held.get(row)
            if found is not None:
                self._news.add(row)
        if found is None:
            return False
        found.cancel()
        return True

    def close(self) -> None:
        """No lane gets another run."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def counts(self) -> dict[str, int]:
        with self._changed:
            return {
                "tasks": len(self._waiting["task"]),
                "calls": len(self._waiting["call"]),
                "running": len(self._held),
            }

    def _let_go(self, row: int) -> bool:
        """Whether there was news of it."""
        self._held.pop(row, None)
        news = row in self._news
        self._news.discard(row)
        return news

    def _may_run(self) -> bool:
        if self._admitted is None:
            return time.monotonic() >= self._undecided_until_s
        return self._admitted

    def _hold(self, row: RunRow) -> tuple[RunRow, Cancel]:
        cancel = Cancel()
        self._held[row.row] = cancel
        return row, cancel
