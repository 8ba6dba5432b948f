"""Comparisons of a recorded value with an operand: used by guards, completion criteria and interlocks.

Holds the path grammar and the six operators. Pure; it never guesses: what cannot be compared is its own outcome.

    path = key *("." (key / index))      at most 40 characters; key = 1*[A-Za-z0-9_-], index = 1*DIGIT into a list
"""

import json
import math
import re
from collections.abc import Mapping
from typing import TypeGuard

import msgspec
from msgspec import UNSET, Struct, UnsetType

from rea_edge.records import Criterion, Op

PATH_LENGTH = 40

_PATH = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")
_INDEX_LENGTH = 9
_SHOWN = 40
# For each operator, the orders (below -1, same 0, above 1) that make it true.
_OPS: dict[Op, tuple[int, ...]] = {">": (1,), ">=": (0, 1), "<": (-1,), "<=": (-1, 0), "==": (0,), "!=": (-1, 1)}


class Incomparable(Struct, frozen=True):
    """Neither true nor false: the path leads nowhere, or the two values are of different types. `why` is a sentence."""

    why: str


def is_path(path: str) -> bool:
    """Whether a text is a path of the grammar."""
    return len(path) <= PATH_LENGTH and _PATH.fullmatch(path) is not None


def op_of(text: str | None) -> Op | None:
    """The operator that a text is, or None."""
    return next((op for op in _OPS if op == text), None)


def lookup(value: object, path: str) -> object | UnsetType:
    """Follow a path into a JSON value; UNSET where it leads nowhere (None is a value) or is not a path."""
    if not is_path(path):
        return UNSET
    for at, key in enumerate(path.split(".")):
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif at and isinstance(value, list) and key.isdigit() and len(key) <= _INDEX_LENGTH and int(key) < len(value):
            value = value[int(key)]
        else:
            return UNSET
    return value


def holds(value: object, path: str, op: Op, operand: int | float | str) -> bool | Incomparable:
    """Compare what stands at `path` with `operand`: number with number, text with text (by code point).

    A path that leads nowhere, or another type (true and null are no numbers), gives `Incomparable`: then nothing may
    run, and `why` says so.
    """
    found = lookup(value, path)
    if isinstance(found, UnsetType):
        return Incomparable(f"there is no `{path[:_SHOWN]}` in the result")
    return compare(found, op, operand, name=path)


def lacking(criterion: Criterion, data: object) -> str:
    """What a result lacks to meet a criterion, in words; empty if it meets it."""
    value = lookup(data, criterion.path) if criterion.path else data
    if value is UNSET:
        return f"there is no {criterion.path} in the result"
    if criterion.op in ("==", "!="):
        met: bool | Incomparable = equal(value, criterion.value) == (criterion.op == "==")
    else:
        met = compare(value, criterion.op, criterion.value)
    return "" if met is True else f"it is {msgspec.json.encode(value).decode()[:200]}"


def asks_for(criterion: Criterion, tool: str, args: Mapping[str, object]) -> bool:
    """Whether this is the call whose result a criterion is about; it may have more arguments."""
    return tool == criterion.tool and all(
        key in args and equal(args[key], value) for key, value in criterion.args.items()
    )


def in_words(criterion: Criterion) -> str:
    args = f" {msgspec.json.encode(criterion.args).decode()}" if criterion.args else ""
    value = msgspec.json.encode(criterion.value).decode()
    return f"a result of {criterion.tool}{args} with {criterion.path or 'the whole'} {criterion.op} {value}"


def equal(first: object, second: object) -> bool:
    """Equal as JSON values, where 6 is 6.0 and 1 is not true."""
    return compare(first, "==", second) is True or same(first, second)


def same(first: object, second: object) -> bool:
    """Whether two JSON values are equal, where 1 is not true; values too deep to compare are different."""
    try:
        return first == second and json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)
    except (RecursionError, TypeError, ValueError):
        return False


def compare(found: object, op: Op, operand: object, *, name: str = "the value") -> bool | Incomparable:
    """Compare two values that are at hand; see `holds`."""
    if isinstance(found, str) and isinstance(operand, str):
        return (found > operand) - (found < operand) in _OPS[op]
    if _is_number(found) and _is_number(operand):
        return (found > operand) - (found < operand) in _OPS[op]
    return Incomparable(f"{name} is {_kind(found)}, which cannot be compared with {_kind(operand)}")


def _is_number(value: object) -> TypeGuard[int | float]:
    # True is no number here, and NaN neither: it would make `!=` true.
    if isinstance(value, float):
        return not math.isnan(value)
    return isinstance(value, int) and not isinstance(value, bool)


def _kind(value: object) -> str:
    match value:
        case dict():
            return "an object"
        case list():
            return "a list"
        case str() | bool() | None:
            shown = msgspec.json.encode(value if not isinstance(value, str) else value[:_SHOWN]).decode()
            return f"the text {shown}" if isinstance(value, str) else shown
        case int() if abs(value) >= 10**_SHOWN:
            return "a very large number"
        case _:
            return f"the number {value}"
