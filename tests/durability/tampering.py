"""Commands under which a program is killed, or gets an error, at the n-th call that it makes on the files of a state.

strace counts each system call for itself. Holds no tests.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.durability.recording import strace_program

KILL = "signal=KILL"
_CALLS = "openat,write,pwrite64,ftruncate,fsync,fdatasync,?rename,renameat,renameat2,?unlink,unlinkat,?mkdir,mkdirat"
_FILES = ("", "lock", "state.db", "state.db-wal", "state.db-journal", "state.id", "state.id.new", "state.seen")
_NAME = re.compile(r"^(?:\d+ +)?(\w+)\(")


def watching(state: Path, trace: Path) -> list[str]:
    """Note each call on the files of this state folder; `counted` tells how many there were."""
    return [*_strace(state, trace), "-e", f"trace={_CALLS}"]


def counted(trace: Path) -> Counter[str]:
    return Counter(found[1] for line in trace.read_text().splitlines() if (found := _NAME.match(line)))


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
