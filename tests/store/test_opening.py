"""One writer, settings read back, a new state begun and found again, and what cannot be opened is left as it is."""

import fcntl
import os
import sqlite3
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rea_edge.errors import StoreBroken, StoreBusy, StoreUnusable
from rea_edge.store import Store
from rea_edge.store.copy import StoreCopy
from rea_edge.store.rescue import rescue
from rea_edge.store.survey import survey
from tests.store.children import command, output_of, read_until, running

Opener = Callable[..., Store]


def test_a_new_folder_is_for_its_owner_only(folder: Path, opened: Opener) -> None:
    store = opened(folder / "deep")
    assert stat.S_IMODE((folder / "deep").stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in (folder / "deep").iterdir()} == {0o600}
    assert (store.lost, store.was_clean) == (None, True)
    assert (folder / "deep" / "state.id").read_text() == f"{store.epoch}\n"


def test_every_setting_is_what_sqlite_says_it_is(folder: Path, opened: Opener) -> None:
    store = opened(folder, max_mib=2)
    assert store.settings == {
        "page_size": 4096, "locking_mode": "exclusive", "journal_mode": "wal", "synchronous": 2,
        "wal_autocheckpoint": 256, "journal_size_limit": 1 << 20, "cache_size": -256, "temp_store": 2,
        "secure_delete": 0, "cell_size_check": 1, "max_page_count": 512,
    }  # fmt: skip
    assert not (folder / "state.db-shm").exists()
    store.close()
    assert opened(folder, max_mib=2).settings == store.settings


def test_a_smaller_cap_than_what_is_in_use_does_not_close_the_state(folder: Path, opened: Opener) -> None:
    store = opened(folder)
    with store.transaction() as tx:
        tx.add_run("task", "me", "t1", "sha256:0", b"x" * 3_000_000, None)
    store.close()
    assert len(opened(folder, max_mib=1).queue()) == 1


def test_another_process_is_named_and_waited_for_no_longer_than_asked(folder: Path) -> None:
    with running(command("hold", folder)) as child:
        read_until(child, "open None")
        with pytest.raises(StoreBusy, match=f"process {child.pid}$"):
            Store.open(folder, busy_s=0.1)
        child.kill()
        child.wait()
        Store.open(folder, busy_s=0.1).close()


def test_a_folder_is_not_touched_while_another_holds_its_lock(folder: Path) -> None:
    folder.mkdir()
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("4711\n")
        lock.flush()
        with pytest.raises(StoreBusy, match=r"process 4711$"):
            Store.open(folder, busy_s=0.1)
    assert [path.name for path in folder.iterdir()] == ["lock"]


def test_a_second_store_in_the_same_process_is_refused(folder: Path, store: Store) -> None:
    with pytest.raises(StoreBusy, match=str(os.getpid())):
        Store.open(folder, busy_s=0.0)
    with store.transaction() as tx:
        tx.meta_set("still", "mine")


def test_another_program_that_has_the_file_open_is_named_too(folder: Path) -> None:
    Store.open(folder).close()
    other = sqlite3.connect(folder / "state.db", isolation_level=None)
    try:
        other.execute("begin immediate")
        with pytest.raises(StoreBusy, match=f"process {os.getpid()}$"):
            Store.open(folder, busy_s=0.1)
    finally:
        other.close()
    Store.open(folder).close()


def test_nobody_else_can_read_or_write_while_the_store_is_open(folder: Path, store: Store) -> None:
    with store.transaction() as tx:
        tx.meta_set("a", "1")
    store.usage()
    store.idle()
    look = """
import sqlite3, sys
try:
    print(sqlite3.connect(sys.argv[1], timeout=0.1).execute("select * from meta").fetchall())
except sqlite3.OperationalError as error:
    print(error)
"""
    assert output_of([sys.executable, "-c", look, str(folder / "state.db")]) == ["database is locked"]


def test_a_clean_stop_is_told_from_a_kill(folder: Path, opened: Opener) -> None:
    store = opened(folder)
    store.close()
    store.close()
    assert not (folder / "state.db-wal").exists()
    with running(command("hold", folder)) as child:
        read_until(child, "open None")
    store = opened(folder)
    assert not store.was_clean
    store.close()
    assert opened(folder).was_clean


def test_a_closed_store_says_so(store: Store) -> None:
    store.close()
    with pytest.raises(StoreBroken, match="closed"), store.transaction():
        pass
    with pytest.raises(StoreBroken, match="closed"):
        store.pull()


@pytest.mark.parametrize("where", ["a folder that is a file", "a database that is a folder", "a sentinel that is one"])
def test_what_cannot_be_opened_is_unusable_and_nothing_is_moved(folder: Path, where: str) -> None:
    if where == "a folder that is a file":
        folder.write_text("x")
    else:
        (folder / ("state.db" if "database" in where else "state.id") / "inside").mkdir(parents=True)
    with pytest.raises(StoreUnusable, match=str(folder)):
        Store.open(folder)
    assert list(folder.parent.rglob("broken-*")) == []
    if folder.is_file():
        folder.unlink()
        Store.open(folder).close()


def test_a_file_of_a_newer_version_is_left_alone(folder: Path) -> None:
    Store.open(folder).close()
    with sqlite3.connect(folder / "state.db") as db:
        db.execute("pragma user_version = 3")
    db.close()
    with pytest.raises(StoreUnusable, match="version 3"):
        Store.open(folder)
    assert (folder / "state.db").exists() and not list(folder.glob("broken-*"))


VERSION_1 = """
alter table event rename to event_2;
create table event (run INTEGER NOT NULL, seq INTEGER NOT NULL, body BLOB NOT NULL, at REAL, crc INTEGER NOT NULL,
    PRIMARY KEY (run, seq)) WITHOUT ROWID;
insert into event select run, seq, body, at, crc from event_2;
drop table event_2;
pragma user_version = 1;
"""


def test_a_file_of_the_first_version_is_brought_to_this_one_with_all_that_is_in_it(
    folder: Path, opened: Opener
) -> None:
    store = opened(folder)
    for number in range(3):
        with store.transaction() as tx:
            run, _ = tx.add_run("task", "me", f"t{number}", "sha256:0", b"{}", 1.0)
            tx.append(run.row, 0, [b"%d" % number * size for size in (10, 1500, 9000)], 2.0)
    whole = {run.row: (run, store.events(run.row)) for run in store.runs(9)}
    store.close()
    db = sqlite3.connect(folder / "state.db")
    db.executescript(VERSION_1)
    db.close()
    assert survey(folder).wrong is None
    assert len(rescue(folder).rows["event"]) == 9 and not rescue(folder).carved
    with StoreCopy(folder) as copy:
        assert copy.events(2) == whole[2][1]
    store = opened(folder)
    assert (store.lost, {run.row: (run, store.events(run.row)) for run in store.runs(9)}) == (None, whole)
    store.close()
    assert opened(folder).lost is None


def test_a_lost_sentinel_is_written_again_from_the_state(folder: Path, opened: Opener) -> None:
    store = opened(folder)
    store.close()
    (folder / "state.id").unlink()
    again = opened(folder)
    assert (again.epoch, again.lost) == (store.epoch, None)
    assert (folder / "state.id").read_text() == f"{store.epoch}\n"
