"""A run killed at any system call on its state files ends the same, and costs what it had cost."""

import random
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.durability.crashed import check_journal_ahead
from tests.durability.recording import ROOT
from tests.durability.tampering import KILL, counted, tampering, watching
from tests.durability.test_borders import Told, check, check_prefix

Moment = tuple[str, int]  # the n-th call of that name


def shell(folder: Path, *before: str) -> Told | None:
    """Run it to its end; None if it was killed."""
    done = subprocess.run(
        [*before, sys.executable, "-m", "tests.durability.shell", str(folder), "0"],
        cwd=ROOT, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    if done.returncode == -9:
        return None
    assert done.returncode == 0, done.stderr.decode()
    return msgspec.json.decode(done.stdout, type=Told)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Told, list[Moment]]:
    """A run that is left alone, and all moments at which it can be killed."""
    folder = tmp_path_factory.mktemp("whole")
    told = shell(folder, *watching(folder / "state", folder / "trace"))
    assert told is not None and told.run.ended is not None and told.run.ended.outcome == "achieved"
    calls = counted(folder / "trace")
    return told, [(call, number) for call, count in sorted(calls.items()) for number in range(1, count + 1)]


def killed_at(folder: Path, moment: Moment, whole: Told) -> bool:
    """Kill it there, then let it go on to its end. Whether the outcome of a call was reported unknown."""
    folder.mkdir()
    assert shell(folder, *tampering(folder / "state", folder / "trace", *moment, KILL)) is None, "it was to be killed"
    used = check_journal_ahead(folder)
    told = shell(folder)
    assert told is not None
    check(folder, told.run, whole.run)
    check_prefix(folder)
    assert told.run.used.tokens >= used, "a restart forgot what the run had cost"
    return any(done.result == "unknown" for done in told.run.done)


@pytest.mark.parametrize("kills", [pytest.param(6, id="sample"), pytest.param(0, marks=pytest.mark.slow, id="all")])
def test_a_run_killed_at_any_call_on_its_state_files_ends_the_same(
    tmp_path: Path, whole: tuple[Told, list[Moment]], kills: int
) -> None:
    told, moments = whole
    assert len(moments) > 150
    chosen = random.Random(4).sample(moments, kills) if kills else moments
    unknown = [killed_at(tmp_path / f"{call}-{number}", (call, number), told) for call, number in chosen]
    assert sum(unknown) >= (0 if kills else 3), "kills in the middle of a `once` call must have been reported"
