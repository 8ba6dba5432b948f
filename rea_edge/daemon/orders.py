"""What an operator may order of the node as a whole: halt, release, reload. Who is one is not asked here."""

import logging
from collections.abc import Callable

from rea_edge.daemon import halts
from rea_edge.daemon.halts import Halt
from rea_edge.daemon.reloads import Reloads
from rea_edge.desk import Told
from rea_edge.errors import RequestRefused, StoreFull
from rea_edge.records import Args
from rea_edge.store import Store
from rea_edge.wire import NodeRequest

log = logging.getLogger("rea_edge.node")


class Orders:
    """`changed()`: what the status says has changed."""

    def __init__(self, *, store: Store, halt: Halt, reloads: Reloads, changed: Callable[[], None]) -> None:
        self._store = store
        self._halt = halt
        self._reloads = reloads
        self._changed = changed

    def take(self, who: str, request: NodeRequest, told: Told) -> None:
        """Do it, and tell what came of it, now or, from another thread, when it is done. Raises `RequestRefused`."""
        match request.do:
            case "halt":
                told(self._halted(who))
            case "release":
                told(self._released())
            case "reload":
                self._reloads.ask(f"{who}/{request.id}", told)

    def _halted(self, who: str) -> Args:
        try:
            ended = self._halt.order(who)
        except StoreFull as full:
            why = f"halted, but a restart would forget it, since the disk is full: {full}"
            raise RequestRefused("store_failed", why, retryable=True) from full
        finally:
            self._changed()
        return {"halted": self._halt.why, "ended": ended}

    def _released(self) -> Args:
        lost, halted = self._store.lost, self._halt.why
        if lost is not None or halted is not None:
            with self._halt.lifting(), self._store.transaction() as tx:
                tx.release()
                halts.lift(tx)
            log.warning("event=released lost=%r halted=%r", lost, halted)
            self._changed()
        return {"lost": lost, "halted": halted}
