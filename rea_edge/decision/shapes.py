"""JSON objects that are decisions: the agreed form, and the forms that models know from elsewhere.

Holds which keys mean what. Must not look at tool schemas: names and arguments are passed on as written.
"""

import json
import re
from collections.abc import Iterable, Mapping

from msgspec import Struct

from rea_edge.condition import same
from rea_edge.decision.found import Absent, Flaw, Form, Found, Positional, Quit, Remarks, Result, Said, Written
from rea_edge.decision.names import Names, shown
from rea_edge.decision.notation import PyCall
from rea_edge.schema import Clash

NAME_KEYS = ("tool_name", "tool", "name", "function", "function_name", "recipient_name")
ARGS_KEYS = (
    "tool_args", "arguments", "parameters", "args", "action_input", "tool_input", "input", "params", "kwargs",
    "function_args", "tool_arguments", "tool_parameters",
)  # fmt: skip
ANSWER_KEYS = ("terminal_answer", "final_answer", "final answer", "answer", "response")
LIST_KEYS = ("tool_calls", "tool_uses", "function_calls")
NESTED_KEYS = ("tool_call", "function_call")
_BESIDE = frozenset(
    [
        "thought",
        "thoughts",
        "thinking",
        "reasoning",
        "reason",
        "rationale",
        "intent",
        "estimated_cost",
        "id",
        "type",
        "index",
        "call_id",
        "tool_call_id",
        "action",
        "confidence",
        "plan",
        "step",
        "explanation",
        "comment",
        "status",
        "role",
        "content",
        "refusal",
    ]
)
_RESULT_KEYS = frozenset(
    {"observation", "tool_response", "tool_result", "tool_output", "function_response", "tool_results"}
)
_TOOL_WORDS = frozenset(["tool", "tool_call", "call_tool", "use_tool", "call", "function", "function_call", "tool_use"])
_FINISH_WORDS = frozenset(["finish", "final_answer", "final", "answer", "finalanswer", "finished"])
_GIVE_UP_WORDS = frozenset({"give_up", "giveup"})
_NOTHING: tuple[object, ...] = (None, "", Absent())

# Does a text that cannot be read begin like one of these objects? Then it was meant as a decision.
LIKE_DECISION = re.compile(
    r"""[\s\[{｛［]{0,16}["'“‘`＂]?(?:action|tool_name|tool_args|tool_calls?|tool|name|function|function_call|terminal_answer"""
    r"""|final_answer|thought|arguments|parameters)["'”’`＂]?\s*[:：]""",
    re.IGNORECASE,
)


class Reading(Struct, frozen=True):
    """What one JSON value says as a decision."""

    form: Form
    found: tuple[Found, ...]
    remarks: Remarks = Remarks()


def finish_word(text: str) -> bool:
    return _word(text) in _FINISH_WORDS


def give_up_word(text: str) -> bool:
    return _word(text) in _GIVE_UP_WORDS


def read_calls_value(value: object) -> tuple[Written, ...]:
    """Python calls as written."""
    calls = value if isinstance(value, list) else [value]
    return tuple(_python_call(call) for call in calls if isinstance(call, PyCall))


def reading_of(value: object, names: Names, *, agreed: bool = False, markup: bool = False) -> Reading | None:
    """Read a value as a decision, or give None where it is plain JSON.

    `agreed`: a decision object was asked for, so that any object is meant as one. `markup`: it stood in a dialect's
    markup, so that a name alone is a call.
    """
    if isinstance(value, list):
        return _list(value, names, agreed=agreed, markup=markup)
    if not isinstance(value, dict) or not value:
        return _flaw("unparseable", "`action` is missing") if agreed and isinstance(value, dict) else None
    keys = {key.strip().lower(): item for key, item in value.items()}
    reading = _object(keys, names, agreed=agreed, markup=markup)
    if reading is None and agreed and not (len(keys) == 1 and keys.keys() & _RESULT_KEYS):
        return _flaw("unparseable", 'The JSON object is no decision: `action` must be "tool", "finish" or "give_up".')
    return reading


def _list(values: list[object], names: Names, *, agreed: bool, markup: bool) -> Reading | None:
    if values and all(isinstance(value, PyCall) for value in values):
        return Reading("bare", read_calls_value(values))
    readings = [reading_of(value, names, markup=markup) for value in values if isinstance(value, dict)]
    parts = [reading for reading in readings if reading is not None]
    if not parts or len(parts) < len(values):
        if parts and any(isinstance(found, Written) for part in parts for found in part.found):
            return _flaw("unparseable", "The list holds something that is no call.")
        return _flaw("unparseable", "A list of calls must hold call objects.") if agreed and values else None
    found = tuple(found for part in parts for found in part.found)
    return Reading(parts[0].form, found, parts[0].remarks)


def _object(keys: dict[str, object], names: Names, *, agreed: bool, markup: bool) -> Reading | None:
    for key in LIST_KEYS:
        listed = keys.get(key)
        if isinstance(listed, list) and listed:
            if any(_text(keys.get(answer)).strip() for answer in ANSWER_KEYS[:3]):
                return _flaw("conflict", "Calls and an answer in one object. Nothing was run: send one.")
            return _list(listed, names, agreed=True, markup=True)
    for key in (*NESTED_KEYS, "function", "action", "tool"):
        nested = keys.get(key)
        if isinstance(nested, dict) and nested and (key in NESTED_KEYS or nested.keys() & {*NAME_KEYS}):
            return reading_of(nested, names, markup=True)
    action = keys.get("action")
    if isinstance(action, Clash):
        return _flaw("conflict", "`action` was given twice: send one decision.")
    if isinstance(action, str) and action.strip():
        return _acted(action, keys, names, agreed=agreed)
    if action is None and keys.keys() & _RESULT_KEYS and not keys.keys() & {*NAME_KEYS}:
        return Reading("result", (Result(),))
    return _named(keys, names, agreed=agreed, markup=markup)


def _acted(action: str, keys: dict[str, object], names: Names, *, agreed: bool) -> Reading | None:
    """An object with `action`: one of our three words, or (as others write it) the tool's name itself."""
    answer, other = answer_in(keys), _first(keys, NAME_KEYS)
    if isinstance(other, Clash):
        return _flaw("conflict", "The tool's name was given twice: send one decision.")
    remarks = _remarks(keys)
    word = _word(action)
    if word in _TOOL_WORDS and names.find(action) is None:
        if other in _NOTHING:
            return _flaw("unparseable", '`tool_name` is missing: with action "tool" name the tool.')
        found: list[Found] = [*_call(other, keys)]
        return Reading("decision", (*found, Said(answer)) if answer.strip() else tuple(found), remarks)
    if word in _FINISH_WORDS and names.find(action) is None:
        return _finished(keys, answer, other, remarks)
    if word in _GIVE_UP_WORDS and names.find(action) is None:
        reason = _text(keys.get("reason")) or _text(keys.get("thought")) or answer
        stray = () if other in _NOTHING or _word(str(other)) in _GIVE_UP_WORDS else (*_call(other, keys),)
        return Reading("decision", (Quit(reason.strip() or "no reason given"), *stray), remarks)
    known = names.find(action) is not None
    if known or (other in _NOTHING and any(key in keys for key in ARGS_KEYS)):
        if other not in _NOTHING and _word(str(other)) != word:
            return _flaw(
                "conflict", f"`action` says {shown(action)} and the tool's name {shown(str(other))}: send one."
            )
        calls = _call(action, keys)
        return Reading("decision", (*calls, Said(answer)) if answer.strip() else calls, remarks)
    if agreed or other not in _NOTHING:
        return _flaw("unparseable", f'`action` must be "tool", "finish" or "give_up", got "{shown(action)}".')
    return None


def _finished(keys: dict[str, object], answer: str, other: object, remarks: Remarks) -> Reading:
    if not answer.strip():
        return _flaw(
            "unparseable", '`terminal_answer` must hold the answer as text: with action "finish" it is not optional.'
        )
    stray = () if other in _NOTHING or finish_word(str(other)) else _call(other, keys)
    return Reading("decision", (Said(answer), *stray), remarks)


def _named(keys: dict[str, object], names: Names, *, agreed: bool, markup: bool) -> Reading | None:
    """An object without `action`: a call by name and arguments, or only an answer."""
    name = _first(keys, NAME_KEYS)
    given = [key for key in ARGS_KEYS if key in keys]
    if isinstance(name, str) and not names.find(name):
        args = keys[given[0]] if given else None
        if finish_word(name) and (given or agreed):
            answer = answer_in(keys) or (answer_in(args) if isinstance(args, Mapping) else _text(args))
            return _finished(keys, answer, None, _remarks(keys))
        if give_up_word(name) and (given or agreed):
            reason = args.get("reason") if isinstance(args, Mapping) else args
            return Reading("decision", (Quit(_text(reason) or _text(keys.get("reason")) or "no reason given"),))
    if given and _is_definition(keys, given):
        known = isinstance(name, str) and names.find(name) is not None
        return (
            _flaw("invalid_args", f"{name}: that repeats its declaration; give values for its arguments.")
            if known
            else None
        )
    if "name" in keys or name not in _NOTHING:
        sure = markup or agreed and isinstance(name, str) and names.find(name) is not None and "name" not in keys
        if given or sure:
            return Reading("bare", _call(name, keys), _remarks(keys))
    if markup and len(keys) == 1:
        (key, args), *_ = keys.items()
        if isinstance(args, dict) and names.find(key) is not None:
            return Reading("bare", (Written(key, args),))
    if any(key in keys for key in ANSWER_KEYS[:3]) or (agreed and keys.keys() & {*ANSWER_KEYS}):
        answer = answer_in(keys)
        if agreed and answer.strip() and keys.keys() <= {*ANSWER_KEYS, *_BESIDE}:
            return Reading("decision", (Said(answer),), _remarks(keys))
    return None


def _call(name: object, keys: Mapping[str, object]) -> tuple[Found, ...]:
    given = [keys[key] for key in ARGS_KEYS if key in keys]
    full = [args for args in given if args not in ({}, *_NOTHING)]
    if any(not same(args, full[0]) for args in full[1:]):
        return (Flaw("invalid_args", f"{shown(str(name))}: the arguments were given twice and differ."),)
    if not given:
        stray = [key for key in keys if key not in _BESIDE and key not in NAME_KEYS and key not in ANSWER_KEYS]
        if stray:
            inside = ", ".join(f"`{shown(key)}`" for key in stray[:3])
            return (Flaw("invalid_args", f"{shown(str(name))}: put {inside} inside the arguments object."),)
        return (Written(name),)
    return (Written(name, full[0] if full else given[0]),)


def _python_call(call: PyCall) -> Written:
    if not call.values:
        return Written(call.name, call.named)
    return Written(call.name, Positional(call.values) if not call.named else Positional((*call.values, call.named)))


def _is_definition(keys: Mapping[str, object], given: Iterable[str]) -> bool:
    """A tool's declaration repeated by the model is no call of it."""
    args = [keys[key] for key in given]
    return any(isinstance(item, dict) and item.get("type") == "object" and "properties" in item for item in args)


def _first(keys: Mapping[str, object], wanted: Iterable[str]) -> object:
    return next((keys[key] for key in wanted if keys.get(key) not in (None, "")), None)


def answer_in(keys: Mapping[str, object]) -> str:
    """The answer of an object, under whichever of its names; empty where there is none."""
    for key in (*ANSWER_KEYS, "action_input", "tool_input"):
        value = keys.get(key)
        if isinstance(value, dict) and key in ("action_input", "tool_input"):
            return answer_in(value)
        text = _text(value)
        if text.strip():
            return text
    return ""


def _text(value: object) -> str:
    match value:
        case str():
            return value
        case bool():
            return str(value).lower()
        case int() | float():
            try:
                return json.dumps(value, allow_nan=False)
            except ValueError:
                return ""
    return ""


def _remarks(keys: Mapping[str, object]) -> Remarks:
    thought = next(
        (_text(keys[key]) for key in ("thought", "thoughts", "reasoning", "reason") if _text(keys.get(key))), ""
    )
    return Remarks(thought, _text(keys.get("intent")), _text(keys.get("estimated_cost")))


def _word(text: str) -> str:
    return re.sub(r"[\s_-]+", "_", text.strip(" \t\r\n`*\"'.:").lower())


def _flaw(kind: str, message: str) -> Reading:
    match kind:
        case "conflict":
            return Reading("decision", (Flaw("conflict", message),))
        case "invalid_args":
            return Reading("decision", (Flaw("invalid_args", message),))
    return Reading("decision", (Flaw("unparseable", message),))
