"""How many calls of each tool were refused since the start: by the gate, by a person, for going in circles. Counts only.

Each of them, with its reason, is in the journal of its run. Thread-safe.
"""

import threading
from collections import Counter

from rea_edge.records import Decided, Event, Refused, Run

SHOWN = 50  # tools in the figures, the most refused first, so that these fit into a message


class Denials:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def note(self, run: Run, event: Event) -> None:
        """`run` is the run right after it."""
        if isinstance(event, Refused) or (isinstance(event, Decided) and event.answer != "yes"):
            with self._lock:
                self._counts[run.done[-1].tool] += 1

    def figures(self) -> dict[str, object]:
        with self._lock:
            return {"total": self._counts.total(), "tools": dict(self._counts.most_common(SHOWN))}
