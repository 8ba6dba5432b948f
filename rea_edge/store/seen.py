"""How far the state had come when it was last heard of: a witness beside the database, written without a flush.

SQLite drops what it cannot read in a WAL without a word, and takes a deleted WAL or an old copy of the file for the
truth. This file is written after each commit, so it never claims more than is on disk; a power cut may leave it
older. What it claims and the database does not have, was acknowledged and is lost.
"""

import os
import zlib
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

FILE = "state.seen"


class Seen(Struct, frozen=True):
    """In the state `epoch`, rows up to `newest` were in use, and the run `row` had `seq` events."""

    epoch: str
    newest: int
    row: int
    seq: int


class Witness:
    """Holds the file open. Losing it, or failing to write it, loses a check and nothing else."""

    def __init__(self, folder: Path) -> None:
        self._fd = os.open(folder / FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def write(self, seen: Seen) -> None:
        text = f"{seen.epoch} {seen.newest} {seen.row} {seen.seq}"
        line = f"{text} {zlib.crc32(text.encode())}"
        with suppress(OSError):  # the commit has been made, and holds without its witness
            os.pwrite(self._fd, f"{line:<127}\n".encode(), 0)  # one sector, always the same length

    def read(self) -> Seen | None:
        """What was last written, or None if nothing readable is there."""
        return _read(os.pread(self._fd, 128, 0))

    def close(self) -> None:
        os.close(self._fd)


def last_seen(folder: Path) -> Seen | None:
    """As `Witness.read`, by somebody who only looks."""
    with suppress(FileNotFoundError):
        return _read((folder / FILE).read_bytes()[:128])
    return None


def _read(content: bytes) -> Seen | None:
    text, _, crc = content.decode("ascii", "replace").strip().rpartition(" ")
    fields = text.split(" ")
    if len(fields) != 4 or crc != str(zlib.crc32(text.encode())):
        return None
    epoch, newest, row, seq = fields
    return Seen(epoch, int(newest), int(row), int(seq))
