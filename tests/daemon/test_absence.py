"""A broker that is away for a day, by volume: memory and outbox stay within their bounds, and nothing newest is lost.

Real store, reports, upkeep and link; only the tools and the model that would make the events are left out.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from rea_edge import memory
from rea_edge.allowance import Allowance
from rea_edge.config import Broker
from rea_edge.daemon.life import Life
from rea_edge.daemon.post import Post
from rea_edge.daemon.running import RunningStates
from rea_edge.daemon.spending import Spending
from rea_edge.daemon.upkeep import Keep, Upkeep
from rea_edge.journal import Journal, encode, run_from
from rea_edge.mqtt import Outgoing
from rea_edge.mqtt.waiting import MOST
from rea_edge.records import Ended, Job, Run
from rea_edge.report import Report
from rea_edge.store import RunRow, Store, Transaction
from rea_edge.topics import Topics
from tests.brokers import Emulated, wait_until

NOTES = 8  # words on how a task gets on
GROWTH_MIB = 3.0


class Island:
    """A node without a broker at first. `task` lets one run through, with its states, a reply to a control and health."""

    def __init__(self, folder: Path, url: str, outbox_rows: int) -> None:
        self.topics = Topics("rea/v1", "n1")
        self.rows = outbox_rows
        self.events = 0
        self.store = Store.open(folder, outbox_rows=outbox_rows)
        self.report = Report(self.topics, lambda: 1e9, 0.0)
        self.running = RunningStates()
        life = Life(self.store, lambda: 1e9)
        books = Spending(Allowance(), self.store, life)
        self.journal = Journal(self.store, self._publish, lambda: 1e9, books)
        self.upkeep = Upkeep(self.store, self.report, life, Keep())
        self.post = Post(
            broker=Broker(url=url, reconnect_min_s=0.05),
            node="n1",
            store=self.store,
            topics=self.topics,
            report=self.report,
            running=self.running,
            life=life,
            accept=lambda _incoming: True,
            standing=list,
            births=lambda: [self._status("online")],
            farewell=lambda: self._status("offline"),
            fatal=lambda exc: pytest.fail(str(exc)),
            known_before=False,
            instance="one",
            up_since_s=0.0,
            admitted=lambda _admitted: None,
        )

    def _status(self, state: str) -> Outgoing:
        return Outgoing(topic=self.topics.all("status"), payload=json.dumps({"state": state}).encode(), retain=True)

    def _publish(self, tx: Transaction, row: RunRow, run: Run) -> None:
        if run.phase == "ended":
            self.running.forget(row)
        self.report.publish(tx, row, run)

    def task(self, number: int) -> None:
        with self.store.transaction() as tx:
            row, _ = tx.add_run("task", "me", f"t{number}", "sha256:0", encode(Job(goal="look")), 1e9)
            run = run_from(tx, row)
            self.report.publish(tx, row, run)
        for _ in range(NOTES):
            self.running.note(row, run)
            self.post.wake()
        held = self.journal.load(row)
        held.commit(Ended(outcome="achieved", answer=f"answer {number}"))
        self.post.tell(Outgoing(topic=self.topics.reply("me", f"x{number}"), payload=b"x" * 200, urgent=True))
        self.post.tell(Outgoing(topic=self.topics.reply("me", f"q{number}"), payload=b"x" * 2000))
        self.post.tell(Outgoing(topic=self.topics.all("health"), payload=b"x" * 2000, qos=0, retain=True))
        self.events += NOTES + 5
        if number % 50 == 0:
            self.turn()

    def turn(self) -> None:
        if self.upkeep.turn():
            self.post.wake()

    def shown_rightly(self, found: dict[str, bytes], tasks: int) -> bool:
        self.turn()
        states = [found.get(self.topics.state("me", f"t{number}")) for number in range(tasks)]
        return all(state is not None and b'"outcome":"achieved"' in state for state in states)


@contextmanager
def island(folder: Path, url: str, outbox_rows: int) -> Iterator[Island]:
    made = Island(folder, url, outbox_rows)
    made.post.start()
    try:
        yield made
    finally:
        made.post.stop(0.5)
        made.store.close()


@pytest.mark.parametrize(
    ("tasks", "outbox_rows", "events"),
    [
        pytest.param(160, 60, 2_000, id="an hour"),
        pytest.param(1600, 1000, 20_000, id="a day", marks=pytest.mark.slow),
    ],
)
def test_a_long_absence_of_the_broker_costs_no_memory_and_no_newest_state(
    tmp_path: Path, tasks: int, outbox_rows: int, events: int
) -> None:
    with Emulated() as broker:
        broker.stop()
        with island(tmp_path / "state", broker.url, outbox_rows) as node:
            for number in range(tasks // 2):
                node.task(number)
            memory.trim()
            before_mib = memory.resident_mib()
            for number in range(tasks // 2, tasks):
                node.task(number)
            memory.trim()
            grown_mib = memory.resident_mib() - before_mib
            assert node.events >= events
            assert grown_mib < GROWTH_MIB
            usage, state = node.store.usage(), node.post.state
            assert usage.outbox_rows <= outbox_rows
            assert usage.dropped > 0, "the outbox was never full: the test shows nothing"
            assert state.waiting <= 2 * MOST
            assert state.dropped_qos1 == max(0, tasks - MOST) * 2
            assert state.dropped_qos0 == tasks
            broker.start()
            wait_until(
                lambda: node.shown_rightly(broker.retained(), tasks),
                "the newest state of each task",
                30 if tasks < 1000 else 120,
            )
            last = broker.retained()[node.topics.last("me")]
            assert last == f"answer {tasks - 1}".encode()
            wait_until(lambda: node.post.state.waiting == 0, "what waited in memory is said")
        status = msgspec.json.decode(broker.retained()[node.topics.all("status")])
        assert status == {"state": "offline"}
