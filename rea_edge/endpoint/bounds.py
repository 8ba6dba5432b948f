"""The bounds of one exchange: its deadline, its phase, and a cancel that any thread may give. Knows no HTTP.

Every wait of an exchange goes through `Exchange.wait_for`, which ends at the phase's limit or when cancelled.
"""

import os
import select
import threading
import time
from contextlib import suppress
from typing import Final, Literal

from rea_edge.cancel import Cancel
from rea_edge.endpoint.faults import failed
from rea_edge.errors import EndpointFailed

# header: from the first byte of the request to the end of the answer's headers; begin: until its body's first byte.
Phase = Literal["look_up", "connect", "tls", "header", "begin", "body"]

HEADER_CAP_BYTES: Final = 65_536
HEADER_READ_BYTES: Final = 16_384  # a read that ends the headers may take the body's beginning along

_CONNECTING: Final = ("look_up", "connect", "tls")
_DOING: Final[dict[Phase, str]] = {
    "look_up": "looking up the name",
    "connect": "connecting",
    "tls": "in the TLS handshake",
    "header": "waiting for the answer",
    "begin": "waiting for the answer's body",
    "body": "in the answer",
}


class Wake:
    """A descriptor that becomes readable when any thread calls `set`; `set` after `close` does nothing."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open = True
        self.fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def set(self) -> None:
        with self._lock:
            if self._open:
                os.eventfd_write(self.fd, 1)

    def clear(self) -> None:
        with suppress(BlockingIOError):  # nobody had set it
            os.eventfd_read(self.fd)

    def close(self) -> None:
        with self._lock:
            if self._open:
                self._open = False
                os.close(self.fd)


class Exchange:
    """One request and its answer under one deadline. Use as a context manager; belongs to one thread.

    `connect_s` covers look-up, connect and TLS together; `idle_s` is the longest silence once the body has begun.
    """

    def __init__(self, *, seconds: float, connect_s: float, idle_s: float, cancel: Cancel) -> None:
        self._begun_s = time.monotonic()
        self._deadline_s = self._begun_s + seconds
        self._connect_s = connect_s
        self._connect_deadline_s = self._deadline_s
        self._idle_s = idle_s
        self._cancel = cancel
        self._phase: Phase = "header"
        self.wake = Wake()
        self.connected = False  # a connection was opened for this exchange (else a kept one serves it)
        self.ended_by_server = False
        self._header_bytes = 0

    def __enter__(self) -> "Exchange":
        self._cancel.subscribe(self.wake.set)
        return self

    def __exit__(self, *_: object) -> None:
        self._cancel.unsubscribe(self.wake.set)
        self.wake.close()

    @property
    def untouched(self) -> bool:
        """No byte of an answer came and no connection was opened: a kept connection had gone stale."""
        return not self.connected and self._header_bytes == 0

    def enter(self, phase: Phase) -> None:
        if phase == "look_up":
            self.connected = True
            self.ended_by_server = False
            self._connect_deadline_s = min(self._deadline_s, time.monotonic() + self._connect_s)
        self._phase = phase

    def hurry(self, seconds: float) -> None:
        """The rest is a courtesy: let the exchange end within `seconds`."""
        self._deadline_s = min(self._deadline_s, time.monotonic() + seconds)

    def connect_left_s(self) -> float:
        return max(0.0, self._connect_deadline_s - time.monotonic())

    def read_bytes(self, wanted: int) -> int:
        """How much to read at once."""
        return min(wanted, HEADER_READ_BYTES) if self._phase == "header" else wanted

    def received(self, count: int) -> None:
        """Count what came; headers beyond their cap are refused here."""
        self.ended_by_server = self.ended_by_server or count == 0
        if self._phase == "header":
            self._header_bytes += count
            if self._header_bytes > HEADER_CAP_BYTES:
                raise failed("body_cap", f"more than {HEADER_CAP_BYTES} bytes before the answer's body")

    def check(self) -> None:
        """Raise if the exchange is cancelled or over."""
        self._raise_if_over(self._phase_limit_s(), time.monotonic())

    def wait_for(self, fd: int | None, events: int = 0, *, at_most_s: float | None = None) -> bool:
        """Wait until `fd` is ready (True) or, with `fd` None, until `wake` is set. False: `at_most_s` have passed.

        Raises `EndpointFailed` by the name of the phase when its limit passes first, and `cancelled` at a cancel.
        """
        poll = select.poll()
        poll.register(self.wake.fd, select.POLLIN)
        if fd is not None:
            poll.register(fd, events)
        now_s = time.monotonic()
        limit_s = self._phase_limit_s()
        if self._phase == "body":
            limit_s = min(limit_s, now_s + self._idle_s)
        give_up_s = limit_s if at_most_s is None else min(limit_s, now_s + at_most_s)
        while True:
            self._raise_if_over(limit_s, now_s)
            ready = [ready_fd for ready_fd, _ in poll.poll(max(0.0, give_up_s - now_s) * 1000 + 1)]
            if self.wake.fd in ready:
                self.wake.clear()
            now_s = time.monotonic()
            self._raise_if_over(limit_s, now_s)
            if (fd if fd is not None else self.wake.fd) in ready:
                return True
            if now_s >= give_up_s:
                return False

    def _phase_limit_s(self) -> float:
        return self._connect_deadline_s if self._phase in _CONNECTING else self._deadline_s

    def _raise_if_over(self, limit_s: float, now_s: float) -> None:
        if self._cancel.cancelled:
            raise failed("cancelled", f"cancelled while {_DOING[self._phase]}")
        if now_s >= limit_s:
            raise self._too_late(now_s)

    def _too_late(self, now_s: float) -> EndpointFailed:
        took = f"{_DOING[self._phase]}, {now_s - self._begun_s:.1f} s after the start"
        match self._phase:
            case "look_up":
                return failed("dns", f"gave up {took}")
            case "connect" | "tls":
                return failed("timeout_connect", f"gave up {took}")
            case "header" | "begin":
                return failed("timeout_header", f"gave up {took}")
            case "body" if now_s < self._deadline_s:
                return failed("timeout_idle", f"silent for {self._idle_s:g} s {took}")
            case "body":
                return failed("timeout_total", f"out of time {took}")
