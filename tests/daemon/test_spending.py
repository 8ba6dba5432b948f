"""What all calls together may cost: counted in the commit that starts a call, exactly, and kept over restarts."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from rea_edge.allowance import Allowance, Spent
from rea_edge.daemon.life import Life
from rea_edge.daemon.spending import Spending
from rea_edge.errors import RequestRefused
from rea_edge.journal import Held, Journal, encode
from rea_edge.records import Call, Intended, Job, Ok, Returned
from rea_edge.report import Report
from rea_edge.store import Store
from rea_edge.topics import Topics


class Books:
    """A store with a node's books over it, opened as often as a test likes."""

    def __init__(self, folder: Path, limits: Allowance) -> None:
        self.store = Store.open(folder / "state")
        self.spending = Spending(limits, self.store, Life(self.store, lambda: None))
        report = Report(Topics("rea/v1", "n"), lambda: None, 0.0)
        self._journal = Journal(self.store, report.publish, lambda: None, self.spending)

    def call(self, name: str) -> Held:
        with self.store.transaction() as tx:
            job = Job(call=Call(name="text", args={}), effect="once", who="me")
            row, _ = tx.add_run("call", "me", name, f"sha256:{name}", encode(job), None)
        return self._journal.load(row)

    def left(self) -> float:
        return self.spending.shown()["day_cost"].left


@pytest.fixture
def books(tmp_path: Path) -> Iterator[Books]:
    made = Books(tmp_path, Allowance(day_cost=0.3))
    yield made
    made.store.close()


def test_of_two_calls_that_both_had_room_only_one_starts_where_there_is_room_for_one(books: Books) -> None:
    first, second = books.call("c1"), books.call("c2")
    assert first.too_dear(0.2) is None and second.too_dear(0.2) is None
    first.commit(Intended(n=1, cost=0.2))
    with pytest.raises(RequestRefused, match="it costs 0.2, and 0.1 of 0.3 .day_cost. are left"):
        second.commit(Intended(n=1, cost=0.2))
    assert not second.run.open[0].intended and books.store.events(second.row.row) == []
    assert second.too_dear(0.2) is not None and second.too_dear(0.1) is None
    second.commit(Intended(n=1, cost=0.1))
    assert books.left() == 0 and books.spending.faults() == ["day_cost: all 0.3 are spent"]


def test_what_was_charged_is_kept_and_what_came_of_the_call_changes_nothing(books: Books, tmp_path: Path) -> None:
    held = books.call("c1")
    held.commit(Intended(n=1, cost=0.1))
    held.commit(Returned(n=1, result=Ok(data=msgspec.Raw(b"1")), seconds=0.1))
    books.store.close()
    again = Books(tmp_path, Allowance(day_cost=0.3))
    try:
        assert again.left() == 0.2
    finally:
        again.store.close()


def test_a_count_is_dropped_while_no_limit_is_set_and_free_calls_are_not_counted(books: Books, tmp_path: Path) -> None:
    books.call("c1").commit(Intended(n=1, cost=0.1))
    books.store.close()
    unlimited = Books(tmp_path, Allowance())
    unlimited.call("c2").commit(Intended(n=1, cost=99))
    assert unlimited.spending.shown() == {} and unlimited.store.meta_get("spent_cost") is None
    unlimited.store.close()
    again = Books(tmp_path, Allowance(day_cost=0.3))
    try:
        again.call("c3").commit(Intended(n=1))
        assert again.left() == 0.3
    finally:
        again.store.close()


def test_a_count_of_tokens_that_was_kept_before_costs_were_counted_is_read() -> None:
    kept = msgspec.json.decode(b'{"day":{"tokens":5,"period":20787},"reserved":2}', type=Spent)
    assert (kept.day.amount, kept.month.amount, kept.reserved) == (5, 0, 2)
    assert msgspec.json.decode(msgspec.json.encode(kept), type=Spent) == kept
