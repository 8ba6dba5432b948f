"""The processes below one: who they are, what memory they hold, and how all of them are ended.

Holds what needs /proc, prctl and kill; knows nothing of tools. `sweep` kills direct children only: those cannot be
reaped by anybody else, so their ids cannot have been given to a stranger; what they leave behind comes to us,
since keeper and host adopt orphans, also of children that made a session of their own or forked twice.
"""

import ctypes
import os
import signal
import time

PR_SET_CHILD_SUBREAPER = 36
PAUSE_S = 0.002


def adopt_orphans() -> None:
    """Make this process the parent of every orphan below it."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "cannot adopt orphans")


def children(pid: int) -> list[int]:
    """Direct children, those that ended but were not reaped included. Some may be missed while others end."""
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as lines:
                found += map(int, lines.read().split())
    except FileNotFoundError:
        return [] if not os.path.exists(f"/proc/{pid}/stat") else children_by_scan(pid)
    except ProcessLookupError:
        return []
    return found


def children_by_scan(pid: int) -> list[int]:
    """The same on kernels built without the file `children`."""
    return [other for other in map(int, filter(str.isdigit, os.listdir("/proc"))) if parent(other) == pid]


def parent(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as line:
            return int(line.read().rpartition(b")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0


def descendants(pid: int) -> list[int]:
    """All processes below `pid`, nearest first."""
    found = children(pid)
    for child in found:  # grows while we go through it
        found += children(child)
    return found


def private_mib(pids: list[int]) -> float:
    """Memory that is theirs (anonymous and shared, files not counted), in MiB."""
    return sum(map(private_kib, pids)) / 1024


def private_kib(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/status", "rb") as lines:
            return sum(int(line.split()[1]) for line in lines if line.startswith((b"RssAnon:", b"RssShmem:")))
    except (FileNotFoundError, ProcessLookupError):
        return 0


def sweep(limit_s: float) -> bool:
    """Kill and reap every process below this one; False if some cannot be ended within `limit_s`."""
    end = time.monotonic() + limit_s
    while True:
        for child in children(os.getpid()):
            kill(child)
        if not reap_ended():
            return True
        if time.monotonic() > end:
            return False
        time.sleep(PAUSE_S)


def reap_ended() -> bool:
    """Reap all children that ended; tell whether any child is left."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return True


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
