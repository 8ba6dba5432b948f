"""A cancel that any thread may give and that wakes whatever waits. Knows nothing of what is cancelled."""

import threading
from collections.abc import Callable


class Stopped(Exception):
    """The daemon stops: the effect under way was ended and nothing is recorded; the run goes on at the next start."""


class Cancel:
    """Stops what is under way, from any thread, once and for good. Holds no descriptor, so it may be dropped."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._cancelled = False
        self._wakes: list[Callable[[], None]] = []

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    def cancel(self) -> None:
        """Wake every wait at once. Harmless when nothing waits or when called again."""
        with self._lock:
            self._cancelled = True
            for wake in self._wakes:
                wake()

    def subscribe(self, wake: Callable[[], None]) -> None:
        """Have `wake` called at the cancel (at once if that has been); it must not block."""
        with self._lock:
            self._wakes.append(wake)
            if self._cancelled:
                wake()

    def unsubscribe(self, wake: Callable[[], None]) -> None:
        """After this returns, `wake` is not called any more."""
        with self._lock:
            self._wakes.remove(wake)

    def wait(self, seconds: float) -> bool:
        """Rest for `seconds`, or until cancelled; tells which: True means cancelled."""
        woken = threading.Event()
        self.subscribe(woken.set)
        try:
            return woken.wait(seconds)
        finally:
            self.unsubscribe(woken.set)
