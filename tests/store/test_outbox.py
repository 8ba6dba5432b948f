"""Messages wait in order, bounded, the newest state of a topic only, and leave with the next transaction."""

from collections.abc import Callable
from pathlib import Path

from rea_edge.store import Store

Opener = Callable[..., Store]


def topics(store: Store) -> list[str]:
    return [message.topic for message in store.pull()]


def test_messages_come_back_as_they_were_put_and_in_order(store: Store) -> None:
    with store.transaction() as tx:
        first = tx.put("reply", "r/1", b"\x00", qos=0, correlation=b"\xff")
        tx.put("state", "s/1", b"{}", retain=True)
        assert [message.row for message in tx.pull(1)] == [first]
    one, two = store.pull(10)
    assert (one.row, one.kind, one.topic, one.payload, one.qos, one.retain) == (
        first,
        "reply",
        "r/1",
        b"\x00",
        0,
        False,
    )
    assert (one.run, one.correlation) == (None, b"\xff")
    assert (two.kind, two.qos, two.retain, two.correlation) == ("state", 1, True, None)
    assert store.pull(1) == [one]
    assert store.pull(1, not_in={one.row}) == [two]


def test_only_the_newest_state_of_a_topic_waits_and_every_reply_does(store: Store) -> None:
    with store.transaction() as tx:
        for number in range(3):
            tx.put("state", "s/1", b"%d" % number)
            tx.put("reply", "r/1", b"%d" % number)
        tx.put("state", "s/2", b"other")
    assert [(message.topic, message.payload) for message in store.pull()] == [
        ("r/1", b"0"), ("r/1", b"1"), ("s/1", b"2"), ("r/1", b"2"), ("s/2", b"other"),
    ]  # fmt: skip


def test_a_state_replaced_while_it_is_under_way_is_sent_after_it(store: Store) -> None:
    with store.transaction() as tx:
        old = tx.put("state", "s", b"old")
    with store.transaction() as tx:
        new = tx.put("state", "s", b"new")
    store.sent([old])
    with store.transaction():
        pass
    assert [message.row for message in store.pull()] == [new]
    assert new > old


def test_published_messages_go_with_the_next_transaction_and_not_before(store: Store) -> None:
    with store.transaction() as tx:
        rows = [tx.put("reply", f"r/{number}", b"x") for number in range(3)]
    before = store.wal_bytes(), store.usage().outbox_rows
    store.sent(rows[:2])
    assert (store.wal_bytes(), store.usage().outbox_rows) == before == (before[0], 3)
    assert [message.row for message in store.pull()] == rows[2:]
    assert store.usage().outbox_published == 2
    with store.transaction():
        pass
    usage = store.usage()
    assert (usage.outbox_rows, usage.outbox_published) == (1, 0)


def test_a_published_message_stays_marked_when_the_transaction_is_undone(store: Store) -> None:
    with store.transaction() as tx:
        row = tx.put("reply", "r", b"x")
    store.sent([row])
    try:
        with store.transaction():
            raise KeyError
    except KeyError:
        pass
    assert (store.pull(), store.usage().outbox_rows) == ([], 1)
    with store.transaction():
        pass
    assert store.usage().outbox_rows == 0


def test_what_was_published_before_a_clean_stop_is_not_published_again(folder: Path, opened: Opener) -> None:
    store = opened(folder)
    with store.transaction() as tx:
        row = tx.put("reply", "r/1", b"x")
        tx.put("reply", "r/2", b"x")
    store.sent([row])
    store.close()
    assert topics(opened(folder)) == ["r/2"]


def test_a_row_number_is_not_given_again_after_an_undone_transaction(store: Store) -> None:
    try:
        with store.transaction() as tx:
            undone = tx.put("reply", "r", b"x")
            raise KeyError
    except KeyError:
        pass
    with store.transaction() as tx:
        assert tx.put("reply", "r", b"x") > undone


def test_over_the_cap_of_rows_the_oldest_state_goes_and_replies_stay(folder: Path, opened: Opener) -> None:
    store = opened(folder, outbox_rows=3)
    with store.transaction() as tx:
        for topic in ("r/1", "s/1", "s/2", "r/2"):
            tx.put("reply" if topic[0] == "r" else "state", topic, b"x")
    assert topics(store) == ["r/1", "s/2", "r/2"]
    with store.transaction() as tx:
        tx.put("reply", "r/3", b"x")
        tx.put("reply", "r/4", b"x")
    assert topics(store) == ["r/2", "r/3", "r/4"]
    assert store.usage().dropped == 3


def test_over_the_cap_of_bytes_messages_go_until_the_rest_fits(folder: Path, opened: Opener) -> None:
    store = opened(folder, outbox_bytes=1000)
    with store.transaction() as tx:
        for number in range(4):
            tx.put("state", f"{number}", b"x" * 299)
    assert topics(store) == ["1", "2", "3"]
    with store.transaction() as tx:
        tx.put("reply", "large", b"x" * 2000)
    assert topics(store) == []
    assert store.usage().dropped == 5


def test_a_drop_that_is_undone_is_not_counted(folder: Path, opened: Opener) -> None:
    store = opened(folder, outbox_rows=1)
    try:
        with store.transaction() as tx:
            tx.put("reply", "1", b"x")
            tx.put("reply", "2", b"x")
            raise KeyError
    except KeyError:
        pass
    assert store.usage().dropped == 0


def ended_task(store: Store, id: str, ended_at: float | None) -> int:
    with store.transaction() as tx:
        run, _ = tx.add_run("task", "me", id, "sha256:0", b"", None)
        tx.set_state(run.row, "ended", "achieved", ended_at)
        tx.put("state", f"s/{id}", b"{}", run=run.row)
    return run.row


def test_a_run_whose_state_was_dropped_is_known_until_it_is_queued_again(folder: Path, opened: Opener) -> None:
    store = opened(folder, outbox_rows=1)
    first = ended_task(store, "t1", 1.0)
    assert store.dropped(9) == []
    ended_task(store, "t2", 1.0)
    assert [run.row for run in store.dropped(9)] == [first] and not store.has_room()
    store.close()
    store = opened(folder)
    assert [run.row for run in store.dropped(9)] == [first] and store.has_room()
    with store.transaction() as tx:
        tx.put("state", "s/t1", b"{}", run=first)
    assert store.dropped(9) == []


def test_a_state_stands_from_its_publication_until_an_empty_one_is_queued(store: Store) -> None:
    row = ended_task(store, "t1", 7.5)
    assert store.standing() == []
    store.sent([message.row for message in store.pull()])
    untimed = ended_task(store, "t2", None)
    store.sent([message.row for message in store.pull()])
    with store.transaction():
        pass
    assert store.standing() == [(row, 7.5), (untimed, None)]
    with store.transaction() as tx:
        tx.put("state", "s/t1", b"", retain=True, run=row)
    assert store.standing() == [(untimed, None)]
    assert [(message.topic, message.payload) for message in store.pull()] == [("s/t1", b"")]


def test_a_run_is_not_pruned_while_its_state_waits_or_was_dropped(folder: Path, opened: Opener) -> None:
    store = opened(folder, outbox_rows=1)
    dropped, waiting = ended_task(store, "t1", 1.0), ended_task(store, "t2", 1.0)
    with store.transaction() as tx:
        tx.add_run("call", "me", "newest", "sha256:0", b"", None)
        assert tx.prune(older_than=9.0, keep_rows=9) == []
    store.sent([message.row for message in store.pull()])
    with store.transaction() as tx:
        assert [run.row for run in tx.prune(older_than=9.0, keep_rows=9)] == [waiting]
        tx.put("state", "s/t1", b"{}", run=dropped)
    store.sent([message.row for message in store.pull()])
    with store.transaction() as tx:
        assert [run.row for run in tx.prune(older_than=9.0, keep_rows=9)] == [dropped]


def test_a_message_set_aside_is_kept_and_not_pulled_and_its_run_can_be_shown_again(
    store: Store, folder: Path, opened: Opener
) -> None:
    with store.transaction() as tx:
        run, _ = tx.add_run("task", "me", "t1", "b", b"{}", None)
        bad = tx.put("state", "s/1", b"old", retain=True, run=run.row)
        tx.put("reply", "r/1", b"x")
    with store.transaction() as tx:
        tx.set_aside(bad)
        tx.set_aside(bad)
        tx.put("state", "s/1", b"new", retain=True, run=run.row)
    assert topics(store) == ["r/1", "s/1"]
    store.close()
    again = opened(folder)
    assert topics(again) == ["r/1", "s/1"]
    assert [(one.row, one.kind, one.run, one.payload) for one in again.aside()] == [(bad, "aside", None, b"old")]
    assert again.usage().outbox_aside == 1


def test_no_more_than_twenty_messages_are_set_aside_the_oldest_goes(store: Store) -> None:
    with store.transaction() as tx:
        rows = [tx.put("reply", f"r/{number}", b"x") for number in range(25)]
        for row in rows:
            tx.set_aside(row)
    assert [one.row for one in store.aside()] == rows[5:]
    assert topics(store) == []


def test_a_full_outbox_gives_up_states_before_what_was_set_aside(folder: Path, opened: Opener) -> None:
    store = opened(folder, outbox_rows=3)
    with store.transaction() as tx:
        tx.set_aside(tx.put("reply", "r/0", b"x"))
        for number in range(5):
            tx.put("state", f"s/{number}", b"x")
    assert topics(store) == ["s/3", "s/4"]
    assert [one.topic for one in store.aside()] == ["r/0"]
