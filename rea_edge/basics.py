"""Closed words, limits and tools as values: what `records` is written in. Holds shapes only, like `records`.

Everything here is imported from `records`, whose first part it is.
"""

from typing import Annotated, Literal

from msgspec import Meta, Raw, Struct

# A JSON object as Python values. Its values are checked where they are used, by `schema` or by a strict type.
Args = dict[str, object]

EffectClass = Literal["read", "idempotent", "once"]
ToolKind = Literal["python", "command", "mqtt", "node"]
Redaction = Literal["addresses"]
Protocol = Literal["native", "json", "react", "command"]
Mode = Literal["act", "query"]
State = Literal["accepted", "running", "paused", "waiting", "ended"]
Outcome = Literal["achieved", "gave_up", "exceeded", "cancelled", "failed", "escalated", "rejected", "expired"]
Confirm = Literal["never", "task", "always"]
Op = Literal[">", ">=", "<", "<=", "==", "!="]
LimitName = Literal["steps", "tokens", "seconds", "day_tokens", "month_tokens", "day_cost", "month_cost"]
# Ends with \Z: `$` would let a line break through, which makes a topic that brokers end the connection for.
Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,36}\Z")]

SecretName = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{0,47}\Z")]


class Frozen(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of what is stored: absent keys are defaults, so that old rows stay readable as fields are added."""


# --- money: what a run may spend and has spent


class Usage(Frozen, frozen=True, kw_only=True, omit_defaults=False):
    """A sum: steps are questions asked, tokens are prompt plus completion, seconds are time inside effects, cost is what
    calls cost that were started."""

    steps: int = 0
    tokens: int = 0
    seconds: float = 0.0
    estimated: bool = False  # some part of `tokens` is our estimate, not the server's count
    cost: float = 0.0


class Limits(Frozen, frozen=True, kw_only=True, omit_defaults=False):
    """The most one run may use. `tool_s` is per call, `task_s` is active seconds, `answer_tokens` is per answer; `cost`
    is in the operator's own unit, 0 is no limit."""

    steps: int = 8
    tokens: int = 20_000
    answer_tokens: int = 1_024
    tool_s: float = 10.0
    task_s: float = 300.0
    cost: float = 0.0


# --- tools


class Example(Frozen, frozen=True, kw_only=True):
    """What a person says, and the arguments, command line or `cannot` that answers it."""

    say: str
    answer: Args | str


class Criterion(Frozen, frozen=True, kw_only=True):
    """What a call must return: before a task may count as done, or a tool may start. `path` is empty for the whole."""

    tool: str
    args: Args
    path: str
    op: Op
    value: object


class Rate(Frozen, frozen=True, kw_only=True):
    """At most `times` starts within any `seconds`."""

    times: int
    seconds: float


class Hours(Frozen, frozen=True, kw_only=True):
    """Minutes of the local day, the first included, the last not."""

    first: int
    last: int

    def __contains__(self, minute: int) -> bool:
        if self.first <= self.last:
            return self.first <= minute < self.last
        return minute >= self.first or minute < self.last

    def __str__(self) -> str:
        return "-".join(f"{minute // 60:02d}:{minute % 60:02d}" for minute in (self.first, self.last))


class Rule(Frozen, frozen=True, kw_only=True):
    """The bounds of one tool; what is absent bounds nothing."""

    ranges: dict[str, tuple[float, float]] = {}
    values: dict[str, tuple[bool | int | float | str, ...]] = {}  # the only ones that a parameter may have
    rate: Rate | None = None
    dwell_s: float = 0.0  # least seconds between two starts
    hours: Hours | None = None
    requires: tuple[str, ...] = ()  # tools that must have given a value in the same run before
    only_if: tuple[Criterion, ...] = ()  # what reads must say right before; args are those of the read
    confirm: Confirm = (
        "never"  # whether a person must say yes: `task` only where a model asks, `always` also in direct calls
    )
    approvers: tuple[str, ...] = ()  # who may say it
    approve_s: float = 120.0  # how long they have
    cost: float = 0.0  # of one start


class Sandbox(Frozen, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a tool may see of the file system and of the network (TCP). A path may begin with `$REA_STATE_DIR`."""

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    network: bool = False


class Availability(Frozen, frozen=True, kw_only=True):
    """Where a device says whether it is there. `path` is empty for the whole, or the `state` of an object; anything
    said there but one of `online` means that it is not."""

    topic: str
    path: str = ""
    online: tuple[object, ...] = ("online", "Online", True)


class Exchange(Frozen, frozen=True, kw_only=True):
    """What an MQTT tool says to a device and what it awaits. `{name}` in topics, payload and `match` stands for an
    argument. `match`: what must stand at each path of a reply for it to be the answer; the path "" is the whole."""

    publish: str = ""  # topic; empty: nothing is published
    payload: object = ""
    qos: Literal[0, 1] = 1
    reply: str = ""  # topic; empty: none is awaited
    path: str = ""  # into the reply; empty: all of it
    match: dict[str, object] = {}
    error: str = ""  # where a reply to it says that it was refused, and why; empty: nowhere
    availability: tuple[Availability, ...] = ()


class Tool(Frozen, frozen=True, kw_only=True):
    """One tool as declared. `parameters` and `returns` are JSON Schemas of the closed subset of `schema`."""

    name: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{0,47}\Z")]
    description: str
    parameters: Args
    effect: EffectClass
    kind: ToolKind = "python"
    timeout_s: float = 10.0
    retries: int = 0  # further attempts after a failure; never for `once`
    p95_s: float = 2.0  # 95 % of its calls should take at most so long
    device: str = ""  # calls on one device exclude each other; `read` shares
    examples: tuple[Example, ...] = ()
    returns: Args | None = None
    fields: tuple[str, ...] = ()  # paths into the result that may be seen; empty: all of it
    redact: tuple[Redaction, ...] = ()  # what is hidden besides credentials
    summary: bool = False  # a large result is given as counts, ends and figures
    sandbox: Sandbox | None = None  # None: it runs as it likes within its limits
    verify: Criterion | None = None  # what a read returns if a call took effect; `{name}` stands for an argument
    outward: bool = False  # what it does leaves the board: see `taint.is_outward`
    rule: Rule | None = None  # its own bounds at the gate; the node's may only add to them
    command: tuple[str, ...] = ()
    exchange: Exchange | None = None  # of an MQTT tool
    needs: tuple[str, ...] = ()  # the secrets that its calls are given, by the names of `[secrets]`
    env: dict[str, str] = {}  # of a command: the environment variable that each of them is given in
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
