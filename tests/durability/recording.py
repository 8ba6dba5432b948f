"""What a program did to the files of a folder, in order, with the data, as strace saw it. Knows nothing of power cuts.

A call that changes files and is not understood here fails the recording: it must not be left out in silence.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import Struct

ROOT = Path(__file__).resolve().parent.parent.parent
INSTALL = "NOT SHOWN: strace is not installed (Debian: apt-get install strace)"

_UNDERSTOOD = (
    "openat,write,pwrite64,ftruncate,fsync,fdatasync,lseek,?rename,renameat,renameat2,?unlink,unlinkat,?mkdir,mkdirat"
)
_REFUSED = (
    "?open,?creat,truncate,writev,pwritev,?pwritev2,fallocate,?link,linkat,?symlink,symlinkat,?rmdir,sendfile,"
    "copy_file_range,sync_file_range,splice,mmap"
)
_LINE = re.compile(r"^(\w+)\((.*)\) += (-?\d+)")
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_FILE = re.compile(r"^\d+<((?:\\x[0-9a-f]{2})*)>")


class Made(Struct, frozen=True):
    """A file or a folder came into being."""

    path: str
    folder: bool = False


class Wrote(Struct, frozen=True):
    path: str
    offset: int
    data: bytes


class Cut(Struct, frozen=True):
    path: str
    size: int


class Synced(Struct, frozen=True):
    """`whole`: by fsync, which also waits for what is not needed to read the data."""

    path: str
    whole: bool


class Renamed(Struct, frozen=True):
    old: str
    new: str


class Unlinked(Struct, frozen=True):
    path: str


class Said(Struct, frozen=True):
    """A line on standard output: what the outside world knows from here on."""

    line: str


Operation = Made | Wrote | Cut | Synced | Renamed | Unlinked | Said


def strace_program() -> str:
    """The path of strace. Without it the test is skipped, loudly; where `CI` is set it fails."""
    found = shutil.which("strace")
    if found is not None:
        return found
    if os.environ.get("CI"):
        pytest.fail(INSTALL)
    pytest.skip(INSTALL)


def record(base: Path, trace: Path, module: str, *args: str) -> list[Operation]:
    """Run a module as a program of one thread; gives what it did below `base` and what it said."""
    reader = _Reader(base)  # sees what is there before
    done = subprocess.run(
        [strace_program(), "-qq", "-y", "-xx", "-s", "4000000", "-o", str(trace),
         "-e", f"trace={_UNDERSTOOD},{_REFUSED}", sys.executable, "-m", module, *args],
        cwd=ROOT, capture_output=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    with trace.open() as lines:
        return list(reader.operations(lines))


class _Reader:
    def __init__(self, base: Path) -> None:
        self._base = str(base)
        self._places: dict[str, int] = {}  # where the next `write` to an open file goes
        self._known = {str(path) for path in base.rglob("*")}

    def operations(self, lines: Iterator[str]) -> Iterator[Operation]:
        for line in lines:
            found = _LINE.match(line)
            if found is not None and int(found[3]) >= 0:
                yield from self._operation(found[1], found[2], int(found[3]))

    def _operation(self, call: str, args: str, result: int) -> Iterator[Operation]:
        names = [_plain(text).decode("utf-8", "replace") for text in _TEXT.findall(args)]
        opened = _FILE.match(args)
        path = _plain(opened[1]).decode() if opened else names[0] if names else ""
        if call == "write" and args.startswith("1<"):
            yield from (Said(line) for line in _plain(_TEXT.findall(args)[0]).decode().splitlines())
        if call == "mmap" and "MAP_SHARED" not in args:
            return
        if not any(name.startswith(self._base) for name in (path, *names, args)):
            return
        match call:
            case "openat":
                yield from self._opened(names[0], args)
            case "write" | "pwrite64":
                yield self._wrote(call, path, args, result)
            case "ftruncate":
                yield Cut(self._short(path), int(args.rsplit(",", 1)[1]))
            case "fsync" | "fdatasync":
                yield Synced(self._short(path), call == "fsync")
            case "lseek":
                self._places[path] = result
            case "rename" | "renameat" | "renameat2":
                self._known = {names[1] if known == names[0] else known for known in self._known}
                yield Renamed(self._short(names[0]), self._short(names[1]))
            case "unlink" | "unlinkat":
                self._known.discard(names[0])
                yield Unlinked(self._short(names[0]))
            case "mkdir" | "mkdirat":
                yield Made(self._short(names[0]), folder=True)
            case _:
                raise AssertionError(f"{call} is not understood: {args[:200]}")

    def _opened(self, path: str, args: str) -> Iterator[Operation]:
        self._places[path] = 0
        if "O_APPEND" in args:
            raise AssertionError(f"O_APPEND is not understood: {path}")
        if "O_CREAT" in args and path not in self._known:
            self._known.add(path)
            yield Made(self._short(path))
        elif "O_TRUNC" in args:
            yield Cut(self._short(path), 0)

    def _wrote(self, call: str, path: str, args: str, result: int) -> Wrote:
        data = _plain(_TEXT.findall(args)[0])[:result]
        if call == "pwrite64":
            return Wrote(self._short(path), int(args.rsplit(",", 1)[1]), data)
        offset = self._places[path]
        self._places[path] = offset + len(data)
        return Wrote(self._short(path), offset, data)

    def _short(self, path: str) -> str:
        return os.path.relpath(path, self._base)


def _plain(escaped: str) -> bytes:
    return bytes.fromhex(escaped.replace("\\x", ""))
