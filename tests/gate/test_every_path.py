"""Every way to an act, and every gate that is not an explicit yes: nothing runs. The control is the same table with one."""

from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from msgspec import Raw

from rea_edge.cancel import Cancel, Stopped
from rea_edge.clock import Clock
from rea_edge.config import Broker, Node, Settings
from rea_edge.daemon.approvals import Approvals
from rea_edge.daemon.effects import NodeEffects, Profiles
from rea_edge.daemon.gates import Gates, Starts
from rea_edge.daemon.halts import Halt
from rea_edge.endpoints import Endpoints
from rea_edge.errors import RunUnreadable
from rea_edge.journal import Journal, encode
from rea_edge.records import (
    Act,
    Answered,
    Args,
    Asked,
    Begun,
    Call,
    Calls,
    Criterion,
    Decision,
    Event,
    Guard,
    Intended,
    Job,
    Offer,
    Ok,
    Protocol,
    Result,
    Resumed,
    Returned,
    Run,
    Tool,
)
from rea_edge.report import Report
from rea_edge.runner import Runner
from rea_edge.store import Store
from rea_edge.toolbox import Attempt, Toolbox
from rea_edge.topics import Topics

CLOSED: Args = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
ON = Criterion(tool="look", args={}, path="on", op="==", value=1)
TOOLS = (
    Tool(name="look", description="Look.", parameters=CLOSED, effect="read"),
    Tool(name="turn", description="Turn.", parameters=CLOSED, effect="idempotent"),
    Tool(name="ring", description="Ring.", parameters=CLOSED, effect="once"),
    Tool(name="bolt", description="Bolt.", parameters=CLOSED, effect="once", verify=ON),
)
LOOK, TURN, RING, BOLT = (Call(name=tool.name, args={}) for tool in TOOLS)


class Ledger:
    """Carries out every call by writing it down."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def attempt(self, attempt: Attempt) -> Result:
        self.ran.append(attempt.tool.name)
        return Ok(data=Raw(b'{"on":1}'))


def decided(decision: Decision, protocol: Protocol = "native") -> list[Event]:
    """A run up to the moment where its model has decided this."""
    offers = tuple(Offer.of(tool) for tool in TOOLS)
    begun = Begun(
        endpoint="e", model="m", protocol=protocol, offers=offers, opening=(Raw(b'{"role":"user","content":"Do it."}'),),
        ask="", context_tokens=8192, min_observations=1, answer_tokens=100, commands=4,
    )  # fmt: skip
    turn = Raw(b'{"role":"assistant","content":"so"}')
    answer = Answered(step=1, turn=turn, decision=decision, prompt_tokens=10, completion_tokens=5, seconds=0.1)
    return [begun, Asked(step=1, reserved=100, cap=50), answer]


def calls(*wanted: Call) -> list[Event]:
    return decided(Calls(calls=wanted))


def guarded(read: Call, then: Call) -> list[Event]:
    guard = Guard(read=read, path="on", op="==", value=1, then=then)
    return decided(guard, "command")


LOOKED = Returned(n=1, result=Ok(data=Raw(b'{"on":1}')), seconds=0.1)
PATHS: dict[str, tuple[Job, list[Event], str]] = {
    "a task reads": (Job(goal="g"), calls(LOOK), "look"),
    "a task acts": (Job(goal="g"), calls(RING), "ring"),
    "the second call of one answer": (Job(goal="g"), [*calls(LOOK, RING), LOOKED], "ring"),
    "a guard's reading": (Job(goal="g"), guarded(LOOK, RING), "look"),
    "what a guard lets through": (Job(goal="g"), [*guarded(LOOK, RING), LOOKED], "ring"),
    "a direct call": (Job(call=RING, effect="once"), [], "ring"),
    "a direct call of a tool that became stricter": (Job(call=RING, effect="read"), [], "ring"),
    "a direct call after a restart": (Job(call=TURN, effect="idempotent"), [Resumed(clean=False)], "turn"),
    "a task after a crash": (Job(goal="g"), [*calls(RING), Resumed(clean=False)], "ring"),
    "again after a crash in the middle": (Job(goal="g"), [*calls(TURN), Resumed(clean=False)], "turn"),
    "a probe": (Job(goal="g"), [*calls(BOLT), Intended(n=1, verify=ON), Resumed(clean=False)], "look"),
}  # fmt: skip


class Shell:
    """A store with one run in it, and the real effects of a node over a ledger."""

    def __init__(self, folder: Path, job: Job, events: list[Event], kind: type[NodeEffects] = NodeEffects) -> None:
        self.ledger = Ledger()
        settings = Settings(node=Node(id="n"), broker=Broker())
        self.store = Store.open(folder / "state")
        approvals = Approvals(settings, "n", self.store, lambda: 0.0)
        toolbox = Toolbox({"python": self.ledger}, TOOLS)
        clock = Clock()
        self.halt = Halt(self.store, clock.now)
        self.effects = kind(
            settings=settings,
            toolbox=toolbox,
            store=self.store,
            approvals=approvals,
            gates=Gates({}, Starts(self.store, clock), clock),
            endpoints=Endpoints((), Profiles(self.store)),
            halt=self.halt,
        )
        journal = Journal(self.store, Report(Topics("rea/v1", "n"), lambda: None, 0.0).publish, lambda: None)
        with self.store.transaction() as tx:
            row, _ = tx.add_run("task" if job.call is None else "call", "me", "t1", "sha256:x", encode(job), None)
            tx.append(row.row, 0, [encode(event) for event in events], None)
        self.held = journal.load(row)

    def finish(self) -> None:
        """Bring the run forward until it has ended or wants to ask its model the next question."""
        runner = Runner(self.effects, lambda row, news: None, lambda seconds: None)
        with suppress(Stopped):
            runner.finish(self.held, Cancel(), lambda: self.held.run.phase in ("ready", "asked"))


@pytest.mark.parametrize("path", PATHS)
def test_with_a_gate_that_says_yes_the_call_runs(tmp_path: Path, path: str) -> None:
    job, events, tool = PATHS[path]
    shell = Shell(tmp_path, job, events)
    try:
        shell.finish()
    finally:
        shell.store.close()
    assert shell.ledger.ran[:1] == [tool]


@pytest.mark.parametrize(
    ("path", "part"),
    # A probe reads, as the tool's author asked for: it needs nobody's yes.
    [(path, part) for path in PATHS for part in ("gates", "approvals") if (path, part) != ("a probe", "approvals")],
)
def test_without_a_part_of_the_gate_nothing_runs(tmp_path: Path, path: str, part: str) -> None:
    job, events, _ = PATHS[path]
    shell = Shell(tmp_path, job, events)
    delattr(shell.effects, part)
    try:
        with pytest.raises(AttributeError):
            shell.finish()
    finally:
        shell.store.close()
    assert shell.ledger.ran == []


WORDS: dict[str, object] = {
    "no": "no", "an empty reason": "", "false": False, "true": True, "zero": 0, "allow": "allow", "an object": object(),
}  # fmt: skip
BROKEN = (TypeError, msgspec.MsgspecError, AssertionError, RunUnreadable)  # such a word may also end run or process


class Odd(Gates):
    """Gates that say one word to everything, before or at the start."""

    word: object = None
    at_the_start: bool = False

    def refusal(self, *args: object) -> str | None:
        return None if self.at_the_start else self.word  # type: ignore[return-value]

    def take(self, *args: object) -> str | None:
        return self.word if self.at_the_start else None  # type: ignore[return-value]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("at_the_start", [False, True], ids=["before", "at the start"])
@pytest.mark.parametrize("word", WORDS)
def test_any_other_word_of_the_gate_than_none_runs_nothing(
    tmp_path: Path, path: str, word: str, at_the_start: bool
) -> None:
    job, events, _ = PATHS[path]
    shell = Shell(tmp_path, job, events)
    shell.effects.gates = odd = Odd({}, Starts(shell.store, Clock()), Clock())
    odd.word, odd.at_the_start = WORDS[word], at_the_start
    try:
        with suppress(*BROKEN):
            shell.finish()
    finally:
        shell.store.close()
    assert shell.ledger.ran == []


class Halting(Gates):
    """Somebody halts the node at the very moment at which a call is about to start."""

    halt: Halt

    def take(self, *args: object) -> str | None:
        self.halt.order("ann")
        return None


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("at_the_start", [False, True], ids=["before", "at the start"])
def test_on_a_halted_node_nothing_runs_but_what_reads(tmp_path: Path, path: str, at_the_start: bool) -> None:
    job, events, tool = PATHS[path]
    shell = Shell(tmp_path, job, events)
    if at_the_start:
        shell.effects.gates = halting = Halting({}, Starts(shell.store, Clock()), Clock())
        halting.halt = shell.halt
    else:
        shell.halt.order("ann")
    try:
        shell.finish()
    finally:
        shell.store.close()
    assert set(shell.ledger.ran) <= {"look"}
    assert ("look" in shell.ledger.ran) == (tool == "look")


class OddlyApproved(NodeEffects):
    word: object = None

    def approval(self, run: Run, act: Act) -> None:
        return self.word  # type: ignore[return-value]


@pytest.mark.parametrize("path", [path for path in PATHS if path != "a probe"])
@pytest.mark.parametrize("word", WORDS)
def test_any_other_answer_about_a_yes_than_none_runs_nothing(tmp_path: Path, path: str, word: str) -> None:
    job, events, _ = PATHS[path]
    shell = Shell(tmp_path, job, events, OddlyApproved)
    assert isinstance(shell.effects, OddlyApproved)
    shell.effects.word = WORDS[word]
    try:
        with suppress(*BROKEN):
            shell.finish()
    finally:
        shell.store.close()
    assert shell.ledger.ran == []
