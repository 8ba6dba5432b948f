"""The power goes on a real ext4: the file system is shut down in the middle of commits, and replays its journal.

Needs root and a loop device. Says loudly where it cannot be shown.
"""

import fcntl
import os
import random
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from rea_edge.store import Store
from tests.durability import workload
from tests.durability.judging import STATE, Judge
from tests.durability.power import State
from tests.durability.recording import ROOT
from tests.durability.workload import STEPS, Snapshot, snapshot

SHUTDOWN = 0x8004587D  # FS_IOC_SHUTDOWN
NO_LOG_FLUSH = struct.pack("I", 2)
ROUNDS = 30

pytestmark = pytest.mark.slow


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.strip()


class Disk:
    """A new ext4 on a loop device."""

    def __init__(self, folder: Path) -> None:
        self.mounted = folder / "mounted"
        self.mounted.mkdir()
        image = folder / "image"
        run("truncate", "-s", "24M", str(image))
        run("mkfs.ext4", "-q", "-F", str(image))
        self._loop = run("losetup", "-f", "--show", str(image))

    def mount(self) -> None:
        run("mount", "-o", "noatime", self._loop, str(self.mounted))

    def cut_power(self) -> None:
        """Nothing reaches the device any more, nor does what it has not been asked to keep."""
        folder = os.open(self.mounted, os.O_RDONLY)
        try:
            fcntl.ioctl(folder, SHUTDOWN, NO_LOG_FLUSH)
        finally:
            os.close(folder)

    def unmount(self) -> None:
        run("umount", str(self.mounted))

    def close(self) -> None:
        with suppress(subprocess.CalledProcessError):
            run("umount", "-l", str(self.mounted))
        run("losetup", "-d", self._loop)


@contextmanager
def disk(folder: Path) -> Iterator[Disk]:
    if os.geteuid() != 0 or not shutil.which("mkfs.ext4") or not shutil.which("losetup"):
        pytest.skip("NOT SHOWN: a power cut on a real ext4 needs root, mkfs.ext4 and losetup")
    folder.mkdir()
    try:
        made = Disk(folder)
        made.mount()
    except subprocess.CalledProcessError as error:
        pytest.skip(f"NOT SHOWN: no ext4 can be mounted here: {error.stderr}")
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory: pytest.TempPathFactory) -> list[Snapshot]:
    store = Store.open(tmp_path_factory.mktemp("whole"))
    try:
        found = [snapshot(store)]
        for number in range(STEPS):
            workload.step(store, number)
            found.append(snapshot(store))
        return found
    finally:
        store.close()


def left_by_a_cut(made: Disk, chance: random.Random, *pragmas: str) -> State:
    """Run the workload, cut the power somewhere in it, mount again; gives what is there and what had been said."""
    argv = [sys.executable, "-m", "tests.durability.workload", str(made.mounted / STATE), str(STEPS), *pragmas]
    last = f"step {chance.randrange(1, STEPS)}\n"
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0) as child:
        assert child.stdout is not None
        said = b""
        while not said.endswith(last.encode()):
            said += child.stdout.read(1) or pytest.fail("the workload ended early")
        time.sleep(chance.random() * 0.004)  # the moment of the cut is what is drawn
        os.set_blocking(child.stdout.fileno(), False)
        said += child.stdout.read(10_000) or b""
        made.cut_power()
        # The kernel calls a sync good that is under way while it shuts down: what was said from here on may be untrue.
        os.set_blocking(child.stdout.fileno(), True)
        perhaps = child.stdout.readall()
    made.unmount()
    made.mount()
    files = {
        str(path.relative_to(made.mounted)): None if path.is_dir() else path.read_bytes()
        for path in made.mounted.rglob("*")
        if "lost+found" not in path.parts
    }
    return State(files, tuple(said.decode().splitlines()), 0, tuple(perhaps.decode().splitlines()))


def cut(tmp_path: Path, snapshots: list[Snapshot], *pragmas: str) -> list[str]:
    """What was wrong after each cut, in as many rounds as it takes to be sure."""
    chance = random.Random(1)
    judge = Judge(tmp_path / "judged", snapshots)
    wrong = []
    for number in range(ROUNDS):
        with disk(tmp_path / f"{number}") as made:
            wrong.append(judge.wrong(left_by_a_cut(made, chance, *pragmas)) or "")
        shutil.rmtree(tmp_path / f"{number}")
    return wrong


def test_no_power_cut_on_a_real_ext4_loses_anything_acknowledged(tmp_path: Path, snapshots: list[Snapshot]) -> None:
    assert cut(tmp_path, snapshots) == [""] * ROUNDS


def test_the_same_cuts_lose_commits_that_are_not_flushed(tmp_path: Path, snapshots: list[Snapshot]) -> None:
    assert "acknowledged steps are gone" in cut(tmp_path, snapshots, "synchronous = NORMAL")
