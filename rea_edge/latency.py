"""How long the calls of each tool took: the newest 64 of the last hour, against what the tool declares. Owns no clock.

Thread-safe; times are monotonic seconds, given by the caller. A kibibyte a tool, and nothing of it is kept on disk.
"""

import math
import threading
from array import array
from collections.abc import Mapping

from msgspec import Struct

from rea_edge.records import Fault, Result, Tool

KEPT = 64
LEAST = 20  # calls: of fewer nobody can tell what one in twenty takes
OLD_S = 3600.0  # a tool that is called no more is not reproached for ever
SHOWN = 200  # tools in the figures, so that these fit into a message
# Nothing ran, or not to its end: says nothing of how long the tool takes.
NOT_RUN = frozenset({
    "bad_args", "unknown_tool", "no_host", "busy", "unconfined", "missing_program", "cancelled", "no_broker", "offline",
    "denied_by_broker", "not_sent",
})  # fmt: skip


class Taken(Struct, frozen=True, kw_only=True):
    """The calls of a tool within the last hour; half and 95 % of them took at most so long."""

    calls: int
    p50_s: float
    p95_s: float
    objective_s: float  # of p95_s, as declared


class Latencies:
    """The latencies of the tools of one node."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken: dict[str, tuple[array[float], array[float]]] = {}  # by tool: when they ended, and their seconds

    def note(self, name: str, result: Result, seconds: float, now_s: float) -> None:
        """A call has ended so."""
        if isinstance(result, Fault) and result.fault in NOT_RUN:
            return
        with self._lock:
            ended, took = self._taken.setdefault(name, (array("d"), array("f")))
            ended.append(now_s)
            took.append(seconds)
            del ended[:-KEPT], took[:-KEPT]

    def figures(self, tools: Mapping[str, Tool], now_s: float) -> dict[str, Taken]:
        """What is known of these tools, by name."""
        found: dict[str, Taken] = {}
        for name in sorted(tools):
            if len(found) < SHOWN and (seconds := self._recent(name, now_s)):
                p50_s, p95_s = (round(percentile(seconds, part), 3) for part in (0.5, 0.95))
                objective_s = tools[name].p95_s
                found[name] = Taken(calls=len(seconds), p50_s=p50_s, p95_s=p95_s, objective_s=objective_s)
        return found

    def faults(self, tools: Mapping[str, Tool], now_s: float) -> list[str]:
        """Tools that are slower than they should be. Says no figure that changes: each change of a fault is told."""
        slow = [
            (name, one.objective_s)
            for name, one in self.figures(tools, now_s).items()
            if one.calls >= LEAST and one.p95_s > one.objective_s
        ]
        return [
            f"tool {name} is slow: more than 5 % of its calls take longer than {s:g} s (p95_s); see health"
            for name, s in slow
        ]

    def _recent(self, name: str, now_s: float) -> list[float]:
        with self._lock:
            ended, took = self._taken.get(name, (array("d"), array("f")))
            return sorted(seconds for at_s, seconds in zip(ended, took, strict=True) if now_s - at_s <= OLD_S)


def percentile(ordered: list[float], part: float) -> float:
    """The least of these values that at least this part of them does not pass."""
    return ordered[math.ceil(part * len(ordered)) - 1]
