"""What an operator may order of the node as a whole: release, reload. Who is one is not asked here."""

import logging
from collections.abc import Callable

from rea_edge.daemon.reloads import Reloads
from rea_edge.errors import RequestRefused
from rea_edge.mailbox import Told
from rea_edge.records import Args
from rea_edge.store import Store
from rea_edge.wire import NodeRequest

log = logging.getLogger("rea_edge.node")


class Orders:
    """`changed()`: what the status says has changed."""

    def __init__(self, *, store: Store, reloads: Reloads, changed: Callable[[], None]) -> None:
        self._store = store
        self._reloads = reloads
        self._changed = changed

    def take(self, who: str, request: NodeRequest, told: Told) -> None:
        """Do it, and tell what came of it, now or, from another thread, when it is done. Raises `RequestRefused`."""
        match request.do:
            case "halt":
                raise RequestRefused("bad_request", "halt is not supported by this version")
            case "release":
                told(self._released())
            case "reload":
                self._reloads.ask(f"{who}/{request.id}", told)

    def _released(self) -> Args:
        lost = self._store.lost
        if lost is not None:
            with self._store.transaction() as tx:
                tx.release()
            log.warning("event=released detail=%r", lost)
            self._changed()
        return {"lost": lost}
