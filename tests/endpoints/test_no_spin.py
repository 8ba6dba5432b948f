"""No failure makes a node spin: what a server is asked in some seconds, run after run, is counted there."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import Struct

from rea_edge.emulated.endpoint import Fault, ScriptedEndpoint
from rea_edge.records import Limits
from rea_edge.trouble import OPEN_AFTER, RULES
from tests.e2e.test_hostile_endpoints import ALL
from tests.endpoints.test_runs import chats, endpoint, shell

KINDS = ALL | {"429, at once": (Fault("status", status=429, headers=(("retry-after", "0"),)), "rate_limited")}
RUNS = 4  # one after the other, as long as there is time
# By seconds. Rests of 0.5, 1, 2, 4, 8 s, each a third less at most; and once a question that met a connection which the
# server had closed meanwhile is sent again.
MOST_RESTED = {4.0: 5, 10.0: 6}


class Counted(Struct):
    """What one kind came to. `most` questions in all were to be asked."""

    kind: str
    runs: int
    questions: int
    most: int
    seconds: float


def counted(kind: str, fault: Fault, folder: Path, seconds: float) -> Counted:
    folder.mkdir()
    began_s = time.monotonic()
    runs = 0
    with ScriptedEndpoint(lambda request: fault) as server, shell(folder, endpoint(server.url)) as made:
        while runs < RUNS and (left_s := seconds - (time.monotonic() - began_s)) > 0.1:
            runs += 1
            run, _, _ = made.finish(made.submit(Limits(task_s=left_s), f"t{runs}"))
            assert run.used.steps <= OPEN_AFTER
        return Counted(kind, runs, len(chats(server)), most(kind, runs, seconds), time.monotonic() - began_s)


def most(kind: str, runs: int, seconds: float) -> int:
    """Where time may mend it, a server rests between questions, of whatever run; else each run asks once to know.

    A prompt that does not fit is asked again shorter, once: there is nothing more to leave out.
    """
    if kind == "context_overflow":
        return 2 * runs
    return MOST_RESTED[seconds] if RULES[kind].passes else runs


def all_counted(folder: Path, seconds: float) -> dict[str, Counted]:
    """All kinds at once, since they mostly wait."""
    found = dict[str, Counted]()

    def count(name: str, kind: str, fault: Fault) -> Callable[[], None]:
        def run() -> None:
            found[name] = counted(kind, fault, folder / name.replace(" ", "-"), seconds)

        return run

    threads = [threading.Thread(target=count(name, kind, fault)) for name, (fault, kind) in KINDS.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds + 20)
    return found


@pytest.mark.parametrize("seconds", [4.0, pytest.param(10.0, marks=pytest.mark.slow)])
def test_what_is_asked_of_a_server_that_fails_is_bounded(seconds: float, tmp_path: Path) -> None:
    found = all_counted(tmp_path, seconds)
    assert found.keys() == KINDS.keys()
    assert not [one for one in found.values() if not 1 <= one.questions <= one.most]
    assert not [one for one in found.values() if one.seconds > seconds + 1.0]
