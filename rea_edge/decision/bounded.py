"""Whether a command line keeps to what its goal speaks for (`Bounds`, made by `evidence`). Reads no text."""

from collections.abc import Sequence

from rea_edge.bounds import Bounds
from rea_edge.errors import DecisionRejected
from rea_edge.records import Call, Calls, Decision, Guard, Offer


def check(decision: Decision, bounds: Bounds, offers: Sequence[Offer]) -> None:
    """Raise `DecisionRejected` for a line that is outside the bounds. That its tools are offered is checked before."""
    reads = {offer.name for offer in offers if offer.effect == "read"}
    match decision:
        case Calls(calls=calls):
            acts = [call for call in calls if call.name not in reads]
            if acts and not bounds.plain:
                raise DecisionRejected("invalid_args", "The goal has a condition: answer if ... then ..., or cannot.")
            if not acts and not bounds.reads:
                raise DecisionRejected("invalid_args", "The goal asks for an act, not for a reading. Or answer cannot.")
        case Guard(read=read, path=path, value=value, op=op, then=then):
            acts = [then]
            if (op, value) not in bounds.tests or path not in bounds.paths.get(read.name, ()):
                raise DecisionRejected("invalid_args", f"The goal does not ask for {path} {op} {value}; or cannot.")
        case _:
            return
    for act in acts:
        if not _is_asked(act, bounds):
            raise DecisionRejected("invalid_args", f"The goal does not ask for {act.name} with this. Or answer cannot.")


def _is_asked(act: Call, bounds: Bounds) -> bool:
    return bounds.acts is None or any(asked.is_done_by(act.name, act.args) for asked in bounds.acts)
