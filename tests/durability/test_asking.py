"""A call that waits for a person, killed at any border: a yes is used once, and none is lost or made up."""

from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest

from rea_edge.journal import decode_event
from rea_edge.records import AskedApproval, Decided, Event, Intended
from rea_edge.store import Store
from tests.durability.crashed import check_journal_ahead
from tests.durability.test_borders import Told, ledger, shell

EVERY = 23


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Told:
    told = shell(tmp_path_factory.mktemp("asked"), program="asking")
    assert told is not None and told.run.ended is not None and told.run.ended.outcome == "achieved"
    return told


def test_a_waiting_call_killed_at_a_sampled_border_starts_by_its_own_yes(tmp_path: Path, whole: Told) -> None:
    kill_all(tmp_path, whole, range(2, whole.borders + 1, EVERY))


@pytest.mark.slow
def test_a_waiting_call_killed_at_any_border_starts_by_its_own_yes(tmp_path: Path, whole: Told) -> None:
    kill_all(tmp_path, whole, range(1, whole.borders + 1))


def kill_all(base: Path, whole: Told, borders: Iterable[int]) -> None:
    for border in borders:
        folder = base / str(border)
        folder.mkdir()
        assert shell(folder, border, "asking") is None, "it was to be killed"
        check_journal_ahead(folder)
        told = shell(folder, program="asking")
        assert told is not None and told.run.ended is not None
        check(folder, told, whole)


def check(folder: Path, told: Told, whole: Told) -> None:
    assert [done.tool for done in told.run.done] == [done.tool for done in whole.run.done]
    assert told.run.ended == whole.run.ended
    ran = ledger(folder, "ran ring") if (folder / "ledger").exists() else []
    rings = [done for done in told.run.done if done.tool == "ring"]
    assert len(set(ran)) == len(ran), "none has run twice"
    for done in rings:
        ran_once = f"ring {told.run.id}-{done.n}" in ran
        assert done.result == "unknown" or (done.result == "ok" and ran_once)
    store = Store.open(folder / "state")
    try:
        row = store.run_of("task", "me", "t1")
        assert row is not None
        events = [decode_event(body) for body in store.events(row.row)]
        for done in rings:
            check_yes([event for event in events if getattr(event, "n", 0) == done.n])
        topics = {out.topic.rpartition("/")[2]: out for out in store.pull() if "_approvers" in out.topic}
        assert topics["ask"].payload == b"" and msgspec.json.decode(topics["decided"].payload)["answer"] == "yes"
    finally:
        store.close()


def check_yes(events: list[Event]) -> None:
    """Asked, told yes, started: each once, in this order."""
    kinds = [type(event) for event in events if isinstance(event, AskedApproval | Decided | Intended)]
    assert kinds == [AskedApproval, Decided, Intended]
