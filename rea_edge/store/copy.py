"""Reading a state that a daemon may have open, or one that was set aside: from a copy of the file and its WAL.

Never used in the process that has the store open: reading the file would drop that one's lock.
"""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType

from rea_edge.errors import StoreUnusable
from rea_edge.store.checking import Inspection, foreign
from rea_edge.store.database import Database, SqlFailed
from rea_edge.store.layout import FILE, update_tables

_TRIES = 5
_SUFFIXES = ("", "-wal")


class StoreCopy(Inspection):
    """A copy as it was at one moment; reading leaves out what is damaged, and `damage` names it.

    Raises `StoreUnusable` if there is no state, or none that can be read at all. Closed by `close` or `with`.
    """

    def __init__(self, path: Path) -> None:
        """`path` is a folder or a file in it."""
        with ExitStack() as undo:
            try:
                copy = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="rea-edge-")))
                copy_state(path, copy)
                db = Database(copy / FILE, busy_s=1.0)
                undo.callback(db.close)
                if why := foreign(db):
                    raise StoreUnusable(f"{state_file(path)}: {why}")
                update_tables(db)
                super().__init__(db)
                self.epoch = self.meta_get("epoch") or ""
                self.lost = self.meta_get("lost")
                self.inspect(finished=True)
            except (OSError, SqlFailed) as error:
                raise StoreUnusable(f"{state_file(path)}: {error}") from error
            self._undo = undo.pop_all()

    @property
    def damage(self) -> Sequence[str]:
        """What cannot be read, by name, without repetition; empty if all is well."""
        return list(dict.fromkeys((*self.needed, *self.spared)))

    @contextmanager
    def _held(self) -> Iterator[Database]:
        try:
            yield self._db
        except SqlFailed as error:
            raise StoreUnusable(f"{FILE}: {error}") from error

    def close(self) -> None:
        self._undo.close()

    def __enter__(self) -> "StoreCopy":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def state_file(path: Path) -> Path:
    """The state that is meant by a folder or by a file."""
    try:
        return path / FILE if path.is_dir() else path
    except OSError as error:
        raise StoreUnusable(f"{path} cannot be read: {error.strerror}") from error


def copy_state(path: Path, target: Path, *, wal_too: bool = False) -> None:
    """File and WAL as of one moment into the folder `target`: again, if a checkpoint or a commit came in between.

    Raises `StoreUnusable` where there is no file; `wal_too`: a WAL without its file is enough.
    """
    source = state_file(path)
    for _ in range(_TRIES):
        before = _stamps(source)
        for suffix in _SUFFIXES:
            if (found := source.with_name(source.name + suffix)).exists():
                shutil.copyfile(found, target / (FILE + suffix))
            else:
                (target / (FILE + suffix)).unlink(missing_ok=True)
        if _stamps(source) == before:
            break
    else:
        raise StoreUnusable(f"{source} changes faster than it can be copied; ask the daemon instead")
    if not (target / FILE).exists() and not (wal_too and (target / f"{FILE}-wal").exists()):
        raise StoreUnusable(f"there is no state file {source}")


def _stamps(source: Path) -> list[tuple[int, int] | None]:
    return [_stamp(source.with_name(source.name + suffix)) for suffix in _SUFFIXES]


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_mtime_ns, found.st_size
