"""What is told of a running task from memory never follows the word of its end."""

from pathlib import Path

from rea_edge.daemon.running import RunningStates
from rea_edge.journal import Journal, encode
from rea_edge.records import Ended, Job, Run
from rea_edge.report import Report
from rea_edge.store import RunRow, Store, Transaction
from rea_edge.topics import Topics


def test_what_is_forgotten_inside_the_commit_of_an_end_is_not_taken_behind_it(tmp_path: Path) -> None:
    store, states = Store.open(tmp_path / "state"), RunningStates()
    report = Report(Topics("rea/v1", "n1"), lambda: None, 0.0)

    def publish(tx: Transaction, row: RunRow, run: Run) -> None:
        states.forget(row)
        report.publish(tx, row, run)

    try:
        journal = Journal(store, publish, lambda: None)
        with store.transaction() as tx:
            row, _ = tx.add_run("task", "me", "t1", "sha256:0", encode(Job(goal="goal")), None)
        held = journal.load(row)
        states.note(held.row, held.run)
        held.commit(Ended(outcome="achieved", answer="done"))
        assert any(b"achieved" in message.payload for message in store.pull())
        assert states.take(report) == []
    finally:
        store.close()
