"""ReAct text: lines with labels. Holds the reading of an action and of a final answer; `scan` finds the labels."""

import re

from msgspec import Struct

from rea_edge.decision import dialects
from rea_edge.decision.found import Absent, Bare, Flaw, Found, Result, Said, Unread, Written
from rea_edge.decision.names import Names
from rea_edge.decision.notation import Broken, Value, read_calls, read_value, skip
from rea_edge.decision.shapes import answer_in, finish_word, read_calls_value, reading_of

_NO_ACTION = re.compile(r"(?:none|n/?a|no action|nothing|无|没有)[.。]?", re.IGNORECASE)
_FENCE = re.compile(r"\s*(?:`{3,}|~{3,})[a-z_]*\s*", re.IGNORECASE)
_BRACKET = re.compile(r"(?P<name>[^\s\[\](){}]{1,80})\[(?P<inner>[^\]\n]*)\]\s*$")
_LABEL_ENDS = frozenset({"thought", "result", "question", "final"})


class Action(Struct, frozen=True):
    """What an action says (nothing, for `Action: None`) and where the text goes on."""

    found: tuple[Found, ...]
    end: int


def read_action(text: str, at: int, end: int, names: Names) -> Action:
    """Read the action whose label ends at `at`; the reply ends at `end`."""
    line_end = _line_end(text, at, end)
    name = text[at:line_end].strip()
    if not name or name[0] in "{[`~":
        blob = _blob(text, at, end, names)
        if blob is not None:
            return blob
    if not name:
        at = skip(text, at)
        line_end = _line_end(text, at, end)
        if _label(text, text.rfind("\n", 0, at) + 1, end):
            line_end = at
        name = text[at:line_end].strip()
    inline = dialects.SAME_LINE_INPUT.search(text, at, line_end)
    if inline:
        return _with_input(text, text[at : inline.start()].strip(), inline.end(), end)
    called = _called(text, at, line_end, end, names)
    if called is not None:
        return called
    label = _label(text, line_end, end)
    if _NO_ACTION.fullmatch(name) and names.find(name) is None:
        return Action((), _line_end(text, label.end(), end) if label and label.lastgroup == "input" else line_end)
    if label and label.lastgroup == "input":
        return _with_input(text, name, label.end(), end)
    follow = _blank(text, line_end, end)
    if text[follow : follow + 1] == "{" and names.find(name) is not None:
        return _with_input(text, name, follow, end)
    return Action((Written(name, Absent()),), line_end)


def read_final(text: str, at: int, end: int, names: Names) -> tuple[str, int]:
    """The answer whose label ends at `at`, and where it ends: at the next label that cannot be part of it."""
    for label in dialects.LABELS.finditer(text, at, end):
        named = (
            names.find(text[label.end() : _line_end(text, label.end(), end)]) if label.lastgroup == "action" else None
        )
        if label.lastgroup in _LABEL_ENDS or named is not None:
            return text[at : label.start()], label.start()
    return text[at:end], end


def _blob(text: str, at: int, end: int, names: Names) -> Action | None:
    """A JSON object in the place of the name, perhaps in a fence."""
    fence = _FENCE.match(text, at)
    at = skip(text, fence.end() if fence else at)
    if text[at : at + 1] not in ("{", "["):
        return None
    read = read_value(text, at)
    if isinstance(read, Broken):
        cut, bad = (
            Flaw("truncated", "The action was cut off. Send it whole."),
            Flaw("unparseable", "The action's JSON cannot be read."),
        )
        return Action((cut if read.ended else bad,), max(read.at, at + 1))
    reading = reading_of(read.value, names, markup=True)
    if reading is None:
        return Action(
            (Flaw("unparseable", "The action's JSON names no tool: write Action: and Action Input:."),), read.end
        )
    return Action(reading.found, read.end)


def _called(text: str, at: int, line_end: int, end: int, names: Names) -> Action | None:
    """`name(...)` or `name[...]` on the action's line."""
    line = text[at:line_end]
    bracket = _BRACKET.match(line.strip("`* \t"))
    if bracket:
        if finish_word(bracket["name"]) and names.find(bracket["name"]) is None:
            return Action((Said(bracket["inner"], "Final Answer"),), line_end)
        return Action((Written(bracket["name"], Bare(bracket["inner"])),), line_end)
    opening = re.search(r"[(（]", line)
    if not opening or names.find(line[: opening.start()]) is None or re.fullmatch(r"[^()]*\(\s*\)[\s`*]*", line):
        return None
    start = at + len(line) - len(line.lstrip("`* \t"))
    read = read_calls(text, start)
    if isinstance(read, Broken):
        return Action((Written(line[: opening.start()], Unread(read.ended, read.key)),), max(read.at, line_end))
    return Action(read_calls_value(read.value), max(read.end, line_end))


def _with_input(text: str, name: str, at: int, end: int) -> Action:
    """The action's name and what stands after the input label."""
    if finish_word(name):
        label = dialects.LABELS.search(text, at, end)
        answer = text[at : label.start() if label else end]
        read = read_value(answer) if answer.lstrip().startswith("{") else None
        inner = answer_in(read.value) if isinstance(read, Value) and isinstance(read.value, dict) else ""
        return Action((Said(inner or answer.strip(), "Final Answer"),), at + len(answer))
    fence = _FENCE.match(text, at)
    start = skip(text, fence.end() if fence else at)
    if start < end and text[start] in '{[｛［"':
        read = read_value(text, start, dialects.TURN_END)
        if isinstance(read, Broken):
            return Action((Written(name, Unread(read.ended, read.key)),), max(read.at, start + 1))
        return _told(text, Written(name, read.value), read.end)
    stop = dialects.LABELS.search(text, at, end)
    raw_end = stop.start() if stop else end
    raw = text[at:raw_end]
    same_line = dialects.SAME_LINE_RESULT.search(raw)
    raw = raw[: same_line.start()] if same_line else raw
    return _told(text, Written(name, Bare(raw.strip()) if raw.strip() else Absent()), at + len(raw))


def _told(text: str, call: Written, at: int) -> Action:
    told = dialects.SAME_LINE_RESULT.match(text, at)
    return Action((call, Result()), told.end()) if told else Action((call,), at)


def _line_end(text: str, at: int, end: int) -> int:
    found = text.find("\n", at, end)
    return found if found >= 0 else end


def _label(text: str, at: int, end: int) -> re.Match[str] | None:
    """The label that comes next with only blanks before it."""
    found = dialects.LABELS.search(text, at, end)
    return found if found and not text[at : found.start()].strip() else None


def _blank(text: str, at: int, end: int) -> int:
    while at < end and text[at] in " \t\r\n":
        at += 1
    return at
