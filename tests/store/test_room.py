"""One run cannot take the room that is kept for all that were accepted: it ends, says why, and the others go on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rea_edge.errors import StoreFull
from rea_edge.journal import JOURNAL_SHARE
from rea_edge.store import Store
from tests.store.steps import Steps, accepted, finish, new_journal

RESULT_BYTES = 60_000  # what the tool host lets through


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store.open(tmp_path / "state", max_mib=8)
    yield store
    store.close()


def fill(store: Store) -> None:
    """Take all the room in which runs are accepted."""
    with pytest.raises(StoreFull):
        for number in range(1000):
            with store.transaction() as tx:
                tx.add_run("task", "other", f"f{number}", "sha256:0", b"x" * 60_000, None)


def test_a_run_whose_results_would_fill_the_file_ends_and_the_next_one_goes_on(store: Store) -> None:
    journal = new_journal(store)
    greedy, modest = accepted(store, journal, "t1"), accepted(store, journal, "t2")
    fill(store)
    finish(greedy, Steps(500, "once", RESULT_BYTES))
    ended = greedy.run.ended
    assert ended is not None and (ended.outcome, ended.error) == ("exceeded", "budget_exceeded")
    assert "its journal has" in ended.reason and len(greedy.run.done) > 5
    assert all(done.result == "ok" for done in greedy.run.done)
    assert JOURNAL_SHARE * store.max_bytes < greedy.size < 1.5 * JOURNAL_SHARE * store.max_bytes
    finish(modest, Steps(3, "once", RESULT_BYTES))
    assert modest.run.ended is not None and modest.run.ended.outcome == "achieved"
    assert store.fullness() < 1.0


def test_the_size_of_a_journal_is_known_again_when_its_run_is_taken_up(store: Store) -> None:
    journal = new_journal(store)
    held = accepted(store, journal, "t1")
    finish(held, Steps(4, "once", 1000))
    again = journal.load(held.row)
    assert again.size == held.size == sum(map(len, store.events(held.row.row)))
