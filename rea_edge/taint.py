"""Free text that a run has read: what counts as such, which calls it makes need a person's yes, and how it is carried. Pure.

Free text can say anything, an order to the model included: a text that is no value of an `enum` or `const` of what the
tool declares to return. Numbers, true and false, null, an empty text and such values say nothing of their own, nor do
words that the model itself put into the call, and those of the sender and of the node. A model that was told free text
may follow it; what it had decided on before, it decided without. Judged from the journal alone: the declaration is that
of the run's beginning.
"""

import re
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import Raw

from rea_edge.condition import same
from rea_edge.parameters import shapes_of
from rea_edge.records import Args, Call, EffectClass, Fault, Offer, Ok, OpenCall, Result, Run, Tool

if TYPE_CHECKING:
    from rea_edge.schema.shape import Shape

ON_THE_BOARD = ("python", "command")  # kinds whose calls end on this board, as far as nobody declares otherwise
BY_REQUEST = "the request itself, which says so"
NOTE = "this is free text, and may say anything: what the model decides on from here on is tainted by it"
# Faults whose words are the node's own; of any other kind the tool, or a device behind it, may have put them.
OUR_FAULTS = frozenset(
    {
        "timeout", "cancelled", "memory", "cpu", "output", "crashed", "host_gone", "unconfined", "missing_program",
        "bad_args", "unknown_tool", "no_host", "busy", "denied", "unknown", "no_broker", "broker_gone", "offline",
        "denied_by_broker", "not_sent",
    }
)  # fmt: skip
PEERS_FAULTS = frozenset(
    {"denied", "busy"}
)  # of these another node may have put the words, where it carries the tool out
# Results in words of ours: of a message to a device from which no answer is awaited, and of what a dry run leaves out.
PUBLISHED = b'{"published":true}'
NOT_RUN = b'{"dry_run":true,"note":"valid and allowed, and not run: this is a dry run"}'
_NOTHING_SAID = re.compile(r"exit \d+")  # of a command that failed without a word
# A key that nobody declared, of a tool on the board: its code's name for a value, and no sentence.
_KEY = re.compile(r"(?=.{1,32}\Z)[A-Za-z0-9]+(?:[_.:-][A-Za-z0-9]+){0,3}\Z")


def is_outward(tool: Tool | Offer) -> bool:
    """Whether a call does or tells something beyond this board: as declared, or an act on another device."""
    return tool.outward or (tool.kind not in ON_THE_BOARD and tool.effect != "read")


def is_held(effect: EffectClass, outward: bool) -> bool:
    """Whether a model that has read free text needs a person's yes for such a call."""
    return effect == "once" or outward


def is_outward_in(run: Run, call: Call) -> bool:
    """Whether the tool of this call was outward when the run began."""
    return any(is_outward(offer) for offer in _offers(run) if offer.name == call.name)


def is_free(result: Result, call: Call, offer: Tool | Offer | None) -> bool:
    """Whether what a call gave holds free text; `offer` is its tool as it was declared, None if nobody knows."""
    match result:
        case Fault(fault=fault, message=message, suggestion=suggestion):
            told_by_peer = fault in PEERS_FAULTS and offer is not None and offer.kind == "node"
            ours = (fault in OUR_FAULTS and not told_by_peer) or _NOTHING_SAID.fullmatch(message) is not None
            return not ours and bool(message or suggestion)
        case Ok(data=data):
            return bytes(data) not in (PUBLISHED, NOT_RUN) and _says(data, call, offer)


def in_result(run: Run, head: OpenCall, result: Result) -> bool:
    """Whether what a call of this run gave is free text to its model. `head` is the call as it was open."""
    probe = head.verify
    if isinstance(result, Ok) and isinstance(head.checked, Ok) and probe is not None:
        # What is told is what the probe found; the value that it looked for says nothing new.
        looked_for = Call(name=probe.tool, args={**probe.args, "": probe.value})
        return _says(head.checked.data, looked_for, _offer(run, probe.tool))
    return is_free(result, head.call, _offer(run, head.call.name))


def after(run: Run, head: OpenCall) -> Run:
    """The run once its model is to be told free text of this call. Nothing washes that off; its first source is named."""
    if run.tainted_by:
        return run
    return msgspec.structs.replace(run, tainted_by=source(head.n, head.call.name))


def source(n: int, tool: str) -> str:
    return f"call {n} of {tool}"


def refusal(name: str, tainted_by: str, task_type: str, hindrance: str) -> str:
    """Why a call of a run that has read free text may not run where nobody can say yes to it."""
    return (
        f"{name} was not run: this task has read text that may say anything ({tainted_by}), so that a person must say"
        f" yes to it, and nobody can: {hindrance}. The operator may name [access] approvers, declare what the tool"
        f' returns as an enum, or set untrusted = "allow" in [task.{task_type}]'
    )


def _offers(run: Run) -> tuple[Offer, ...]:
    return run.begun.offers if run.begun is not None else ()


def _offer(run: Run, name: str) -> Offer | None:
    return next((offer for offer in _offers(run) if offer.name == name), None)


class _Known(NamedTuple):
    """What a result may say without saying anything new: `words` that the model itself has put into the call, `keys` that
    the declaration names. `names`: other keys may be plain names, as the code of a tool on this board gives them."""

    words: frozenset[str]
    keys: frozenset[str]
    names: bool

    @classmethod
    def of(cls, call: Call, offer: Tool | Offer | None) -> "_Known":
        words = frozenset(word for word in call.args.values() if isinstance(word, str))
        if offer is None:
            return cls(words, frozenset(), names=True)
        shown = (part for path in offer.fields for part in path.split("."))
        return cls(words, frozenset([*shown, *shapes_of(offer.parameters)]), names=offer.kind in ON_THE_BOARD)

    def is_key(self, key: str) -> bool:
        return key in self.keys or (self.names and _KEY.match(key) is not None)


def _says(data: Raw, call: Call, offer: Tool | Offer | None) -> bool:
    from rea_edge import schema  # a node that only waits has not paid for it

    returns: Args = (offer.returns if offer is not None else None) or {}
    shape = schema.compile(returns, place="returns", lenient=True).shape
    return _is_text(msgspec.json.decode(data), shape, _Known.of(call, offer))


def _is_text(value: object, shape: "Shape | None", known: _Known) -> bool:
    """Whether a value is or has free text; `shape` is what was declared for its place, if anything."""
    if shape is not None and shape.branches:
        return all(_is_text(value, branch, known) for branch in shape.branches)
    match value:
        case str():
            listed = shape.members or () if shape else ()
            return value != "" and value not in known.words and not any(same(value, member) for member in listed)
        case list():
            return any(_is_text(item, shape and shape.items, known) for item in value)
        case dict():
            return any(_is_text_at(key, item, shape, known) for key, item in value.items())
        case _:
            return False


def _is_text_at(key: str, value: object, shape: "Shape | None", known: _Known) -> bool:
    if shape is not None and key in shape.properties:
        return _is_text(value, shape.properties[key], known)
    return not known.is_key(key) or _is_text(value, shape and shape.extra, known)
