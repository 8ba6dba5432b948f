"""The command line at the people's door: with the right login it works, else it says why, and soon."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.access.conftest import Doors

ROOT = Path(__file__).parents[2]


def typed(doors: Doors, folder: Path, *words: str, login: str = "ann", password: str = "ann's", who: str = "") -> str:
    """What a person is told on standard error by a command that fails."""
    file = folder / "password"
    file.write_text(password)
    keys = {
        "BROKER": f"mqtt://127.0.0.1:{doors.people}",
        "NODE": "boiler-1",
        "USERNAME": login,
        "PASSWORD_FILE": str(file),
    }
    environ = {f"REA_EDGE_{key}": value for key, value in {**keys, **({"WHO": who} if who else {})}.items()}
    done = subprocess.run(
        [sys.executable, "-m", "rea_edge", *words],
        cwd=ROOT, env={**os.environ, **environ}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done
    return done.stderr


@pytest.mark.slow
def test_a_wrong_password_is_named_as_what_it_is(doors: Doors, tmp_path: Path) -> None:
    told = typed(doors, tmp_path, "status", password="wrong")
    assert (
        "does not let us in" in told
        and "Not authorized" in told
        and "REA_EDGE_PASSWORD_FILE" in told
        and told.count("\n") == 1
    )


@pytest.mark.parametrize("words", [("call", "look"), ("task", "Look."), ("tools",)], ids=lambda words: words[0])
def test_a_request_in_the_name_of_another_is_refused_at_once(
    doors: Doors, tmp_path: Path, words: tuple[str, ...]
) -> None:
    began_s = time.monotonic()
    told = typed(doors, tmp_path, *words, who="bob")
    assert "access rules do not let bob send there" in told and told.count("\n") == 1
    assert time.monotonic() - began_s < 8.0, "the broker has said so; waiting for the node would tell nothing more"
