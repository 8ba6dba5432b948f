"""Commands under which a program is killed, or gets an error, at the n-th call that it makes on the files of a state.

strace counts each system call of each thread for itself. Holds no tests.
"""

import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.brokers import wait_until
from tests.durability.recording import strace_program

KILL = "signal=KILL"
_CALLS = "openat,write,pwrite64,ftruncate,fsync,fdatasync,?rename,renameat,renameat2,?unlink,unlinkat,?mkdir,mkdirat"
_FILES = ("", "lock", "state.db", "state.db-wal", "state.db-journal", "state.id", "state.id.new", "state.seen")
_NAME = re.compile(r"^(\d+) +(\w+)\(")


def watching(state: Path, trace: Path) -> list[str]:
    """Note each call on the files of this state folder; `counted` tells how many there were."""
    return [*_strace(state, trace), "-e", f"trace={_CALLS}"]


def counted(trace: Path) -> Counter[str]:
    """Calls by name, of the thread that made the most: each thread is counted for itself."""
    by_thread = Counter(found.groups() for line in trace.read_text().splitlines() if (found := _NAME.match(line)))
    most = Counter[str]()
    for (_, call), count in by_thread.items():
        most[call] = max(most[call], count)
    return most


def tampering(state: Path, trace: Path, call: str, number: int | str, what: str) -> list[str]:
    """At call number `number` (from 1; `3+`: from the third on), do this instead: `KILL`, or `error=EIO`."""
    return [*_strace(state, trace), "-e", f"trace={call}", "-e", f"inject={call}:{what}:when={number}"]


def tampered(trace: Path) -> bool:
    """Whether an error was given (a kill is seen by how the program ended)."""
    return "(INJECTED)" in trace.read_text()


def _strace(state: Path, trace: Path) -> list[str]:
    return [strace_program(), "-f", "-qq", "-o", str(trace), *_paths(state)]


def _paths(state: Path) -> Iterator[str]:
    for name in _FILES:
        yield from ("-P", str(state / name))


@contextmanager
def attached(pid: int, state: Path, trace: Path, call: str, number: int | str, what: str) -> Iterator[None]:
    """Tamper so with a process that runs already; calls are counted from now on, by thread."""
    argv = [*tampering(state, trace, call, number, what), "-p", str(pid)]
    tracer = subprocess.Popen(argv, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: _traced(pid) or tracer.poll() is not None, "strace is attached", 10)
        if tracer.poll() is not None:
            pytest.skip("NOT SHOWN: strace may not attach to a process here (kernel.yama.ptrace_scope)")
        yield
    finally:
        tracer.terminate()
        tracer.wait()


def _traced(pid: int) -> bool:
    """Every thread of it."""
    threads = [status.read_text() for status in Path(f"/proc/{pid}/task").glob("*/status")]
    return all("TracerPid:\t0\n" not in status for status in threads)
