"""What was accepted of each peer, as a file beside the configuration. Reads and writes files; judges nothing.

Beside the configuration, not in the state: it is a person's word like the rest there, and must outlive a lost state.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from rea_edge.config import Settings
from rea_edge.errors import OperatorError
from rea_edge.pins import Pin

FOLDER = "peers"
MOST_BYTES = 512 * 1024


def pins_folder(settings: Settings) -> Path:
    return settings.files[0].parent / FOLDER


def pin_file(folder: Path, name: str) -> Path:
    return folder / f"{name}.json"


def read_pin(folder: Path, name: str) -> Pin | None:
    """What was accepted of this peer, or None. Raises OperatorError for a file that cannot be read."""
    file = pin_file(folder, name)
    try:
        with file.open("rb") as opened:
            return msgspec.json.decode(opened.read(MOST_BYTES), type=Pin)
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise OperatorError(f"{file} cannot be read: {exc.strerror}") from exc
    except msgspec.MsgspecError as exc:
        raise OperatorError(f"{file} is not what `rea-edge peers accept` writes: {exc}") from exc


def write_pin(folder: Path, name: str, pin: Pin) -> Path:
    """Put it in the place of what was accepted before, whole or not at all. Raises OperatorError."""
    file = pin_file(folder, name)
    new = file.with_suffix(".new")
    try:
        folder.mkdir(exist_ok=True)
        with new.open("wb") as opened:
            opened.write(msgspec.json.format(msgspec.json.encode(pin), indent=1) + b"\n")
            opened.flush()
            os.fchmod(opened.fileno(), 0o644)  # no secret, and the daemon has a user of its own
            os.fsync(opened.fileno())
        new.replace(file)
        with suppress(OSError):  # some file systems have no such thing
            _sync_folder(folder)
    except OSError as exc:
        raise OperatorError(f"{file} cannot be written: {exc.strerror}; it stands beside the configuration") from exc
    return file


def stamp(folder: Path, names: Iterable[str]) -> tuple[tuple[int, int], ...]:
    """Changes when any of the files does."""
    found: list[tuple[int, int]] = []
    for name in names:
        try:
            seen = pin_file(folder, name).stat()
            found.append((seen.st_mtime_ns, seen.st_ino))
        except OSError:
            found.append((0, 0))
    return tuple(found)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
