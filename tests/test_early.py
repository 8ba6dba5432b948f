"""Marks of cancels that came before their task, on a real store."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rea_edge import early
from rea_edge.early import KEEP_S, MOST, MOST_OF_ONE, Mark
from rea_edge.records import CancelAsked
from rea_edge.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(tmp_path)
    yield opened
    opened.close()


def note(store: Store, task: str, who: str = "me", text: str = "", at: float | None = 1000.0) -> None:
    with store.transaction() as tx:
        early.note(tx, Mark(who=who, task=task, by=who, text=text, at=at))


def take(store: Store, task: str, who: str = "me", now: float | None = 1000.0) -> CancelAsked | None:
    with store.transaction() as tx:
        return early.take(tx, who, task, now)


def test_a_mark_is_used_up_by_the_task_it_is_for_and_by_no_other(store: Store) -> None:
    note(store, "t1", text="not needed")
    assert take(store, "t2") is None and take(store, "t1", who="you") is None
    assert take(store, "t1") == CancelAsked(by="me", text="not needed")
    assert take(store, "t1") is None
    assert store.meta_get(early.KEY) is None, "no mark, no row"


def test_the_first_of_two_cancels_is_the_one_that_counts(store: Store) -> None:
    note(store, "t1", text="first")
    note(store, "t1", text="second")
    assert take(store, "t1") == CancelAsked(by="me", text="first")


@pytest.mark.parametrize(
    ("at", "now", "there"),
    [
        pytest.param(1000.0, 1000.0 + KEEP_S, True, id="a day old"),
        pytest.param(1000.0, 1001.0 + KEEP_S, False, id="older"),
        pytest.param(None, 9e9, True, id="of unknown age"),
        pytest.param(1000.0, None, True, id="and no clock"),
    ],
)
def test_a_mark_is_kept_for_a_day(store: Store, at: float | None, now: float | None, there: bool) -> None:
    note(store, "t1", at=at)
    assert (take(store, "t1", now=now) is not None) == there


def test_the_age_of_a_mark_counts_from_the_first_trusted_time(store: Store) -> None:
    note(store, "t1", at=None)
    note(store, "t2", at=1000.0)
    assert take(store, "t1", now=1001.0 + KEEP_S) is None


def test_who_floods_pushes_out_only_his_own(store: Store) -> None:
    note(store, "mine")
    for number in range(MOST_OF_ONE + 5):
        note(store, f"t{number}", who="flood")
    assert take(store, "t4", who="flood") is None and take(store, "t5", who="flood") is not None
    assert take(store, "mine") is not None


def test_there_are_never_more_marks_than_have_room(store: Store) -> None:
    for number in range(MOST + 5):
        note(store, "t", who=f"w{number}")
    assert take(store, "t", who="w4") is None and take(store, "t", who="w5") is not None
