"""Every noun as a frozen `msgspec.Struct`. Holds shapes only: no logic beyond a derived name, no I/O.

Three families: what a tool declares and returns, what happens in a run (decision, event, effect, run), and
what is on the wire. Unions are tagged with the key `kind`. Bodies that must keep their bytes are `Raw`.
"""

from typing import Annotated, Literal

from msgspec import Meta, Raw, Struct, field

from rea_edge.errors import Code, DecisionErrorKind

# A JSON object as Python values. Its values are checked where they are used, by `schema` or by a strict type.
Args = dict[str, object]

EffectClass = Literal["read", "idempotent", "once"]
ToolKind = Literal["python", "command"]
Protocol = Literal["native", "json", "react", "command"]
Mode = Literal["act", "query"]
State = Literal["accepted", "running", "paused", "waiting", "ended"]
Outcome = Literal["achieved", "gave_up", "exceeded", "cancelled", "failed", "escalated", "rejected", "expired"]
LimitName = Literal["steps", "tokens", "seconds"]
Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,36}$")]


class Frozen(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of what is stored: absent keys are defaults, so that old rows stay readable as fields are added."""


# --- money: what a run may spend and has spent


class Usage(Frozen, frozen=True, kw_only=True, omit_defaults=False):
    """A sum: steps are questions asked, tokens are prompt plus completion, seconds are time inside effects."""

    steps: int = 0
    tokens: int = 0
    seconds: float = 0.0
    estimated: bool = False  # some part of `tokens` is our estimate, not the server's count


class Limits(Frozen, frozen=True, kw_only=True, omit_defaults=False):
    """The most one run may use. `tool_s` is per call, `task_s` is active seconds, `answer_tokens` is per answer."""

    steps: int = 8
    tokens: int = 20_000
    answer_tokens: int = 1_024
    tool_s: float = 10.0
    task_s: float = 300.0


# --- tools


class Example(Frozen, frozen=True, kw_only=True):
    """What a person says, and the arguments, command line or `cannot` that answers it."""

    say: str
    answer: Args | str


class Tool(Frozen, frozen=True, kw_only=True):
    """One tool as declared. `parameters` and `returns` are JSON Schemas of the closed subset of `schema`."""

    name: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{0,47}$")]
    description: str
    parameters: Args
    effect: EffectClass
    kind: ToolKind = "python"
    timeout_s: float = 10.0
    retries: int = 0  # further attempts after a failure; never for `once`
    device: str = ""  # calls on one device exclude each other; `read` shares
    examples: tuple[Example, ...] = ()
    returns: Args | None = None
    command: tuple[str, ...] = ()
    source: str = ""  # the file it came from, absolute


class Ok(Frozen, frozen=True, kw_only=True, tag_field="kind", tag="ok"):
    """A tool's value as JSON bytes."""

    data: Raw


class Fault(Frozen, frozen=True, kw_only=True, tag_field="kind", tag="fault"):
    """A call that gave no value. `fault` names how it failed: see `toolhost` for the closed list."""

    fault: str
    message: str
    suggestion: str = ""


Result = Ok | Fault


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
    op: Literal[">", ">=", "<", "<=", "==", "!="]
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


class Offer(Frozen, frozen=True, kw_only=True):
    """A tool as a run keeps it: later changes of the tool set do not touch a running run."""

    name: str
    effect: EffectClass
    parameters: Args
    returns: Args | None = None


# --- events: what the shell tells the core; each is a journal row before the core sees it


class Begun(Frozen, frozen=True, kw_only=True, tag_field="kind", tag="begun"):
    """The run starts on a lane: all that stays fixed for it.

    `opening` holds the messages before the first answer (each a JSON object), `ask` the constant rest of the
    request body as JSON members without braces (tools, grammar, temperature...), as bytes that are sent as they are.
    """

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


class Asked(Frozen, frozen=True, kw_only=True, tag_field="kind", tag="asked"):
    """A question goes out. `reserved` tokens are charged now; `first` is the first round of history still sent.

    `turns` are the messages that this question adds, as the bytes that are sent from now on.
    """

    step: int
    reserved: int
    cap: int
    first: int = 0
    turns: tuple[Raw, ...] = ()


class Answered(Frozen, frozen=True, kw_only=True, tag_field="kind", tag="answered"):
    """The assistant's bytes with what was read from them. Settles the reservation of the same step.

    `turn` is the message as it is sent back from now on.
    """

    step: int
    turn: Raw
    decision: Decision | Malformed
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    estimated: bool = False
    finish_reason: str | None = None


class Unanswered(Frozen, frozen=True, kw_only=True, tag_field="kind", tag="unanswered"):
    """The endpoint gave nothing for this step; the reservation stays charged. `final`: asking again is no use."""

    step: int
    fault: str
    message: str
    seconds: float
    final: bool = True


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


Event = Begun | Asked | Answered | Unanswered | Refused | Intended | Returned | CancelAsked | Resumed | Ended


# --- effects: what the core asks the shell to do next


class Begin(Frozen, frozen=True, kw_only=True, tag="begin"):
    """Choose endpoint, protocol and tools, and write the opening."""


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


Effect = Begin | Ask | Act | Record | Rest


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
    finish_refused: bool = False
    seen: tuple[Seen, ...] = ()  # since the last act
    failing: dict[str, int] = field(default_factory=dict)  # by tool: failures in a row
    warned: tuple[str, ...] = ()  # calls and tools that were refused for going in circles
    strikes: int = 0  # unclean starts in a row with an effect under way
    cancel: str | None = None
    ended: Ended | None = None
    seq: int = 0  # events applied
