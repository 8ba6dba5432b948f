"""A damaged state is moved aside whole and said to be lost; a wrong row is never delivered."""

import random
import re
import shutil
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from rea_edge.errors import StoreBroken, StoreUnusable
from rea_edge.store import Store
from tests.store.children import command, read_until, running

Opener = Callable[..., Store]
OTHER = "6f6e6c79-2061-4074-a573-742069642121"


def fill(folder: Path) -> None:
    """Two runs that have not ended, one that has, two messages; closed in order."""
    store = Store.open(folder)
    for number in range(3):
        with store.transaction() as tx:
            run, _ = tx.add_run("task", "me", f"t{number}", "sha256:0", b"request %d " % number * 300, 1.0)
            tx.append(run.row, 0, [b"event %d " % number * (40 + 300 * seq) for seq in range(4)], 2.0)
            tx.put("reply", f"r/{number}", b"%d" % number * 600)
    with store.transaction() as tx:
        tx.set_state(run.row, "ended", "achieved", 3.0)
    store.close()


def kill_while_open(folder: Path) -> None:
    """A state whose commits stand in the WAL alone."""
    with running(command("commit", folder, "4")) as child:
        read_until(child, "done")


def overwrite(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(path.read_bytes()))


def edit(folder: Path, sql: str) -> None:
    db = sqlite3.connect(folder / "state.db")
    db.executescript(sql)
    db.close()


def make_foreign(folder: Path) -> None:
    (folder / "state.db").unlink()
    edit(folder, "create table notes (text); insert into notes values ('mine')")


def make_blank(folder: Path) -> None:
    (folder / "state.db").unlink()
    edit(folder, "create table notes (text); drop table notes")


CLEAN: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda f: (f / "state.db").unlink(), "missing"),
    "emptied": (lambda f: overwrite(f / "state.db", lambda old: b""), "empty"),
    "garbage": (lambda f: overwrite(f / "state.db", lambda old: random.Random(1).randbytes(len(old))), "NOTADB"),
    "half of it": (lambda f: overwrite(f / "state.db", lambda old: old[: len(old) // 2]), "CORRUPT|integrity"),
    "a zeroed first page": (lambda f: overwrite(f / "state.db", lambda old: bytes(4096) + old[4096:]), "NOTADB|blank"),
    "a zeroed later page": (
        lambda f: overwrite(f / "state.db", lambda old: old[:8192] + bytes(4096) + old[12288:]),
        "CORRUPT|integrity|check sum",
    ),
    "an index that has another name for a run": (
        lambda f: overwrite(f / "state.db", lambda old: re.sub(rb"taskmet1(?!sha256)", b"taskmet9", old)),
        "integrity",
    ),
    "another program's": (make_foreign, "another program's"),
    "a blank database": (make_blank, "blank"),
    "another sentinel": (lambda f: (f / "state.id").write_text(OTHER), f"the folder of '{OTHER}'"),
    "a dropped table": (lambda f: edit(f, "drop table outbox"), "tables"),
    "a column that changed": (lambda f: edit(f, "update run set id = 't9' where row = 1"), "check sum.*run 1"),
    "a request of another run": (
        lambda f: edit(f, "update request set body = (select body from request where run = 1) where run = 2"),
        "check sum.*run 2",
    ),
    "a setting that changed": (lambda f: edit(f, "update meta set value = 'x' where key = 'epoch'"), "meta epoch"),
    "an event moved": (lambda f: edit(f, "update event set seq = 9 where run = 1 and seq = 3"), "event 9 of run 1"),
    "an event of another run": (
        lambda f: edit(
            f,
            "delete from event where run = 1 and seq = 2; update event set place = place - (1 << 20)"
            " where run = 2 and seq = 2",
        ),
        "event 2 of run 1",
    ),
    "an event removed": (lambda f: edit(f, "delete from event where run = 1 and seq = 3"), "not all are there"),
    "the last run removed": (
        lambda f: edit(f, "delete from run where row = 3; delete from request where run = 3"),
        "runs up to 3",
    ),
}


@pytest.mark.parametrize("case", CLEAN)
def test_a_state_that_cannot_be_relied_on_is_moved_aside_and_a_new_one_begun(
    folder: Path, opened: Opener, case: str
) -> None:
    fill(folder)
    spoil, why = CLEAN[case]
    spoil(folder)
    kept = (folder / "state.db").read_bytes() if (folder / "state.db").exists() else None
    store = opened(folder)
    assert store.lost is not None and not store.was_clean
    assert re.search(why, store.lost), store.lost
    assert (store.queue(), store.runs(9), store.pull()) == ([], [], [])
    assert (folder / "state.id").read_text().strip() == store.epoch
    assert (folder / "broken-1" / "why").read_text().strip() == store.lost
    if kept is not None:
        assert (folder / "broken-1" / "state.db").read_bytes() == kept


WAL: dict[str, tuple[Callable[[Path], object], str]] = {
    "the WAL deleted": (lambda f: (f / "state.db-wal").unlink(), ""),
    "the WAL emptied": (lambda f: overwrite(f / "state.db-wal", lambda old: b""), ""),
    "the WAL garbage": (lambda f: overwrite(f / "state.db-wal", lambda old: b"\x5a" * len(old)), ""),
    "the WAL cut": (lambda f: overwrite(f / "state.db-wal", lambda old: old[: len(old) // 2]), "WAL"),
    "the main file gone": (lambda f: (f / "state.db").unlink(), "missing"),
}


@pytest.mark.parametrize("case", WAL)
def test_commits_that_vanish_with_the_wal_are_missed(folder: Path, opened: Opener, case: str) -> None:
    kill_while_open(folder)
    spoil, why = WAL[case]
    spoil(folder)
    kept = (folder / "state.db-wal").read_bytes() if (folder / "state.db-wal").exists() else None
    store = opened(folder)
    assert store.lost is not None and why in store.lost, store.lost
    assert store.queue() == []
    if kept:
        assert (folder / "broken-1" / "state.db-wal").read_bytes() == kept


def test_an_older_copy_of_the_file_is_not_taken_for_the_state(folder: Path, opened: Opener) -> None:
    fill(folder)
    shutil.copy(folder / "state.db", folder / "old")
    store = opened(folder)
    with store.transaction() as tx:
        tx.append(1, 4, [b"acted"], 3.0)
    store.close()
    shutil.copy(folder / "old", folder / "state.db")
    assert opened(folder).lost == "run 1 had 5 events, it has 4: its WAL was lost, or it is an old copy"


def test_a_loss_is_reported_until_it_is_released_and_not_again(folder: Path, opened: Opener) -> None:
    fill(folder)
    (folder / "state.db").unlink()
    store = opened(folder)
    why = store.lost
    assert why is not None
    store.close()
    store = opened(folder)
    reported = [store.lost]
    with store.transaction() as tx:
        tx.release()
    reported.append(store.lost)
    assert reported == [why, None]
    store.close()
    assert opened(folder).lost is None


def test_every_broken_state_is_kept(folder: Path, opened: Opener) -> None:
    for number in range(1, 4):
        fill(folder)
        overwrite(folder / "state.db", lambda old: b"not a database" * 1000)
        opened(folder).close()
        assert (folder / f"broken-{number}" / "state.db").read_bytes().startswith(b"not a database")


def test_a_crash_between_the_two_moves_leaves_both_files_together(folder: Path, opened: Opener) -> None:
    kill_while_open(folder)
    (folder / "broken-1").mkdir()
    (folder / "state.db").rename(folder / "broken-1" / "state.db")
    assert opened(folder).lost is not None
    assert {path.name for path in (folder / "broken-1").iterdir()} == {"state.db", "state.db-wal", "why"}
    assert not (folder / "broken-2").exists()


def test_a_state_that_is_gone_is_not_put_to_an_earlier_one_that_was_set_aside(folder: Path, opened: Opener) -> None:
    fill(folder)
    overwrite(folder / "state.db", lambda old: b"not a database" * 1000)
    opened(folder).close()
    before = {path.name: path.read_bytes() for path in (folder / "broken-1").iterdir()}
    kill_while_open(folder)
    (folder / "state.db").unlink()
    assert "missing" in str(opened(folder).lost)
    assert {path.name: path.read_bytes() for path in (folder / "broken-1").iterdir()} == before
    assert {path.name for path in (folder / "broken-2").iterdir()} == {"state.db-wal", "why"}


def test_a_crash_before_the_new_sentinel_does_not_lose_the_state_twice(folder: Path, opened: Opener) -> None:
    fill(folder)
    (folder / "state.db").unlink()
    store = opened(folder)
    store.close()
    (folder / "state.id").write_text(OTHER)  # as the crash would have left it
    again = opened(folder)
    assert (again.epoch, again.lost) == (store.epoch, store.lost)


def test_a_damaged_finished_run_costs_itself_only(folder: Path, opened: Opener) -> None:
    fill(folder)
    edit(folder, "update event set body = 'x' where run = 3 and seq = 0; update outbox set payload = 'x' where row = 2")
    store = opened(folder)
    assert store.lost is None
    with pytest.raises(StoreUnusable, match="event 0 of run 3") as caught:
        store.events(3)
    assert not isinstance(caught.value, StoreBroken)
    assert [message.topic for message in store.pull()] == ["r/0", "r/2"]
    assert store.usage().damaged == 1
    assert len(store.events(1)) == 4
    store.close()
    edit(folder, "update run set body = 'x' where row = 3")
    store = opened(folder)
    assert [run.row for run in store.runs(9)] == [2, 1]
    assert store.usage().damaged == 1
    with pytest.raises(StoreUnusable, match="run 3"):
        store.run_of("task", "me", "t2")
    with pytest.raises(StoreUnusable, match="run 3"), store.transaction() as tx:
        tx.add_run("task", "me", "t2", "sha256:0", b"again", None)
    assert [run.row for run in store.queue()] == [1, 2]


def flip(path: Path, at: random.Random) -> str:
    content = bytearray(path.read_bytes())
    place, bit = at.randrange(len(content)), at.randrange(8)
    content[place] ^= 1 << bit
    path.write_bytes(content)
    return f"{path.name} byte {place} bit {bit}"


def wrong(folder: Path, whole: Mapping[int, tuple[object, list[bytes]]], messages: set[object]) -> tuple[str, str]:
    """What a state delivers that is not what was written; and what became of it."""
    try:
        store = Store.open(folder)
    except StoreUnusable:
        return "", "unusable"
    try:
        if store.lost is not None:
            return ("rows in a lost state" if store.runs(9) else ""), "lost"
        for row, (run, events) in whole.items():
            try:
                if (store.run(row), store.events(row)) != (run, events):
                    return f"run {row}", "open"
            except StoreBroken as error:
                return f"run {row} broken after opening: {error}", "open"
            except StoreUnusable:
                if row != 3:
                    return f"run {row} unreadable after opening", "open"
        return ("" if set(store.pull()) <= messages else "a message"), "open"
    finally:
        store.close()


@pytest.mark.parametrize("tries", [40, pytest.param(600, marks=pytest.mark.slow)])
def test_no_flipped_bit_of_the_file_delivers_a_wrong_row(
    tmp_path: Path, folder: Path, opened: Opener, tries: int
) -> None:
    fill(folder)
    store = opened(folder)
    whole = {row: (store.run(row), store.events(row)) for row in (1, 2, 3)}
    messages: set[object] = set(store.pull())
    store.close()
    at = random.Random(20)
    outcomes = []
    for number in range(tries):
        copy = tmp_path / f"flip-{number}"
        shutil.copytree(folder, copy)
        where = flip(copy / "state.db", at)
        fault, outcome = wrong(copy, whole, messages)
        assert not fault, f"{where}: {fault}"
        outcomes.append(outcome)
        shutil.rmtree(copy)
    assert outcomes.count("lost") > tries // 8  # the test would prove nothing if the flips met nothing


@pytest.mark.parametrize("tries", [20, pytest.param(300, marks=pytest.mark.slow)])
def test_no_flipped_bit_of_the_wal_goes_unnoticed(tmp_path: Path, folder: Path, opened: Opener, tries: int) -> None:
    kill_while_open(folder)
    shutil.copytree(folder, tmp_path / "whole")
    store = opened(tmp_path / "whole")
    whole = {run.row: (run, store.events(run.row)) for run in store.runs(9)}
    store.close()
    assert len(whole) == 4
    at = random.Random(21)
    outcomes = []
    for number in range(tries):
        copy = tmp_path / f"flip-{number}"
        shutil.copytree(folder, copy)
        where = flip(copy / "state.db-wal", at)
        fault, outcome = wrong(copy, whole, set())
        assert fault in {"", "a message"}, f"{where}: {fault}"
        outcomes.append(outcome)
        shutil.rmtree(copy)
    assert outcomes.count("lost") > tries // 4
