"""Opens what a power cut left, with the real store, and says what is wrong with it. Holds no tests."""

import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from rea_edge.errors import StoreUnusable
from rea_edge.store import Store
from tests.durability import workload
from tests.durability.power import State
from tests.durability.workload import Snapshot, snapshot

STATE = "var/state"  # of the folder that is recorded: two folders, which the store makes itself


class Known(Struct):
    """What the outside world knows: nothing of this may be gone."""

    epoch: str = ""
    steps: int = 0
    last: str = ""  # said of opening and closing
    losing: bool = False  # the state before this one was damaged, and that must stay said

    def heard(self, said: Sequence[str]) -> "Known":
        now = Known(self.epoch, self.steps, self.last, self.losing)
        for line in said:
            match line.split():
                case ["open", epoch, steps]:
                    now.epoch, now.steps, now.last = epoch, int(steps), "open"
                case ["step", number]:
                    now.steps = int(number)
                case [word]:
                    now.last = word
        return now


class Judge:
    """`kept` are files of a damaged state by name: none of them may be deleted or changed."""

    def __init__(
        self,
        place: Path,
        snapshots: Sequence[Snapshot],
        before: Known | None = None,
        kept: Mapping[str, bytes] | None = None,
    ) -> None:
        self._place = place
        self._snapshots = snapshots
        self._before = before or Known()
        self._kept = kept or {}

    def wrong(self, state: State) -> str | None:
        """What promise is broken in this state, or None. It is built, opened, written to, and opened again."""
        shutil.rmtree(self._place, ignore_errors=True)
        self._place.mkdir()
        state.build(self._place)
        folder = self._place / STATE
        try:
            store = Store.open(folder, busy_s=0.0)
        except StoreUnusable as error:
            return f"it does not open: {error}"
        try:
            known = self._before.heard(state.said)
            return (
                self._wrong_in(store, known, known.heard(state.perhaps))
                or self._deleted(folder)
                or self._does_not_stay(store, folder)
            )
        finally:
            store.close()

    def count(self, states: Iterable[State]) -> tuple[int, Counter[str]]:
        """How many states there were, and how often what was wrong."""
        count, wrong = 0, Counter[str]()
        for state in states:
            count += 1
            fault = self.wrong(state)
            if fault is not None:
                wrong[fault] += 1
        return count, wrong

    def _wrong_in(self, store: Store, known: Known, perhaps: Known) -> str | None:
        if known.losing and store.lost is None:
            return "a lost state is taken for a fresh one"
        if store.lost is not None and not known.losing:
            return f"a state is said to be lost: {store.lost}"
        if known.epoch and store.epoch != known.epoch:
            return "an acknowledged state is gone, and nothing says so"
        if known == perhaps and known.last in {"open", "closed"} and store.was_clean != (known.last == "closed"):
            return f"after {known.last!r} the last stop is taken for {'' if store.was_clean else 'un'}clean"
        found = snapshot(store)
        if found.steps < known.steps:
            return "acknowledged steps are gone"
        if found.steps > perhaps.steps + 1 or found != self._snapshots[found.steps]:
            return "it gives what was never written so"
        return None

    def _deleted(self, folder: Path) -> str | None:
        for name, data in self._kept.items():
            if all(path.read_bytes() != data for path in folder.glob(f"broken-*/{name}")):
                return f"{name} of the damaged state is not kept as it was"
        return None

    def _does_not_stay(self, store: Store, folder: Path) -> str | None:
        lost, number = store.lost, workload.steps_of(store)
        if number < workload.STEPS:
            workload.step(store, number)
        store.close()
        again = Store.open(folder, busy_s=0.0)
        try:
            due = self._snapshots[min(number + 1, workload.STEPS)]
            same = again.lost == lost and again.was_clean and snapshot(again) == due
            return None if same else "what was written after the power cut is not there at the next start"
        finally:
            again.close()
