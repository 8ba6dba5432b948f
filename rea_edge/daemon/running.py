"""How runs get on, to be told when there is time: the newest state of each running task, in memory only.

Acceptance and end of a task go through the outbox; what lies between is only worth its newest word.
"""

import threading

from rea_edge.mqtt import Outgoing
from rea_edge.records import Run
from rea_edge.report import Report
from rea_edge.store import RunRow


class RunningStates:
    """Noted by the lanes, taken by the link's thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._newest: dict[int, tuple[RunRow, Run]] = {}
        self._due: set[int] = set()

    def note(self, row: RunRow, run: Run) -> None:
        if row.kind == "task":
            with self._lock:
                if row.row in self._newest and self._newest[row.row][1].seq > run.seq:
                    return  # told from another thread, of an earlier moment
                self._newest[row.row] = (row, run)
                self._due.add(row.row)

    def published(self, row: RunRow, run: Run) -> None:
        """Called inside the transaction that puts this state into the outbox: none older is told after it."""
        if run.phase != "ended":
            with self._lock:
                self._newest[row.row] = (row, run)
                self._due.discard(row.row)

    def forget(self, row: RunRow) -> None:
        """The task has ended: its last state is in the outbox, and no older one may follow it."""
        with self._lock:
            self._newest.pop(row.row, None)
            self._due.discard(row.row)

    def again(self) -> None:
        """A new connection: what was told on the old one may not have arrived."""
        with self._lock:
            self._due.update(self._newest)

    def take(self, report: Report) -> list[Outgoing]:
        """The states that have changed since they were last taken."""
        with self._lock:
            due = [self._newest[row] for row in self._due]
            self._due.clear()
        return [report.state_message(row, run) for row, run in due]
