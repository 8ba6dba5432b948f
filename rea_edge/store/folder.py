"""The state folder: its lock, its sentinel, and where damaged files are moved.

Closing any descriptor of `state.db` drops SQLite's lock on it; renaming it and asking for its size do not. So nothing
here opens it but `read_through`, for a connection that is given up.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rea_edge.errors import StoreBusy
from rea_edge.store.layout import FILE

SENTINEL = "state.id"
_SUFFIXES = ("", "-wal", "-journal", "-shm")


class FolderLock:
    """Held by one process at a time, for as long as that process lives or until `release`."""

    def __init__(self, folder: Path, busy_s: float) -> None:
        """Waits `busy_s`, then raises `StoreBusy` naming the process that holds it; `OSError` where it cannot be."""
        self._fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        deadline = time.monotonic() + busy_s
        while not self._try():
            if time.monotonic() >= deadline:
                holder = _holder(self._fd)
                self.release()
                raise StoreBusy(f"{folder} is in use by process {holder}")
            time.sleep(0.05)
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        os.close(self._fd)

    def _try(self) -> bool:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


@contextmanager
def kept_free(folder: Path) -> Iterator[None]:
    """No daemon begins to use this folder meanwhile. Raises `StoreBusy` if one does already. Writes nothing."""
    try:
        fd = os.open(folder / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield  # a copy, or what was set aside
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise StoreBusy(f"{folder} is in use by process {_holder(fd)}") from None
    finally:
        os.close(fd)


def read_sentinel(folder: Path) -> str | None:
    """The epoch that the folder should hold, as written, or None if it never held any."""
    try:
        return (folder / SENTINEL).read_bytes().decode("ascii", "replace").strip()
    except FileNotFoundError:
        return None


def write_sentinel(folder: Path, epoch: str) -> None:
    """Replace it in one step; on disk, with its directory and those above it, when this returns."""
    new = folder / f"{SENTINEL}.new"
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, f"{epoch}\n".encode())
        os.fsync(fd)
    finally:
        os.close(fd)
    os.replace(new, folder / SENTINEL)
    sync_folder(folder)
    for above in folder.absolute().parents:
        # They may have been made for this state, and it goes if they go. What we may not read was there before us.
        with suppress(OSError):
            sync_folder(above)


def sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def size_of(path: Path) -> int | None:
    """Bytes of a file, None if there is none. Does not open it."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None


def free_bytes(path: Path) -> int:
    """What the disk of a file can still take of ours."""
    disk = os.statvfs(path)
    return disk.f_bavail * disk.f_frsize


def read_through(folder: Path) -> None:
    """Raises `OSError` if the disk does not give the files: SQLite calls that damage, and it is none."""
    for suffix in ("", "-wal"):
        path = folder / (FILE + suffix)
        if path.exists():
            with path.open("rb") as file:
                while file.read(1 << 16):
                    pass


def set_aside(folder: Path, why: str) -> Path:
    """Move the database and its WAL into a folder of their own, `broken-N`, with the reason; nothing is deleted.

    Move first, close the connection afterwards: closing would write to the database and delete the WAL. The database
    goes first: a WAL that a crash leaves behind belongs to the newest `broken-N`, and joins it there.
    """
    aside = _place_for(folder)
    noted = aside / "why.new"
    if not noted.exists():
        noted.write_text(why + "\n", encoding="utf-8")
    for suffix in _SUFFIXES:
        source = folder / (FILE + suffix)
        if source.exists():
            source.rename(aside / source.name)
    noted.rename(aside / "why")  # from now on nothing else belongs in there
    sync_folder(aside)
    sync_folder(folder)
    return aside


def _holder(lock: int) -> str:
    return os.pread(lock, 32, 0).decode("ascii", "replace").strip() or "unknown"


def holder_of(path: Path) -> str:
    """The process that has a lock on a file, by the kernel's list; the file is not opened."""
    try:
        inode = str(path.stat().st_ino)
        locks = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:
        return "unknown"
    for fields in map(str.split, locks):
        if len(fields) >= 6 and fields[1] == "POSIX" and fields[5].split(":")[-1] == inode:
            return fields[4]
    return "unknown"


def _place_for(folder: Path) -> Path:
    numbers = [int(name.name[7:]) for name in folder.glob("broken-*") if name.name[7:].isdigit()]
    newest = max(numbers, default=0)
    last = folder / f"broken-{newest}"
    # Without `why`: a crash came before all was moved. A file that is there already is never written over.
    if newest and not (last / "why").exists() and None in (size_of(folder / FILE), size_of(last / FILE)):
        return last
    aside = folder / f"broken-{newest + 1}"
    aside.mkdir(mode=0o700)
    sync_folder(folder)  # before anything is moved into it
    return aside
