"""Which values a parameter takes: listed where they are few, numbers by their bounds."""

from collections.abc import Iterator, Sequence

from rea_edge.decision.grammar import choices
from rea_edge.parameters import shapes_of
from rea_edge.records import Args, Tool


def few_of(tool: Tool) -> Iterator[tuple[str, list[object]]]:
    for key, shape in shapes_of(tool.parameters).items():
        few = choices(shape)
        if few is not None:
            yield key, few


def is_number(shape: object) -> bool:
    match shape:
        case {"type": "integer" | "number"}:
            return True
        case {"anyOf": list(branches)}:
            return any(is_number(branch) for branch in branches)
    return False


def allows(shape: object, value: float) -> bool:
    match shape:
        case {"anyOf": list(branches)}:
            return any(is_number(branch) and allows(branch, value) for branch in branches)
        case {"type": "integer"} if not float(value).is_integer():
            return False
        case dict():
            low, high = shape.get("minimum"), shape.get("maximum")
            over = isinstance(low, int | float) and value < low
            return not (over or (isinstance(high, int | float) and value > high))
    return True


def only(values: Sequence[object]) -> Args:
    """The schema of a parameter that takes these values. Where a schema cannot say so, that of their sort: whether an
    act is one that is asked for is checked besides (`bounds`)."""
    # Texts as `enum`, so that they may stand bare as in the examples; numbers not, as these are written key=value.
    if all(isinstance(value, str) for value in values):
        return {"enum": list(values)}
    if any(isinstance(value, bool) for value in values):
        return {"type": "boolean"}
    if any(isinstance(value, float) for value in values):
        exact = {"minimum": values[0], "maximum": values[0]} if len(values) == 1 else {}
        return {"type": "number", **exact}
    return {"anyOf": [{"const": value} for value in values]}


def fits(shape: object, value: object) -> bool:
    """Whether a parameter takes this value."""
    few = choices(shape)
    if few is not None:
        return value in few
    return isinstance(value, int | float) and is_number(shape) and allows(shape, value)
