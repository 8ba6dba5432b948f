"""What a struct takes where msgspec refused something: its words or its keys, for who has to put it right. Pure."""

import re
from typing import get_args, get_type_hints

from msgspec import Struct


def choices(table: type[Struct], place: str) -> list[str]:
    """The words that a `Literal` field takes; none where the place is no such field."""
    kind = _kind(table, place)
    return [word for part in (kind, *get_args(kind)) for word in get_args(part) if isinstance(word, str)]


def remedy(said: str, table: type[Struct]) -> str:
    """What to add to msgspec's sentence so that it says what would be right; empty where it does so itself."""
    sentence, _, path = said.partition(" - at `$")
    place = path.strip("`.")
    if sentence.startswith("Invalid enum value"):
        found, words = choices(table, place), "expected one of"
    elif "unknown field" in sentence:
        found, words = keys_of(table, place), "the keys are"
    else:
        return ""
    return f"; {words} {', '.join(found)}" if found else ""


def keys_of(table: type[Struct], place: str) -> list[str]:
    """The keys that the table at this place takes."""
    inner = _struct(_kind(table, place))
    return list(inner.__struct_encode_fields__) if inner else []


def plainly(sentence: str) -> str:
    """msgspec's sentence in the words of who writes the file."""
    sentence = re.sub(r"Object contains unknown field `(.*)`", r"'\1' is not a key", sentence)
    sentence = re.sub(r"\bobject\b", "a table", re.sub(r"\barray\b", "a list", sentence))
    sentence = sentence.replace("`", "").replace(" | null", "")
    return sentence[0].lower() + sentence[1:]


def _kind(table: type[Struct], place: str) -> object:
    kind: object = table
    for name in re.findall(r"[^.\[\]]+", re.sub(r"\[[^\]]*\]", "", place)):
        inner = _struct(kind)
        kind = None if inner is None else get_type_hints(inner).get(name)
    return kind


def _struct(kind: object) -> type[Struct] | None:
    parts = (kind, *get_args(kind))
    return next((part for part in parts if isinstance(part, type) and issubclass(part, Struct)), None)
