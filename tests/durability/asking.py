"""As `shell`, with a tool that waits for a person, who says yes as soon as he is asked. Killed at the border it is told.

python -m tests.durability.asking FOLDER BORDER
"""

import sys
from pathlib import Path

import msgspec

from rea_edge.asks import Asks
from rea_edge.cancel import Cancel
from rea_edge.config import Access, Broker, Node, Settings
from rea_edge.daemon.approvals import Approvals
from rea_edge.journal import Held, Journal, encode
from rea_edge.records import Act, AskedApproval, Job, Rule, Run, Tool
from rea_edge.report import Report
from rea_edge.runner import Runner
from rea_edge.store import RunRow, Transaction
from rea_edge.topics import Topics
from rea_edge.wire import SayRequest
from tests.durability.shell import LIMITS, Borders, BorderStore, Scripted

RING = Tool(name="ring", description="Ring.", parameters={"type": "object"}, effect="once")
SETTINGS = Settings(
    node=Node(id="n"),
    broker=Broker(),
    access=Access(identity="broker"),
    gates={"ring": Rule(confirm="always", approvers=("bob",))},
)


def lived_s() -> float:
    return 100.0


class Asking(Scripted):
    def __init__(self, ledger: Path, borders: Borders, approvals: Approvals) -> None:
        super().__init__(ledger, borders)
        self._approvals = approvals

    def approval(self, run: Run, act: Act) -> AskedApproval | str | None:
        return self._approvals.asked(run, act, act.effect, {"ring": RING})


def brought_on(runner: Runner, journal: Journal, asks: Asks, row: RunRow) -> Held:
    """One turn of a lane; then the person says yes, if he is asked."""
    held = journal.load(row)
    runner.finish(held, Cancel(), lambda: False)
    if held.run.ask is not None and held.run.phase == "waiting":
        request = f"{held.run.id}-{held.run.ask.n}"
        assert asks.say("bob", SayRequest(id="s", request=request, answer="yes", ask_hash=held.run.ask.ask_hash))
    return held


def main(folder: Path, kill_at: int) -> None:
    borders = Borders(kill_at)
    store = BorderStore.open(folder / "state")
    store.borders = borders
    topics = Topics("rea/v1", "n")
    report = Report(topics, lambda: None, 0.0)

    def publish(tx: Transaction, row: RunRow, run: Run) -> None:
        report.publish(tx, row, run)
        asks.publish(tx, row, run)

    journal = Journal(store, publish, lambda: None)
    approvals = Approvals(SETTINGS, "n", store, lived_s)
    asks = Asks(
        store=store,
        journal=journal,
        topics=topics,
        report=report,
        lived_s=lived_s,
        approvers=approvals.approvers,
        woken=lambda row: None,
        told=lambda row, news: None,
        published=lambda row, run: None,
    )
    job = Job(goal="do it", limits=LIMITS, who="me")
    with store.transaction() as tx:
        row, _ = tx.add_run("task", "me", "t1", "sha256:x", encode(job), None)
    runner = Runner(Asking(folder / "ledger", borders, approvals), lambda row, news: None, lambda seconds: None)
    held = journal.load(row)
    if held.run.phase not in ("ended", "waiting"):
        runner.resume(held, clean=False)
    while held.run.phase != "ended":
        known = store.run(row.row)
        assert known is not None
        held = brought_on(runner, journal, asks, known)
    print(msgspec.json.encode({"borders": borders.count, "run": held.run}).decode())


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
