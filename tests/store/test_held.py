"""A run's commit that finds no room, and is made again."""

from pathlib import Path

import pytest

from rea_edge.errors import StoreFull
from rea_edge.journal import Journal, encode, run_from
from rea_edge.records import Ended, Job, Resumed, Run
from rea_edge.store import RunRow, Store, Transaction


class Short:
    """What puts a run's state into the outbox, where there is no room for it at first."""

    def __init__(self) -> None:
        self.full = True

    def __call__(self, tx: Transaction, row: RunRow, run: Run) -> None:
        if self.full:
            raise StoreFull("database or disk is full")


def test_a_run_whose_end_found_no_room_at_first_has_ended_for_the_next_start_too(tmp_path: Path) -> None:
    short = Short()
    store = Store.open(tmp_path)
    with store.transaction() as tx:
        row, _ = tx.add_run("task", "me", "t1", "sha256:x", encode(Job(goal="g")), None)
    held = Journal(store, short, lambda: None).load(row)
    ended = Ended(outcome="cancelled", answer="Nothing was done.")
    with pytest.raises(StoreFull):
        held.commit(ended)
    assert held.run.ended is None and held.row.state == "accepted"
    short.full = False
    held.commit(ended)
    store.close()
    again = Store.open(tmp_path)
    assert again.queue() == [], "it would be taken up, though it has ended"
    assert run_from(again, again.runs(1)[0]).ended == ended
    again.close()


def test_a_run_that_could_not_be_taken_up_for_want_of_room_is_taken_up_later(tmp_path: Path) -> None:
    short = Short()
    store = Store.open(tmp_path)
    with store.transaction() as tx:
        row, _ = tx.add_run("task", "me", "t1", "sha256:x", encode(Job(goal="g")), None)
    held = Journal(store, short, lambda: None).load(row)
    with pytest.raises(StoreFull):
        held.commit(Resumed(clean=True))
    assert held.row.state == "accepted"
    short.full = False
    held.commit(Resumed(clean=True))
    assert [one.state for one in store.queue()] == ["running"]
    store.close()
