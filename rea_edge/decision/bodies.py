"""What stands inside a dialect's markup, read to calls as written: JSON, Python calls, XML, a name and its object.

Holds the readers of single units; no table (see `dialects`), no walk over a whole reply (see `scan`). A unit counts
only if the model closed it.
"""

import re
from collections.abc import Callable

from msgspec import Struct

from rea_edge.decision import dialects
from rea_edge.decision.found import Flaw, Found, RawText, Written
from rea_edge.decision.names import Names, shown
from rea_edge.decision.notation import Broken, Value, read_calls, read_value, skip
from rea_edge.decision.shapes import read_calls_value, reading_of
from rea_edge.schema import unique_keys

_BETWEEN = re.compile(r"(?:\s|[,;]|`{3,}[a-z_]*|~{3,}[a-z_]*|[}\])](?=\s*(?:<[/|｜]|$)))*", re.IGNORECASE)
_BETWEEN_LINES = re.compile(r"[\s,;]*")
# How far behind a faulty call its closing tag is looked for.
_NEAR = 4000
_CALL_START = re.compile(r"\[?\s*(?:print\s*\(\s*)?(?P<name>[^\W\d][\w.]*)\s*[(（]")
_FRAME = re.compile(r"\r?\n(.*?)(?:\r?\n)?", re.DOTALL)
_CALL_METHOD = re.compile(r"\.call$")


class Body(Struct, frozen=True):
    """What was read: up to `end`; `closed`: the wrapper's closing tag came; `clean`: nothing unreadable before it."""

    found: tuple[Found, ...]
    end: int
    closed: bool
    clean: bool = True


class Unit(Struct, frozen=True):
    """One unit: its calls, or a flaw, and where it ends."""

    found: tuple[Found, ...]
    end: int


def read_body(text: str, at: int, close: re.Pattern[str], names: Names, *, many: bool, fenced: bool = False) -> Body:
    """Read units until the wrapper closes, the text ends, or something comes that is no unit."""
    found: list[Found] = []
    opened = False  # another call was announced
    while True:
        between = (_BETWEEN_LINES if fenced else _BETWEEN).match(text, at)
        here = between.end() if between else at
        closing = close.match(text, here)
        if closing:
            return Body(tuple(found), closing.end(), closed=True)
        inner = (
            dialects.WRAPPER_OPEN.match(text, here)
            or dialects.KIND.match(text, here)
            or dialects.ANY_CLOSE.match(text, here)
        )
        if inner:
            opened = inner.re is dialects.WRAPPER_OPEN
            at = inner.end()
            continue
        unit = read_unit(text, here, close if fenced else dialects.ANY_CLOSE, names) if here < len(text) else None
        if unit is None:
            return Body(
                tuple(found),
                at if found else here,
                closed=False,
                clean=not opened and (here >= len(text) or bool(found)),
            )
        opened = False
        found += unit.found
        at = unit.end
        if any(isinstance(item, Flaw) for item in unit.found):
            closing = close.search(text, at, at + _NEAR)
            return Body(tuple(found), closing.end() if closing else at, closed=closing is not None)
        if not many and close.pattern == "(?!)":
            return Body(tuple(found), at, closed=True)


def read_unit(text: str, at: int, close: re.Pattern[str], names: Names) -> Unit | None:
    """Read one unit that begins at `at`, or None where none begins."""
    readers: tuple[Callable[[str, int, re.Pattern[str], Names], Unit | None], ...] = (
        _xml,
        _tagged,
        _python,
        _json,
        _named,
    )
    for reader in readers:
        unit = reader(text, at, close, names)
        if unit is not None:
            return unit
    return None


def _json(text: str, at: int, close: re.Pattern[str], names: Names) -> Unit | None:
    if text[at] not in '{[｛［"':
        return None
    read = read_value(text, at, close)
    if isinstance(read, Broken):
        partial = reading_of(read.partial, names, markup=True) if read.partial is not None else None
        if partial is not None:
            return Unit(partial.found, read.at)
        return Unit((_broken(text[at : at + 80], read),), max(read.at, at + 1))
    value = read.value
    if isinstance(value, str):  # the call object as a JSON string
        again = read_value(value)
        value = again.value if isinstance(again, Value) else value
    reading = reading_of(value, names, markup=True)
    if reading is None:
        return Unit((Flaw("unparseable", "The markup holds no call: `name` and `arguments` are needed."),), read.end)
    return Unit(reading.found, read.end)


def _broken(text: str, read: Broken) -> Flaw:
    if read.ended:
        return Flaw("truncated", "The call was cut off. Send it whole, or shorter.")
    near = f" near `{shown(read.key)}`" if read.key else ""
    return Flaw("unparseable", f"The call cannot be read{near}: use valid JSON, every text in double quotes.")


def _python(text: str, at: int, close: re.Pattern[str], names: Names) -> Unit | None:
    start = _CALL_START.match(text, at)
    if start is None:
        return None
    printed = start[0].lstrip("[ \t\n").startswith("print") and start["name"] != "print"
    read = read_calls(text, start.start("name") if printed else at, close)
    if isinstance(read, Broken):
        if names.find(_CALL_METHOD.sub("", start["name"])) is None and not read.ended:
            return None
        return Unit((unclear(start["name"], read),), max(read.at, at + 1))
    calls = tuple(Written(_CALL_METHOD.sub("", str(call.name)), call.args) for call in read_calls_value(read.value))
    end = read.end
    if printed:
        end = skip(text, end)
        end += text[end : end + 1] == ")"
    return Unit(calls, end)


def unclear(name: str, read: Broken) -> Flaw:
    """The flaw of a call by name whose arguments cannot be read."""
    if read.ended:
        return Flaw("truncated", f"The call of `{shown(name)}` was cut off. Send it whole.")
    near = f" near `{shown(read.key)}`" if read.key else ""
    return Flaw(
        "invalid_args", f"{shown(name)}: the arguments cannot be read{near}; only plain values may stand there."
    )


def _xml(text: str, at: int, close: re.Pattern[str], names: Names) -> Unit | None:
    opening = dialects.XML_CALL.match(text, at)
    if opening is None:
        return None
    name = opening["a"] or opening["b"] or opening["c"] or ""
    at = skip(text, opening.end())
    if text[at : at + 1] in ("{", "｛"):
        return _xml_json(text, at, name)
    pairs: list[tuple[str, object]] = []
    while (parameter := dialects.PARAMETER.match(text, _blank(text, at))) is not None:
        end = _parameter_end(text, parameter.end())
        if end is None:
            return Unit((_cut(name),), len(text))
        literal = parameter["literal"]
        value = text[parameter.end() : end[0]]
        pairs.append(
            (
                (parameter["a"] or parameter["b"] or parameter["c"]).strip(),
                RawText(_trimmed(value), (literal or "").lower() == "true"),
            )
        )
        at = end[1]
    at = _blank(text, at)
    closing = dialects.XML_CALL_CLOSE.match(text, at)
    if closing:
        return Unit((Written(name, unique_keys(pairs)),), closing.end())
    if close.match(text, at):
        return Unit((Written(name, unique_keys(pairs)),), at)
    if at >= len(text):
        return Unit((_cut(name),), at)
    return Unit(
        (Flaw("unparseable", f"The call of `{shown(name)}` cannot be read: close each parameter and the function."),),
        at,
    )


def _tagged(text: str, at: int, close: re.Pattern[str], names: Names) -> Unit | None:
    opening = dialects.TAGGED_NAME.match(text, at)
    if opening is None:
        return None
    closing = re.compile(rf"\s*</{opening['args']}>", re.IGNORECASE)
    read = read_value(text, opening.end(), closing)
    if isinstance(read, Broken):
        return Unit((unclear(opening["name"], read),), max(read.at, at + 1))
    ended = closing.match(text, read.end)
    return Unit((Written(opening["name"].strip(), read.value),), ended.end() if ended else read.end)


def _xml_json(text: str, at: int, name: str) -> Unit:
    read = read_value(text, at, dialects.XML_CALL_CLOSE)
    if isinstance(read, Broken):
        return Unit((_cut(name) if read.ended else unclear(name, read),), max(read.at, at + 1))
    at = _blank(text, read.end)
    closing = dialects.XML_CALL_CLOSE.match(text, at)
    return Unit((Written(name, read.value),), closing.end() if closing else read.end)


def _parameter_end(text: str, at: int) -> tuple[int, int] | None:
    """Where a parameter's text ends and where the text after it begins; None where it is open."""
    edge = dialects.PARAMETER_EDGE.search(text, at)
    return (edge.start(), edge.end()) if edge else None


def _named(text: str, at: int, close: re.Pattern[str], names: Names) -> Unit | None:
    """A name, then an object, or keys and values, or nothing."""
    first = dialects.NAME_FIRST.match(text, at)
    if first is None:
        return None
    name, at = first["name"], first.end()
    separator = dialects.SEPARATOR.match(text, at)
    if separator:
        read = read_value(text, separator.end(), close)
        if isinstance(read, Broken):
            return Unit((_cut(name) if read.ended else unclear(name, read),), max(read.at, at))
        return Unit((Written(name, read.value),), read.end)
    pairs: list[tuple[str, object]] = []
    while (key := dialects.KEY_VALUE.match(text, at)) is not None:
        closing = dialects.VALUE_CLOSE.search(text, key.end())
        if closing is None:
            return Unit((_cut(name),), len(text))
        pairs.append((key["key"].strip(), RawText(text[key.end() : closing.start()])))
        at = closing.end()
    here = _blank(text, at)
    if close.match(text, here):
        return Unit((Written(name, unique_keys(pairs)),), here)
    if pairs:
        return Unit((_cut(name),), at)
    return Unit((_cut(name),), here) if here >= len(text) and names.find(name) is not None else None


def _cut(name: str) -> Flaw:
    return Flaw("truncated", f"The call of `{shown(name)}` was cut off: its arguments were not closed. Send it whole.")


def _blank(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _trimmed(text: str) -> str:
    """Without the line breaks that the format puts around a value: one before and one after, or none."""
    found = _FRAME.fullmatch(text)
    return found[1] if found else text
