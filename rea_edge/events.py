"""What a run is told, as frozen structs: decisions, what an endpoint gives, and the events of its journal.

Holds shapes only, like `records`, which re-exports all of it. Unions are tagged with the key `kind`.
"""

from typing import Literal

from msgspec import Raw, field

from rea_edge.basics import (
    Args,
    Criterion,
    EffectClass,
    Fault,
    Frozen,
    LimitName,
    Op,
    Outcome,
    Protocol,
    Result,
    Tool,
    ToolKind,
)
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
    fields: tuple[str, ...] = ()
    kind: ToolKind = "python"
    outward: bool = False

    @classmethod
    def of(cls, tool: Tool) -> "Offer":
        return cls(
            name=tool.name,
            effect=tool.effect,
            parameters=tool.parameters,
            returns=tool.returns,
            fields=tool.fields,
            kind=tool.kind,
            outward=tool.outward,
        )


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
    only_if: Criterion | None = None  # other protocols: what the goal's words make the condition of all its acts
    next_protocol: Protocol | None = None  # tried once, where this one gives no readable decision
    without: tuple[str, ...] = ()  # members of a request that the endpoint refuses by name
    seconds: float = 0.0  # that choosing took

    def reads(self, tool: str) -> bool:
        """Whether this tool is on offer and only reads."""
        return any(offer.name == tool and offer.effect == "read" for offer in self.offers)


class Switched(Frozen, frozen=True, kw_only=True, tag_field="kind", tag="switched"):
    """The run goes on in another protocol, with what `Begun` says of it anew; what was unreadable is left behind."""

    protocol: Protocol
    opening: tuple[Raw, ...]
    ask: str
    answer_tokens: int


class Moved(Frozen, frozen=True, kw_only=True, tag_field="kind", tag="moved"):
    """Another endpoint is asked from now on, or the same one in another way, with what `Begun` says of it.

    Opening and history stay byte for byte.
    """

    endpoint: str
    model: str
    ask: str
    context_tokens: int
    why: str
    seconds: float = 0.0  # that choosing took
    without: tuple[str, ...] = ()


class Asked(Frozen, frozen=True, kw_only=True, tag_field="kind", tag="asked"):
    """A question goes out. `reserved` tokens are charged now; `first` is the first round of history still sent.

    `turns` are the messages that this question adds, as the bytes that are sent from now on. `prefix` names the bytes of
    the whole prompt, as `length:sha256`: see `context.prefix`. `notes` of the run's notes are among the turns.
    """

    step: int
    reserved: int
    cap: int
    first: int = 0
    turns: tuple[Raw, ...] = ()
    prefix: str = ""
    notes: int = 0


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
    """The gate said no to call n: it was not started and never will be. `seconds`: what the gate's own reads took."""

    n: int
    reason: str
    seconds: float = 0.0


class AskedApproval(Frozen, frozen=True, kw_only=True, tag_field="kind", tag="asked_approval"):
    """Call n waits for the yes of one of `approvers`, until the state has lived `until_s`.

    `ask_hash` names the call with its true arguments (see `approval.ask_hash`), `shown` are those that people may see.
    """

    n: int
    ask_hash: str
    nonce: str
    approvers: tuple[str, ...]
    seconds: float
    until_s: float
    shown: Args
    risk: str
    tainted_by: str = ""  # where the free text came from that the model had read
    hidden: bool = False  # `shown` is not all of the arguments: something in them looks like a secret


class Decided(Frozen, frozen=True, kw_only=True, tag_field="kind", tag="decided"):
    """What was said to the ask of this hash, by whom, and in which message (`say`). A yes holds for one start of call n."""

    n: int
    ask_hash: str
    answer: Literal["yes", "no", "expired"]
    at_s: float  # of the state's life
    by: str = ""
    say: str = ""
    why: str = ""


class Intended(Frozen, frozen=True, kw_only=True, tag_field="kind", tag="intended"):
    """Call n is about to start, and its tool acts `once`, can be verified or costs. Without its end it is in doubt.

    `verify` is what a read returns if it took effect, `effect` what it was taken for, `cost` what is charged for it now.
    `recall`: who carries it out keeps its end, and can be asked for that.
    """

    n: int
    effect: EffectClass = "once"
    verify: Criterion | None = None
    cost: float = 0.0
    recall: bool = False


class Doubted(Frozen, frozen=True, kw_only=True, tag_field="kind", tag="doubted"):
    """Call n ended in a way that may have taken effect. Its probe is to say."""

    n: int
    fault: Fault
    seconds: float


class Verified(Frozen, frozen=True, kw_only=True, tag_field="kind", tag="verified"):
    """What the probe of call n, which is in doubt, gave."""

    n: int
    result: Result
    seconds: float


class Returned(Frozen, frozen=True, kw_only=True, tag_field="kind", tag="returned"):
    """Call n ended. `unknown`: nobody can say whether its effect took place."""

    n: int
    result: Result
    seconds: float
    unknown: bool = False


class CutOff(Frozen, frozen=True, kw_only=True, tag_field="kind", tag="cut_off"):
    """Call n, which may be made again, was under way when the node stopped. It may have taken effect."""

    n: int
    seconds: float


class CancelAsked(Frozen, frozen=True, kw_only=True, tag_field="kind", tag="cancel_asked"):
    by: str
    text: str = ""


class Settled(Frozen, frozen=True, kw_only=True, tag_field="kind", tag="settled"):
    """A person says what became of call n, of which nobody knew. May come after the run's end."""

    n: int
    outcome: Literal["done", "not_done"]
    by: str


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
    | AskedApproval
    | Decided
    | Intended
    | Doubted
    | Verified
    | Returned
    | CutOff
    | CancelAsked
    | Settled
    | Resumed
    | Ended
)
