"""Whether a command line keeps to what its goal speaks for (`Bounds`, made by `evidence`). Reads no text."""

from collections import Counter
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
            said = [value for call in acts for value in _numbers_in(call)]
        case Guard(read=read, path=path, value=value, op=op, then=then):
            acts = [then]
            if (op, value) not in bounds.tests or path not in bounds.paths.get(read.name, ()):
                raise DecisionRejected("invalid_args", f"The goal does not ask for {path} {op} {value}; or cannot.")
            said = [*_numbers_in(then), *([float(value)] if not isinstance(value, str) else [])]
        case _:
            return
    if acts and not _used_once(said, bounds):
        raise DecisionRejected("invalid_args", "Use each number of the goal once, and no other. Or answer cannot.")


def _numbers_in(call: Call) -> list[float]:
    return [float(v) for v in call.args.values() if isinstance(v, int | float) and not isinstance(v, bool)]


def _used_once(said: Sequence[float], bounds: Bounds) -> bool:
    """Whether a line says the goal's numbers, each once; a value that a word stands for comes on top."""
    goal, line = Counter(bounds.numbers), Counter(said)
    if bounds.whole and goal - line:
        return False
    return all(count <= goal[value] for value, count in line.items() if value in goal)
