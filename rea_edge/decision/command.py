"""The command protocol: one short line read to a decision, and a call written as a line.

Holds no grammar (see `grammar`), no comparison (see `condition`), no answers (see `telling`) and no I/O. A line is

    line  = call | guard | "done" | "cannot"
    guard = "if " call " -> " path " " op " " value " then " call
    call  = tool *(" " [key "="] value)

A bare value stands only for the sole required enum or string of a tool; what is not `[A-Za-z0-9_.-]+` is a JSON string.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, NoReturn

import msgspec

from rea_edge import schema
from rea_edge.condition import PATH_LENGTH, is_path, op_of
from rea_edge.errors import DecisionRejected
from rea_edge.parameters import shapes_of
from rea_edge.records import Args, Call, Calls, Decision, Finish, GiveUp, Guard, Offer, Tool
from rea_edge.telling import NUMBER, WORD, is_scalar, written

# Words of the language itself: a tool with such a name cannot be called by a line.
RESERVED = frozenset({"if", "then", "done", "cannot"})

_STRING = r'"(?:[^"\\]|\\.)*"'
_ITEM = re.compile(rf"(?P<mark>->|[<>]=?|[=!]=)|(?:(?P<key>{WORD}|{_STRING})=)?(?P<value>{WORD}|{_STRING})")
_TOOL_NAME = re.compile(r"[a-z][a-z0-9_]*")
_NUMBER_LENGTH = 40  # a longer one is no number anybody means, and int() has a limit of its own


def read_line(text: str, offers: Sequence[Offer]) -> Decision:
    """Read one command line; raise `DecisionRejected` with a message for the model if it gives no decision.

    `done` is a `Finish` with an empty answer. The same line twice is one; different lines are a conflict. Any text
    gives an outcome, in time linear in its length.
    """
    lines = list(dict.fromkeys(line.strip() for line in re.split(r"[\r\n]", text)))
    lines = [line for line in lines if line]
    if not lines:
        raise DecisionRejected("empty", "Answer with one command line.")
    if len(lines) > 1:
        raise DecisionRejected("conflict", "Answer with one command line, not several.")
    match lines[0].rstrip(".").lower():
        case "done":
            return Finish(answer="")
        case "cannot":
            return GiveUp(reason="the model found no command that fits the goal")
    items = list(_items(lines[0]))
    if items[0].bare == "if":
        return _guard(items, offers)
    return Calls(calls=(_call(items, offers),))


def call_line(call: Call, parameters: Args) -> str:
    """Write a call as the line that reads back as it, for a tool with these `parameters`."""
    bare = bare_key(parameters)
    parts = [call.name]
    if bare is not None and bare in call.args:
        parts.append(written(call.args[bare]))
    parts += [f"{written(key)}={written(value)}" for key, value in call.args.items() if key != bare]
    return " ".join(parts)


def example_call(line: str, tools: Sequence[Tool]) -> Call | None:
    """Give the first call that an example's command line asks for (a guard's read), or None for `cannot`."""
    offers = [Offer.of(tool) for tool in tools]
    match read_line(line, offers):
        case Calls(calls=(first, *_)):
            return first
        case Guard(read=read):
            return read
        case _:
            return None


def bare_key(parameters: Args) -> str | None:
    """Name the parameter whose value may stand without its key, or None if there is no such one."""
    match parameters:
        case {"required": [str(key)], "properties": dict(properties)}:
            shape = properties.get(key)
            return key if isinstance(shape, dict) and ("enum" in shape or shape.get("type") == "string") else None
    return None


# --- reading


class _Item(NamedTuple):
    """One part between blanks: a mark, or a value with or without a key. `bare` is set for a word without a key."""

    mark: str | None
    key: str | None
    value: str

    @property
    def bare(self) -> str | None:
        return self.value if self.mark is None and self.key is None and not self.value.startswith('"') else None


def _items(line: str) -> Iterator[_Item]:
    at = 0
    while at < len(line):
        found = _ITEM.match(line, at)
        if found is None or (found.end() < len(line) and line[found.end()] != " "):
            _unreadable()
        key = found["key"]
        yield _Item(found["mark"], None if key is None else _text(key), found["value"] or "")
        at = found.end()
        while at < len(line) and line[at] == " ":
            at += 1


def _unreadable() -> NoReturn:
    raise DecisionRejected(
        "unparseable", "Answer with one command line as listed, or cannot; quote a text that is not one word."
    )


def _guard(items: Sequence[_Item], offers: Sequence[Offer]) -> Guard:
    arrow = next((at for at, item in enumerate(items) if item.mark == "->"), None)
    if arrow is None or len(items) < arrow + 6:
        _unreadable()
    path, mark, value, then = items[arrow + 1 : arrow + 5]
    op = op_of(mark.mark)
    if path.bare is None or op is None or value.mark or value.key is not None or then.bare != "then":
        _unreadable()
    if not is_path(path.bare):
        raise DecisionRejected(
            "invalid_args", f"{path.bare[:PATH_LENGTH]!r} is not a path such as value or disks.0.free."
        )
    read, act = _call(items[1:arrow], offers), _call(items[arrow + 5 :], offers)
    if _offer(read.name, offers).effect != "read":
        raise DecisionRejected("invalid_args", f"{read.name} acts: after if stands a tool that only reads.")
    return Guard(read=read, path=path.bare, op=op, value=_guard_value(value.value), then=act)


def _call(items: Sequence[_Item], offers: Sequence[Offer]) -> Call:
    if not items or items[0].bare is None or not _TOOL_NAME.fullmatch(items[0].bare):
        _unreadable()
    offer = _offer(items[0].bare, offers)
    args: Args = {}
    for item in items[1:]:
        if item.mark is not None:
            _unreadable()
        key = item.key if item.key is not None else bare_key(offer.parameters)
        if key is None:
            raise DecisionRejected("invalid_args", f"{offer.name}: write {item.value[:40]} as key=value.")
        value = _value(item.value, shapes_of(offer.parameters).get(key))
        if key in args and args[key] != value:
            raise DecisionRejected("invalid_args", f"{offer.name}: {key[:40]} has two values.")
        args[key] = value
    checked = schema.compile(offer.parameters, place=offer.name).check(args)
    return Call(name=offer.name, args=dict(checked) if isinstance(checked, dict) else args)


def _offer(name: str, offers: Sequence[Offer]) -> Offer:
    for offer in offers:
        if offer.name == name:
            return offer
    names = ", ".join(offer.name for offer in offers)
    raise DecisionRejected("unknown_tool", f"There is no tool {name[:48]}; the tools are: {names or 'none'}.")


def _value(token: str, shape: object) -> object:
    """Read a value as its parameter takes it: a word is a number, true or null only where those may stand."""
    takes = _types(shape)
    if token.startswith('"'):
        text = _text(token)
        nested = "string" not in takes and ("array" in takes or "object" in takes)
        return _json(text) if nested else text
    if is_scalar(token) and "string" not in takes:
        return _json(token)
    if NUMBER.fullmatch(token) and ("number" in takes or "integer" in takes):
        return _json(token)
    return token


def _types(shape: object) -> frozenset[str]:
    match shape:
        case {"enum": list(members)}:
            return frozenset("string" if isinstance(member, str) else "number" for member in members)
        case {"type": str(name)}:
            return frozenset({name})
        case {"type": list(names)}:
            return frozenset(str(name) for name in names)
        case {"anyOf": list(branches)}:
            return frozenset(name for branch in branches for name in _types(branch))
    return frozenset()


def _guard_value(token: str) -> int | float | str:
    if token.startswith('"'):
        return _text(token)
    number = _json(token) if NUMBER.fullmatch(token) else token
    return number if isinstance(number, int | float | str) else token


def _text(token: str) -> str:
    """Decode a key or value token to the text it stands for."""
    if not token.startswith('"'):
        return token
    try:
        return msgspec.json.decode(token.encode("utf-8", "surrogatepass"), type=str)
    except (msgspec.MsgspecError, UnicodeError):
        _unreadable()


def _json(text: str) -> object:
    """Decode a JSON value, or give the text back where it is none: the schema then says what is wrong."""
    if NUMBER.fullmatch(text) and len(text) > _NUMBER_LENGTH:
        return text
    try:
        value: object = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return text
    return value
