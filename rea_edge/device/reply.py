"""What a device said: JSON or a text, an answer or something else, that it is there or not. Pure; nothing raises."""

from collections.abc import Mapping

import msgspec
from msgspec import UNSET, UnsetType

from rea_edge.condition import equal, lookup
from rea_edge.parameters import text_of
from rea_edge.records import Availability


def said_in(payload: bytes) -> object:
    """The JSON value; what is none is a text."""
    try:
        said: object = msgspec.json.decode(payload)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return payload.decode(errors="replace")
    return said


def answer_in(payload: bytes, path: str, match: Mapping[str, object]) -> object | UnsetType:
    """What stands at `path` (empty: all of it); UNSET where this is another message than the one that `match` asks for,
    or has nothing there."""
    said = said_in(payload)
    if not all(_matches(said, payload, *one) for one in match.items()):
        return UNSET
    return lookup(said, path) if path else said


def refusal_in(payload: bytes, path: str, match: Mapping[str, object]) -> str:
    """What an answer says at the path of its errors, as a text; empty where it says none."""
    said = answer_in(payload, path, match) if path else UNSET
    if said is UNSET or said is None or said is False:
        return ""
    return said if isinstance(said, str) else msgspec.json.encode(said).decode()


def is_away(availability: Availability, payload: bytes) -> bool:
    """Whether a device says that it is not there. One that says nothing (an empty message) may be."""
    if not payload:
        return False
    said = said_in(payload)
    if availability.path:
        said = lookup(said, availability.path)
    elif isinstance(said, dict):
        said = said.get("state")
    return not any(equal(said, one) for one in availability.online)


def _matches(said: object, payload: bytes, path: str, wanted: object) -> bool:
    if path:
        return equal(lookup(said, path), wanted)
    return equal(said, wanted) or payload.decode(errors="replace") == text_of(wanted)
