"""Parameters: a closed subset of JSON Schema, compiled to strict msgspec types that decide what is valid.

Holds the subset, the lossless coercion that runs only where the strict check failed, and the sentences a model reads.
Must not hold tool names, reading of text, or I/O. The subset is

    type (one or a list), enum, const, anyOf / oneOf, properties, required, additionalProperties, items, minItems,
    maxItems, minLength, maxLength, pattern, minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf (of
    integers), $ref into $defs; title, description, default, examples, $schema, $id, $comment, format and deprecated
    say nothing

An object that lists `properties` is closed unless `additionalProperties` says otherwise: a key that a tool does not
know is a mistake of the model. A default is the tool's business and never filled in. Patterns are searched as JSON
Schema wants it (`$` is the very end, classes are ASCII); they come from tool authors, who must keep them free of
repeats inside repeats, since Python's matching is not linear in those.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

import msgspec
from msgspec import Struct

from rea_edge.condition import same
from rea_edge.errors import DecisionRejected
from rea_edge.schema.shape import EXACT_FLOAT, Shape, shape_of

# Deeper values are no arguments anybody means; the figure keeps every recursion of libraries far from its limit.
MOST_DEPTH = 32
SHOWN = 40

_UNCLEAN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,99})")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,99})(?:\.[0-9]{1,99})?(?:[eE][+-]?[0-9]{1,3})?")
_BLANKS = " \t\r\n"


class Clash(Struct, frozen=True):
    """A value that is never valid: one key was given two different values."""

    first: object
    second: object


class Schema(Struct, frozen=True):
    """A compiled schema. `ignored` names the keywords that a lenient compilation left out."""

    place: str
    shape: Shape
    ignored: tuple[str, ...] = ()

    def check(self, value: object) -> object:
        """Give the value, coerced where that loses nothing, or raise DecisionRejected naming field, expected, got.

        Refused are also control characters, NUL, half surrogates, NaN, infinity, and depth over 32 levels.
        """
        self._clean(value)
        if self.shape.admits(value):
            return value
        value = _coerced(value, self.shape)
        self._clean(value)
        if self.shape.admits(value):
            return value
        raise self._rejected(*_first_fault(value, self.shape))

    def _clean(self, value: object) -> None:
        fault = unclean(value)
        if fault is not None:
            raise self._rejected(*fault)

    def _rejected(self, field: str, fault: str) -> DecisionRejected:
        start = f"{self.place}: " if self.place else ""
        return DecisionRejected("invalid_args", f"{start}{f'`{_cut(field)}` ' if field else ''}{fault}")


def compile(schema: Mapping[str, object], *, place: str, lenient: bool = False) -> Schema:
    """Compile a JSON Schema, or raise ToolInvalid naming `place` and the keyword that is not supported.

    `lenient`: such keywords are left out of the check and named in `ignored`. Compiled schemas are kept for reuse.
    """
    return _compiled(msgspec.json.encode(schema), place, lenient)


@lru_cache(maxsize=512)
def _compiled(schema: bytes, place: str, lenient: bool) -> Schema:
    ignored: list[str] = []
    shape = shape_of(msgspec.json.decode(schema), place, ignored if lenient else None)
    return Schema(place, shape, tuple(dict.fromkeys(ignored)))


def unclean(value: object) -> tuple[str, str] | None:
    """Name the first place (its top-level field) and fault of a value that no schema can make valid, or None."""
    stack: list[tuple[str, object, int]] = [("", value, 0)]
    while stack:
        field, item, depth = stack.pop()
        if depth > MOST_DEPTH:
            return field, "is nested too deeply"
        match item:
            case str():
                if _UNCLEAN.search(item):
                    return field, "contains a control character or half a surrogate pair; send plain text"
            case float():
                if not math.isfinite(item):
                    return field, "must be a finite number"
            case dict():
                for key, inner in reversed(item.items()):
                    if not isinstance(key, str) or _UNCLEAN.search(key):
                        return field, "has a key that is not plain text"
                    stack.append((field or key, inner, depth + 1))
            case list():
                stack.extend((field, inner, depth + 1) for inner in reversed(item))
            case Clash():
                return field, f"was given twice with different values: {_shown(item.first)} and {_shown(item.second)}"
            case None | bool() | int():
                pass
            case _:
                return field, "is not a JSON value"
    return None


# --- coercion: only what loses nothing, only where the schema asks for it


def _coerced(value: object, shape: Shape) -> object:
    if shape.admits(value):
        return value
    if shape.branches:
        tries = [_coerced(value, branch) for branch in shape.branches]
        fits = [given for given, branch in zip(tries, shape.branches, strict=True) if branch.admits(given)]
        return fits[0] if len(fits) == 1 else value
    if shape.members is not None:
        return _one_of(value, shape.members)
    for given in _respelled(value, shape):
        if isinstance(given, dict) and "object" in shape.types:
            return _coerced_object(given, shape)
        if isinstance(given, list) and "array" in shape.types:
            return [_coerced(item, shape.items) for item in given] if shape.items else given
        if shape.admits(given):
            return given
    return value


def _coerced_object(value: dict[str, object], shape: Shape) -> dict[str, object]:
    given: dict[str, object] = {}
    for key, item in value.items():
        inner = shape.properties.get(key, shape.extra)
        if inner is None:
            given[key] = item
        elif item is None and key not in shape.required and key in shape.properties and not inner.admits(None):
            continue  # null for an optional parameter: not given
        else:
            given[key] = _coerced(item, inner)
    return given


def _one_of(value: object, members: tuple[object, ...]) -> object:
    """The member that is the same value in another type, such as "1" for 1; the value itself where none is."""
    spelled = [
        member for member in members if not isinstance(member, bool | None) and _spelling(member) == _spelling(value)
    ]
    return spelled[0] if len(spelled) == 1 else value


def _spelling(value: object) -> str | None:
    match value:
        case bool() | None:
            return None
        case str():
            return value
        case int():
            return str(value) if abs(value) < 10**100 else None
        case float():
            return str(int(value)) if value.is_integer() and abs(value) < EXACT_FLOAT else None
    return None


def _respelled(value: object, shape: Shape) -> Iterator[object]:
    """The same value as other JSON types that the shape takes; the value itself first."""
    yield value
    match value:
        case str():
            yield from _read(value, shape.types)
        case bool():
            return
        case float():
            if "integer" in shape.types and value.is_integer() and abs(value) < EXACT_FLOAT:
                yield int(value)
        case int():
            if "string" in shape.types and abs(value) < 10**100:
                yield str(value)


def _read(text: str, types: frozenset[str]) -> Iterator[object]:
    bare = text.strip(_BLANKS)
    if types & {"integer", "number"} and _INTEGER.fullmatch(bare):
        yield int(bare)
    elif types & {"integer", "number"} and _NUMBER.fullmatch(bare):
        number = float(bare)
        yield int(number) if "number" not in types and number.is_integer() and abs(number) < EXACT_FLOAT else number
    if "boolean" in types and bare.lower() in ("true", "false"):
        yield bare.lower() == "true"
    if types & {"array", "object"} and bare[:1] in ("[", "{"):
        yield from _decoded(bare)


def _decoded(text: str) -> Iterator[object]:
    try:
        yield json.loads(text, object_pairs_hook=unique_keys)
    except (ValueError, RecursionError):
        return


def unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Make an object of pairs; a key with two different values gets a `Clash`, which no schema admits."""
    made: dict[str, object] = dict(pairs)
    if len(made) < len(pairs):
        seen: dict[str, object] = {}
        for key, value in pairs:
            if key in seen and not same(seen[key], value):
                made[key] = Clash(seen[key], value)
            seen.setdefault(key, value)
    return made


# --- sentences for the model


def _first_fault(value: object, shape: Shape, field: str = "") -> tuple[str, str]:
    """Descend to the first place that the strict types refuse; give its dotted name and what is wrong there."""
    if isinstance(value, dict) and "object" in shape.types:
        for key in shape.required:
            if key not in value:
                return _joined(field, key), f"is missing; it must be {shape.properties[key].expected}"
        for key, item in value.items():
            inner = shape.properties.get(key, shape.extra)
            if inner is None and shape.closed:
                return _joined(field, key), f"is not known here; allowed: {', '.join(shape.properties) or 'nothing'}"
            if inner is not None and not inner.admits(item):
                return _first_fault(item, inner, _joined(field, key))
    if isinstance(value, list) and "array" in shape.types and shape.items is not None:
        for at, item in enumerate(value):
            if not shape.items.admits(item):
                return _first_fault(item, shape.items, f"{field}[{at}]")
    return field, f"must be {shape.expected}, got {_shown(value)}"


def _joined(field: str, key: str) -> str:
    return f"{field}.{key}" if field else key


def _shown(value: object) -> str:
    match value:
        case dict():
            return "an object"
        case list():
            return f"a list of {len(value)}"
        case int() if not isinstance(value, bool) and abs(value) >= 10**SHOWN:
            return "a very large number"
        case str() | int() | float() | None:
            return _cut(json.dumps(value, ensure_ascii=False))
    return "another thing"


def _cut(text: str) -> str:
    text = _UNCLEAN.sub("\ufffd", text)
    return text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."
