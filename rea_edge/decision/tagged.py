"""Calls whose arguments stand in tags of their own: XML parameters, keys and values, tags named after the tool.

Holds the readers of such calls; no table (see `dialects`), no JSON in markup (see `bodies`). A value counts only if the
model closed it, and not where the mark that begins the next one stands in it: then it is open where it ends.
"""

import re

from msgspec import Struct

from rea_edge.decision import dialects
from rea_edge.decision.found import Element, Flaw, Found, RawText, Written
from rea_edge.decision.names import Names, shown
from rea_edge.decision.notation import MOST_DEPTH, Broken, Value, read_value, skip
from rea_edge.parameters import shapes_of
from rea_edge.schema import unique_keys

_FRAME = re.compile(r"\r?\n(.*?)(?:\r?\n)?", re.DOTALL)
_TOOL_TAG = re.compile(r"<(?P<name>[A-Za-z_][\w.-]{0,60})>")
_CHILD = re.compile(r"\s*<(?P<key>[\w.-]{1,80})>")
_LOOSE_END = re.compile(r"[)>\s]*")  # where the opening tag was closed after the object only
_CDATA = "<![CDATA["

Pair = tuple[str, object]


class Unit(Struct, frozen=True):
    """One unit: its calls, or a flaw, and where it ends."""

    found: tuple[Found, ...]
    end: int


class _Open(Struct):
    """An element that is not closed yet. `loose`: text stands between its parts."""

    key: str
    start: int
    at: int
    parts: list[tuple[str, RawText | Element]]
    loose: bool = False


def xml_call(text: str, at: int, close: re.Pattern[str]) -> Unit | None:
    """A call whose name is in its opening tag, with parameters or one JSON object inside."""
    opening = dialects.XML_CALL.match(text, at)
    if opening is None:
        return None
    name = _named(opening)
    at = skip(text, opening.end())
    if text[at : at + 1] in ("{", "｛"):
        return _xml_json(text, at, name)
    pairs: list[Pair] = []
    while (parameter := dialects.PARAMETER.match(text, blank(text, at))) is not None:
        read = _parameter(text, name, parameter)
        if isinstance(read, Unit):
            return read
        pairs.append(read[0])
        at = read[1]
    at = blank(text, at)
    closing = dialects.XML_CALL_CLOSE.match(text, at)
    if closing or close.match(text, at):
        return Unit((Written(name, unique_keys(pairs)),), closing.end() if closing else at)
    if at >= len(text):
        return Unit((cut(name),), at)
    flaw = Flaw("unparseable", f"The call of `{shown(name)}` cannot be read: close each parameter and the function.")
    return Unit((flaw,), at)


def keys_and_values(text: str, at: int, name: str) -> tuple[list[Pair], int] | Unit:
    """Keys and values in tags, in turns: as many as stand at `at`, and where they end; or what is wrong with one."""
    pairs: list[Pair] = []
    while (key := dialects.KEY_VALUE.match(text, at)) is not None:
        closing = dialects.VALUE_CLOSE.search(text, key.end())
        if closing is None:
            return Unit((cut(name),), len(text))
        value = text[key.end() : closing.start()]
        if dialects.KEY_OPEN.search(value):
            return Unit((_open_value(name, _named(key)),), closing.end())
        pairs.append((_named(key).strip(), RawText(value)))
        at = closing.end()
    return pairs, at


def tool_tag(text: str, at: int, limit: int, names: Names) -> Unit | None:
    """A tag named after an offered tool: inside, tags named after its parameters, one JSON object, or nothing."""
    opening = _TOOL_TAG.match(text, at)
    offer = names.offers.get(opening["name"]) if opening else None
    end = text.find(f"</{offer.name}>", at, limit) if offer else -1
    if opening is None or offer is None or end < 0:
        return None
    stop = end + len(offer.name) + len("</>")
    args = _children(text, opening.end(), end, shapes_of(offer.parameters))
    if args is None:
        flaw = Flaw("unparseable", f"The tag `{offer.name}` is no call: name the tool and give its arguments as JSON.")
        return Unit((flaw,), stop)
    return Unit((Written(offer.name, args),), stop)


def cut(name: str) -> Flaw:
    """The flaw of a call that the text ends in."""
    return Flaw("truncated", f"The call of `{shown(name)}` was cut off: its arguments were not closed. Send it whole.")


def unclear(name: str, read: Broken) -> Flaw:
    """The flaw of a call by name whose arguments cannot be read."""
    if read.ended:
        return Flaw("truncated", f"The call of `{shown(name)}` was cut off. Send it whole.")
    near = f" near `{shown(read.key)}`" if read.key else ""
    return Flaw(
        "invalid_args", f"{shown(name)}: the arguments cannot be read{near}; only plain values may stand there."
    )


def blank(text: str, at: int) -> int:
    """Where the text goes on after blanks."""
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _named(tag: re.Match[str]) -> str:
    """The name in a tag, in whichever of its spellings it stands."""
    return next(text for kind, text in tag.groupdict().items() if text is not None and kind != "literal")


def _open_value(name: str, key: str) -> Flaw:
    return Flaw("unparseable", f"{shown(name)}: it is not clear where `{shown(key)}` ends. Close each value.")


def _parameter(text: str, name: str, opening: re.Match[str]) -> tuple[Pair, int] | Unit:
    if opening["element"]:
        return _element(text, name, opening.start())
    key = _named(opening)
    start = opening.end()
    if text.startswith(_CDATA, start):
        inner = text.find("]]>", start)
        closing = dialects.PARAMETER_CLOSE.match(text, blank(text, inner + 3)) if inner >= 0 else None
        if closing is None:
            return Unit((cut(name),), len(text))
        return (key.strip(), RawText(text[start + len(_CDATA) : inner])), closing.end()
    edge = dialects.PARAMETER_EDGE.search(text, start)
    if edge is None:
        return Unit((cut(name),), len(text))
    value = text[start : edge.start()]
    if opening[0].partition(key)[0] in value:
        return Unit((_open_value(name, key),), edge.end())
    return (key.strip(), RawText(_trimmed(value), (opening["literal"] or "").lower() in ("true", "string"))), edge.end()


def _element(text: str, name: str, at: int) -> tuple[Pair, int] | Unit:
    """A value in tags that may hold tags: an object's keys, or the items of a list."""
    stack: list[_Open] = []
    for tag in dialects.ELEMENT.finditer(text, at):
        if not tag["end"]:
            if stack:
                stack[-1].loose |= bool(text[stack[-1].at : tag.start()].strip())
            if len(stack) >= MOST_DEPTH:
                break
            stack.append(_Open(tag["key"], tag.end(), tag.end(), []))
            continue
        if stack[-1].key != tag["key"]:
            break
        done = stack.pop()
        written = text[done.start : tag.start()]
        loose = done.loose or bool(text[done.at : tag.start()].strip())
        parted = not loose and (done.parts or not written.strip())
        value = Element(tuple(done.parts), written) if parted else RawText(_trimmed(written))
        if not stack:
            return (done.key, value), tag.end()
        stack[-1].parts.append((done.key, value))
        stack[-1].at = tag.end()
    else:
        return Unit((cut(name),), len(text))
    return Unit((_open_value(name, stack[-1].key),), tag.end())


def _xml_json(text: str, at: int, name: str) -> Unit:
    read = read_value(text, at, dialects.XML_CALL_CLOSE)
    if isinstance(read, Broken):
        return Unit((cut(name) if read.ended else unclear(name, read),), max(read.at, at + 1))
    loose = _LOOSE_END.match(text, read.end)
    closing = dialects.XML_CALL_CLOSE.match(text, loose.end() if loose else read.end)
    return Unit((Written(name, read.value),), closing.end() if closing else read.end)


def _children(text: str, at: int, end: int, keys: dict[str, object]) -> dict[str, object] | None:
    """What stands in a tag of a tool up to `end`, as arguments; None where it is anything else."""
    start = blank(text, at)
    if text[start : start + 1] == "{":
        read = read_value(text, start)
        whole = isinstance(read, Value) and skip(text, read.end) == end
        return read.value if isinstance(read, Value) and whole and isinstance(read.value, dict) else None
    pairs: list[Pair] = []
    while (child := _CHILD.match(text, at, end)) is not None:
        stop = text.find(f"</{child['key']}>", child.end(), end)
        value = text[child.end() : max(stop, child.end())]
        if child["key"] not in keys or stop < 0 or f"<{child['key']}>" in value:
            return None
        pairs.append((child["key"], RawText(_trimmed(value))))
        at = stop + len(child["key"]) + len("</>")
    return unique_keys(pairs) if blank(text, at) == end else None


def _trimmed(text: str) -> str:
    """Without the line breaks that the format puts around a value: one before and one after, or none."""
    found = _FRAME.fullmatch(text)
    return found[1] if found else text
