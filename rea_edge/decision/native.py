"""The fields of an assistant message: refusal, native calls, text, reasoning. Must not read decisions out of text."""

import json
import re
from collections.abc import Iterable, Mapping

from msgspec import Struct

from rea_edge.condition import same
from rea_edge.decision.found import Flaw, Found, Positional, Unread, Written
from rea_edge.decision.names import shown
from rea_edge.decision.notation import Broken, Value, read_value, skip

_HEADER = re.compile(r"\s*(?:`{3,}|~{3,})?\s*(?:json)?\s*(?=[{｛\"\[])", re.IGNORECASE)
_TAIL = re.compile(r"(?:\s|`{3,}|~{3,}|<[|｜][^<>]*[|｜]>|</[a-z_:]+>|[;}\])])*", re.IGNORECASE)
_REASONING = ("reasoning_content", "reasoning", "thinking", "reasoning_details")
_CALL_TYPES = frozenset({"tool_use", "tool_call", "function_call", "function"})


class Envelope(Struct, frozen=True):
    """A message taken apart. `calls` are native ones, as written, or flaws of them."""

    refusal: str = ""
    calls: tuple[Found, ...] = ()
    text: str = ""
    reasoning: str = ""


def opened(message: Mapping[str, object]) -> Envelope:
    """Take a message of any shape apart; fields of a wrong type count as absent."""
    content = message.get("content")
    parts = content if isinstance(content, list) else [content]
    text, reasoning, refusals, calls = [], [_said(message.get(key)) for key in _REASONING], [], list(_native(message))
    refusals.append(_said(message.get("refusal")))
    for part in parts:
        if isinstance(part, str):
            text.append(part)
        if not isinstance(part, dict):
            continue
        match part.get("type"):
            case str(kind) if kind in _CALL_TYPES:
                calls.append(_call(part))
            case "refusal":
                refusals.append(_said(part.get("refusal")))
            case None | "text" | "output_text" | "input_text" if isinstance(part.get("text"), str):
                text.append(_said(part.get("text")))
            case None if isinstance(part.get("functionCall"), Mapping):
                calls.append(_call({"function": part["functionCall"]}))
            case str() if isinstance(content, list):
                reasoning += [_said(part.get(key)) for key in ("thinking", "reasoning", "text", "summary")]
            case _ if not isinstance(content, list):
                text.append(_dumped(part))  # a server that already parsed the JSON it was asked for
    return Envelope(_joined(refusals), tuple(calls), "".join(text), _joined(reasoning))


def _native(message: Mapping[str, object]) -> Iterable[Found]:
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else [calls]:
        if isinstance(call, Mapping):
            yield _call(call)
        elif call is not None:
            yield Flaw("unparseable", "A tool call must be an object with `function`.")
    legacy = message.get("function_call")
    if isinstance(legacy, Mapping) and legacy:
        found = _fields(legacy)
        if not (isinstance(calls, list) and any(isinstance(call, Mapping) and _call(call) == found for call in calls)):
            yield found


def _call(call: Mapping[str, object]) -> Found:
    for key in ("function", "custom"):
        inner = call.get(key)
        if isinstance(inner, Mapping):
            return _fields(inner)
    return _fields(call)


def _fields(call: Mapping[str, object]) -> Found:
    name = call.get("name")
    if isinstance(name, str) and name == "" or name is None:
        name = call.get("tool_name", name)
    for key in ("arguments", "input", "parameters", "args"):
        if call.get(key) is not None:
            return _arguments(name, call[key])
    return Written(name)


def _arguments(name: object, args: object) -> Found:
    match args:
        case str():
            return _spelled(name, args)
        case dict():
            return Written(name, args)
        case list():
            return Written(name, Positional(tuple(args)))
    return Written(name, Unread(ended=False))


def _spelled(name: object, text: str, level: int = 0) -> Found:
    """Arguments as a JSON text, perhaps twice encoded, in a fence, or sent twice."""
    if not text.strip() or text.strip() == "null":
        return Written(name)
    header = _HEADER.match(text)
    if header is None:
        return Written(name, Unread(ended=False))
    read = read_value(text, header.end())
    if isinstance(read, Broken):
        return Written(name, Unread(read.ended, read.key))
    end = _after(text, read.end)
    while end < len(text):
        again = read_value(text, end)
        if not isinstance(again, Value) or not isinstance(again.value, dict):
            return Written(name, Unread(ended=False))
        if not same(again.value, read.value):
            return Flaw(
                "invalid_args", f"{shown(str(name))}: the arguments hold two different objects. Send one call for each."
            )
        end = _after(text, again.end)
    match read.value:
        case str() if level == 0:
            return _spelled(name, read.value, 1)
        case list():
            return Written(name, Positional(tuple(read.value)))
        case dict():
            return Written(name, read.value)
    return Written(name, Unread(ended=False))


def _after(text: str, end: int) -> int:
    tail = _TAIL.match(text, skip(text, end))
    return skip(text, tail.end()) if tail else len(text)


def _said(value: object) -> str:
    match value:
        case str():
            return value
        case list():
            said = [item.get("text", item.get("thinking")) for item in value if isinstance(item, dict)]
            return "\n".join(text for text in said if isinstance(text, str))
    return ""


def _dumped(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return ""


def _joined(texts: Iterable[str]) -> str:
    return "\n".join(text for text in texts if text.strip())
