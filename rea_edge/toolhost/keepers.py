"""The keepers under way: forked, watched, and reaped together with whatever they leave behind.

Holds the host's children; knows nothing of tools or of the daemon's packets. A keeper that its tool killed or stopped
is noticed here: what it left becomes the host's, is killed, and its caller is told.
"""

import os
import select
import socket
import time

from msgspec import Struct, json

from rea_edge.records import Result
from rea_edge.toolhost import tree
from rea_edge.toolhost.faults import FaultName, fault
from rea_edge.toolhost.keeper import SWEEP_S, keep
from rea_edge.toolhost.work import Job

GRACE_S = SWEEP_S + 0.5  # a keeper that has not ended this long after its deadline was stopped or is stuck
STRAY_PAUSE_S = 0.005
SWEEPS = 50  # rounds of killing strays before other things get their turn


class Kept(Struct):
    """A keeper under way. `call` stays open here, so that its closing tells the daemon that the host is gone."""

    pid: int
    call: socket.socket
    kill_at: float
    closing: bool = False
    late: bool = False


class Deserted(Struct, frozen=True):
    """A call whose keeper was ended; answered when nothing of its tree is left, at the latest at `answer_at`."""

    call: socket.socket
    why: FaultName
    answer_at: float


class Keepers:
    def __init__(self, lock_fd: int) -> None:
        self.kept: dict[int, Kept] = {}  # by the keeper's pidfd
        self.deserted: list[Deserted] = []
        self.strays = False
        self.lock_fd = lock_fd
        # Nothing is ever written: keepers see the end of this pipe when its only writer, this process, ends.
        self.watch_fd, self.alive_fd = os.pipe()

    def start(self, job: Job, call: socket.socket) -> None:
        """Fork a keeper for a job; it answers on `call`, which is ours from now on."""
        pid = os.fork()
        if pid == 0:
            keep(job, call, self.watch_fd, self.lock_fd)
        self.kept[os.pidfd_open(pid)] = Kept(pid, call, job.deadline + GRACE_S)

    def register(self, poll: select.poll) -> float | None:
        """Add what is to be watched; gives the most seconds to wait (None: for ever)."""
        for pidfd, kept in self.kept.items():
            poll.register(pidfd, select.POLLIN)
            if not kept.closing:
                poll.register(kept.call, select.POLLRDHUP)
        if self.strays:
            return STRAY_PAUSE_S
        until = min((kept.kill_at for kept in self.kept.values()), default=None)
        return None if until is None else max(0.0, until - time.monotonic())

    def settle(self, ready: set[int]) -> None:
        """Do what the descriptors that became ready, and the time, ask for."""
        for pidfd in ready & self.kept.keys():
            self.reap(pidfd)
        now = time.monotonic()
        for kept in self.kept.values():
            if not kept.closing and kept.call.fileno() in ready:
                # The caller cancelled or is gone; the keeper knows too, but its tool may have stopped it.
                kept.closing = True
                kept.kill_at = min(kept.kill_at, now + GRACE_S)
            if now >= kept.kill_at:
                tree.kill(kept.pid)
                kept.kill_at = now + GRACE_S  # unless a driver holds it, it is gone long before
                kept.late = not kept.closing
        self.strays = self.strays and self.swept_strays()
        self.answer_deserted(now)

    def reap(self, pidfd: int) -> None:
        """A keeper ended. One that was killed left its tree to us, and its caller without an answer."""
        kept = self.kept.pop(pidfd)
        _, status = os.waitpid(kept.pid, 0)
        os.close(pidfd)
        self.strays = True  # it may have left some
        if status == 0:
            kept.call.close()
            return
        why: FaultName = "cancelled" if kept.closing else "timeout" if kept.late else "crashed"
        self.deserted.append(Deserted(kept.call, why, time.monotonic() + SWEEP_S))

    def answer_deserted(self, now: float) -> None:
        ready = [one for one in self.deserted if not self.strays or now >= one.answer_at]
        for one in ready:
            answer(one.call, fault(one.why, "its keeper was ended, and all that it started"))
            self.deserted.remove(one)

    def swept_strays(self) -> bool:
        """Kill what keepers left to us; True if some of it is still there."""
        for _ in range(SWEEPS):
            # Looked at twice: while some end, the kernel's list may miss others.
            strays = self.strays_now() or self.strays_now()
            if not strays:
                return False
            for pid in strays:
                tree.kill(pid)
                os.waitpid(pid, os.WNOHANG)
        return True

    def strays_now(self) -> set[int]:
        return set(tree.children(os.getpid())) - {kept.pid for kept in self.kept.values()}

    @property
    def busy(self) -> bool:
        """Whether some call has not been answered."""
        return bool(self.kept or self.deserted)

    def end_all(self) -> None:
        """Kill every keeper, and what is below them, which comes to us as they die."""
        tree.sweep(2 * SWEEP_S)
        for pidfd, kept in self.kept.items():
            os.close(pidfd)
            kept.call.close()
        self.kept.clear()


def answer(call: socket.socket, result: Result) -> None:
    """Send a result in place of a keeper, and close the call."""
    with call:
        try:
            call.send(json.encode(result))
        except OSError:
            return
