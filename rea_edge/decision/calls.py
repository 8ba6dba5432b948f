"""A call as written, checked: its name resolved, its arguments read by the tool's schema, or one precise rejection.

Must not decide between calls (see `settle`) and never changes a value beyond what `schema` calls lossless.
"""

import re

from rea_edge import schema
from rea_edge.decision.found import Absent, Bare, Element, Positional, RawText, Unread, Written
from rea_edge.decision.names import Names, shown
from rea_edge.decision.notation import Value, read_value, skip
from rea_edge.errors import DecisionRejected
from rea_edge.records import Args, Call, Offer
from rea_edge.schema import Schema
from rea_edge.schema.shape import Shape

_PARALLEL = "multi_tool_use.parallel"
_NOTHING_WORDS = frozenset({"", "null", "none", "{}", "n/a"})
_BLANKS = " \t\r\n"
_QUOTES = tuple("\"'“‘`＂")


def unfolded(written: Written, names: Names) -> tuple[Written, ...]:
    """The calls inside the known wrapper for parallel calls; else the call itself."""
    if written.name not in (_PARALLEL, f"functions.{_PARALLEL}") or names.find(_PARALLEL) is not None:
        return (written,)
    match written.args:
        case {"tool_uses": [*uses]} if uses and all(isinstance(use, dict) for use in uses):
            return tuple(
                Written(use.get("recipient_name"), use.get("parameters", Absent()))
                for use in uses
                if isinstance(use, dict)
            )
    return (written,)


def checked(written: Written, names: Names, *, cut: bool) -> Call:
    """Give the call with valid arguments, or raise DecisionRejected. `cut`: the reply was cut off at its end."""
    if cut and isinstance(written.args, Absent) and isinstance(written.name, str) and names.may_go_on(written.name):
        raise DecisionRejected("truncated", f"The name `{shown(written.name)}` was cut off. Send the call whole.")
    offer = names.get(written.name)
    compiled = schema.compile(offer.parameters, place=offer.name, lenient=True)
    args = _arguments(written.args, offer, compiled, cut=cut)
    valid = compiled.check(args)
    assert isinstance(valid, dict)
    return Call(name=offer.name, args=valid)


def sole_text(shape: Shape) -> str | None:
    """The parameter that a bare value stands for: the only one, required, and a string."""
    match list(shape.properties.items()):
        case [(key, only)] if shape.required == (key,) and "string" in only.types:
            return key
        case [(key, only)] if (
            shape.required == (key,) and only.members and all(isinstance(m, str) for m in only.members)
        ):
            return key
    return None


def _arguments(args: object, offer: Offer, compiled: Schema, *, cut: bool) -> Args:
    match args:
        case dict():
            return {key: _from_text(value, compiled.shape.properties.get(key)) for key, value in args.items()}
        case Absent() | None | "":
            return _none(offer, compiled, cut=cut)
        case Bare(text=text):
            return _bare(text, offer, compiled, cut=cut)
        case str():
            return _spelled(args, offer, compiled, cut=cut)
        case Positional(values=[dict(only)]):
            return only
        case Positional(values=[str(only)]) if (key := sole_text(compiled.shape)) is not None:
            return {key: only}
        case Positional(values=[]) | []:
            return _none(offer, compiled, cut=cut)
        case Unread(ended=True):
            raise DecisionRejected(
                "truncated", f"The call of `{offer.name}` was cut off inside its arguments. Send it whole."
            )
        case Unread(key=key):
            near = f" near `{shown(key)}`" if key else ""
            raise DecisionRejected(
                "invalid_args", f"{offer.name}: the arguments cannot be read{near}. {_wanted(compiled)}"
            )
        case Positional():
            raise DecisionRejected("invalid_args", f"{offer.name}: give each argument by name. {_wanted(compiled)}")
    raise DecisionRejected("invalid_args", f"{offer.name}: the arguments must be one JSON object. {_wanted(compiled)}")


def _none(offer: Offer, compiled: Schema, *, cut: bool) -> Args:
    if cut and compiled.shape.properties:
        raise DecisionRejected(
            "truncated", f"The call of `{offer.name}` was cut off before its arguments. Send it whole."
        )
    return {}


def _spelled(text: str, offer: Offer, compiled: Schema, *, cut: bool) -> Args:
    """Arguments that are a JSON string: unwrapped once."""
    if text[skip(text, 0) :][:1] in ("{", "｛"):
        value = read_value(text)
        if isinstance(value, Value) and isinstance(value.value, dict) and skip(text, value.end) >= len(text):
            return value.value
        ended = not isinstance(value, Value) and value.ended
        return _arguments(Unread(ended), offer, compiled, cut=cut)
    return _bare(text, offer, compiled, cut=cut)


def _bare(text: str, offer: Offer, compiled: Schema, *, cut: bool) -> Args:
    text = text.strip(_BLANKS)
    if text.lower() in _NOTHING_WORDS:
        return _none(offer, compiled, cut=cut)
    key = sole_text(compiled.shape)
    quoted = read_value(text) if text[:1] in _QUOTES else None
    if isinstance(quoted, Value) and isinstance(quoted.value, str) and quoted.end == len(text) and key is not None:
        return {key: quoted.value}
    if cut:
        return _arguments(Unread(ended=True), offer, compiled, cut=cut)
    if key is None or "\n" in text or re.match(rf"[\"'{{\[(<“]|{re.escape(key)}\s*[=:：]", text, re.IGNORECASE):
        return _arguments(Unread(ended=False), offer, compiled, cut=cut)
    return {key: text}


def _from_text(value: object, shape: Shape | None) -> object:
    """What text between tags says, by the type of its parameter: text stays text where only a string is taken."""
    if isinstance(value, Element):
        return _from_parts(value, shape or Shape())
    if not isinstance(value, RawText):
        return value
    if value.literal or shape is None or shape.types <= {"string"}:
        return value.text
    text = value.text.strip(_BLANKS)
    if "string" in shape.types:
        typed = _typed(text)
        return value.text if isinstance(typed, str) or not shape.admits(typed) else typed
    if text.lower() in ("null", "none"):
        return None
    if text[:1] in ("{", "[") and shape.types & {"object", "array"}:
        return _typed(text)
    return value.text if shape.members is not None else text


def _from_parts(element: Element, shape: Shape) -> object:
    """What tags in tags say: a text where only that is taken, else the items of a list, or an object's keys."""
    if not shape.types & {"array", "object"} and (shape.types or not element.parts):
        return element.text
    if "object" not in shape.types and all(key == "item" for key, _ in element.parts):
        return [_from_text(part, shape.items) for _, part in element.parts]
    return schema.unique_keys(
        [(key, _from_text(part, shape.properties.get(key, shape.extra))) for key, part in element.parts]
    )


def _typed(text: str) -> object:
    """The JSON value that a text spells; the text itself where it spells none."""
    read = read_value(text)
    return read.value if isinstance(read, Value) and skip(text, read.end) >= len(text) else text


def _wanted(compiled: Schema) -> str:
    """The parameters in one short line, so that the model can correct itself."""
    shape = compiled.shape
    parts = [key if key in shape.required else f"{key} (optional)" for key in shape.properties]
    return f"Arguments: a JSON object with {', '.join(parts[:8])}." if parts else "It takes no arguments: {}."
