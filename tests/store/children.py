"""Programs that tests run as processes of their own, so that they can be killed, limited and traced."""

import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import rea_edge
from rea_edge.errors import StoreBroken, StoreFull, StoreUnusable
from rea_edge.store import Store

LIFE_S = 60.0
ROOT = Path(rea_edge.__file__).parents[1]


def command(program: str, folder: Path, *args: str) -> list[str]:
    return [sys.executable, "-m", "tests.store.children", program, str(folder), *args]


@contextmanager
def running(argv: list[str]) -> Iterator["subprocess.Popen[str]"]:
    """A process and its output; killed, with its children, when the block ends or after `LIFE_S`."""
    child = subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True)

    def kill() -> None:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)

    deadline = threading.Timer(LIFE_S, kill)
    deadline.start()
    try:
        yield child
    finally:
        deadline.cancel()
        kill()
        child.wait()
        assert child.stdout is not None
        child.stdout.close()


def read_until(child: "subprocess.Popen[str]", last: str) -> None:
    """Read what a child says up to a line that begins so; fails if it ends before."""
    assert child.stdout is not None
    said = []
    while line := child.stdout.readline():
        said.append(line)
        if line.startswith(last):
            return
    raise AssertionError(f"the child ended before it said {last!r}: {said[-3:]}")


def output_of(argv: list[str]) -> list[str]:
    with running(argv) as child:
        out, _ = child.communicate()
        return out.splitlines()


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


def commit(folder: Path, rounds: str) -> None:
    """Commit runs, events and messages, and say each when it has returned."""
    store = Store.open(folder)
    say(f"open {store.lost}")
    for number in range(int(rounds)):
        with store.transaction() as tx:
            run, _ = tx.add_run("task", "me", f"t{number}", "sha256:0", b"request", 1.0)
            tx.put("reply", f"reply/{number}", b"accepted")
        say(f"run {run.row}")
        for seq in range(4):
            with store.transaction() as tx:
                tx.append(run.row, seq, [f"{run.row}.{seq}".encode() * 200], 2.0)
                tx.put("state", f"state/{run.row}", b"%d" % seq, retain=True)
            say(f"event {run.row} {seq}")
        if number % 2:
            with store.transaction() as tx:
                tx.append(run.row, 4, [b"end"], 3.0)
                tx.set_state(run.row, "ended", "achieved", 3.0)
            say(f"ended {run.row}")
    say("done")
    signal.pause()  # until killed: a store that is not closed


def hold(folder: Path) -> None:
    try:
        store = Store.open(folder)
    except StoreUnusable as error:
        return say(f"{type(error).__name__} {error}")
    say(f"open {store.lost}")
    return signal.pause()


def steady(folder: Path, rounds: str) -> None:
    """Commits between two marks, for whoever counts system calls. The WAL has its room by then."""
    store = Store.open(folder)
    with store.transaction() as tx:
        run, _ = tx.add_run("task", "me", "t", "sha256:0", b"request", 1.0)
    seq = 0
    while store.wal_bytes() < 1 << 20:
        with store.transaction() as tx:
            tx.append(run.row, seq, [b"x" * 4000], 2.0)
        seq += 1
    store.idle()
    with store.transaction() as tx:
        tx.append(run.row, seq, [b"x"], 2.0)
    os.path.exists("/mark-begin")  # seen by strace as a stat
    for number in range(seq + 1, seq + 1 + int(rounds)):
        with store.transaction() as tx:
            tx.append(run.row, number, [b"x" * 400], 2.0)
            row = tx.put("state", "state", b"y" * 400, retain=True)
        store.sent([row])
    os.path.exists("/mark-end")
    store.close()


def short_of_room(folder: Path, limit_bytes: str) -> None:
    """Commit until the limit of file size is met; say what comes of it, and what comes of the next use."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    store = Store.open(folder)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit_bytes), resource.RLIM_INFINITY))
    _until_it_fails(store)


def until_it_fails(folder: Path) -> None:
    """Commit until somebody from outside makes a system call fail."""
    store = Store.open(folder)
    say("open")
    _until_it_fails(store)


def _until_it_fails(store: Store) -> None:
    for number in range(2000):
        try:
            with store.transaction() as tx:
                run, _ = tx.add_run("task", "me", f"t{number}", "sha256:0", b"x" * 3000, 1.0)
            say(f"run {run.row}")
        except (StoreFull, StoreBroken) as error:
            say(f"{type(error).__name__} {error}")
            break
    try:
        say(f"then {store.count_waiting()}")
    except StoreBroken as error:
        say(f"then {type(error).__name__} {error}")


PROGRAMS: dict[str, Callable[..., None]] = {
    "commit": commit,
    "hold": hold,
    "steady": steady,
    "short_of_room": short_of_room,
    "until_it_fails": until_it_fails,
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
