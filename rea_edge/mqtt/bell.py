"""What other threads say to the link's: that there is something to do, and that it must end. Owns the wake pipe."""

import os
import threading
import time

from rea_edge.mqtt.messages import Outgoing


class Bell:
    """`ring` and `stop` are for any thread, also before `open` and after `close`; the rest is for the link's."""

    def __init__(self) -> None:
        self.stop_by_s: float | None = None
        self.farewell: Outgoing | None = None
        self._lock = threading.Lock()
        self._rung = False
        self._rows_due = False
        self._in, self._out = -1, -1

    def open(self) -> None:
        self._in, self._out = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def close(self) -> None:
        with self._lock:
            os.close(self._in)
            os.close(self._out)
            self._out = -1

    @property
    def descriptor(self) -> int:
        """Readable when the bell was rung."""
        return self._in

    def ring(self, *, rows: bool = False) -> None:
        """`rows`: the outbox has new ones."""
        with self._lock:
            self._rows_due = self._rows_due or rows
            self._ring()

    def stop(self, farewell: Outgoing | None, seconds: float) -> None:
        with self._lock:
            self.farewell = farewell
            self.stop_by_s = time.monotonic() + seconds
            self._ring()

    def hear(self) -> bool:
        """Silence it; whether the outbox was said to have new rows."""
        with self._lock:
            rung, self._rung = self._rung, False
            due, self._rows_due = self._rows_due, False
            if rung:
                os.read(self._in, 1)
        return due

    def _ring(self) -> None:
        if not self._rung and self._out >= 0:
            self._rung = True
            os.write(self._out, b"\0")
