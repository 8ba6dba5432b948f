"""Whether a message asks for something else each time: a toggle, a step. Pure; knows the words of common devices.

Such a message must not be sent twice, so a tool that says it has effect `once`. What is not known here is the word of
the tool's author.
"""

import re
from collections.abc import Iterator

import msgspec

SHORT = 64  # characters; a longer text is prose, not a command
_STEP = re.compile(
    r"(?:^|_)(?:step|move)(?:_|$)|^rel$", re.IGNORECASE
)  # brightness_step, color_temp_move; Shelly's rel
_POWER = re.compile(r"power\d*", re.IGNORECASE)
_BACKLOG = re.compile(r"backlog\d?", re.IGNORECASE)


def toggle_in(topic: str, payload: object) -> str:
    """The part of a message that makes it a toggle or a step; empty if it is none."""
    for level in topic.split("/"):
        if _says_toggle(level):
            return level
    if isinstance(payload, str):
        payload = _read(payload)
    return next(_toggles(payload), "") or next(_tasmota(topic, payload), "")


def _toggles(value: object) -> Iterator[str]:
    match value:
        case str() if _says_toggle(value):
            yield value
        case dict():
            for key, inner in value.items():
                if _says_toggle(str(key)) or _STEP.search(str(key)):
                    yield str(key)
                yield from _toggles(inner)
        case list():
            for inner in value:
                yield from _toggles(inner)


def _tasmota(topic: str, payload: object) -> Iterator[str]:
    """`cmnd/lamp/POWER` with `2`, `cmnd/lamp/Dimmer` with `+`, and several of that as a backlog."""
    *before, command = topic.split("/")
    if "cmnd" not in before or isinstance(payload, dict | list):
        return
    text = payload if isinstance(payload, str) else msgspec.json.encode(payload).decode()
    pairs = [(command, text)]
    if _BACKLOG.fullmatch(command):
        pairs = [(name, rest) for name, _, rest in (part.strip().partition(" ") for part in text.split(";"))]
    for name, said in pairs:
        if said.strip() in ("+", "-") or (_POWER.fullmatch(name) and said.strip() == "2"):
            yield f"{name} {said.strip()}"


def _says_toggle(text: str) -> bool:
    return len(text) <= SHORT and "toggle" in text.lower()


def _read(text: str) -> object:
    try:
        read: object = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return text
    return read if isinstance(read, dict | list) else text
