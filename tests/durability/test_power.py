"""A power cut at any moment loses nothing acknowledged and invents nothing: shown on thousands of states of a disk."""

import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec import Struct

from rea_edge.store import Store
from tests.durability import workload
from tests.durability.judging import STATE, Judge, Known
from tests.durability.power import Disk, Kind, State, explore
from tests.durability.recording import Operation, Said, Wrote, record
from tests.durability.workload import STEPS, Snapshot, snapshot

KINDS: tuple[Kind, ...] = ("posix", "ext4")


@pytest.fixture(scope="module")
def fast() -> Iterator[Path]:
    """A folder in memory where there is one: thousands of states are written and synced."""
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="rea-power-", dir=base) as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def snapshots(fast: Path) -> list[Snapshot]:
    """What the store gives after each step where no power is ever cut."""
    store = Store.open(fast / "whole")
    try:
        found = [snapshot(store)]
        for number in range(STEPS):
            workload.step(store, number)
            found.append(snapshot(store))
        return found
    finally:
        store.close()


class Recorded(Struct):
    """What the workload did, and the files it began with."""

    before: Path
    operations: list[Operation]

    def after(self, point: int) -> State:
        """All that was done up to there, with nothing lost."""
        disk = Disk("posix", self.before)
        for operation in self.operations[: point + 1]:
            disk.apply(operation)
        return State(disk.whole(), (), point)


@pytest.fixture(scope="module")
def recorded(fast: Path) -> Callable[..., Recorded]:
    def recorded(*pragmas: str, steps: int = STEPS, start: State | None = None) -> Recorded:
        place = Path(tempfile.mkdtemp(dir=fast))
        (place / "before").mkdir()
        if start is not None:
            start.build(place / "before")
        base = shutil.copytree(place / "before", place / "base")
        args = (str(base / STATE), str(steps), *pragmas)
        return Recorded(place / "before", record(base, place / "trace", "tests.durability.workload", *args))

    return recorded


@pytest.fixture(scope="module")
def plain(recorded: Callable[..., Recorded]) -> Recorded:
    return recorded()


def test_the_workload_meets_every_turn_that_a_log_can_take(plain: Recorded) -> None:
    heads = [one for one in plain.operations if isinstance(one, Wrote) and one.path.endswith("-wal") and not one.offset]
    assert len(heads) > 5, "the WAL must begin anew, over old frames, several times"
    first_life = plain.operations[: plain.operations.index(Said("closing"))]
    by_itself = [one for one in first_life[100:] if isinstance(one, Wrote) and one.path.endswith("state.db")]
    assert len(by_itself) > 10, "SQLite must have moved the WAL into the main file by itself, within a step"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("share", "draws", "least"),
    [pytest.param(0.05, 1, 80, id="sample"), pytest.param(1.0, 5, 3000, marks=pytest.mark.slow, id="whole")],
)
def test_a_power_cut_at_any_moment_loses_nothing_acknowledged_and_invents_nothing(
    fast: Path, plain: Recorded, snapshots: list[Snapshot], kind: Kind, share: float, draws: int, least: int
) -> None:
    states = explore(plain.operations, kind, plain.before, draws, seed=5, share=share)
    count, wrong = Judge(fast / "judged", snapshots).count(states)
    assert not wrong, wrong
    assert count >= least


@pytest.mark.parametrize("kind", KINDS)
def test_a_power_cut_during_the_very_first_start_costs_nothing_and_is_no_loss(
    fast: Path, plain: Recorded, snapshots: list[Snapshot], kind: Kind
) -> None:
    first = plain.operations[: plain.operations.index(Said("step 1")) + 1]
    count, wrong = Judge(fast / "judged", snapshots).count(explore(first, kind, plain.before, 2, seed=5))
    assert not wrong, wrong
    assert count > 50


@pytest.mark.parametrize(
    ("starts", "share", "draws", "least"),
    [pytest.param(1, 0.25, 1, 30, id="sample"), pytest.param(12, 1.0, 3, 2000, marks=pytest.mark.slow, id="whole")],
)
def test_a_power_cut_while_the_last_one_is_recovered_from_loses_nothing_either(
    fast: Path,
    plain: Recorded,
    recorded: Callable[..., Recorded],
    snapshots: list[Snapshot],
    starts: int,
    share: float,
    draws: int,
    least: int,
) -> None:
    states = list(explore(plain.operations, "posix", plain.before, 2, seed=6, share=0.1))
    count = 0
    for start in random.Random(starts).sample(states, starts):
        known = Known().heard(start.said)
        again = recorded(steps=min(known.steps + 3, STEPS), start=start)
        found = explore(again.operations, "posix", again.before, draws, seed=7, share=share)
        tried, wrong = Judge(fast / "judged", snapshots, known).count(found)
        assert not wrong, (start.point, wrong)
        count += tried
    assert count >= least


def emptied(files: dict[str, bytes | None], _: Snapshot) -> None:
    files[f"{STATE}/state.db"] = b""


def missing(files: dict[str, bytes | None], _: Snapshot) -> None:
    del files[f"{STATE}/state.db"]


def garbage(files: dict[str, bytes | None], _: Snapshot) -> None:
    files[f"{STATE}/state.db"] = b"no database " * 1000


def without_wal(files: dict[str, bytes | None], _: Snapshot) -> None:
    del files[f"{STATE}/state.db-wal"]


def of_another_epoch(files: dict[str, bytes | None], _: Snapshot) -> None:
    files[f"{STATE}/state.id"] = b"577f0bca-029a-4ef4-b7cc-4d17a71fad49\n"


def bit_flipped(files: dict[str, bytes | None], known: Snapshot) -> None:
    """In an event of a run that has not ended, which only its CRC can tell."""
    open_runs = [events for run, events in zip(known.runs, known.events, strict=True) if run.state != "ended"]
    data = files[f"{STATE}/state.db"] or b""
    pieces = [event.body[:40] for events in open_runs for event in events if len(event.body) > 50]
    place = next(data.index(piece) for piece in pieces if piece in data)
    files[f"{STATE}/state.db"] = data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :]


Damage = Callable[[dict[str, bytes | None], Snapshot], None]
DAMAGES: list[Damage] = [emptied, missing, garbage, without_wal, of_another_epoch, bit_flipped]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize(
    ("share", "draws", "least"),
    [pytest.param(0.1, 1, 15, id="sample"), pytest.param(1.0, 5, 250, marks=pytest.mark.slow, id="whole")],
)
def test_a_damaged_state_is_kept_and_said_to_be_lost_whenever_the_power_goes(
    fast: Path,
    plain: Recorded,
    recorded: Callable[..., Recorded],
    snapshots: list[Snapshot],
    damage: Damage,
    share: float,
    draws: int,
    least: int,
) -> None:
    # Part is in the main file, part in the WAL; a flipped bit must not be covered by the WAL.
    last = "opening" if damage is bit_flipped else "step 40"
    start = plain.after(max(place for place, one in enumerate(plain.operations) if one == Said(last)))
    damage(start.files, snapshots[42])
    # A file that SQLite could open may have its WAL moved into it.
    names = () if damage in (of_another_epoch, bit_flipped) else ("state.db", "state.db-wal")
    kept = {name: data for name in names if (data := start.files.get(f"{STATE}/{name}"))}
    lost = recorded(steps=4, start=start)
    judge = Judge(fast / "judged", snapshots, Known(losing=True), kept)
    for kind in KINDS:
        count, wrong = judge.count(explore(lost.operations, kind, lost.before, draws, seed=8, share=share))
        assert not wrong, (kind, wrong)
        assert count >= least


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "pragmas",
    [
        pytest.param(("synchronous = NORMAL",), id="synchronous NORMAL"),
        pytest.param(("journal_mode = DELETE", "locking_mode = NORMAL"), id="journal DELETE"),
    ],
)
def test_the_same_search_finds_what_weaker_settings_lose(
    fast: Path, recorded: Callable[..., Recorded], snapshots: list[Snapshot], kind: Kind, pragmas: tuple[str, ...]
) -> None:
    weak = recorded(*pragmas, steps=8)
    judge = Judge(fast / "judged", snapshots)
    found = map(judge.wrong, explore(weak.operations, kind, weak.before, 1, seed=9))
    assert "acknowledged steps are gone" in found
