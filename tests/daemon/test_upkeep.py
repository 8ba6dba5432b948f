"""States leave the broker a day after their end, dropped ones come back, on a real store with clocks we turn."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from msgspec import Raw

from rea_edge import unsettled
from rea_edge.allowance import Allowance
from rea_edge.daemon.life import Life
from rea_edge.daemon.spending import Spending
from rea_edge.daemon.upkeep import KEEP_UNDATED, STATE_KEEP_S, Keep, Upkeep
from rea_edge.journal import Journal, encode, run_from
from rea_edge.records import Call, EffectClass, Ended, Fault, Intended, Job, Ok, Returned
from rea_edge.report import Report
from rea_edge.store import RunKind, RunRow, Store
from rea_edge.topics import Topics

TOPICS = Topics("rea/v1", "n1")
KEEP = Keep(journals=40)
KEEP_S, NAME_S, KEEP_RUNS = KEEP.journal_s, KEEP.name_s, KEEP.journals


class Node:
    """A store with its upkeep. `at` is the wall clock (None: not trusted), `up_s` the boot-time clock."""

    def __init__(self, folder: Path, **options: int) -> None:
        self.at: float | None = 1_000_000.0
        self.up_s = 50.0
        self.folder = folder
        self._options = options
        self.open()

    def open(self) -> None:
        self.store = Store.open(self.folder, **self._options)
        self.report = Report(TOPICS, lambda: self.at, 0.0)
        self.restart("boot-1")

    def restart(self, boot: str) -> None:
        """As a daemon that starts anew does it, perhaps in another boot."""
        life = Life(self.store, lambda: self.at, lambda: self.up_s, boot)
        books = Spending(Allowance(), self.store, life)
        self.journal = Journal(self.store, self.report.publish, lambda: self.at, books)
        self.upkeep = Upkeep(self.store, self.report, life, KEEP)

    def ended(self, task_id: str, answer: str = "done") -> RunRow:
        with self.store.transaction() as tx:
            row, _ = tx.add_run("task", "me", task_id, "sha256:0", encode(Job(goal="goal")), self.at)
        held = self.journal.load(row)
        held.commit(Ended(outcome="achieved", answer=answer))
        return held.row

    def published(self) -> dict[str, bytes]:
        """What the broker would get now, by topic."""
        messages = self.store.pull()
        self.store.sent([message.row for message in messages])
        with self.store.transaction():
            pass
        return {message.topic: message.payload for message in messages}


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    node = Node(tmp_path / "state", outbox_rows=6)
    yield node
    node.store.close()


def state(task_id: str) -> str:
    return TOPICS.state("me", task_id)


def test_a_state_is_cleared_a_day_after_the_end_and_not_before(node: Node) -> None:
    node.ended("t1")
    node.published()
    node.up_s += STATE_KEEP_S - 1
    assert not node.upkeep.keep() and node.published() == {}
    node.up_s += 1
    assert node.upkeep.keep() and node.published() == {state("t1"): b""}
    assert not node.upkeep.keep() and node.published() == {}


@pytest.mark.parametrize("wall", [None, 0.0, 1_000_000.0 + 10 * 365 * 86_400.0], ids=["lost", "back", "ahead"])
def test_a_clock_that_jumps_ages_no_state(node: Node, wall: float | None) -> None:
    node.ended("t1")
    node.published()
    node.at = wall
    node.up_s += 60
    assert not node.upkeep.keep()
    node.restart("boot-1")
    assert not node.upkeep.keep() and node.published() == {}


def test_over_a_reboot_a_trusted_clock_says_how_long_the_board_was_off(node: Node) -> None:
    node.ended("t1")
    node.published()
    node.upkeep.stop()
    node.at, node.up_s = 1_000_000.0 + STATE_KEEP_S - 1, 20.0
    node.restart("boot-2")
    assert not node.upkeep.keep()
    node.up_s += 1
    assert node.upkeep.keep() and node.published() == {state("t1"): b""}


def test_over_a_reboot_without_a_clock_a_day_is_a_day_of_uptime(node: Node) -> None:
    node.at = None
    node.ended("t1")
    node.published()
    node.upkeep.stop()
    node.up_s = 20.0
    node.restart("boot-2")
    node.up_s = STATE_KEEP_S - 1
    assert not node.upkeep.keep()
    node.up_s += 1
    assert node.upkeep.keep() and node.published() == {state("t1"): b""}


def test_ten_years_ahead_over_a_reboot_deletes_no_journal(node: Node) -> None:
    node.ended("t1")
    node.ended("t2")
    node.published()
    node.upkeep.stop()
    node.at, node.up_s = 1_000_000.0 + 10 * 365 * 86_400.0, 20.0
    node.restart("boot-2")
    assert node.upkeep.keep()
    node.published()
    assert not node.upkeep.keep()
    assert [row.id for row in node.store.runs(9)] == ["t2", "t1"]


def test_a_state_that_was_not_published_yet_is_never_replaced_by_nothing(node: Node) -> None:
    node.ended("t1")
    node.up_s += 2 * STATE_KEEP_S
    assert not node.upkeep.keep()
    assert b"achieved" in node.published()[state("t1")]
    assert node.upkeep.keep() and node.published() == {state("t1"): b""}


def events_of(node: Node, kind: RunKind, id: str) -> int | None:
    """How many events are left of a run; None if not even its name is."""
    row = node.store.run_of(kind, "me", id)
    return None if row is None else len(node.store.events(row.row))


def test_the_journal_of_a_run_is_pruned_a_month_after_its_end_and_its_name_later(node: Node) -> None:
    node.ended("t1")
    node.published()
    node.up_s += KEEP_S - 1
    node.upkeep.keep()
    node.published()
    assert events_of(node, "task", "t1") == 1
    node.up_s += 2
    node.ended("t2")
    node.published()
    assert node.upkeep.keep()
    assert events_of(node, "task", "t2") == 1
    assert node.store.run_of("task", "me", "t1") is None, "its name is of no use any more: nothing can come so late"


def test_beyond_the_journals_that_are_kept_a_state_goes_with_its_run(node: Node) -> None:
    node.ended("t0")
    node.published()
    with node.store.transaction() as tx:
        for number in range(KEEP_RUNS):
            row, _ = tx.add_run("call", "me", f"c{number}", "sha256:0", b"{}", None)
            tx.set_state(row.row, "ended", "achieved", 0.0)
    assert node.upkeep.keep() and node.published() == {state("t0"): b""}
    assert events_of(node, "task", "t0") == 0


def test_a_name_is_kept_for_as_long_as_its_request_may_come_again_whatever_the_room(node: Node) -> None:
    node.ended("t1", answer="the answer")
    node.published()
    with node.store.transaction() as tx:
        tx.prune(0.0, 0)
    row = node.store.run_of("task", "me", "t1")
    assert row is not None and (row.shown, row.outcome, row.body, row.seq) == ("pruned", "achieved", "sha256:0", 1)
    with node.store.transaction() as tx:
        known, made = tx.add_run("task", "me", "t1", "sha256:0", encode(Job(goal="goal")), node.at)
        assert not made
        node.report.publish_again(tx, known, run_from(tx, known))
    told = msgspec.json.decode(node.published()[state("t1")])
    assert (told["accepted"], told["body"], told["outcome"]) == (True, "sha256:0", "achieved")
    assert "journal was deleted" in told["reason"]
    node.ended("t2")
    node.up_s += NAME_S
    node.upkeep.keep()
    assert node.store.run_of("task", "me", "t1") is not None
    node.up_s += 1
    node.upkeep.keep()
    assert node.store.run_of("task", "me", "t1") is None


def test_a_name_whose_end_has_no_known_time_is_kept_by_number(node: Node) -> None:
    ended = node.ended("t1")
    node.published()
    with node.store.transaction() as tx:
        tx.set_state(ended.row, "ended", "achieved", None)
        tx.prune(0.0, 0)
        row, _ = tx.add_run("call", "me", "c", "sha256:0", b"{}", None)
        tx.set_state(row.row, "ended", "achieved", None)
    node.up_s += 100 * NAME_S
    node.upkeep.keep()
    assert node.store.run_of("task", "me", "t1") is not None
    with node.store.transaction() as tx:
        assert tx.forget_old(0.0, KEEP_UNDATED) == 0
        assert tx.forget_old(0.0, row.row - 1) == 1


@pytest.mark.parametrize(("effect", "names"), [("read", 0), ("idempotent", 1), ("once", 1)])
def test_of_a_call_that_may_be_made_again_no_name_is_kept(node: Node, effect: EffectClass, names: int) -> None:
    with node.store.transaction() as tx:
        job = Job(call=Call(name="look", args={}), effect=effect)
        row, _ = tx.add_run("call", "me", "c1", "sha256:0", encode(job), node.at)
    held = node.journal.load(row)
    held.commit(Returned(n=1, result=Ok(data=Raw(b"1")), seconds=1.0), Ended(outcome="achieved", answer=""))
    node.ended("t1")
    node.published()
    with node.store.transaction() as tx:
        assert node.upkeep.prune(tx, 0.0, 1)
    assert (node.store.run_of("call", "me", "c1") is not None) == bool(names)
    if names:
        with node.store.transaction() as tx:
            known = tx.run(row.row)
            assert known is not None
            node.report.publish_again(tx, known, run_from(tx, known))
        reply = msgspec.json.decode(node.published()[TOPICS.reply("me", "c1")])
        assert reply["ok"] and reply["data"] == {"pruned": True}


def test_a_run_with_a_call_that_nobody_has_settled_keeps_its_journal(node: Node) -> None:
    with node.store.transaction() as tx:
        job = Job(call=Call(name="ring", args={}), effect="once")
        row, _ = tx.add_run("call", "me", "c1", "sha256:0", encode(job), node.at)
    lost = Returned(n=1, result=Fault(fault="unknown", message="a crash"), seconds=0.0, unknown=True)
    node.journal.load(row).commit(Intended(n=1), lost, Ended(outcome="failed", answer="", error="outcome_unknown"))
    node.ended("t1")
    node.published()
    assert [call.id for call in unsettled.listed(node.store)] == ["c1"]
    with node.store.transaction() as tx:
        assert node.upkeep.prune(tx, 9e9, 0)
    assert (events_of(node, "call", "c1"), events_of(node, "task", "t1")) == (3, 0)
    with node.store.transaction() as tx:
        unsettled.settled(tx, row, 1)
        assert node.upkeep.prune(tx, 9e9, 0)
    assert events_of(node, "call", "c1") == 0


def test_an_unfinished_run_is_never_pruned(node: Node) -> None:
    with node.store.transaction() as tx:
        row, _ = tx.add_run("task", "me", "t1", "sha256:0", encode(Job(goal="goal")), 0.0)
        tx.append(row.row, 0, [b"{}"], 0.0)
    node.ended("t2")
    node.published()
    with node.store.transaction() as tx:
        assert [run.id for run in tx.prune(9e9, 0)] == ["t2"]
        assert tx.forget_old(9e9, 0) == 0
    assert events_of(node, "task", "t1") == 1


def test_a_state_dropped_from_a_full_outbox_is_queued_again_once_there_is_room(node: Node) -> None:
    for number in range(6):
        node.ended(f"t{number}", answer=f"answer {number}")
    kept = node.published()
    assert state("t0") not in kept and state("t5") in kept
    assert node.upkeep.turn()
    again = node.published()
    assert msgspec.json.decode(again[state("t0")])["answer"] == "answer 0"
    assert TOPICS.last("me") not in again, "the newest answer is not replaced by an older one"
    assert not node.upkeep.turn() or node.published()
    assert node.store.dropped(9) == []


def damage(node: Node, sql: str) -> None:
    """Change the file behind the store's back, as a worn card does."""
    node.store.close()
    db = sqlite3.connect(node.folder / "state.db")
    with db:
        db.execute(sql)
    db.close()
    node.open()


def test_of_a_dropped_state_whose_journal_is_damaged_the_outcome_is_told_all_the_same(node: Node) -> None:
    for number in range(6):
        node.ended(f"t{number}")
    node.published()
    damage(node, "UPDATE event SET body = 'x' WHERE run = 1")
    assert node.upkeep.turn()
    told = msgspec.json.decode(node.published()[state("t0")])
    assert (told["state"], told["outcome"], told["error"]) == ("ended", "achieved", "store_failed")
    assert "event 0 of run 1" in told["reason"]
    assert node.store.dropped(9) == []


def test_a_damaged_run_that_has_ended_does_not_keep_the_states_of_others_from_being_cleared(node: Node) -> None:
    node.ended("t0")
    node.ended("t1")
    node.published()
    damage(node, "UPDATE run SET body = 'x' WHERE row = 1")
    node.up_s += STATE_KEEP_S
    assert node.upkeep.keep() and node.published() == {state("t1"): b""}
    node.ended("t2")
    node.published()
    node.up_s += KEEP_S
    node.upkeep.keep()
    assert [row.id for row in node.store.runs(9)] == ["t2"], "it is pruned like the others"
    assert node.store.usage().runs == 1


def test_nothing_is_queued_again_while_the_outbox_is_full(node: Node) -> None:
    for number in range(6):
        node.ended(f"t{number}")
    before = [message.row for message in node.store.pull()]
    assert not node.upkeep.turn()
    assert [message.row for message in node.store.pull()] == before


def test_ended_runs_give_way_before_the_file_is_full_and_their_states_with_them(tmp_path: Path) -> None:
    node = Node(tmp_path / "small", max_mib=1)
    store = node.store
    try:
        cleared: set[str] = set()
        for number in range(80):
            node.ended(f"t{number}", "x" * 30_000)
            node.upkeep.turn()
            cleared |= {topic for topic, payload in node.published().items() if not payload}
        kept = [row.id for row in store.runs(100) if row.shown != "pruned"]
        assert kept[0] == "t79" and 1 < len(kept) < 30
        assert cleared == {state(f"t{number}") for number in range(80)} - {state(one) for one in kept}
        assert len(store.runs(100)) == 80, "their names stay"
        assert node.store.fullness() < 0.7
    finally:
        store.close()
