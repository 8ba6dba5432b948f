"""What is published and received, as structs: the wire contract. Floor 0; holds shapes only.

Requests refuse unknown keys by name. What a node publishes may grow; readers ignore keys they do not know, so the
published structs decode leniently.
"""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from rea_edge.errors import Code
from rea_edge.records import Args, Done, LimitName, Limits, Mode, Name, Outcome, State, Usage

PAYLOAD_MAX = 64 * 1024  # bytes of a request; more is `too_large`
EventKind = Literal["thought", "call", "result", "check", "note", "end"]
PUBLISH_MAX = 32 * 1024  # bytes of anything published
VIA_MAX = 16  # names that a request has come by; more is a circle, or as good as one
TRACE_MAX = 256  # characters of a trace id: W3C's has 55; it comes back in every state


class Request(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What every request may carry. `ttl_ms` is how old it may be on arrival, `sent_at` is RFC 3339."""

    ttl_ms: Annotated[int, Meta(ge=1)] | None = None
    sent_at: str | None = None
    epoch: str | None = None
    via: Annotated[list[Name], Meta(max_length=VIA_MAX)] | None = None
    trace: Annotated[str, Meta(max_length=TRACE_MAX, pattern=r"^[!-~]*\Z")] | None = None
    meta: Args = field(default_factory=dict)
    sig: str | None = None


class LimitsAsked(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Limits that a request lowers; those above the configured ones are clamped."""

    steps: Annotated[int, Meta(ge=1)] | UnsetType = UNSET
    tokens: Annotated[int, Meta(ge=1)] | UnsetType = UNSET
    answer_tokens: Annotated[int, Meta(ge=1)] | UnsetType = UNSET
    tool_s: Annotated[float, Meta(gt=0)] | UnsetType = UNSET
    task_s: Annotated[float, Meta(gt=0)] | UnsetType = UNSET
    cost: Annotated[float, Meta(gt=0)] | UnsetType = UNSET


class TaskRequest(Request, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    goal: Annotated[str, Meta(min_length=1)]
    id: Name | None = None
    type: Name | None = None
    mode: Mode | None = None
    limits: LimitsAsked = field(default_factory=LimitsAsked)
    context: Args = field(default_factory=dict)
    continues: str | None = None
    dry_run: bool = False
    tainted: bool = False  # whoever decided on this had read free text; no part of the body


class CallRequest(Request, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    id: Name
    args: Args = field(default_factory=dict)
    dry_run: bool = False
    tainted: bool = False  # as in a task


class CtlRequest(Request, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    id: Name
    task: Name
    do: Literal["cancel", "pause", "resume", "amend", "feedback", "settle"]
    text: str = ""
    who: Name | None = None
    n: int | None = None
    outcome: Literal["done", "not_done"] | None = None
    good: bool | None = None


class NodeRequest(Request, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    id: Name
    do: Literal["halt", "release", "reload"]


class SayRequest(Request, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """An approver's word. What is neither yes nor no, in whatever type, is judged and not refused."""

    id: Name
    request: Annotated[str, Meta(max_length=64)]
    answer: object = None
    ask_hash: object = None


class QueryRequest(Request, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    id: Name
    who: Name | None = None
    task: Name | None = None
    after: Annotated[int, Meta(ge=0, le=2**53)] = 0
    limit: Annotated[int, Meta(ge=1, le=200)] = 20


class Published(Struct, frozen=True, kw_only=True):
    """Base of what a node publishes: every key is there, also where it is null."""


class TaskState(Published, frozen=True, kw_only=True):
    v: int = 1
    id: str
    who: str
    run: str
    state: State
    accepted: bool
    body: str
    seq: int
    step: int
    outcome: Outcome | None = None
    answer: str | None = None
    reason: str | None = None
    limit: LimitName | None = None
    error: Code | None = None
    done: list[Done] = field(default_factory=list)
    done_total: int = 0
    usage: Usage = field(default_factory=Usage)
    limits: Limits = field(default_factory=Limits)
    dry_run: bool = False
    tainted_by: str | None = None  # where the first free text came from that the task has read
    trace: str = ""
    at: str | None = None
    until: str | None = None  # a state that stands for longer was brought back by a broker or a bridge
    up_ms: int = 0


class TaskEvent(Published, frozen=True, kw_only=True):
    seq: int
    step: int
    kind: EventKind
    text: str = ""
    n: int | None = None
    tool: str | None = None
    args: Args | None = None
    ms: int | None = None
    tokens: dict[str, int | bool] | None = None  # in, out; estimated: true where the server did not count
    at: str | None = None


class ErrorBody(Published, frozen=True, kw_only=True):
    code: Code
    message: str
    retryable: bool = False
    fault: str | None = None  # of a call that has run: how it failed, by the names of `toolhost.faults`


class Reply(Published, frozen=True, kw_only=True):
    """Answers a request; `for_` is `for` on the wire. Exactly one of `data` (with ok) and `error` means something.

    `id` is None where the request had none that could be read.
    """

    for_: str = field(name="for")
    id: str | None = None
    ok: bool = False
    data: object = None
    error: ErrorBody | None = None
    next: int | None = None
    ms: int | None = None
    at: str | None = None


class AskShown(Published, frozen=True, kw_only=True):
    """A call that waits for a person: `args` as people may see them, `ask_hash` over what they truly are."""

    request: str
    who: str
    via: list[str] = field(default_factory=list)
    task: str
    goal: str = ""
    tool: str
    args: Args
    ask_hash: str
    risk: str
    tainted_by: str | None = None  # where free text came from that the asking model had read
    hidden: bool = False  # `args` are not all that runs: something in them looks like a secret, and is not shown
    until: str | None = None
    expires_s: float
    at: str | None = None


class DecidedShown(Published, frozen=True, kw_only=True):
    """How an ask ended. `cancelled`: its task ended while it waited."""

    request: str
    who: str
    task: str
    tool: str | None = None
    ask_hash: str
    answer: Literal["yes", "no", "expired", "cancelled"]
    by: str | None = None
    why: str = ""
    at: str | None = None


class BudgetLeft(Published, frozen=True, kw_only=True):
    """`left` of `of` tokens (or of cost); the count is renewed in `renewed_in_s` seconds at the latest."""

    left: int | float
    of: int | float
    renewed_in_s: float


class NodeStatus(Published, frozen=True, kw_only=True):
    state: Literal["online", "degraded", "offline"]
    session: int
    boot: str
    instance: str = ""  # of the process: two nodes with one id tell each other apart by it
    host: str = ""
    epoch: str
    version: str
    config_hash: str = ""
    tools_hash: str = ""
    faults: list[str] = field(default_factory=list)
    budgets: dict[str, BudgetLeft] = field(default_factory=dict)  # by limit, of all tasks together
    at: str | None = None
    until: str | None = None
    up_ms: int = 0
