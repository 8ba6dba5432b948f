"""The daemon's process: signals, the main thread's timers, watchdog, memory guard, exit codes.

Exit codes: 0 stopped in order, 74 the store broke while running, 75 try again (store busy, memory), 78 configuration.
"""

import logging
import os
import select
import signal
import sys
import time
from collections.abc import Callable

from rea_edge import memory
from rea_edge.clock import Clock
from rea_edge.config import Settings
from rea_edge.daemon.life import newest_trusted
from rea_edge.daemon.node import Node
from rea_edge.daemon.refuser import Refuser
from rea_edge.errors import ConfigInvalid, StoreBusy, StoreUnusable
from rea_edge.store import Store
from rea_edge.systemd import notifier, watchdog_s

EX_OK, EX_IOERR, EX_TEMPFAIL, EX_CONFIG = 0, 74, 75, 78
TURN_S = 10.0  # the longest turn of the main thread; shorter where a watchdog asks for it
FULL_TURN_S = 2.0  # while the disk is full: whether there is room again
STORE_RETRY_S = 5.0

log = logging.getLogger("rea_edge.daemon")


class Process:
    """One run of the daemon. Everything but the wake-up belongs to the main thread."""

    def __init__(self, settings: Settings, load: Callable[[], Settings]) -> None:
        self._settings = settings
        self._load = load
        self._notify = notifier(os.environ)
        self._signal: int | None = None  # the one to end by
        self._reload = False
        self._broken: BaseException | None = None
        self._wake_in, self._wake_out = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._trimmed_at_s = 0.0
        self._known_before: bool | None = None  # to the broker, as was seen while the store could not be used

    def run(self) -> int:
        """Serve until a signal or a fault; gives the exit code."""
        memory.shut()  # it holds every secret of the node, and tools may run as the same user
        signal.set_wakeup_fd(self._wake_out, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        try:
            store = self._open_store()
        except StoreBusy as exc:
            log.error("event=store_busy detail=%r", str(exc))
            return EX_TEMPFAIL
        if store is None:
            return EX_OK
        clock = Clock(newest_trusted(store))
        try:
            node = Node(
                self._settings,
                self._load,
                store,
                clock,
                fatal=self._fatal,
                nudge=self._nudge,
                notifier=self._notify,
                known_before=self._known_before,
            )
        except ConfigInvalid as exc:
            log.error("event=config_invalid detail=%r", str(exc))
            store.close()
            return EX_CONFIG
        node.start()
        self._notify.ready(f"node {node.name}")
        log.info("event=ready node=%s pid=%d", node.name, os.getpid())
        code = self._serve(node)
        return self._end(node, store, code)

    # --- the main thread's turns

    def _serve(self, node: Node) -> int:
        wanted_s = watchdog_s(os.environ, os.getpid())
        wait_s = TURN_S if wanted_s is None else min(TURN_S, wanted_s / 3)
        while True:
            if self._broken is not None:
                log.critical("event=broken detail=%r", str(self._broken), exc_info=self._broken)
                return EX_IOERR if isinstance(self._broken, StoreUnusable) else 1
            if self._signal in (signal.SIGTERM, signal.SIGINT):
                log.info("event=stopping signal=%d", self._signal)
                return EX_OK
            if self._reload:
                self._reload = False
                node.reload()
            if self._over_memory(node):
                return EX_TEMPFAIL
            stuck = node.stuck()
            if stuck is None:
                self._notify.watchdog()
            else:
                log.error("event=stuck what=%s", stuck)
            try:
                node.turn()
            except StoreUnusable as exc:
                self._fatal(exc)
            rest_s = FULL_TURN_S if node.short_of_room else wait_s
            self._wait(min(wait_s, rest_s, node.rest_s))

    def _over_memory(self, node: Node) -> bool:
        """Soft limit: refuse and give back what can be given. Hard limit: True, the process must end."""
        rss_mib = memory.resident_mib()
        if rss_mib > self._settings.memory.hard_mib:
            log.error("event=memory_hard rss_mib=%.1f", rss_mib)
            return True
        over = rss_mib > self._settings.memory.soft_mib
        if over and time.monotonic() - self._trimmed_at_s > TURN_S:
            self._trimmed_at_s = time.monotonic()
            memory.trim()
            over = memory.resident_mib() > self._settings.memory.soft_mib
        node.refuse_new("the node is short of memory" if over else None)
        return False

    def _wait(self, seconds: float) -> None:
        select.select([self._wake_in], [], [], seconds)
        try:
            while os.read(self._wake_in, 512):
                pass
        except BlockingIOError:
            pass

    def _end(self, node: Node, store: Store, code: int) -> int:
        self._notify.stopping()
        if code == EX_IOERR:
            # Nothing may be written or done any more; the next start reads what is true.
            os._exit(code)
        node.stop()
        store.close()
        if isinstance(self._broken, StoreUnusable):
            code = EX_IOERR
        log.info("event=stopped code=%d", code)
        return code

    # --- what other threads and signals say

    def _fatal(self, exc: BaseException) -> None:
        self._broken = self._broken or exc
        os.write(self._wake_out, b"!")

    def _nudge(self) -> None:
        """The next turn is due sooner than was thought."""
        os.write(self._wake_out, b".")

    def _on_signal(self, number: int, _frame: object) -> None:
        if number == signal.SIGHUP:
            self._reload = True
        else:
            self._signal = number

    # --- a store that cannot be used

    def _open_store(self) -> Store | None:
        """The store, as soon as it can be opened; meanwhile requests are refused. None: told to stop before."""
        try:
            return self._opened()
        except StoreBusy:
            raise
        except StoreUnusable as exc:
            return self._degraded(str(exc))

    def _opened(self) -> Store:
        max_mib = self._settings.store.max_mib
        # What waits to be published takes a sixteenth of a small file at most: the rest is for tasks.
        return Store.open(self._settings.node.state_dir, max_mib=max_mib, outbox_bytes=min(1 << 20, max_mib << 16))

    def _degraded(self, why: str) -> Store | None:
        log.error("event=store_unusable detail=%r", why)
        self._notify.ready(f"degraded: {why}")
        refuser = Refuser(self._settings, why, Clock().now)
        refuser.start()
        try:
            due_s = time.monotonic() + STORE_RETRY_S
            while self._signal not in (signal.SIGTERM, signal.SIGINT):
                self._notify.watchdog()
                self._wait(1.0)
                if time.monotonic() < due_s:
                    continue
                due_s = time.monotonic() + STORE_RETRY_S
                try:
                    return self._opened()
                except StoreUnusable as exc:
                    if str(exc) != why:  # the same, every few seconds, would push everything else out of the log
                        why = str(exc)
                        log.error("event=store_unusable detail=%r", why)
            return None
        finally:
            refuser.stop()
            self._known_before = refuser.known_before


def run(settings: Settings, load: Callable[[], Settings]) -> int:
    """Run the daemon with these settings; gives the exit code. `load` reads them anew, and raises ConfigInvalid."""
    logging.basicConfig(
        stream=sys.stderr, level=settings.log.level.upper(), format="%(levelname)s %(name)s %(message)s"
    )
    for name in ("httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.WARNING)  # a line per request, URL with query, is not for our log
    return Process(settings, load).run()
