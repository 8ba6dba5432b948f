"""The parameters of a tool as its JSON Schema declares them: which there are, and which a call needs. Pure.

Looks into a declaration that was accepted; checks none (see `schema`).
"""

import re
from collections.abc import Sequence

from msgspec import json

from rea_edge.records import Args

PLACE = re.compile(r"\{([A-Za-z][A-Za-z0-9_]*)\}")  # `{name}` in a declaration stands for the call's argument


def shapes_of(schema: Args) -> Args:
    """The schema of each parameter, by its name."""
    shapes = schema.get("properties")
    return shapes if isinstance(shapes, dict) else {}


def shape_of(schema: Args, name: str) -> Args:
    """The schema of one parameter; empty if there is none."""
    shape = shapes_of(schema).get(name)
    return shape if isinstance(shape, dict) else {}


def needed_in(schema: Args) -> Sequence[str]:
    """The parameters that every call must give."""
    needed = schema.get("required")
    return needed if isinstance(needed, list) else ()


def given(schema: Args, args: Args) -> Args:
    """The value of each parameter that has one: the argument, else the default."""
    defaults = {
        name: shape["default"]
        for name, shape in shapes_of(schema).items()
        if isinstance(shape, dict) and "default" in shape
    }
    return defaults | {name: value for name, value in args.items() if name in shapes_of(schema)}


def text_of(value: object) -> str | None:
    """A scalar as it stands in a command or a topic; None for what is no single value."""
    match value:
        case str():
            return value
        case bool() | int() | float():
            return json.encode(value).decode()
    return None
