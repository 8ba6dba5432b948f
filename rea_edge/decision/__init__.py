"""One assistant message read to one decision, or to one precise rejection for the model: `read`.

Inside, a file imports only from those before it: notation, found, names, turn, shapes, calls, native, dialects, tagged,
bodies, react, reply, reasoning, fences, scan, prose, meant, settle, reading; command (its own lines) and grammar stand
beside them.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

from rea_edge import aliases
from rea_edge.bounds import Bounds
from rea_edge.errors import DecisionRejected
from rea_edge.records import Decision, Malformed, Offer, Protocol


def read(
    message: Mapping[str, object],
    finish_reason: str | None,
    offers: Sequence[Offer],
    protocol: Protocol | Literal["any"],
) -> Decision:
    """Read `choices[0].message` with its `finish_reason`; `offers` are the tools of this turn.

    Raises DecisionRejected with a kind and a short message for the model. `any`: the protocol asked for is not known.
    """
    # The marks of all dialects take a while to compile: a daemon that waits for work has not paid for them.
    from rea_edge.decision import reading

    return reading.read(message, finish_reason, offers, protocol)


def read_or_fault(
    message: Mapping[str, object],
    finish_reason: str | None,
    offers: Sequence[Offer],
    protocol: Protocol,
    table: Mapping[str, str],
    bounds: Bounds | None = None,
) -> Decision | Malformed:
    """The same as `read`, with what it raises as a value that can be kept, and tools by the other names of `table`.

    A command line has to keep to `bounds`.
    """
    try:
        found = aliases.ours(read(message, finish_reason, aliases.renamed_offers(offers, table), protocol), table)
        if bounds is not None and protocol == "command" and not isinstance(found, Malformed):
            from rea_edge.decision import bounded

            bounded.check(found, bounds, offers)
        return found
    except DecisionRejected as rejected:
        return Malformed(error=rejected.kind, message=rejected.message)
