"""What a step writes to the disk: bytes, writes and flushes, counted by the block device under an ext4 in a file.

`python -m tests.bench.writes [STEPS]`, as root. Not a test: a loop device is needed, and figures depend on the kernel.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from rea_edge.records import EffectClass
from tests.store.children import ROOT

IMAGE_MIB = 64


class Written(Struct, frozen=True):
    writes: int
    bytes: int
    flushes: int


def counted(device: Path) -> Written:
    fields = [int(word) for word in (Path("/sys/block") / device.name / "stat").read_text().split()]
    return Written(writes=fields[4], bytes=fields[6] * 512, flushes=fields[15])


@contextmanager
def disk(folder: Path) -> Iterator[tuple[Path, Path]]:
    """An ext4 of its own: the device and where it is mounted."""
    image, mount = folder / "image", folder / "mount"
    mount.mkdir()
    with image.open("wb") as file:
        file.truncate(IMAGE_MIB << 20)
    run("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", str(image))
    device = Path(run("losetup", "--find", "--show", str(image)).strip())
    try:
        run("mount", str(device), str(mount))
        try:
            yield device, mount
        finally:
            run("umount", str(mount))
    finally:
        run("losetup", "--detach", str(device))


def run(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def of_steps(effect: EffectClass, steps: int) -> Written:
    """What so many steps write, each a question, an answer and a call of a tool of this effect."""
    with tempfile.TemporaryDirectory() as name, disk(Path(name)) as (device, mount):
        words = [sys.executable, "-m", "tests.store.steps", str(mount / "state"), effect, str(steps)]
        child = subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        with child:
            assert child.stdout is not None and child.stdin is not None
            seen = []
            for mark in ("begin\n", "end\n"):
                assert child.stdout.readline() == mark
                seen.append(counted(device))
                child.stdin.write("\n")
                child.stdin.flush()
    before, after = seen
    return Written(after.writes - before.writes, after.bytes - before.bytes, after.flushes - before.flushes)


def main(steps: int) -> None:
    effects: tuple[EffectClass, ...] = ("read", "once")
    for effect in effects:
        found = of_steps(effect, steps)
        print(
            f"{effect:>5}: {found.bytes / steps / 1024:5.1f} KiB, {found.writes / steps:4.1f} writes, "
            f"{found.flushes / steps:4.2f} flushes a step ({steps} steps)"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
