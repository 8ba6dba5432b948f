"""What memory our processes hold, and giving back what the allocator keeps. Decides nothing: limits are the guard's."""

import ctypes
import os
from collections.abc import Iterable

_MIB = 1024 * 1024
_PR_SET_DUMPABLE = 4


def resident_mib() -> float:
    """Resident memory of this process in MiB; one short read, cheap enough for every step."""
    with open("/proc/self/statm", "rb") as statm:
        pages = int(statm.read().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / _MIB


def shared_fairly_mib(pids: Iterable[int]) -> float:
    """PSS of some processes together in MiB: what they share counts once. A process that has ended counts nothing."""
    return sum(_pss_kib(pid) for pid in pids) / 1024


def trim() -> bool:
    """Give free heap pages back to the kernel. False where the C library cannot (musl).

    The caller drops its caches and collects garbage first, or there is little to give.
    """
    try:
        release = ctypes.CDLL(None).malloc_trim
    except AttributeError:
        return False
    release(0)
    return True


def shut() -> None:
    """Keep other processes of the same user out of this one's memory, and its memory out of core dumps. A program that
    is started begins anew; to be called once nothing of our own /proc is written any more."""
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def _pss_kib(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as rollup:
            return sum(int(line.split()[1]) for line in rollup if line.startswith(b"Pss:"))
    except (FileNotFoundError, ProcessLookupError):
        return 0
