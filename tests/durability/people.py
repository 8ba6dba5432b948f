"""A node in one process whose tool waits for people: real store, mailbox, journal and runner; time is a number."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Raw

from rea_edge.asks import Asks
from rea_edge.cancel import Cancel
from rea_edge.config import Access, Broker, Node, Settings
from rea_edge.daemon.approvals import Approvals
from rea_edge.daemon.queue import Waiting
from rea_edge.desk import Told
from rea_edge.errors import RequestRefused
from rea_edge.fairness import Fairness, Pace, Paces
from rea_edge.journal import Journal
from rea_edge.mailbox import Mailbox
from rea_edge.mqtt import Incoming, Outgoing
from rea_edge.records import (
    Act,
    Answer,
    AskedApproval,
    Begun,
    Call,
    Criterion,
    EffectClass,
    Event,
    Job,
    Moved,
    Ok,
    Protocol,
    Recall,
    Result,
    Rule,
    Run,
    Switched,
    Tool,
    Verify,
)
from rea_edge.report import Report
from rea_edge.runner import Runner
from rea_edge.signers import Signers
from rea_edge.store import RunRow, Store, Transaction
from rea_edge.topics import Topics, What
from rea_edge.wire import AskShown, CallRequest, DecidedShown, NodeRequest, QueryRequest, Reply, TaskRequest

SECONDS = 60.0
APPROVERS = ("bob", "eve")
RING = Tool(name="ring", description="Ring.", parameters={"type": "object"}, effect="idempotent")
SETTINGS = Settings(
    node=Node(id="n"),
    broker=Broker(),
    access=Access(identity="broker"),
    gates={"ring": Rule(confirm="always", approvers=APPROVERS, approve_s=SECONDS)},
)
MANY = Pace(per_s=1e6, burst=1_000_000)


class Ringing:
    """Runs `ring` by a line in a ledger, and asks whom the node's settings say."""

    def __init__(self, approvals: Approvals, ledger: list[tuple[str, object]]) -> None:
        self._approvals = approvals
        self._ledger = ledger

    def refusal(self, run: Run, act: Act, cancel: Cancel) -> str | None:
        return self._approvals.refusal(run, act, act.effect, {"ring": RING})

    def approval(self, run: Run, act: Act) -> AskedApproval | str | None:
        return self._approvals.asked(run, act, "once", {"ring": RING})

    def act(
        self, run: Run, call: Call, request_id: str, seconds: float, cancel: Cancel, starting: Callable[[], bool]
    ) -> Result:
        assert starting()
        self._ledger.append((request_id, call.args))
        return Ok(data=Raw(b"true"))

    def effect(self, call: Call, recorded: EffectClass) -> EffectClass:
        return recorded

    def cost(self, call: Call) -> float:
        return 0.0

    def verify(self, call: Call) -> Criterion | None:
        return None

    def begin(self, job: Job, cancel: Cancel) -> Begun:
        raise AssertionError("direct calls only")

    def switch(self, job: Job, begun: Begun, protocol: Protocol) -> Switched:
        raise AssertionError

    def moved(self, run: Run, seconds: float, cancel: Cancel) -> Moved | None:
        raise AssertionError

    def ask(self, run: Run, body: bytes, seconds: float, cancel: Cancel) -> Answer:
        raise AssertionError

    def recalls(self, call: Call) -> bool:
        return False

    def recall(self, run: Run, asked: Recall) -> Result | None:
        raise AssertionError("nothing can be asked for")

    def probe(self, run: Run, asked: Verify) -> Result:
        raise AssertionError


class Counter:
    """What the mailbox asks of a node with one tool and no model."""

    def __init__(self, waiting: Waiting) -> None:
        self.woken = waiting.put

    def refuse_new(self) -> RequestRefused | None:
        return None

    def job_of_task(self, who: str, request: TaskRequest, plain: bool) -> Job:
        raise RequestRefused("endpoint_unavailable", "direct calls only")

    def job_of_call(self, who: str, tool: str, request: CallRequest) -> Job:
        return Job(call=Call(name=tool, args=request.args), effect="idempotent", who=who)

    def room(self, kind: Literal["task", "call"]) -> int:
        return 50

    def cancelled(self, row: RunRow) -> None: ...

    def published(self, row: RunRow, run: Run) -> None: ...

    def ordered(self, who: str, request: NodeRequest, told: Told) -> None: ...

    def query(self, who: str, what: str, request: QueryRequest) -> tuple[object, int | None]:
        raise RequestRefused("bad_request", "nothing to ask")


class Desk:
    """One life of the node: `work` does what lanes would, `turn` what the main thread would. `lived_s` is the test's."""

    def __init__(self, folder: Path, lived_s: Callable[[], float], ledger: list[tuple[str, object]]) -> None:
        self.store = Store.open(folder)
        self.topics = Topics("rea/v1", "n")
        self._waiting = Waiting()
        self._waiting.admit(True)
        report = Report(self.topics, lambda: None, 0.0)
        self._journal = Journal(self.store, self._publish, lambda: None)
        approvals = Approvals(SETTINGS, "n", self.store, lived_s)
        self.asks = Asks(
            store=self.store,
            journal=self._journal,
            topics=self.topics,
            report=report,
            lived_s=lived_s,
            approvers=approvals.approvers,
            woken=self._waiting.put,
            told=lambda row, news: None,
            published=lambda row, run: None,
        )
        self._report = report
        self._runner = Runner(Ringing(approvals, ledger), self._tell, lambda seconds: None)
        self._heard: list[Outgoing] = []
        self._mailbox = Mailbox(
            store=self.store,
            journal=self._journal,
            topics=self.topics,
            report=report,
            desk=Counter(self._waiting),
            tell=self._heard.append,
            wake=lambda: None,
            clock=lambda: None,
            away_s=lambda incoming: 0.0,
            access=lambda: SETTINGS.access,
            fairness=Fairness(Paces(run=MANY, again=MANY, query=MANY, control=MANY)),
            asks=self.asks,
            signers=Signers(lambda: SETTINGS.access, self.store, lived_s),
        )
        self._old = {row.row for row in self.store.queue()}
        for row in self.store.queue():
            if row.state != "waiting" or not self.asks.take_up(row):
                self._waiting.put(row)

    def send(self, who: str, what: What, keys: dict[str, object], leaf: str = "") -> Reply | None:
        """Let a request come in; its reply, None where there is none yet."""
        known = len(self._heard)
        topic = self.topics.send(who, what, leaf)
        assert self._mailbox.accept(Incoming(topic=topic, payload=msgspec.json.encode(keys), retained=False, qos=1))
        assert len(self._heard) - known <= 1
        return msgspec.json.decode(self._heard[-1].payload, type=Reply) if len(self._heard) > known else None

    def work(self) -> None:
        while self._waiting.counts()["calls"]:
            taken = self._waiting.take("call")
            assert taken is not None
            held = self._journal.load(taken[0])
            if taken[0].row in self._old:
                self._old.discard(taken[0].row)
                self._runner.resume(held, clean=True)
            self._runner.finish(held, taken[1], lambda: False)
            if held.run.phase == "waiting":
                self._waiting.leave(held.row)
            else:
                self._waiting.drop(held.row.row)

    def told(self) -> list[DecidedShown | AskShown]:
        """What waits by the outbox, and how everything else ended; nothing in it has been published."""
        rows = [row for row in self.store.pull() if row.payload and "/_approvers/" in row.topic]
        kinds: list[type[DecidedShown | AskShown]] = [
            AskShown if row.topic.endswith("/ask") else DecidedShown for row in rows
        ]
        return [msgspec.json.decode(row.payload, type=kind) for row, kind in zip(rows, kinds, strict=True)]

    def replies(self) -> dict[str, Reply]:
        """The results of direct calls, by their id."""
        rows = [row for row in self.store.pull() if "/reply/" in row.topic]
        return {row.topic.rpartition("/")[2]: msgspec.json.decode(row.payload, type=Reply) for row in rows}

    def _publish(self, tx: Transaction, row: RunRow, run: Run) -> None:
        self._report.publish(tx, row, run)
        self.asks.publish(tx, row, run)

    def _tell(self, row: RunRow, news: Sequence[tuple[Run, Event]]) -> None:
        for _, event in news:
            if isinstance(event, AskedApproval):
                self.asks.note(row, event)
