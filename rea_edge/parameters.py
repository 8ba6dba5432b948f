"""The parameters of a tool as its JSON Schema declares them: which there are, and which a call needs. Pure.

Looks into a declaration that was accepted; checks none (see `schema`).
"""

import re
from collections.abc import Sequence

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
