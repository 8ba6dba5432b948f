"""Rows go in and come out as they were; a transaction is all or nothing; several threads share one store."""

import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from rea_edge.errors import StoreBroken, StoreFull
from rea_edge.store import Store, Transaction

Opener = Callable[..., Store]


def add(store: Store, id: str = "t1", *, kind: str = "task", request: bytes = b"{}") -> int:
    with store.transaction() as tx:
        run, _ = tx.add_run("call" if kind == "call" else "task", "me", id, "sha256:0", request, 1.5)
        return run.row


def test_a_run_comes_back_as_it_was_accepted(store: Store) -> None:
    with store.transaction() as tx:
        run, created = tx.add_run("task", "me", "t1", "sha256:0", b"\x00\xff{}", 7)
    assert created
    assert store.run(run.row) == run == store.run_of("task", "me", "t1")
    assert (run.state, run.outcome, run.seq, run.shown) == ("accepted", None, 0, "yes")
    assert (run.request, run.at, run.ended_at) == (b"\x00\xff{}", 7.0, None)


def test_the_same_name_again_gives_the_older_run_untouched(store: Store) -> None:
    row = add(store, request=b"first")
    with store.transaction() as tx:
        run, created = tx.add_run("task", "me", "t1", "sha256:another", b"second", 9.0)
    assert not created
    assert (run.row, run.body, run.request, run.at) == (row, "sha256:0", b"first", 1.5)


@pytest.mark.parametrize(("kind", "who", "id"), [("call", "me", "t1"), ("task", "you", "t1"), ("task", "me", "t2")])
def test_a_name_is_kind_and_sender_and_id(store: Store, kind: str, who: str, id: str) -> None:
    row = add(store)
    with store.transaction() as tx:
        run, created = tx.add_run("call" if kind == "call" else "task", who, id, "sha256:0", b"", None)
    assert created and run.row != row
    assert (first := store.run_of("task", "me", "t1")) is not None and first.row == row
    assert store.run_of(run.kind, who, id) == run


def test_events_come_back_byte_for_byte_and_in_order(store: Store) -> None:
    row = add(store)
    with store.transaction() as tx:
        tx.append(row, 0, [b"a\x00", b""], 2.0)
        tx.append(row, 2, [b"c" * 50_000], None)
        assert tx.event_count(row) == 3
        assert tx.events(row, after=2) == [b"c" * 50_000]
    assert store.events(row) == [b"a\x00", b"", b"c" * 50_000]
    assert [(event.seq, event.at) for event in store.journal(row, 1, limit=1)] == [(1, 2.0)]
    assert store.events(row, after=3) == store.events(99) == []


@pytest.mark.parametrize("first_seq", [0, 1, 3])
def test_an_event_that_does_not_follow_breaks_the_store(store: Store, first_seq: int) -> None:
    row = add(store)
    with store.transaction() as tx:
        tx.append(row, 0, [b"0", b"1"], None)
    with pytest.raises(StoreBroken), store.transaction() as tx:
        tx.append(row, first_seq, [b"again"], None)
    with pytest.raises(StoreBroken):
        store.events(row)


def test_the_queue_holds_what_has_not_ended_in_the_order_of_acceptance(store: Store) -> None:
    rows = [add(store, f"t{number}") for number in range(4)]
    call = add(store, "c1", kind="call")
    with store.transaction() as tx:
        tx.set_state(rows[0], "running", at=2.0)
        ended = tx.set_state(rows[1], "ended", "gave_up", 3.0)
    assert (ended.state, ended.outcome, ended.ended_at) == ("ended", "gave_up", 3.0)
    assert [run.row for run in store.queue()] == [rows[0], rows[2], rows[3], call]
    assert [run.row for run in store.queue("call")] == [call]
    assert (store.count_waiting(), store.count_waiting("call")) == (2, 1)
    first = store.run(rows[0])
    assert first is not None and first.ended_at is None


def test_runs_are_listed_from_the_newest_page_by_page(store: Store) -> None:
    rows = [add(store, f"t{number}") for number in range(5)]
    assert [run.row for run in store.runs(2)] == [rows[4], rows[3]]
    assert [run.row for run in store.runs(9, before=rows[3])] == [rows[2], rows[1], rows[0]]
    assert store.runs(9, who="you") == store.runs(9, kind="call") == []


def test_a_setting_is_kept_over_a_restart_until_it_is_taken_away(folder: Path, opened: Opener) -> None:
    store = opened(folder)
    with store.transaction() as tx:
        tx.meta_set("session", "7")
        tx.meta_set("session", "8")
        assert tx.meta_get("session") == "8"
    store.close()
    store = opened(folder)
    assert store.meta_get("session") == "8"
    with store.transaction() as tx:
        tx.meta_set("session", None)
    assert store.meta_get("session") is None


def test_a_block_that_raises_leaves_nothing_behind(store: Store) -> None:
    row = add(store)
    with pytest.raises(KeyError), store.transaction() as tx:
        tx.append(row, 0, [b"x"], None)
        tx.set_state(row, "running")
        tx.put("reply", "r", b"x")
        tx.add_run("task", "me", "t2", "sha256:0", b"", None)
        raise KeyError
    assert (store.events(row), store.pull(), len(store.runs(9))) == ([], [], 1)
    assert store.count_waiting() == 1
    add(store, "t3")


def test_a_transaction_is_of_no_use_after_its_block(store: Store) -> None:
    with store.transaction() as tx:
        pass
    with pytest.raises(AssertionError):
        tx.meta_set("late", "1")


def test_the_store_is_not_used_inside_its_own_transaction(store: Store) -> None:
    with pytest.raises(AssertionError), store.transaction():
        store.count_waiting()
    assert store.count_waiting() == 0


def test_pruning_keeps_the_newest_and_what_has_not_ended(store: Store) -> None:
    rows = [add(store, f"t{number}") for number in range(6)]
    with store.transaction() as tx:
        for row in (0, 1, 3, 4, 5):
            tx.append(rows[row], 0, [b"x"], None)
            tx.set_state(rows[row], "ended", "achieved", float(row))
    with store.transaction() as tx:
        assert len(tx.prune(older_than=1.0, keep_rows=2)) == 3  # 0 is old; 1 and 3 are beyond the newest two
        assert len(tx.prune(older_than=99.0, keep_rows=0, most=1)) == 1
        assert len(tx.prune(older_than=99.0, keep_rows=0)) == 1
        assert tx.prune(older_than=99.0, keep_rows=0) == []
    assert [(run.id, run.shown, run.outcome) for run in store.runs(9)] == [
        ("t5", "pruned", "achieved"),
        ("t4", "pruned", "achieved"),
        ("t3", "pruned", "achieved"),
        ("t2", "yes", None),
        ("t1", "pruned", "achieved"),
        ("t0", "pruned", "achieved"),
    ]
    assert store.events(rows[0]) == [] and store.runs(1)[0].request == b""
    with store.transaction() as tx:
        assert tx.forget_old(older_than=4.0, keep_undated=9) == 3
        tx.forget(rows[4])
        tx.forget(rows[5])  # not it: the newest row keeps its number from being given again
    assert [run.row for run in store.runs(9)] == [rows[5], rows[2]]
    assert add(store, "t9") == rows[5] + 1


def test_a_full_store_takes_no_run_and_has_room_for_the_ends_of_those_it_has(folder: Path, opened: Opener) -> None:
    store = opened(folder, max_mib=1)
    stored = 0
    with pytest.raises(StoreFull):
        while True:
            add(store, f"t{stored}", request=b"x" * 30_000)
            stored += 1
    assert len(store.queue()) == stored > 15 and 0.7 < store.fullness() < 0.8
    for run in store.queue():
        with store.transaction() as tx:
            tx.append(run.row, 0, [b"x" * 5_000], None)
            tx.set_state(run.row, "ended", "achieved", 1.0)
    with store.transaction() as tx:
        assert len(tx.prune(older_than=0.0, keep_rows=5)) == stored - 5
    add(store, "again", request=b"x" * 30_000)
    assert sum(run.shown != "pruned" for run in store.runs(1000)) == 6


def test_a_damaged_run_that_has_ended_is_pruned_like_others(folder: Path, opened: Opener) -> None:
    store = opened(folder)
    rows = [add(store, f"t{number}") for number in range(3)]
    with store.transaction() as tx:
        for row in rows:
            tx.set_state(row, "ended", "achieved", 1.0)
    store.close()
    with closing(sqlite3.connect(folder / "state.db", isolation_level=None)) as db:
        db.execute("UPDATE request SET body = x'00' WHERE run = ?", (rows[0],))
        db.execute("UPDATE run SET body = x'00' WHERE row = ?", (rows[1],))
    store = opened(folder)
    with store.transaction() as tx:
        assert [run.row for run in tx.prune(older_than=9.0, keep_rows=9)] == [rows[2]]
    # What was asked for is still known of the one, and nothing of the other.
    assert [run.row for run in store.runs(9)] == [rows[2], rows[0]]
    assert store.usage().runs == 2


def test_a_full_store_undoes_the_whole_transaction_even_if_the_block_hides_it(folder: Path, opened: Opener) -> None:
    store = opened(folder, max_mib=1)
    row = add(store)
    with pytest.raises(StoreFull), store.transaction() as tx:
        tx.append(row, 0, [b"first"], None)
        try:
            tx.put("reply", "r", b"x" * 900_000)
            tx.meta_set("big", "x" * 900_000)
        except Exception:
            pass
        with pytest.raises(Exception, match="full"):
            tx.append(row, 1, [b"second"], None)
    assert (store.events(row), store.pull()) == ([], [])
    with store.transaction() as tx:
        tx.append(row, 0, [b"after"], None)
    assert store.events(row) == [b"after"]


def test_four_threads_lose_nothing_and_see_only_whole_transactions(store: Store) -> None:
    rows = [add(store, f"t{number}") for number in range(4)]
    torn: list[str] = []

    def write(row: int) -> None:
        for number in range(25):
            with store.transaction() as tx:
                tx.append(row, 2 * number, [b"a", b"b"], None)
                tx.put("state", f"state/{row}", b"%d" % number)
            other = store.events(rows[(rows.index(row) + 1) % 4])
            if len(other) % 2:
                torn.append(f"{len(other)} events")
            store.sent([message.row for message in store.pull(2)])

    threads = [threading.Thread(target=write, args=(row,)) for row in rows]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30.0)
    assert torn == []
    assert [len(store.events(row)) for row in rows] == [50] * 4


def test_run_ids_are_of_the_epoch_and_differ_between_stores(tmp_path: Path, opened: Opener) -> None:
    one, two = opened(tmp_path / "one"), opened(tmp_path / "two")
    assert one.run_name(17)[0] == "r" and one.run_name(17)[9:] == "-17" and len(one.run_name(17)) == 12
    assert one.run_name(17).lower() == one.run_name(17) != two.run_name(17)
    one.close()
    assert opened(tmp_path / "one").epoch == one.epoch


def test_a_transaction_reads_what_it_wrote_and_others_do_not_until_it_ends(store: Store) -> None:
    row = add(store)
    seen: list[int] = []

    def look() -> None:
        seen.append(store.event_count(row))

    with store.transaction() as tx:
        assert isinstance(tx, Transaction)
        tx.append(row, 0, [b"x"], None)
        reader = threading.Thread(target=look)
        reader.start()
        reader.join(0.05)
        assert seen == []
        assert tx.events(row) == [b"x"]
    reader.join(10.0)
    assert seen == [1]
