"""How the node is: its state in one word, the faults that an operator should know now, the figures of health. Reads."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec

from rea_edge import memory, unsettled
from rea_edge.config import Settings
from rea_edge.daemon.denials import Denials
from rea_edge.daemon.effects import NodeEffects
from rea_edge.daemon.halts import Halt
from rea_edge.daemon.inforce import InForce
from rea_edge.daemon.lanes import Lane
from rea_edge.daemon.post import Post
from rea_edge.daemon.queue import Waiting
from rea_edge.daemon.reloads import Reloads
from rea_edge.daemon.spending import Spending
from rea_edge.daemon.view import StateWord, View
from rea_edge.errors import StoreBroken
from rea_edge.fairness import Fairness
from rea_edge.signers import Signers
from rea_edge.store import Store

UNKNOWN = "calls may or may not have taken effect: health names them; look, and say so (rea-edge settle)"
HALTED = "nothing acts until an operator has released the node (rea-edge release --node NAME)"
WAITS = "tools that act once wait until an operator has released the node (rea-edge release --node NAME)"


class Health:
    """`refusing()` says why nothing new is taken now. What is made after it comes as a function."""

    def __init__(
        self,
        *,
        in_force: InForce,
        store: Store,
        waiting: Waiting,
        spending: Spending,
        fairness: Fairness,
        signers: Signers,
        halt: Halt,
        denials: Denials,
        reloads: Reloads,
        refusing: Callable[[], str | None],
        post: Callable[[], Post],
        view: Callable[[], View],
        lanes: Callable[[], Sequence[Lane]],
    ) -> None:
        self._in_force = in_force
        self._store = store
        self._waiting = waiting
        self._spending = spending
        self._fairness = fairness
        self._signers = signers
        self._halt = halt
        self._denials = denials
        self._reloads = reloads
        self._refusing = refusing
        self._post = post
        self._view = view
        self._lanes = lanes

    def state(self) -> StateWord:
        hindered = self._store.lost or self._store.full or self._post().presence.standing_by
        return "degraded" if hindered or self._halt.why else "online"

    def faults(self) -> list[str]:
        refusing = self._refusing()
        return [
            *([f"{self._halt.fault}; {HALTED}"] if self._halt.why else []),
            *([f"state lost: {self._store.lost}; {WAITS}"] if self._store.lost else []),
            *self._room_faults(),
            *self._reloads.faults(),
            *self._in_force.tool_faults,
            *([f"{open_} {UNKNOWN}"] if (open_ := len(unsettled.listed(self._store))) else []),
            *self._effects.gates.faults(self._effects.toolbox.tools),
            *self._effects.approvals.faults(self._effects.toolbox.tools),
            *self._effects.toolbox.latencies.faults(self._effects.toolbox.tools, time.monotonic()),
            *self._spending.faults(),
            *self._effects.endpoints.faults(),
            *self._post().faults(),
            *([refusing] if refusing else []),
        ]

    def figures(self, sees: Callable[[str], bool]) -> dict[str, object]:
        """`sees(who)`: whether they are told to somebody who may know what this sender has asked for."""
        current = [held[0] for lane in self._lanes() if (held := lane.current) is not None]
        return {
            "unknown": self._view().unknown(sees),
            "queue": {**self._waiting.counts(), "asking": self._store.count_asking()},
            "running": [row.id for row in current if sees(row.who)],
            "memory": {"rss_mib": round(memory.resident_mib(), 1), "soft_mib": self._settings.memory.soft_mib},
            "unsaid": self._fairness.unsaid,
            "bad_signatures": self._signers.refused,
            "denied": self._denials.figures(),
            "budgets": self._spending.shown(),
            "tools": self._effects.toolbox.latencies.figures(self._effects.toolbox.tools, time.monotonic()),
            "endpoints": self._effects.endpoints.figures(),
            "exams": {
                one.name: found.words()
                for one in self._settings.endpoints
                if (found := self._effects.marks(one)) is not None
            },
            "store": msgspec.to_builtins(self._store.usage()),
            "link": self._post().figures(),
        }

    @property
    def _settings(self) -> Settings:
        return self._in_force.settings

    @property
    def _effects(self) -> NodeEffects:
        return self._in_force.effects

    def _room_faults(self) -> list[str]:
        if self._store.full:
            return [f"store: the disk is full, and nothing is accepted or begun: {self._store.full}"]
        with suppress(StoreBroken):  # the process ends for that: its last words are not kept from being said
            if not self._store.crowded:
                return []
            return ["store: the state file is full ([store] max_mib): nothing is accepted until tasks in it have ended"]
        return []
