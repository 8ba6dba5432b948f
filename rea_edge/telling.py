"""What was done, said by code: the answer of a command run, and values written as words. Pure.

Holds no decision and no language of the model's; everything said is taken from recorded results.
"""

import re

import msgspec

from rea_edge.condition import Incomparable, holds, lookup
from rea_edge.records import Call, Guard, Op

ANSWER_LENGTH = 500
WORD = r"[A-Za-z0-9_.-]+"
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE]-?[0-9]+)?")
_OVER: dict[Op, str] = {
    ">": "over",
    ">=": "at least",
    "<": "under",
    "<=": "at most",
    "==": "equal to",
    "!=": "other than",
}


def answer_from(call: Call, data: object) -> str:
    """Say what a call gave, from its recorded result: "read_sensor boiler: value is 45, unit is C"."""
    said = _said(data)
    return _cut(f"{label(call)}: {said}" if said else f"{label(call)} was run")


def answer_from_guard(guard: Guard, data: object, acted: str | None) -> str:
    """Say how a guard ended, from its recorded reading.

    `acted` is `answer_from` of the call that then ran; None if it did not run: the comparison was false, or there was
    nothing to compare. "boiler.value is 45, not over 60: set_fan was not run".
    """
    place = f"{_subject(guard.read)}.{guard.path}"
    compared = f"{_OVER[guard.op]} {_plain(guard.value)}"
    if acted is not None:
        return _cut(f"{place} is {_plain(lookup(data, guard.path))}, {compared}: {acted}")
    match holds(data, guard.path, guard.op, guard.value):
        case Incomparable(why=why):
            return _cut(f"{_subject(guard.read)}: {why}: {guard.then.name} was not run")
        case _:
            return _cut(f"{place} is {_plain(lookup(data, guard.path))}, not {compared}: {guard.then.name} was not run")


def written(value: object) -> str:
    """Write a value as the language has it: a word where it can be one, else JSON; nested values as a JSON string."""
    if isinstance(value, str):
        plain = re.fullmatch(WORD, value) and not is_scalar(value)
        return value if plain else msgspec.json.encode(value).decode()
    encoded = msgspec.json.encode(value).decode()
    return written(encoded) if isinstance(value, (list, dict)) else encoded.replace("e+", "e")


def is_scalar(word: str) -> bool:
    """Whether a word would be read as a JSON number, true, false or null."""
    return word in ("true", "false", "null") or bool(NUMBER.fullmatch(word))


def label(call: Call) -> str:
    """A call in few words: "set_fan on", "set_valve percent=30"."""
    return " ".join([call.name, *(_argument(key, value, len(call.args)) for key, value in call.args.items())])


def _argument(key: str, value: object, count: int) -> str:
    return written(value) if count == 1 and isinstance(value, str) else f"{key}={written(value)}"


def _subject(call: Call) -> str:
    """What a reading is about: its one text argument (boiler), else the call."""
    match list(call.args.values()):
        case [str(value)]:
            return value
    return label(call)


def _said(data: object) -> str:
    match data:
        case None:
            return ""
        case dict():
            return ", ".join(f"{key} is {_plain(value)}" for key, value in data.items())
    return _plain(data)


def _plain(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return msgspec.json.encode(value).decode()


def _cut(text: str) -> str:
    return text if len(text) <= ANSWER_LENGTH else text[: ANSWER_LENGTH - 3] + "..."
