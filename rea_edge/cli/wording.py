"""What a parameter takes, in words for a person, from its JSON Schema and the ranges that narrow it. Pure."""

from collections.abc import Sequence

import msgspec

from rea_edge.records import Args

SHOWN = 12  # values of an enum
Range = tuple[float, float]


def narrowed(shape: object, ranges: Sequence[Range]) -> object:
    """The schema of a number within all of these ranges too; the same object where they change nothing."""
    if not isinstance(shape, dict):
        return shape
    if isinstance(choices := shape.get("anyOf"), list):
        inner = [narrowed(one, ranges) for one in choices]
        return shape if all(a is b for a, b in zip(inner, choices, strict=True)) else {**shape, "anyOf": inner}
    kinds = shape.get("type")
    if not {"number", "integer"} & set(kinds if isinstance(kinds, list) else [kinds]):
        return shape
    low = max((low for low, _ in ranges), default=None)
    high = min((high for _, high in ranges), default=None)
    changes: Args = {}
    if low is not None and low > _number(shape, ("minimum", "exclusiveMinimum"), float("-inf")):
        changes["minimum"] = low
    if high is not None and high < _number(shape, ("maximum", "exclusiveMaximum"), float("inf")):
        changes["maximum"] = high
    return {**shape, **changes} if changes else shape


def takes(shape: object) -> str:
    """`a whole number from 0 to 80`."""
    return _words(shape) if isinstance(shape, dict) else "anything"


def _words(shape: Args) -> str:
    match shape:
        case {"const": value}:
            return _json(value)
        case {"enum": list(values)}:
            more = f" and {len(values) - SHOWN} more" if len(values) > SHOWN else ""
            return f"one of {', '.join(map(_json, values[:SHOWN]))}{more}"
        case {"anyOf": list(choices)} | {"oneOf": list(choices)}:
            return " or ".join(map(takes, choices))
        case {"type": list(kinds)}:
            return " or ".join(takes({**shape, "type": kind}) for kind in kinds)
        case {"type": "integer" | "number" as kind}:
            return ("a whole number" if kind == "integer" else "a number") + _within(shape)
        case {"type": "string"}:
            return "a text" + _length(shape, "minLength", "maxLength", "characters") + _pattern(shape)
        case {"type": "array"}:
            of = f" of {takes(inner)}" if isinstance(inner := shape.get("items"), dict) else ""
            return f"a list{of}" + _length(shape, "minItems", "maxItems", "items")
        case {"type": "object", "properties": dict(shapes)} if shapes:
            return f"a table with {', '.join(shapes)}"
        case {"type": "object"}:
            return "a table"
        case {"type": "boolean"}:
            return "true or false"
        case {"type": "null"}:
            return "null"
    return "anything"


def _within(shape: Args) -> str:
    low, above = shape.get("minimum"), shape.get("exclusiveMinimum")
    high, below = shape.get("maximum"), shape.get("exclusiveMaximum")
    if low is not None and high is not None:
        return f" from {low:g} to {high:g}"
    parts = [
        *([f"at least {low:g}"] if low is not None else []),
        *([f"above {above:g}"] if above is not None else []),
        *([f"at most {high:g}"] if high is not None else []),
        *([f"below {below:g}"] if below is not None else []),
    ]
    return f", {' and '.join(parts)}" if parts else ""


def _length(shape: Args, least_key: str, most_key: str, what: str) -> str:
    least, most = shape.get(least_key), shape.get(most_key)
    if least and most is not None:
        return f" of {least} to {most} {what}"
    if most is not None:
        return f" of at most {most} {what}"
    return f" of at least {least} {what}" if least else ""


def _pattern(shape: Args) -> str:
    return f" matching {shape['pattern']}" if "pattern" in shape else ""


def _number(shape: Args, keys: Sequence[str], default: float) -> float:
    found = [value for key in keys if isinstance(value := shape.get(key), int | float)]
    return found[0] if found else default


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
