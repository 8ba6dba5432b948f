"""A run killed anywhere ends the same. The shell is killed at each of its own borders, which it counts itself."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby, pairwise
from pathlib import Path

import msgspec
import pytest

from rea_edge import unsettled
from rea_edge.allowance import Spent
from rea_edge.journal import decode_event
from rea_edge.records import Answered, Asked, Event, Intended, Moved, Run, Switched, Unanswered
from rea_edge.store import Store
from tests.durability.crashed import check_journal_ahead
from tests.durability.shell import COSTS

ROOT = Path(__file__).resolve().parent.parent.parent


class Told(msgspec.Struct):
    borders: int
    run: Run
    acts: list[int] = []


def shell(folder: Path, kill_at: int = 0, program: str = "shell", *more: str) -> Told | None:
    """Run it; None if it was killed at its border."""
    done = subprocess.run(
        [sys.executable, "-m", f"tests.durability.{program}", str(folder), str(kill_at), *more],
        cwd=ROOT, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    if done.returncode == -9:
        return None
    assert done.returncode == 0, done.stderr.decode()
    return msgspec.json.decode(done.stdout, type=Told)


def ledger(folder: Path, word: str) -> list[str]:
    return [line.split(" ", 1)[1] for line in (folder / "ledger").read_text().splitlines() if line.startswith(word)]


def charged(events: list[Event]) -> tuple[int, bool]:
    """What the journal says the questions cost, and whether part of it is an estimate.

    Each costs its true cost, or its whole reservation if no answer came; one that was refused before it could cost
    anything is free.
    """
    total, open_, estimated = 0, 0, False
    for event in events:
        if isinstance(event, Asked):
            total, open_, estimated = total + open_, event.reserved, estimated or open_ > 0
        elif isinstance(event, Answered):
            total, open_ = total + event.prompt_tokens + event.completion_tokens, 0
        elif isinstance(event, Unanswered) and not event.charged:
            open_ = 0
    return total + open_, estimated or open_ > 0


def check(folder: Path, run: Run, whole: Run) -> None:
    """Every promise at once, for a run that was killed somewhere and then left to end."""
    assert run.ended is not None and whole.ended is not None
    assert (run.ended.outcome, run.ended.answer) == (whole.ended.outcome, whole.ended.answer)
    assert [done.tool for done in run.done] == [done.tool for done in whole.done]
    ran = ledger(folder, "ran")
    for done in run.done:
        times = ran.count(f"{done.tool} {run.id}-{done.n}")
        if done.tool == "price":
            assert times <= 1, "what costs is not started again by itself"
            assert done.result == "failed" or (times, done.result) == (1, "ok")
        elif done.tool == "bolt":
            assert (times, done.result) == (1, "ok"), "what can be verified is never unknown, lost or done twice"
        elif done.tool == "far":
            assert (times, done.result) in ((1, "ok"), (0, "unknown")), (
                "of what was done elsewhere that node knows the end"
            )
        elif done.tool == "ring":
            assert times <= 1, f"call {done.n} took effect {times} times"
            assert done.result == ("ok" if times == 1 and done.result == "ok" else "unknown")
        else:
            assert times >= 1 and done.result == "ok"
    store = Store.open(folder / "state")
    try:
        row = store.run_of("task", "me", "t1")
        assert row is not None
        events = [decode_event(body) for body in store.events(row.row)]
        assert (run.used.tokens, run.used.estimated) == charged(events)
        paid = [event.cost for event in events if isinstance(event, Intended)]
        starts = [done.tool for done in run.done for _ in range(ran.count(f"{done.tool} {run.id}-{done.n}"))]
        assert run.used.cost == round(sum(paid), 6) >= round(sum(COSTS.get(tool, 0.0) for tool in starts), 6)
        assert [type(event) for event in events if isinstance(event, Moved | Switched)] == [Moved, Switched]
        assert run.begun is not None and (run.begun.endpoint, run.begun.protocol) == ("second", "json")
        spent = msgspec.json.decode(store.meta_get("spent") or "", type=Spent)
        assert (spent.day.amount, spent.month.amount, spent.reserved) == (run.used.tokens, run.used.tokens, 0)
        kept = msgspec.json.decode(store.meta_get("spent_cost") or "", type=Spent)
        assert (kept.day.amount, kept.month.amount, kept.reserved) == (run.used.cost, run.used.cost, 0)
        assert [message.topic for message in store.pull(10)].count("rea/v1/n/out/me/task/t1/state") == 1
    finally:
        store.close()


def check_prefix(folder: Path) -> None:
    """Every later question of a protocol begins with the bytes of every earlier one, kills or not."""
    bodies = [bytes.fromhex(line).split(b'],"max_tokens"')[0] for line in ledger(folder, "asked")]
    parts = [list(part) for _, part in groupby(bodies, lambda body: b"do it in json" in body)]
    assert len(parts) == 2, "one protocol, then the other"
    for earlier, later in [pair for part in parts for pair in pairwise(part)]:
        assert later.startswith(earlier)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Told:
    told = shell(tmp_path_factory.mktemp("whole"))
    assert told is not None and told.run.ended is not None
    assert told.run.ended.outcome == "achieved"
    return told


def killed_once(folder: Path, border: int, whole: Told) -> str | None:
    assert shell(folder, border) is None, "it was to be killed"
    check_journal_ahead(folder)
    told = shell(folder)
    assert told is not None
    check(folder, told.run, whole.run)
    check_prefix(folder)
    return next((done.result for done in told.run.done if done.result == "unknown"), None)


@pytest.mark.parametrize("every", [pytest.param(8, id="sample"), pytest.param(1, marks=pytest.mark.slow, id="all")])
def test_a_run_killed_at_any_border_ends_the_same(tmp_path: Path, whole: Told, every: int) -> None:
    assert whole.borders > 40
    borders = sorted({*range(1, whole.borders + 1, every), *whole.acts})
    with ThreadPoolExecutor(2) as pool:
        words = list(pool.map(lambda n: killed_once(_folder(tmp_path, n), n, whole), borders))
    rings = sum(done.tool == "ring" for done in whole.run.done)
    assert words.count("unknown") >= rings > 0, "each lost effect must be reported unknown"


def killed_then_forbidden(folder: Path, border: int) -> tuple[int, str]:
    """How often `turn`, which may be made again, ran before it was forbidden, and what is said of it."""
    assert shell(folder, border) is None, "it was to be killed"
    told = shell(folder, 0, "shell", "turn")
    assert told is not None and told.run.ended is not None
    (turn,) = (done for done in told.run.done if done.tool == "turn")
    store = Store.open(folder / "state")
    try:
        listed = [one.n for one in unsettled.listed(store) if one.tool == "turn"]
    finally:
        store.close()
    assert listed == ([turn.n] if turn.result == "unknown" else [])
    return ledger(folder, "ran").count(f"turn {told.run.id}-{turn.n}"), turn.result


def test_a_call_that_ran_and_is_forbidden_after_a_crash_is_never_said_not_to_have_run(
    tmp_path: Path, whole: Told
) -> None:
    borders = range(1, whole.borders + 1, 2)
    with ThreadPoolExecutor(2) as pool:
        found = set(pool.map(lambda n: killed_then_forbidden(_folder(tmp_path, n), n), borders))
    assert (0, "denied") in found and (1, "unknown") in found and (1, "ok") in found
    assert found <= {(0, "denied"), (0, "unknown"), (1, "unknown"), (1, "ok")}


@pytest.mark.slow
def test_a_run_killed_at_any_border_and_again_while_it_recovers_ends_the_same(tmp_path: Path, whole: Told) -> None:
    def twice(pair: tuple[int, int]) -> None:
        folder = _folder(tmp_path, pair[0] * 1000 + pair[1])
        assert shell(folder, pair[0]) is None
        if shell(folder, pair[1]) is None:
            killed = shell(folder)
            assert killed is not None
            check(folder, killed.run, whole.run)
            check_prefix(folder)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(twice, [(first, second) for first in range(1, whole.borders, 3) for second in range(1, 12)]))


def test_a_run_that_kills_the_shell_at_the_same_question_again_and_again_ends_and_says_so(tmp_path: Path) -> None:
    killed = 0
    for _ in range(8):
        # Border 9 lies after the commit of a question: each start asks again and dies there.
        told = shell(tmp_path, 9)
        if told is not None:
            break
        killed += 1
    told = shell(tmp_path)
    assert told is not None and told.run.ended is not None
    assert (told.run.ended.outcome, told.run.ended.error) == ("failed", "internal")
    assert killed <= 5


def _folder(base: Path, number: int) -> Path:
    folder = base / str(number)
    folder.mkdir()
    return folder
