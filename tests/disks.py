"""Small disks for tests, mounted where a state folder is to be: one that can be filled, one that can fail and come back.

They need root; without it, or where mounting is not allowed, a test is skipped and says so. Hold no assertions.
"""

import fcntl
import os
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.brokers import wait_until

FS_IOC_SHUTDOWN = 0x8004587D
NO_LOG_FLUSH = 2
IMAGE_MIB = 16


class Full:
    """A disk in memory, of a few MiB, that `fill` leaves no room on."""

    def __init__(self, mount: Path) -> None:
        self._filler = mount / "filler"

    def fill(self) -> None:
        with self._filler.open("ab", buffering=0) as file, suppress(OSError):
            while file.write(b"x" * 4096):
                pass

    def free(self) -> None:
        self._filler.unlink()


class Failing:
    """An ext4 on a device of its own. After `fail` or `stop_writing` nothing is written any more, until `mend`."""

    def __init__(self, device: str, mount: Path) -> None:
        self._device = device
        self._mount = mount

    def fail(self) -> None:
        """Every access is an I/O error from now on, and what was not flushed is lost."""
        fd = os.open(self._mount, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, FS_IOC_SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
        finally:
            os.close(fd)

    def stop_writing(self) -> None:
        """It is read-only from now on, as a card that the kernel has given up."""
        _run("mount", "-o", "remount,abort", str(self._mount))

    def mend(self) -> None:
        """Take it out and put it in again; nobody may use it meanwhile."""
        self.take_out()
        self.put_in()

    def take_out(self) -> None:
        wait_until(lambda: _tries("umount", str(self._mount)), "nobody uses the disk", 10)

    def put_in(self) -> None:
        # Only replays its journal, as a kernel does; an answer of 1 says that it mended something.
        subprocess.run(["e2fsck", "-p", self._device], capture_output=True, check=False)
        _run("mount", self._device, str(self._mount))


@contextmanager
def full(mount: Path, mib: int = 3) -> Iterator[Full]:
    mount.mkdir(exist_ok=True)
    _need("mount", "-t", "tmpfs", "-o", f"size={mib}m", "none", str(mount))
    try:
        yield Full(mount)
    finally:
        _run("umount", "-l", str(mount))


@contextmanager
def failing(mount: Path) -> Iterator[Failing]:
    mount.mkdir(exist_ok=True)
    image = mount.with_name(f"{mount.name}.image")
    with image.open("wb") as file:
        file.truncate(IMAGE_MIB << 20)
    _run("mkfs.ext4", "-q", str(image))
    device = _need("losetup", "--find", "--show", str(image)).strip()
    try:
        _need("mount", device, str(mount))
        yield Failing(device, mount)
    finally:
        _tries("umount", "-l", str(mount))
        _run("losetup", "--detach", device)


def _need(*words: str) -> str:
    """Run what not every machine lets us."""
    try:
        return _run(*words)
    except (OSError, subprocess.CalledProcessError) as error:
        reason = f"NOT SHOWN: {words[0]} is not allowed here (root is needed): {getattr(error, 'stderr', error)}"
        pytest.skip(reason)


def _run(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def _tries(*words: str) -> bool:
    return subprocess.run(words, capture_output=True, check=False).returncode == 0
