"""Every noun as a frozen `msgspec.Struct`. Holds shapes only: no logic beyond a derived name, no I/O.

What a tool declares and returns is written in `basics`, decisions and events in `events`; all of it is had from here.
What is on the wire is in `wire`. Unions are tagged with the key `kind`. Bodies that must keep their bytes are `Raw`.
"""

from typing import Literal

from msgspec import Raw, field

from rea_edge.basics import Args as Args
from rea_edge.basics import Availability as Availability
from rea_edge.basics import Confirm as Confirm
from rea_edge.basics import Criterion as Criterion
from rea_edge.basics import EffectClass as EffectClass
from rea_edge.basics import Example as Example
from rea_edge.basics import Exchange as Exchange
from rea_edge.basics import Fault as Fault
from rea_edge.basics import Frozen as Frozen
from rea_edge.basics import Hours as Hours
from rea_edge.basics import LimitName as LimitName
from rea_edge.basics import Limits as Limits
from rea_edge.basics import Mode as Mode
from rea_edge.basics import Name as Name
from rea_edge.basics import Ok as Ok
from rea_edge.basics import Op as Op
from rea_edge.basics import Outcome as Outcome
from rea_edge.basics import Protocol as Protocol
from rea_edge.basics import Rate as Rate
from rea_edge.basics import Redaction as Redaction
from rea_edge.basics import Result as Result
from rea_edge.basics import Rule as Rule
from rea_edge.basics import Sandbox as Sandbox
from rea_edge.basics import SecretName as SecretName
from rea_edge.basics import State as State
from rea_edge.basics import Tool as Tool
from rea_edge.basics import ToolKind as ToolKind
from rea_edge.basics import Usage as Usage
from rea_edge.events import AS_SENT_BACK as AS_SENT_BACK
from rea_edge.events import Answer as Answer
from rea_edge.events import Answered as Answered
from rea_edge.events import Asked as Asked
from rea_edge.events import AskedApproval as AskedApproval
from rea_edge.events import Begun as Begun
from rea_edge.events import Call as Call
from rea_edge.events import Calls as Calls
from rea_edge.events import CancelAsked as CancelAsked
from rea_edge.events import CutOff as CutOff
from rea_edge.events import Decided as Decided
from rea_edge.events import Decision as Decision
from rea_edge.events import Doubted as Doubted
from rea_edge.events import Ended as Ended
from rea_edge.events import Event as Event
from rea_edge.events import Finish as Finish
from rea_edge.events import GiveUp as GiveUp
from rea_edge.events import Guard as Guard
from rea_edge.events import Intended as Intended
from rea_edge.events import Malformed as Malformed
from rea_edge.events import Moved as Moved
from rea_edge.events import Offer as Offer
from rea_edge.events import Refused as Refused
from rea_edge.events import Resumed as Resumed
from rea_edge.events import Returned as Returned
from rea_edge.events import Settled as Settled
from rea_edge.events import Switched as Switched
from rea_edge.events import Unanswered as Unanswered
from rea_edge.events import Verified as Verified

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
    tainted: bool = False  # decided on by a model that had read free text, or asked for by one elsewhere


class Verify(Frozen, frozen=True, kw_only=True, tag="verify"):
    """Find out by this read whether call n, which is in doubt, took effect."""

    n: int
    call: Call
    seconds: float


class Recall(Frozen, frozen=True, kw_only=True, tag="recall"):
    """Ask who carries out call n, which was cut off, how it ended. Starts nothing."""

    n: int
    call: Call
    seconds: float


class Record(Frozen, frozen=True, kw_only=True, tag="record"):
    """Nothing to perform: this event follows from the journal alone (the end, a call in doubt after a crash, a circle)."""

    event: Ended | Returned | Refused


class Wait(Frozen, frozen=True, kw_only=True, tag="wait"):
    """Nothing to do until a person has said yes or no, or too much time has passed."""


class Rest(Frozen, frozen=True, kw_only=True, tag="rest"):
    """Nothing to do: the run has ended."""


Effect = Begin | Switch | Ask | Act | Verify | Recall | Record | Wait | Rest


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
    dry_run: bool = False  # what acts is not run, and says so
    accepted_s: float = 0.0  # of the time the state had lived by then
    call: Call | None = None
    effect: EffectClass = "once"
    who: str = ""  # the sender; the gate asks what is open to him
    via: tuple[str, ...] = ()  # those on whose behalf he sends
    tainted_by: str = ""  # where free text came from that whoever decided on this job had read: see `taint`
    trace: str = ""
    response_topic: str = ""
    correlation: bytes = b""


class OpenCall(Frozen, frozen=True, kw_only=True):
    """A call that the model decided on and that has not ended. `intended`: its start is in the journal. `begun`: it may be
    made again, so that no row says when it starts, and may have been under way when the node ended before.

    Then `verify` is its probe, `recall` whether who carries it out can be asked for its end, `fault` how it ended where that
    says too little, `checked` what the probe gave.
    """

    n: int
    call: Call
    effect: EffectClass
    tainted: bool = False  # the model had read free text when it decided on it
    intended: bool = False
    begun: bool = False
    verify: Criterion | None = None
    recall: bool = False
    fault: Fault | None = None
    checked: Result | None = None
    spent_s: float = 0.0  # in attempts and probes that have not ended it


class Done(Frozen, frozen=True, kw_only=True):
    """A call that ended, as reported on the wire. `settled`: who said so of one whose outcome was unknown."""

    n: int
    tool: str
    args: Args
    result: Literal["ok", "failed", "denied", "unknown"]
    settled: str = ""


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


Phase = Literal["accepted", "ready", "asked", "acting", "waiting", "closing", "ended"]


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
    ask: AskedApproval | None = (
        None  # what a person is asked about the first of the open calls, until that starts or ends
    )
    said: Decided | None = None  # his yes to it
    guard: Guard | None = None
    because: str = ""  # what a guard found true, until its act has returned
    told: tuple[Told, ...] = ()
    notes: tuple[str, ...] = ()  # what people have said meanwhile, to be told with the next question
    unheard: tuple[str, ...] = ()  # those that were told and would go with a change of protocol
    done: tuple[Done, ...] = ()
    tainted_by: str = ""  # where the first free text came from that it has read, in words
    observations: int = 0  # calls that returned a value
    answers: tuple[str, ...] = ()  # protocol command: sentences rendered from results
    spared: tuple[Call, ...] = ()  # protocol command: acts whose condition did not hold
    last: str = ""  # the newest observation in words, for the fallback answer
    malformed: int = 0  # in a row
    unanswered: int = 0  # in a row
    trouble: str = ""  # the newest failure of an endpoint, until it answers
    finish_refused: bool = False
    seen: tuple[Seen, ...] = ()  # since the last act
    failing: dict[str, int] = field(default_factory=dict)  # by tool: failures in a row
    found: dict[int, str] = field(default_factory=dict)  # by place in `done_when`: what the newest result lacks
    denied: dict[str, str] = field(default_factory=dict)  # by call, as digest: why the gate refused it
    premise: str | None = None  # what the newest reading lacks to meet `only_if`: "" nothing, None not read
    warned: tuple[str, ...] = ()  # calls and tools that were refused for going in circles
    strikes: int = 0  # unclean starts in a row with an effect under way
    taken_up: bool = False  # after a restart, and nothing has followed yet: its next effect may be under way
    sent: str = ""  # the prefix of the newest question, while what follows must begin with it
    recheck: bool = False  # it was read back from the journal, and nothing has been asked since
    cancel: str | None = None
    ended: Ended | None = None
    seq: int = 0  # events applied
