"""Reading the configuration anew while the node runs: one at a time, in a thread of its own. Decides nothing about runs.

All of it is taken or nothing: what does not load leaves everything as it was, and says so until the next that does.
"""

import logging
import threading
from collections.abc import Callable

from rea_edge import memory
from rea_edge.config import Settings, config_hash, renewed
from rea_edge.daemon.inforce import InForce, NotLoaded
from rea_edge.desk import Told
from rea_edge.errors import ConfigInvalid, RequestRefused
from rea_edge.records import Args
from rea_edge.systemd import Notifier

log = logging.getLogger("rea_edge.reload")


class Reloads:
    """`load()` reads the configuration as at a start. `taken(settings)`: these are in force from now on. `changed()`: what
    the status says has changed. `fatal(exc)` is told of what must end the process."""

    def __init__(
        self,
        *,
        in_force: InForce,
        load: Callable[[], Settings],
        taken: Callable[[Settings], None],
        changed: Callable[[], None],
        notifier: Notifier,
        fatal: Callable[[BaseException], None],
    ) -> None:
        self._in_force = in_force
        self._load = load
        self._taken = taken
        self._changed = changed
        self._notifier = notifier
        self._fatal = fatal
        self._lock = threading.Lock()
        self._asked: dict[str, Told] = {}  # by who has asked, and by what id: sent again, it is the same
        self._doing: dict[str, Told] = {}
        self._thread: threading.Thread | None = None
        self._stopped = threading.Event()
        self._refused: str | None = None
        self._later: tuple[str, ...] = ()

    def ask(self, key: str, told: Told) -> None:
        """Reload, and tell how it went. What is asked for while a reload goes on begins after it: a file may have
        been changed that it had read already. A request that is sent again has a key by which it is known; a signal
        has none."""
        with self._lock:
            if key in self._asked or (key and key in self._doing):
                return
            self._asked[key] = told
            if self._thread is None and not self._stopped.is_set():
                self._thread = threading.Thread(target=self._serve, name="reload", daemon=True)
                self._thread.start()

    def stop(self, seconds: float) -> None:
        """Begin no more, and tell nothing more of the one under way, which gets so long to end."""
        with self._lock:
            self._stopped.set()
            thread = self._thread
        if thread is not None:
            thread.join(seconds)

    def faults(self) -> list[str]:
        refused, later = self._refused, self._later
        return [
            *([f"reload refused, the configuration before it stays in force: {refused}"] if refused else []),
            *([f"changed, but needs a restart to take effect: {', '.join(later)}"] if later else []),
        ]

    def _serve(self) -> None:
        try:
            self._work()
        except Exception as exc:
            # As in a lane: it is logged, and the process ends and starts anew.
            self._fatal(exc)

    def _work(self) -> None:
        while True:
            with self._lock:
                self._asked, self._doing = {}, self._asked
                if not self._doing or self._stopped.is_set():
                    self._thread = None
                    return
            self._notifier.reloading()
            said = self._reloaded()
            if self._stopped.is_set():
                return
            self._notifier.ready()
            self._changed()
            for told in self._doing.values():
                told(said)

    def _reloaded(self) -> Args | RequestRefused:
        try:
            settings, later = renewed(self._in_force.settings, self._load())
            self._in_force.replace(settings)
        except (ConfigInvalid, NotLoaded) as exc:
            self._refused = str(exc)
            log.error("event=reload_refused detail=%r", self._refused)
            return RequestRefused("bad_request", f"not reloaded, all stays as it was: {exc}")
        self._refused, self._later = None, later
        self._taken(settings)
        memory.trim()
        log.info("event=reloaded config_hash=%s needs_restart=%s", config_hash(settings), ",".join(later) or "-")
        return {
            "config_hash": config_hash(settings),
            "tools_hash": self._in_force.effects.toolbox.tools_hash,
            "needs_restart": later,
            "faults": self._in_force.tool_faults,
        }
