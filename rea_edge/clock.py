"""The wall clock, and whether it may be believed. The one place that reads it for anything that is kept or shown.

Boards without a battery start in the past. A time is trusted once the kernel says that it was set from outside
(adjtimex(2), STA_UNSYNC off) and it does not lie before the newest time that was ever trusted: see `timeline.judged`.
"""

import ctypes
import os
import time

from rea_edge.timeline import Trust, judged

_TIME_ERROR = 5  # what adjtimex returns while STA_UNSYNC is set
_LOOK_S = 10.0  # how long an answer of the kernel holds
_MODES_AND_STATUS = 208 + 64  # bytes; struct timex is 208 on 64-bit Linux, the rest is slack


class Clock:
    """Trusted wall seconds, or None. `newest` is the newest trusted time known from before, or None."""

    def __init__(self, newest: float | None = None) -> None:
        self._trust = Trust(newest=newest)
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._looked_s = float("-inf")
        self._good = False
        self._buffer = ctypes.create_string_buffer(_MODES_AND_STATUS)

    def now(self) -> float | None:
        at = time.time()
        self._trust, good = judged(self._trust, at, boot_s(), synchronised=self._synchronised())
        return at if good else None

    def _synchronised(self) -> bool:
        now_s = time.monotonic()
        if now_s - self._looked_s >= _LOOK_S:
            self._looked_s, self._good = now_s, self._ask_kernel()
        return self._good

    def _ask_kernel(self) -> bool:
        ctypes.memset(self._buffer, 0, _MODES_AND_STATUS)  # modes 0: only read
        said: int = self._libc.adjtimex(self._buffer)
        return 0 <= said < _TIME_ERROR


def local_minute(at: float) -> int:
    """The minute of the local day at these wall seconds, by the machine's time zone."""
    local = time.localtime(at)
    return local.tm_hour * 60 + local.tm_min


def boot_s() -> float:
    """Seconds since this boot, also those that the machine slept; never set back."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def boot_id() -> str:
    """Names this boot of the machine: another one means that boot-time seconds began anew."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return f"pid-{os.getpid()}"
