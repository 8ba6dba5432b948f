"""What is in force: the newest configuration with its tools, and older ones for as long as runs use them.

A run keeps what was in force when a lane took it, until the lane lets go of it. Decides nothing about a call.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import msgspec

from rea_edge.approval import Terms
from rea_edge.clock import Clock
from rea_edge.config import Settings
from rea_edge.daemon.approvals import Approvals
from rea_edge.daemon.effects import NodeEffects, Profiles
from rea_edge.daemon.equipment import Common, Equipment
from rea_edge.daemon.gates import Gates, Starts
from rea_edge.daemon.halts import Halt
from rea_edge.endpoints import Endpoints
from rea_edge.mqtt import LinkState
from rea_edge.records import Rule
from rea_edge.store import Store

OLDER_S = 600.0  # that a run may keep the tools it began with: twice what a run takes by default
OLDER_MAX = 2  # sets of tools beside the newest: each is a process of about 12 MiB

log = logging.getLogger("rea_edge.node")


class NotLoaded(Exception):
    """Not all tools of a new configuration can be had; the one before it stays in force."""


class Outfit(msgspec.Struct, eq=False):
    """One configuration with its tools, and how many runs use it. `moved_on`: those runs use the newest tools by now, and
    of this one its endpoints."""

    settings: Settings
    equipment: Equipment
    effects: NodeEffects
    uses: int = 0
    replaced_s: float | None = None
    moved_on: bool = False


class InForce:
    """Thread-safe. `name` is the node's, `lived_s` the time that its state has lived, `link` tells of its own
    connection to the broker; `unused()` is called when nobody uses
    an older configuration any more, and a turn is due."""

    def __init__(
        self,
        settings: Settings,
        *,
        name: str,
        store: Store,
        clock: Clock,
        halt: Halt,
        lived_s: Callable[[], float],
        link: Callable[[], LinkState],
        unused: Callable[[], None],
    ) -> None:
        self._name = name
        self._store = store
        self._clock = clock
        self._halt = halt
        self._lived_s = lived_s
        self._unused = unused
        self._starts, self._common = Starts(store, clock), Common(settings.broker, name, link, clock.now, unused)
        self._lock = threading.Lock()
        self._older: list[Outfit] = []
        self._loading: Equipment | None = None
        self._stopped = False
        equipment = Equipment(settings, self._common)
        equipment.load()
        self._newest = self._outfit(settings, equipment, Endpoints(settings.endpoints, Profiles(store)))

    @property
    def settings(self) -> Settings:
        return self._newest.settings

    @property
    def effects(self) -> NodeEffects:
        return self._newest.effects

    @property
    def tool_faults(self) -> Sequence[str]:
        return self._newest.equipment.faults

    @contextmanager
    def lease(self) -> Iterator[NodeEffects]:
        """What is in force now; it stays usable until the block ends."""
        with self._lock:
            outfit = self._newest
            outfit.uses += 1
        try:
            yield outfit.effects
        finally:
            with self._lock:
                outfit.uses -= 1
            if outfit.replaced_s is not None and not outfit.uses:
                self._unused()

    def replace(self, settings: Settings) -> None:
        """Load the tools of these settings beside those that there are, and put them in force if all of them load.

        Raises `NotLoaded`. By one thread at a time; it may take as long as a start.
        """
        equipment = Equipment(settings, self._common)
        with self._lock:
            if self._stopped:
                raise NotLoaded("the node is stopping")
            self._loading = equipment
        try:
            if faults := equipment.load():
                raise NotLoaded("; ".join(faults))
            self._put(settings, equipment)
        except BaseException:
            equipment.stop()
            raise
        finally:
            self._loading = None

    def turn(self) -> None:
        """End the older ones that nobody uses any more; what is used for too long gives way to the newest."""
        self._newest.equipment.turn()
        now_s = time.monotonic()
        with self._lock:
            for place, outfit in enumerate(reversed(self._older)):
                assert outfit.replaced_s is not None
                if place >= OLDER_MAX or now_s - outfit.replaced_s > OLDER_S:
                    outfit.effects.move_on()  # again at each turn: there may be newer ones by now
                    outfit.moved_on = True
            drained = [one for one in self._older if not one.uses or (one.moved_on and one.equipment.idle)]
            over = [one for one in drained if not one.uses]
            self._older = [one for one in self._older if one.uses]
            kept = [one.effects.endpoints for one in (self._newest, *self._older)]
        for outfit in drained:
            outfit.equipment.stop()
        for outfit in over:
            if all(outfit.effects.endpoints is not endpoints for endpoints in kept):
                outfit.effects.endpoints.close()
            log.info("event=tools_drained left=%d", len(self._older))

    def stop(self) -> None:
        """End all hosts, what is under way with devices, and all endpoints, at once."""
        with self._lock:
            self._stopped = True
            loading, outfits = self._loading, [self._newest, *self._older]
        for equipment in (loading, *(one.equipment for one in outfits)):
            if equipment is not None:
                equipment.stop()
        self._common.stop()
        for outfit in outfits:
            outfit.effects.endpoints.close()

    def _put(self, settings: Settings, equipment: Equipment) -> None:
        before = self._newest
        same = settings.endpoints == before.settings.endpoints
        endpoints = before.effects.endpoints if same else Endpoints(settings.endpoints, Profiles(self._store))
        outfit = self._outfit(settings, equipment, endpoints)
        with self._lock:
            if self._stopped:
                raise NotLoaded("the node is stopping")
            before.replaced_s = time.monotonic()
            self._older.append(before)
            self._newest = outfit
        self._unused()

    def _outfit(self, settings: Settings, equipment: Equipment, endpoints: Endpoints) -> Outfit:
        def newer() -> NodeEffects | None:
            return None if self._newest.effects is effects else self._newest.effects

        def newer_terms(tool: str) -> Terms | None:
            found = newer()
            return None if found is None else found.approvals.terms(tool, found.toolbox.tools)

        def newer_trusts(task_type: str) -> bool:
            found = newer()
            return found is None or found.approvals.trusts(task_type)

        def newer_rules(tool: str) -> Sequence[Rule]:
            found = newer()
            return () if found is None else found.gates.rules(tool, found.toolbox.tools)

        effects = NodeEffects(
            settings=settings,
            toolbox=equipment.toolbox,
            store=self._store,
            approvals=Approvals(settings, self._name, self._store, self._lived_s, newer_terms, newer_trusts),
            gates=Gates(settings.gates, self._starts, self._clock, newer_rules),
            endpoints=endpoints,
            halt=self._halt,
            newest=newer,
        )
        return Outfit(settings=settings, equipment=equipment, effects=effects)
