"""Every noun as a frozen `msgspec.Struct`. Holds shapes only: no logic beyond a derived name, no I/O.

Three families: what a tool declares and returns, what happens in a run (decision, event, effect, run), and
what is on the wire. Unions are tagged with the key `kind`. Bodies that must keep their bytes are `Raw`.
"""

from typing import Literal

from msgspec import Raw, field

from rea_edge.basics import Args as Args
from rea_edge.basics import Criterion as Criterion
from rea_edge.basics import EffectClass as EffectClass
from rea_edge.basics import Example as Example
from rea_edge.basics import Fault as Fault
from rea_edge.basics import Frozen as Frozen
from rea_edge.basics import LimitName as LimitName
from rea_edge.basics import Limits as Limits
from rea_edge.basics import Mode as Mode
from rea_edge.basics import Name as Name
from rea_edge.basics import Ok as Ok
from rea_edge.basics import Op as Op
from rea_edge.basics import Outcome as Outcome
from rea_edge.basics import Protocol as Protocol
from rea_edge.basics import Result as Result
from rea_edge.basics import State as State
from rea_edge.basics import Tool as Tool
from rea_edge.basics import ToolKind as ToolKind
from rea_edge.basics import Usage as Usage
from rea_edge.bounds import Bounds
from rea_edge.errors import Code, DecisionErrorKind

# --- decisions: one assistant message, read


class Call(Frozen, frozen=True, kw_only=True):
    name: str
    args: Args


class Calls(Frozen, frozen=True, kw_only=True, tag_field="kind", tag="calls"):
    """One call, or several that the model asked for in one message (all or none)."""

    calls: tuple[Call, ...]
    thought: str = ""
    intent: str = ""
    estimated_cost: str = ""


class Guard(Frozen, frozen=True, kw_only=True, tag_field="kind", tag="guard"):
    """`if read -> path op value then act`: code compares, the model never does."""

    read: Call
    path: str
    op: Op
    value: int | float | str
    then: Call


class Finish(Frozen, frozen=True, kw_only=True, tag_field="kind", tag="finish"):
    """The model says it is done. `answer` is empty in protocol `command`: code writes it from the results."""

    answer: str
    thought: str = ""


class GiveUp(Frozen, frozen=True, kw_only=True, tag_field="kind", tag="give_up"):
    reason: str
    thought: str = ""


class Malformed(Frozen, frozen=True, kw_only=True, tag_field="kind", tag="malformed"):
    """No decision: what `DecisionRejected` said, kept as a value so that it can be an event."""

    error: DecisionErrorKind
    message: str


Decision = Calls | Guard | Finish | GiveUp


# --- what an endpoint is asked and gives


class Answer(Frozen, frozen=True, kw_only=True):
    """One assistant message. `message` is a JSON object with role, content and (where there are) tool_calls.

    Tokens are the server's count, or None where it sent none.
    """

    message: Raw
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    objects: bool = False  # a call's arguments came as an object, not as JSON text


class Offer(Frozen, frozen=True, kw_only=True):
    """A tool as a run keeps it: later changes of the tool set do not touch a running run."""

    name: str
    effect: EffectClass
    parameters: Args
    returns: Args | None = None


# --- events: what the shell tells the core; each is a journal row before the core sees it


class Begun(Frozen, frozen=True, kw_only=True, tag_field="kind", tag="begun"):
    """The run starts on a lane: all that stays fixed for it.

    `opening` are the messages before the first answer, `ask` the constant rest of the request body (JSON members without
    braces), as bytes that are sent as they are."""

    endpoint: str
    model: str
    protocol: Protocol
    offers: tuple[Offer, ...]
    opening: tuple[Raw, ...]
    ask: str
    context_tokens: int
    min_observations: int
    answer_tokens: int
    commands: int = 1  # protocol command: how many lines may run
    aliases: dict[str, str] = field(default_factory=dict)  # tools that the model knows by another name
    done_when: tuple[Criterion, ...] = ()
    repeats: int = 2  # times in a row that a call may give the same result
    bounds: Bounds | None = None  # protocol command: what the goal speaks for
    next_protocol: Protocol | None = None  # tried once, where this one gives no readable decision
    seconds: float = 0.0  # that choosing took


class Switched(Frozen, frozen=True, kw_only=True, tag_field="kind", tag="switched"):
    """The run goes on in another protocol, with what `Begun` says of it anew; what was unreadable is left behind."""

    protocol: Protocol
    opening: tuple[Raw, ...]
    ask: str
    answer_tokens: int


class Moved(Frozen, frozen=True, kw_only=True, tag_field="kind", tag="moved"):
    """Another endpoint is asked from now on, with what `Begun` says of it; opening and history stay byte for byte."""

    endpoint: str
    model: str
    ask: str
    context_tokens: int
    why: str
    seconds: float = 0.0  # that choosing took


class Asked(Frozen, frozen=True, kw_only=True, tag_field="kind", tag="asked"):
    """A question goes out. `reserved` tokens are charged now; `first` is the first round of history still sent.

    `turns` are the messages that this question adds, as the bytes that are sent from now on.
    """

    step: int
    reserved: int
    cap: int
    first: int = 0
    turns: tuple[Raw, ...] = ()


AS_SENT_BACK = Raw(b"null")  # an empty Raw would be no JSON


class Answered(Frozen, frozen=True, kw_only=True, tag_field="kind", tag="answered"):
    """The assistant's bytes with what was read from them. Settles the reservation of the same step.

    `turn` is the message as it is sent back from now on, `message` as it came, where that is not the same.
    """

    step: int
    turn: Raw
    decision: Decision | Malformed
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    estimated: bool = False
    finish_reason: str | None = None
    message: Raw = AS_SENT_BACK

    @property
    def received(self) -> Raw:
        return self.turn if bytes(self.message) == bytes(AS_SENT_BACK) else self.message


class Unanswered(Frozen, frozen=True, kw_only=True, tag_field="kind", tag="unanswered"):
    """The endpoint gave nothing for this step. `final`: asking again is no use.

    `charged`: tokens may have been spent, so step and reservation stay charged. Where the prompt did not fit,
    `context_tokens` is the size that the server told and `prompt_tokens` its count of the prompt.
    """

    step: int
    fault: str
    message: str
    seconds: float
    final: bool = True
    charged: bool = True
    context_tokens: int | None = None
    prompt_tokens: int | None = None


class Refused(Frozen, frozen=True, kw_only=True, tag_field="kind", tag="refused"):
    """The gate said no to call n: it was not started and never will be."""

    n: int
    reason: str


class Intended(Frozen, frozen=True, kw_only=True, tag_field="kind", tag="intended"):
    """Call n of a `once` tool is about to start. Without a `Returned` after it the call is in doubt."""

    n: int


class Returned(Frozen, frozen=True, kw_only=True, tag_field="kind", tag="returned"):
    """Call n ended. `unknown`: nobody can say whether its effect took place."""

    n: int
    result: Result
    seconds: float
    unknown: bool = False


class CancelAsked(Frozen, frozen=True, kw_only=True, tag_field="kind", tag="cancel_asked"):
    by: str
    text: str = ""


class Resumed(Frozen, frozen=True, kw_only=True, tag_field="kind", tag="resumed"):
    """A lane takes the run up after a restart. `clean`: the daemon had stopped in order."""

    clean: bool


class Ended(Frozen, frozen=True, kw_only=True, tag_field="kind", tag="ended"):
    outcome: Outcome
    answer: str
    reason: str = ""
    limit: LimitName | None = None
    error: Code | None = None


Event = (
    Begun
    | Switched
    | Moved
    | Asked
    | Answered
    | Unanswered
    | Refused
    | Intended
    | Returned
    | CancelAsked
    | Resumed
    | Ended
)


# --- effects: what the core asks the shell to do next


class Begin(Frozen, frozen=True, kw_only=True, tag="begin"):
    """Choose endpoint, protocol and tools, and write the opening."""


class Switch(Frozen, frozen=True, kw_only=True, tag="switch"):
    """Write the opening anew, in this protocol."""

    protocol: Protocol


class Ask(Frozen, frozen=True, kw_only=True, tag="ask"):
    """Send the prompt made of the opening and the history from round `first` on, with this token cap."""

    asked: Asked
    seconds: float  # what is left of the run


class Act(Frozen, frozen=True, kw_only=True, tag="act"):
    """Pass call n through the gate, then run it; `once` calls get their intent written right before the start."""

    n: int
    call: Call
    effect: EffectClass
    seconds: float


class Record(Frozen, frozen=True, kw_only=True, tag="record"):
    """Nothing to perform: this event follows from the journal alone (the end, a call in doubt after a crash, a circle)."""

    event: Ended | Returned | Refused


class Rest(Frozen, frozen=True, kw_only=True, tag="rest"):
    """Nothing to do: the run has ended."""


Effect = Begin | Switch | Ask | Act | Record | Rest


# --- a run: what the journal adds up to


class Job(Frozen, frozen=True, kw_only=True):
    """What was accepted, as stored with the run: a task's goal, or a direct call's tool and arguments.

    `limits` are already clamped to the configured ones. `call` and `effect` are there for a direct call only.
    """

    goal: str = ""
    type: str = "default"
    mode: Mode = "act"
    limits: Limits = field(default_factory=Limits)
    context: Args = field(default_factory=dict)
    call: Call | None = None
    effect: EffectClass = "once"
    trace: str = ""
    response_topic: str = ""
    correlation: bytes = b""


class OpenCall(Frozen, frozen=True, kw_only=True):
    """A call that the model decided on and that has not ended. `intended`: its start is in the journal."""

    n: int
    call: Call
    effect: EffectClass
    intended: bool = False


class Done(Frozen, frozen=True, kw_only=True, omit_defaults=False):
    """A call that ended, as reported on the wire."""

    n: int
    tool: str
    args: Args
    result: Literal["ok", "failed", "denied", "unknown"]


class Told(Frozen, frozen=True, kw_only=True):
    """Something the model has yet to be told: the result of a call, or (n = 0) why its message gave no act."""

    text: str
    n: int = 0
    tool: str = ""


class Seen(Frozen, frozen=True, kw_only=True):
    """A call that returned a value, how often in a row it was this one; both as digests."""

    call: str
    result: str
    times: int


Phase = Literal["accepted", "ready", "asked", "acting", "closing", "ended"]


class Run(Frozen, frozen=True, kw_only=True):
    """One execution of a job. Made by `loop.start` and changed by `loop.apply` alone.

    `history` holds rounds: each the messages of one assistant turn and what it was told. `used` includes open
    reservations; `reserved` is the part still to be settled.
    """

    id: str
    job: Job
    phase: Phase = "accepted"
    begun: Begun | None = None
    history: tuple[tuple[Raw, ...], ...] = ()
    first: int = 0
    used: Usage = field(default_factory=Usage)
    reserved: int = 0
    calls: int = 0  # numbers given so far
    open: tuple[OpenCall, ...] = ()
    guard: Guard | None = None
    because: str = ""  # what a guard found true, until its act has returned
    told: tuple[Told, ...] = ()
    done: tuple[Done, ...] = ()
    observations: int = 0  # calls that returned a value
    answers: tuple[str, ...] = ()  # protocol command: sentences rendered from results
    last: str = ""  # the newest observation in words, for the fallback answer
    malformed: int = 0  # in a row
    unanswered: int = 0  # in a row
    trouble: str = ""  # the newest failure of an endpoint, until it answers
    finish_refused: bool = False
    seen: tuple[Seen, ...] = ()  # since the last act
    failing: dict[str, int] = field(default_factory=dict)  # by tool: failures in a row
    found: dict[int, str] = field(default_factory=dict)  # by place in `done_when`: what the newest result lacks
    warned: tuple[str, ...] = ()  # calls and tools that were refused for going in circles
    strikes: int = 0  # unclean starts in a row with an effect under way
    cancel: str | None = None
    ended: Ended | None = None
    seq: int = 0  # events applied
