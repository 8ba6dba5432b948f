"""Takes away one safeguard at a time and shows which test turns red. One that no test misses is not proved.

    python -m tests.durability.mutations [WORD]

Works on copies; WORD chooses those whose name has it. Exit code 1 if a change went unnoticed, or does not fit any more.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from tests.durability.recording import ROOT
from tests.durability.safeguards.acts import ACTS
from tests.durability.safeguards.devices import DEVICES
from tests.durability.safeguards.mutation import Change, Mutation
from tests.durability.safeguards.people import PEOPLE
from tests.durability.safeguards.requests import REQUESTS
from tests.durability.safeguards.runs import RUNS
from tests.durability.safeguards.state import STATE

MUTATIONS = (*RUNS, *STATE, *REQUESTS, *PEOPLE, *ACTS, *DEVICES)


class Seen(Struct, frozen=True):
    """`red` is the first test that failed, empty if none did."""

    red: str
    seconds: float


def tried(mutation: Mutation) -> Seen:
    """Run its tests against a copy with the change; raises `ValueError` where it does not fit or nothing can run."""
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="rea-mutation-") as place:
        copy = Path(place)
        for name in ("rea_edge", "tests", "tools", "systemd"):
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", copy)
        for change in mutation.changes:
            _make(copy, change)
        red = _first_red(copy, mutation.tests)
    return Seen(red, time.monotonic() - began_s)


def _make(copy: Path, change: Change) -> None:
    if complaint := misfit(copy, change):
        raise ValueError(complaint)
    name, old, new = change
    file = copy / "rea_edge" / name
    file.write_text(file.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


def misfit(root: Path, change: Change) -> str:
    """Why the change cannot be made to the code below `root`, empty if it can."""
    name, old, _ = change
    count = (root / "rea_edge" / name).read_text(encoding="utf-8").count(old)
    return "" if count == 1 else f"{name} has {count} times {old!r}: the mutation must follow the code"


def _first_red(copy: Path, tests: Sequence[str]) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-q", "-rf", "--tb=no", "-p", "no:cacheprovider", *tests],
        cwd=copy, env={**os.environ, "PYTHONPATH": str(copy)}, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    found = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
    if done.returncode not in (0, 1) or (done.returncode == 1) != (found is not None):
        raise ValueError(f"the tests could not run: {done.stdout[-1000:]}{done.stderr[-1000:]}")
    return found[1] if found else ""


def unnoticed(word: str = "") -> Iterator[str]:
    """The mutations that no test noticed, each with the reason; says on the way what was noticed by which test."""
    for mutation in MUTATIONS:
        if word not in mutation.name:
            continue
        try:
            seen = tried(mutation)
        except ValueError as error:
            yield f"{mutation.name}: {error}"
            continue
        print(f"{'red ' if seen.red else 'GREEN'} {seen.seconds:5.1f} s  {mutation.name}: {seen.red}", flush=True)
        if not seen.red:
            yield f"{mutation.name}: no test turned red"


if __name__ == "__main__":
    sys.exit(1 if list(map(print, unnoticed(*sys.argv[1:2]))) else 0)
