"""What stands inside a dialect's markup, read to calls as written: JSON, Python calls, XML, a name and its object.

Holds the readers of single units; no table (see `dialects`), no walk over a whole reply (see `scan`). A unit counts
only if the model closed it.
"""

import re
from collections.abc import Callable

from msgspec import Struct

from rea_edge.decision import dialects
from rea_edge.decision.found import Flaw, Found, Written
from rea_edge.decision.names import Names, shown
from rea_edge.decision.notation import Broken, Value, read_calls, read_value, skip
from rea_edge.decision.shapes import read_calls_value, reading_of
from rea_edge.decision.tagged import Unit, blank, cut, keys_and_values, unclear, xml_call
from rea_edge.schema import unique_keys

_BETWEEN = re.compile(r"(?:\s|[,;]|(?:`{3,}|~{3,})(?!tool_output)[a-z_]*|[}\])](?=\s*(?:<[/|｜]|$)))*", re.IGNORECASE)
_BETWEEN_LINES = re.compile(r"[\s,;]*")
# How far behind a faulty call its closing tag is looked for.
_NEAR = 4000
_CALL_START = re.compile(r"\[?\s*(?:print\s*\(\s*)?(?P<name>[^\W\d][\w.-]*)\s*[(（]")
_TOKEN = re.compile(r"\[/?[A-Z_]{3,20}\]")
_CALL_METHOD = re.compile(r"\.call$")


class Body(Struct, frozen=True):
    """What was read: up to `end`; `closed`: the wrapper's closing tag came; `clean`: nothing unreadable before it."""

    found: tuple[Found, ...]
    end: int
    closed: bool
    clean: bool = True


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
    readers: tuple[Callable[[str, int, re.Pattern[str], Names], Unit | None], ...] = (_tagged, _python, _json, _named)
    unit = xml_call(text, at, close)
    for reader in readers:
        unit = unit or reader(text, at, close, names)
    return unit


def _json(text: str, at: int, close: re.Pattern[str], names: Names) -> Unit | None:
    if text[at] not in '{[｛［"' or _TOKEN.match(text, at):
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


def _tagged(text: str, at: int, close: re.Pattern[str], names: Names) -> Unit | None:
    opening = dialects.TAGGED_NAME.match(text, at)
    if opening is None:
        return None
    name = (opening["a"] or opening["b"]).strip()
    read = read_value(text, opening.end(), dialects.TAGGED_CLOSE)
    if isinstance(read, Broken):
        return Unit((unclear(name, read),), max(read.at, at + 1))
    ended = dialects.TAGGED_CLOSE.match(text, read.end)
    return Unit((Written(name, read.value),), ended.end() if ended else read.end)


def _named(text: str, at: int, close: re.Pattern[str], names: Names) -> Unit | None:
    """A name, then an object, or keys and values, or nothing."""
    first = dialects.NAME_FIRST.match(text, at)
    if first is None:
        return None
    name, at = first["name"].rstrip(":"), first.end()
    separator = dialects.SEPARATOR.match(text, at)
    if separator:
        read = read_value(text, separator.end(), close)
        if isinstance(read, Broken):
            return Unit((cut(name) if read.ended else unclear(name, read),), max(read.at, at))
        return Unit((Written(name, read.value),), read.end)
    read_pairs = keys_and_values(text, at, name)
    if isinstance(read_pairs, Unit):
        return read_pairs
    pairs, at = read_pairs
    here = blank(text, at)
    if close.match(text, here):
        return Unit((Written(name, unique_keys(pairs)),), here)
    if pairs:
        return Unit((cut(name),), at)
    return Unit((cut(name),), here) if here >= len(text) and names.find(name) is not None else None
