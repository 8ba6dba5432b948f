"""A whole run with a mailbox beside it: a message of people can come in at any border of the shell. In one process.

All is as in a daemon but its effects, which are the shell's, and its threads: what would come from the MQTT thread
comes at a border, where the lane holds no lock.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from rea_edge.allowance import Allowance
from rea_edge.asks import Asks
from rea_edge.cancel import Cancel
from rea_edge.config import Access, Broker, Endpoint, Node, Settings
from rea_edge.daemon.approvals import Approvals
from rea_edge.daemon.desk import NodeDesk
from rea_edge.daemon.life import Life
from rea_edge.daemon.queue import Waiting
from rea_edge.daemon.running import RunningStates
from rea_edge.daemon.spending import Spending
from rea_edge.daemon.view import View
from rea_edge.fairness import Fairness, Paces
from rea_edge.journal import Journal, decode_event, run_from
from rea_edge.mailbox import Mailbox
from rea_edge.mqtt import Incoming, Outgoing
from rea_edge.records import Call, Event, Fault, Result, Run
from rea_edge.report import Report
from rea_edge.runner import Runner
from rea_edge.signers import Signers
from rea_edge.store import RunRow, Transaction
from rea_edge.topics import Topics, What
from rea_edge.wire import Reply
from tests.durability.shell import LIMITS, Borders, BorderStore, Scripted

TASK: dict[str, object] = {"id": "t1", "goal": "do it"}
NOWHERE = Endpoint(url="http://127.0.0.1:9")
SETTINGS = Settings(node=Node(id="n"), broker=Broker(), endpoints=(NOWHERE,), limits=LIMITS)


class Visited(Borders):
    """At border `at` somebody comes by, once; what he causes makes no borders."""

    def __init__(self, at: int, visit: Callable[[], None]) -> None:
        super().__init__(0)
        self._at = at
        self._visit = visit
        self._busy = False

    def cross(self) -> None:
        if self._busy:
            return
        super().cross()
        if self.count == self._at:
            self._busy = True
            self._visit()
            self._busy = False


class Losing(Scripted):
    """The first call of `ring` takes effect, and nobody sees its end. `started` counts the starts of all."""

    lost = False
    started = 0

    def act(
        self, run: Run, call: Call, request_id: str, seconds: float, cancel: Cancel, starting: Callable[[], bool]
    ) -> Result:
        def counted() -> bool:
            yes = starting()
            self.started += yes
            return yes

        result = super().act(run, call, request_id, seconds, cancel, counted)
        if call.name != "ring" or self.lost or isinstance(result, Fault):
            return result
        self.lost = True
        return Fault(fault="crashed", message="killed by signal 9")


class Station:
    """One node, one task. `visit(station)` is called at border `at`; 0: never."""

    def __init__(self, folder: Path, at: int, visit: Callable[["Station"], None]) -> None:
        self.ledger_file = folder / "ledger"
        self.heard: list[Outgoing] = []
        self.borders = Visited(at, lambda: visit(self))
        self.store = BorderStore.open(folder / "state")
        self.store.borders = self.borders
        self._topics = Topics("rea/v1", "n")
        self._running = RunningStates()
        self._waiting = Waiting()
        self._waiting.admit(True)
        self._life = Life(self.store, lambda: None)
        self._spending = Spending(Allowance(), self.store, self._life)
        self._report = Report(self._topics, lambda: None, 0.0)
        self._journal = Journal(self.store, self._publish, lambda: None, self._spending)
        self.effects = Losing(self.ledger_file, self.borders)
        self._runner = Runner(self.effects, self._tell, lambda seconds: None)
        self._mailbox = self._new_mailbox()

    def run(self) -> None:
        """Send the task, and bring it to its end as a lane does."""
        self.send("task", TASK)
        while self._waiting.counts()["tasks"]:
            taken = self._waiting.take("task")
            assert taken is not None
            self._finish(*taken)

    def send(self, what: What, keys: dict[str, object], leaf: str = "") -> Reply | None:
        """Let a request of the sender come in; gives the reply, None where a state is all the answer."""
        known = len(self.heard)
        topic = self._topics.send("me", what, leaf)
        assert self._mailbox.accept(Incoming(topic=topic, payload=msgspec.json.encode(keys), retained=False, qos=1))
        replies = [out for out in self.heard[known:] if "/reply/" in out.topic]
        assert len(replies) <= 1
        return msgspec.json.decode(replies[0].payload, type=Reply) if replies else None

    @property
    def row(self) -> RunRow | None:
        return self.store.run_of("task", "me", "t1")

    @property
    def run_on_disk(self) -> Run:
        assert self.row is not None
        return run_from(self.store, self.row)

    def events(self) -> list[Event]:
        return [] if self.row is None else [decode_event(body) for body in self.store.events(self.row.row)]

    def ledger(self, word: str) -> list[str]:
        text = self.ledger_file.read_text() if self.ledger_file.exists() else ""
        return [line.partition(" ")[2] for line in text.splitlines() if line.startswith(word)]

    def _finish(self, row: RunRow, cancel: Cancel) -> None:
        held = self._journal.load(row)
        self._runner.finish(held, cancel, lambda: False)
        self._waiting.drop(row.row)

    def _end_waiting(self, row: RunRow) -> None:
        if (claimed := self._waiting.claim(row.row, row.kind)) is not None:
            self._finish(*claimed)

    def _publish(self, tx: Transaction, row: RunRow, run: Run) -> None:
        if run.phase == "ended":
            self._running.forget(row)
        self._report.publish(tx, row, run)

    def _tell(self, row: RunRow, news: Sequence[tuple[Run, Event]]) -> None:
        for run, _ in news:
            if run.phase == "asked":
                self._running.note(row, run)

    def _new_mailbox(self) -> Mailbox:
        view = View(
            settings=lambda: SETTINGS,
            store=self.store,
            report=self._report,
            tools=dict,
            tools_hash=str,
            boot="b",
            instance="i",
            session=lambda: 1,
            state=lambda: "online",
            faults=list,
            health=lambda may_see: {},
            budgets=self._spending.shown,
            exams=lambda one: None,
            approvals=lambda: Approvals(SETTINGS, "n", self.store, self._life.lived_s),
        )
        desk = NodeDesk(
            settings=lambda: SETTINGS,
            tools=dict,
            withheld=dict,
            waiting=self._waiting,
            life=self._life,
            spending=self._spending,
            view=view,
            refusing=lambda: None,
            end_waiting=self._end_waiting,
            ordered=lambda who, request, told: None,
            published=self._running.published,
        )
        return Mailbox(
            store=self.store,
            journal=self._journal,
            topics=self._topics,
            report=self._report,
            desk=desk,
            tell=self.heard.append,
            wake=lambda: None,
            clock=lambda: None,
            away_s=lambda incoming: 0.0,
            access=lambda: Access(identity="broker"),
            fairness=Fairness(Paces()),
            asks=self._new_asks(),
            signers=Signers(lambda: Access(identity="broker"), self.store, self._life.lived_s),
        )

    def _new_asks(self) -> Asks:
        return Asks(
            store=self.store,
            journal=self._journal,
            topics=self._topics,
            report=self._report,
            lived_s=self._life.lived_s,
            approvers=lambda tool: (),
            woken=self._waiting.put,
            told=self._tell,
            published=self._running.published,
        )
