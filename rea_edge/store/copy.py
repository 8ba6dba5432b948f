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
from rea_edge.store.layout import FILE

_TRIES = 5


class StoreCopy(Inspection):
    """A copy as it was at one moment; reading leaves out what is damaged, and `damage` names it.

    Raises `StoreUnusable` if there is no state, or none that can be read at all. Closed by `close` or `with`.
    """

    def __init__(self, folder: Path) -> None:
        with ExitStack() as undo:
            try:
                copy = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="rea-edge-")))
                _copy(folder, copy)
                db = Database(copy / FILE, busy_s=1.0)
                undo.callback(db.close)
                if why := foreign(db):
                    raise StoreUnusable(f"{folder / FILE}: {why}")
                super().__init__(db)
                self.epoch = self.meta_get("epoch") or ""
                self.lost = self.meta_get("lost")
                self.inspect(finished=True)
            except (OSError, SqlFailed) as error:
                raise StoreUnusable(f"{folder / FILE}: {error}") from error
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


def _copy(source: Path, target: Path) -> None:
    """Both files as of one moment: again, if a checkpoint or a commit came in between."""
    names = (FILE, f"{FILE}-wal")
    for _ in range(_TRIES):
        before = [_stamp(source / name) for name in names]
        for name in names:
            if (source / name).exists():
                shutil.copyfile(source / name, target / name)
            else:
                (target / name).unlink(missing_ok=True)
        if [_stamp(source / name) for name in names] == before:
            break
    else:
        raise StoreUnusable(f"{source / FILE} changes faster than it can be copied; ask the daemon instead")
    if not (target / FILE).exists():
        raise StoreUnusable(f"there is no {FILE} in {source}")


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_mtime_ns, found.st_size
