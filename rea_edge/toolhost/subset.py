"""Schemas and examples of a declaration, held against the JSON Schema subset that calls are validated by.

Imported in short-lived children only: the host itself validates nothing, the daemon did that before each call.
"""

from rea_edge import schema
from rea_edge.errors import DecisionRejected, ToolInvalid
from rea_edge.records import Args


def supported(place: str, declared: object) -> Args:
    """The same schema. Raises ToolInvalid where a call could not be validated by it."""
    if not isinstance(declared, dict):
        raise ToolInvalid(place, f"expected a JSON Schema, got {declared!r:.100}")
    schema.compile(declared, place=place)
    return declared


def checked_answer(place: str, answer: object, parameters: Args) -> Args | str:
    """An example's answer: a command line, `cannot`, or arguments that are valid. Raises ToolInvalid."""
    if isinstance(answer, str):
        return answer
    try:
        valid = schema.compile(parameters, place=place).check(answer)
    except DecisionRejected as exc:
        raise ToolInvalid(place, f"example {answer!r}: {exc.message}") from exc
    if not isinstance(valid, dict) or valid != answer:
        raise ToolInvalid(place, f"example {answer!r}: should be {valid!r}")
    return valid
