"""A disk whose power may go after any operation: what was synced is there, what was not may be, in part, or torn.

Two kinds: `posix` promises no more than the standard says (each folder entry for itself); `ext4` keeps the order of
folder changes, and a sync that has to write its journal brings along all changes before it. Holds no checks.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct, field

from tests.durability.recording import Cut, Made, Operation, Renamed, Said, Synced, Unlinked, Wrote

SECTOR_BYTES = 512
Kind = Literal["posix", "ext4"]
Change = Wrote | Cut
Entry = Made | Renamed | Unlinked


class State(Struct, frozen=True):
    """What is found after a power cut: files with their bytes, folders with None.

    `said` is known outside; `perhaps` was said while the power went, and may be true or not.
    """

    files: dict[str, bytes | None]
    said: tuple[str, ...]
    point: int
    perhaps: tuple[str, ...] = ()

    def build(self, base: Path) -> None:
        for name, data in sorted(self.files.items()):
            path = base / name
            if data is None:
                path.mkdir()
            else:
                path.write_bytes(data)


class File(Struct, eq=False):
    durable: bytes = b""
    pending: list[Change] = field(default_factory=list)

    def content(self, changes: Sequence[Change]) -> bytes:
        """What is durable with these changes made to it."""
        if not changes:
            return self.durable
        content = bytearray(self.durable)
        for change in changes:
            _write(content, change)
        return bytes(content)


Tree = dict[str, File | None]


class Disk:
    """Takes operations in order and tells what a power cut after the last of them may leave."""

    def __init__(self, kind: Kind, base: Path) -> None:
        self._kind = kind
        self._durable: Tree = {}
        for path in sorted(base.rglob("*")):
            name = str(path.relative_to(base))
            self._durable[name] = None if path.is_dir() else File(path.read_bytes())
        self._live = dict(self._durable)
        self._pending: list[tuple[Entry, File | None]] = []

    def apply(self, operation: Operation) -> None:
        match operation:
            case Made(path=path, folder=folder):
                self._enter(operation, None if folder else File())
            case Wrote(path=path) | Cut(path=path):
                file = self._live.get(path)
                if file is not None:  # else it was unlinked, and nobody will read it again
                    file.pending.append(operation)
            case Synced(path=path, whole=whole):
                self._sync(path, whole)
            case Renamed(old=path) | Unlinked(path=path):
                self._enter(operation, self._live[path])
            case Said():
                pass

    def whole(self) -> dict[str, bytes | None]:
        """Nothing of it is lost: what a kill of the process leaves."""
        return self._rebuilt(self._pending, lambda file: file.pending)

    def cuts(self, chance: random.Random, count: int) -> Iterator[dict[str, bytes | None]]:
        """All, nothing, entries only, data only; then `count` drawn at random."""
        yield self.whole()
        yield self._rebuilt([], lambda file: [])
        yield self._rebuilt(self._pending, lambda file: [])
        yield self._rebuilt([], lambda file: file.pending)
        for _ in range(count):
            entries = self._pending[: chance.randint(0, len(self._pending))]
            if self._kind == "posix" and chance.random() < 0.3:
                entries = [entry for entry in self._pending if chance.random() < 0.5]
            yield self._rebuilt(entries, _chooser(chance))

    def _enter(self, entry: Entry, file: File | None) -> None:
        _change(self._live, entry, file)
        self._pending.append((entry, file))

    def _sync(self, path: str, whole: bool) -> None:
        file = None if path == "." else self._live.get(path)
        if file is None:
            self._settle(lambda entry: self._kind == "ext4" or path in _folders_of(entry))
            return
        before = len(file.durable)
        file.durable = file.content(file.pending)
        file.pending.clear()
        if self._kind == "ext4" and (whole or len(file.durable) != before):
            self._settle(lambda entry: True)

    def _settle(self, settled: Callable[[Entry], bool]) -> None:
        kept = []
        for entry, file in self._pending:
            if settled(entry):
                _change(self._durable, entry, file)
            else:
                kept.append((entry, file))
        self._pending = kept

    def _rebuilt(
        self, entries: Sequence[tuple[Entry, File | None]], chosen: Callable[[File], Sequence[Change]]
    ) -> dict[str, bytes | None]:
        tree = dict(self._durable)
        for entry, file in entries:
            _change(tree, entry, file)
        found: dict[str, bytes | None] = {}
        for name, file in tree.items():
            # An entry in a folder that is not there itself can be read by nobody.
            if all(str(parent) in tree for parent in Path(name).parents if str(parent) != "."):
                found[name] = None if file is None else file.content(chosen(file))
        return found


def explore(
    operations: Sequence[Operation], kind: Kind, base: Path, draws: int, *, seed: int, share: float = 1.0
) -> Iterator[State]:
    """The different states that a power cut during these operations may leave, from the files of `base` on.

    After each operation four fixed ones and `draws` at random; of all, only a random `share` is given.
    """
    disk = Disk(kind, base)
    chance = random.Random(seed)
    said: tuple[str, ...] = ()
    seen: set[int] = set()
    for point, operation in enumerate(operations):
        disk.apply(operation)
        if isinstance(operation, Said):
            said = (*said, operation.line)
        if chance.random() >= share:
            continue
        for files in disk.cuts(chance, draws):
            mark = hash((said, frozenset(files.items())))
            if mark not in seen:
                seen.add(mark)
                yield State(files, said, point)


def _folders_of(entry: Entry) -> set[str]:
    """Where a change must be synced. One over two folders is kept as soon as either is synced, as file systems do."""
    match entry:
        case Renamed(old=old, new=new):
            return {str(Path(old).parent), str(Path(new).parent)}
        case Made(path=path) | Unlinked(path=path):
            return {str(Path(path).parent)}


def _change(tree: Tree, entry: Entry, file: File | None) -> None:
    match entry:
        case Made(path=path):
            tree[path] = file
        case Unlinked(path=path):
            if tree.get(path) is file:
                tree.pop(path, None)
        case Renamed(old=old, new=new):
            if tree.get(old) is file:
                tree.pop(old, None)
            tree[new] = file


def _write(content: bytearray, change: Change) -> None:
    match change:
        case Wrote(offset=offset, data=data):
            content.extend(bytes(max(0, offset - len(content))))
            content[offset : offset + len(data)] = data
        case Cut(size=size):
            del content[size:]
            content.extend(bytes(size - len(content)))


def _chooser(chance: random.Random) -> Callable[[File], Sequence[Change]]:
    """How much of a file's unsynced changes is there: up to some moment, some of them, or some of them in pieces."""
    how = chance.randrange(3)

    def chosen(file: File) -> Sequence[Change]:
        if how == 0:
            return file.pending[: chance.randint(0, len(file.pending))]
        kept = (([change] if chance.random() < 0.6 else _torn(chance, change, how)) for change in file.pending)
        return [piece for pieces in kept for piece in pieces]

    return chosen


def _torn(chance: random.Random, change: Change, how: int) -> Sequence[Change]:
    if how == 1 or isinstance(change, Cut):
        return []
    sectors = list(_sectors(change))
    match chance.randrange(3):
        case 0:
            return sectors[: chance.randint(0, len(sectors))]
        case 1:
            return [sector for sector in sectors if chance.random() < 0.5]
        case _:  # the file has got its length, but not all its data
            return [
                sector if chance.random() < 0.5 else Wrote(sector.path, sector.offset, bytes(len(sector.data)))
                for sector in sectors
            ]


def _sectors(wrote: Wrote) -> Iterator[Wrote]:
    start, end = wrote.offset, wrote.offset + len(wrote.data)
    while start < end:
        stop = min(end, (start // SECTOR_BYTES + 1) * SECTOR_BYTES)
        yield Wrote(wrote.path, start, wrote.data[start - wrote.offset : stop - wrote.offset])
        start = stop
