"""The notify socket of systemd and the watchdog's judgement of progress. Holds no lane and no timer of its own.

Every call does nothing where systemd did not start us.
"""

import math
import socket
import time
from collections.abc import Mapping
from threading import Lock

# systemd reads its socket at once; a send that waits longer than this must not stop the daemon.
_SEND_S = 2.0


class Notifier:
    """Tells systemd how the service is. Each method says whether the message went out; none ever raises."""

    def __init__(self, address: str | None) -> None:
        self._address = f"\0{address[1:]}" if address and address.startswith("@") else address

    def ready(self, status: str = "") -> bool:
        """The service is up (or has finished reloading)."""
        return self._send("READY=1", *_status(status))

    def status(self, text: str) -> bool:
        """One line for `systemctl status`."""
        return self._send(*_status(text))

    def reloading(self, now_ns: int | None = None) -> bool:
        """A reload has begun; `ready` must follow. `now_ns` is monotonic."""
        return self._send(
            "RELOADING=1", f"MONOTONIC_USEC={(time.monotonic_ns() if now_ns is None else now_ns) // 1000}"
        )

    def stopping(self, status: str = "") -> bool:
        return self._send("STOPPING=1", *_status(status))

    def extend(self, longer_s: float) -> bool:
        """Start, reload or stop goes on: from now it may take `longer_s` more before systemd ends us."""
        return self._send(f"EXTEND_TIMEOUT_USEC={int(longer_s * 1_000_000)}")

    def watchdog(self) -> bool:
        """All is well. Send it at least twice per `watchdog_s`, and only while `Progress.overdue` names nobody."""
        return self._send("WATCHDOG=1")

    def _send(self, *lines: str) -> bool:
        if not self._address:
            return False
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
                sock.settimeout(_SEND_S)
                sock.sendto("\n".join(lines).encode(errors="replace"), self._address)
        except OSError:
            return False
        return True


def notifier(environ: Mapping[str, str]) -> Notifier:
    """The notifier for NOTIFY_SOCKET. Children must not inherit that variable: they are not the service."""
    return Notifier(environ.get("NOTIFY_SOCKET"))


def watchdog_s(environ: Mapping[str, str], pid: int) -> float | None:
    """Seconds within which systemd wants a sign from the process `pid`, or None if it wants none."""
    try:
        wanted_us = int(environ.get("WATCHDOG_USEC", "0"))
        meant_for = int(environ.get("WATCHDOG_PID", pid))
    except ValueError:
        return None
    return wanted_us / 1_000_000 if wanted_us > 0 and meant_for == pid else None


class Lane:
    """One thread's sign of life, by name."""

    def __init__(self, progress: "Progress", name: str) -> None:
        self._progress = progress
        self._name = name

    def beat(self, allowed_s: float) -> None:
        """A step begins that must be over within `allowed_s` seconds: its own deadline and a margin."""
        self._progress.expect(self._name, time.monotonic() + allowed_s)

    def rest(self) -> None:
        """Nothing to do until somebody brings work: waiting for it is no delay. Beat before taking it up."""
        self._progress.expect(self._name, math.inf)


class Progress:
    """Who must be done with what until when. Any thread may call anything."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._until: dict[str, float] = {}

    def lane(self, name: str) -> Lane:
        return Lane(self, name)

    def expect(self, name: str, until: float) -> None:
        """Replace what was expected of the lane `name`; `until` is in monotonic seconds."""
        with self._lock:
            self._until[name] = until

    def forget(self, name: str) -> None:
        """The lane has ended in order."""
        with self._lock:
            self._until.pop(name, None)

    def overdue(self, now: float) -> str | None:
        """Name the lane that is furthest past its time, or None if each is within what its own step allows."""
        with self._lock:
            late = [(until, name) for name, until in self._until.items() if until < now]
        return min(late)[1] if late else None


def _status(text: str) -> tuple[str, ...]:
    # One line is one assignment: a newline in the text would become another.
    return (f"STATUS={' '.join(text.splitlines())}",) if text else ()
