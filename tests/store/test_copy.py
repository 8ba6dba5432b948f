"""A copy is read while the daemon goes on, and says what is damaged in it."""

import sqlite3
from pathlib import Path

import pytest

from rea_edge.errors import StoreUnusable
from rea_edge.store import Store
from rea_edge.store.copy import StoreCopy
from tests.store.children import command, read_until, running


def test_a_copy_shows_what_stands_in_the_wal_of_another_process(folder: Path) -> None:
    with running(command("commit", folder, "3")) as child:
        read_until(child, "done")
        with StoreCopy(folder) as copy:
            assert [run.row for run in copy.runs(9)] == [3, 2, 1]
            assert copy.events(2) == [f"2.{seq}".encode() * 200 for seq in range(4)] + [b"end"]
            assert (copy.damage, copy.lost) == ([], None)
            assert copy.run_name(2).endswith("-2")
        assert child.poll() is None
        child.kill()
    store = Store.open(folder)
    assert (store.lost, store.epoch, len(store.runs(9))) == (None, copy.epoch, 3)
    store.close()


def test_a_copy_names_what_is_damaged_and_shows_the_rest(folder: Path) -> None:
    store = Store.open(folder)
    with store.transaction() as tx:
        for number in (1, 2):
            run, _ = tx.add_run("task", "me", f"t{number}", "sha256:0", b"", None)
            tx.append(run.row, 0, [b"one", b"two", b"three"], None)
    store.close()
    db = sqlite3.connect(folder / "state.db")
    db.executescript("update event set body = 'x' where run = 1 and seq = 1; update run set who = 'x' where row = 2")
    db.close()
    with StoreCopy(folder) as copy:
        assert copy.events(1) == [b"one", b"three"]
        assert [run.row for run in copy.runs(9)] == [1]
        assert list(copy.damage) == ["event 1 of run 1", "events 0 to 3 of run 1: not all are there", "run 2"]


@pytest.mark.parametrize("content", [None, b"", b"not a database" * 1000])
def test_no_state_is_said_to_be_none_and_nothing_is_written(folder: Path, content: bytes | None) -> None:
    folder.mkdir()
    if content is not None:
        (folder / "state.db").write_bytes(content)
    with pytest.raises(StoreUnusable, match=r"state\.db"):
        StoreCopy(folder)
    assert [path.name for path in folder.iterdir()] == ([] if content is None else ["state.db"])


def test_a_state_that_was_set_aside_can_still_be_read(folder: Path) -> None:
    store = Store.open(folder)
    with store.transaction() as tx:
        tx.add_run("task", "me", "t1", "sha256:0", b"", None)
    store.close()
    (folder / "state.id").write_text("another")
    Store.open(folder).close()
    with StoreCopy(folder / "broken-1") as copy:
        assert [run.id for run in copy.runs(9)] == ["t1"]
