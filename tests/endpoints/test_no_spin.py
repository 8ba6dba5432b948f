"""No failure makes a node spin: what a server is asked in ten seconds, run after run, is counted there."""

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
RUN_S = 10.0
RUNS = 4  # one after the other, as long as there is time
# Rests of 0.5, 1, 2, 4, 8 s, each a third less at most: the sixth question is due after 10.5 s.
MOST_RESTED = 6


class Counted(Struct):
    """What one kind came to. `most` questions in all were to be asked."""

    kind: str
    runs: int
    questions: int
    most: int
    seconds: float


def counted(kind: str, fault: Fault, folder: Path) -> Counted:
    folder.mkdir()
    began_s = time.monotonic()
    runs = 0
    with ScriptedEndpoint(lambda request: fault) as server, shell(folder, endpoint(server.url)) as made:
        while runs < RUNS and (left_s := RUN_S - (time.monotonic() - began_s)) > 0.1:
            runs += 1
            run, _, _ = made.finish(made.submit(Limits(task_s=left_s), f"t{runs}"))
            assert run.used.steps <= OPEN_AFTER
        return Counted(kind, runs, len(chats(server)), most(kind, runs), time.monotonic() - began_s)


def most(kind: str, runs: int) -> int:
    """Where time may mend it, a server rests between questions, of whatever run; else each run asks once to know.

    A prompt that does not fit is asked again shorter, once: there is nothing more to leave out.
    """
    if kind == "context_overflow":
        return 2 * runs
    return MOST_RESTED if RULES[kind].passes else runs


@pytest.fixture(scope="module")
def all_counted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Counted]:
    """All kinds at once, since they mostly wait."""
    folder, found = tmp_path_factory.mktemp("kinds"), dict[str, Counted]()

    def count(name: str, kind: str, fault: Fault) -> Callable[[], None]:
        def run() -> None:
            found[name] = counted(kind, fault, folder / name.replace(" ", "-"))

        return run

    threads = [threading.Thread(target=count(name, kind, fault)) for name, (fault, kind) in KINDS.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(RUN_S + 20)
    return found


@pytest.mark.parametrize("name", KINDS)
def test_what_is_asked_of_a_server_that_fails_is_bounded(name: str, all_counted: dict[str, Counted]) -> None:
    one = all_counted[name]
    assert 1 <= one.questions <= one.most, one
    assert one.seconds < RUN_S + 1.0, one
