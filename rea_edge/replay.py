"""A recorded run read once more: what its answers were taken for then, and what they are taken for now. Pure."""

from collections.abc import Iterable, Iterator
from typing import assert_never

import msgspec

from rea_edge import decision
from rea_edge.bounds import Bounds
from rea_edge.records import (
    AS_SENT_BACK,
    Answered,
    Begun,
    Call,
    Calls,
    Decision,
    Event,
    Finish,
    Frozen,
    GiveUp,
    Guard,
    Malformed,
    Offer,
    Protocol,
    Switched,
)  # fmt: skip


class Reading(Frozen, frozen=True, kw_only=True):
    """One answer. `then` is what the journal has, `now` what today's code reads; both in words."""

    step: int
    protocol: Protocol
    then: str
    now: str
    same: bool


def answers_of(events: Iterable[Event]) -> Iterator[Event]:
    """What a replay needs of a journal, without the prompts: how the run was asked, and what came."""
    for event in events:
        match event:
            case Begun() | Switched():
                yield msgspec.structs.replace(event, opening=(), ask="")
            case Answered():
                yield msgspec.structs.replace(event, turn=event.received, message=AS_SENT_BACK)


def read_again(events: Iterable[Event]) -> Iterator[Reading]:
    """Read every recorded answer with today's code, in order."""
    offers: tuple[Offer, ...] = ()
    protocol: Protocol = "json"
    table: dict[str, str] = {}
    bounds: Bounds | None = None
    for event in events:
        if isinstance(event, Begun):
            offers, protocol, table, bounds = event.offers, event.protocol, event.aliases, event.bounds
        elif isinstance(event, Switched):
            protocol = event.protocol
        elif isinstance(event, Answered):
            message = msgspec.json.decode(event.received, type=dict[str, object])
            now = decision.read_or_fault(message, event.finish_reason, offers, protocol, table, bounds)
            yield Reading(
                step=event.step,
                protocol=protocol,
                then=in_words(event.decision),
                now=in_words(now),
                same=msgspec.to_builtins(now) == msgspec.to_builtins(event.decision),
            )


def in_words(read: Decision | Malformed) -> str:
    """A decision on one line."""
    match read:
        case Calls(calls=calls):
            return "call " + ", ".join(_call(call) for call in calls)
        case Guard():
            return f"if {_call(read.read)} {read.path} {read.op} {read.value!r}: {_call(read.then)}"
        case Finish(answer=answer):
            return f"finish {answer!r}"
        case GiveUp(reason=reason):
            return f"give up {reason!r}"
        case Malformed(error=error, message=message):
            return f"{error}: {message}"
        case _:
            assert_never(read)


def _call(call: Call) -> str:
    return f"{call.name} {msgspec.json.encode(call.args).decode()}"
