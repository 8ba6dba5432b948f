"""How long the node was away, on a real store, with clocks that a test turns."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rea_edge.daemon.life import Life
from rea_edge.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store.open(tmp_path)
    yield store
    store.close()


class Board:
    """`up_s` is the boot-time clock; no wall clock is trusted."""

    def __init__(self, store: Store) -> None:
        self.up_s = 100.0
        self._store = store
        self.life = self.started()

    def started(self, boot: str = "b0") -> Life:
        """As after a restart of the daemon: what was not kept is gone."""
        self.life = Life(self._store, lambda: None, lambda: self.up_s, boot)
        return self.life

    def keep(self) -> None:
        with self._store.transaction() as tx:
            self.life.keep(tx)


def test_away_is_counted_from_the_end_of_the_connection_also_while_the_next_one_begins(store: Store) -> None:
    board = Board(store)
    assert board.life.away_s(controls=False) == float("inf"), "never up before"
    board.life.began(controls=True)
    board.up_s = 150.0
    board.life.ended()
    board.up_s = 170.0
    assert board.life.away_s(controls=False) == board.life.away_s(controls=True) == 20
    board.life.began(controls=True)
    assert board.life.away_s(controls=False) == 20, "what waits is given out after the connection is up"


def test_a_link_that_fell_silent_may_have_been_away_for_as_long_as_that_takes_to_find_out(store: Store) -> None:
    board = Board(store)
    board.life.began(controls=False)
    board.life.ended(60.0)
    assert board.life.away_s(controls=False) == 60


def test_after_a_kill_away_counts_from_when_the_connection_was_last_written_down(store: Store) -> None:
    board = Board(store)
    board.life.began(controls=False)
    assert board.life.news
    board.keep()
    assert not board.life.news
    board.up_s = 130.0
    assert board.started().away_s(controls=False) == 30
    assert board.life.away_s(controls=True) == float("inf"), "its own session was never up"
    assert board.started("b1").away_s(controls=False) == float("inf"), "nothing says how long the board was off"


def test_a_node_that_ran_without_its_broker_was_away_all_that_time(store: Store) -> None:
    board = Board(store)
    board.life.began(controls=False)
    board.life.ended()
    board.up_s = 5_000.0
    board.keep()
    board.up_s = 5_010.0
    assert board.started().away_s(controls=False) == 4_910
