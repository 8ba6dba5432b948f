"""JSON and what models write in its place, read to values: notation is repaired, values are never guessed.

Repaired: single, curly, full-width and back quotes, Python literals, comments, trailing commas, a missing comma between
complete pairs, bare keys, full-width structure, raw newlines in strings, escapes that JSON does not know, noise between
tokens. Not read at all: bare words, expressions, hex and padded numbers, placeholders, a string whose end is unclear.
Must not know tools or decisions. No recursion; time is linear in the text; any text gives a value or `Broken`.
"""

import json
import re
from typing import Literal

from msgspec import Struct

from rea_edge.schema import unique_keys

MOST_DEPTH = 64
_MOST_DIGITS = 100

_SKIP = re.compile(
    r"(?:[\s\ufeff\u200b-\u200f\u2060\x00]+|//[^\n]*|/\*(?:[^*]|\*(?!/)){0,1000}\*/|\#[^\n]*|\\[nrt]|\x1b\[[0-9;]*m)+"
)
_TOKEN = re.compile(
    r"""
    (?P<open>[{\[(｛［（])
    | (?P<close>[}\])｝］）])
    | (?P<comma>[,，])
    | (?P<colon>[:：])
    | (?P<equals>=)
    | (?P<string>
        \"\"\"[^"\\]*(?:(?:\\.|"(?!\"\"))[^"\\]*)*\"\"\" | '''[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'''
        | "[^"\\]*(?:\\.[^"\\]*)*" | '[^'\\]*(?:\\.[^'\\]*)*'
        | [“„][^“”\\]*(?:\\.[^“”\\]*)*[“”] | ‘[^‘’\\]*(?:\\.[^‘’\\]*)*’ | ＂[^＂]*＂ | ＇[^＇]*＇ | `[^`]*`
        | <escape>(?:(?!<escape>).)*<escape> | <\|"\|>(?:(?!<\|"\|>).)*<\|"\|>
      )
    | (?P<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)(?![\w.%°])
    | (?P<word>-?(?:[^\W\d]|\$)[\w$.-]*)
    """,
    re.VERBOSE | re.DOTALL,
)
_OPEN_STRING = re.compile(r"[\"'“„‘＂＇`]|<escape>|<\|\"\|>")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})(?:\\u([dD][c-fC-F][0-9a-fA-F]{2}))?|(.))", re.DOTALL)
_ESCAPED = {
    "n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "'": "'", "\\": "\\", "/": "/", "`": "`",
    "\n": "\n", "“": "“", "”": "”",
}  # fmt: skip
_WORDS: dict[str, object] = {
    "true": True, "false": False, "null": None, "none": None,
    "nan": float("nan"), "-nan": float("nan"), "infinity": float("inf"), "-infinity": float("-inf"),
}  # fmt: skip
_PLAIN = str.maketrans("｛［（｝］）", "{[(}])")
_PARTNER = {"}": "{", "]": "[", ")": "("}
_LONG_QUOTES = ("<escape>", '<|"|>', '"""', "'''")

_FAST = json.JSONDecoder(object_pairs_hook=unique_keys, strict=False)


class Value(Struct, frozen=True):
    """A value that the model closed itself, and where the text goes on after it."""

    value: object
    end: int


class Broken(Struct, frozen=True):
    """No value. `ended`: the text ended inside it; `key`: the last key before the fault; `at`: how far it was read.

    `partial`: the outermost object where only its own brace is missing and its last value is a closed object or list.
    """

    at: int
    ended: bool
    key: str = ""
    partial: dict[str, object] | None = None


class PyCall(Struct, frozen=True):
    """`name(key=value)` in Python notation; `values` are those without a key."""

    name: str
    named: dict[str, object]
    values: tuple[object, ...] = ()


class _Frame(Struct):
    kind: Literal["{", "[", "(", "call"]
    at: int
    name: str = ""
    items: list[object] = []
    pairs: list[tuple[str, object]] = []
    key: str | None = None
    commas: int = 0


def skip(text: str, at: int) -> int:
    """Where the text goes on after blanks, comments and other noise between tokens."""
    found = _SKIP.match(text, at)
    return found.end() if found else at


def read_value(text: str, at: int = 0, stop: re.Pattern[str] | None = None) -> Value | Broken:
    """Read one value that begins at `at` (after noise). Where `stop` matches between tokens, the text has ended."""
    at = skip(text, at)
    try:
        value, end = _FAST.raw_decode(text, at)
    except (ValueError, RecursionError):
        return _Reader(text, at, stop, calls=False).read()
    return Broken(at, ended=False) if _too_deep(value) else Value(value, end)


def read_calls(text: str, at: int = 0, stop: re.Pattern[str] | None = None) -> Value | Broken:
    """Read `name(...)` or `[name(...), ...]` that begins at `at`: a value that is a PyCall or a list of them."""
    return _Reader(text, skip(text, at), stop, calls=True).read()


def _too_deep(value: object) -> bool:
    level: list[object] = [value]
    for _ in range(MOST_DEPTH):
        level = [
            inner
            for item in level
            if isinstance(item, dict | list)
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return False
    return True


class _Reader:
    """A reader with a stack of its own. `want` says what may come: a value, a key, the colon after it, or a comma."""

    def __init__(self, text: str, at: int, stop: re.Pattern[str] | None, *, calls: bool) -> None:
        self.text, self.at, self.stop, self.calls = text, at, stop, calls
        self.stack: list[_Frame] = []
        self.want: Literal["value", "key", "colon", "more"] = "value"
        self.key = ""
        self.apart = False  # an empty line stands before the token
        self.done = False
        self.result: object = None

    def read(self) -> Value | Broken:
        while not self.done:
            before, self.at = self.at, skip(self.text, self.at)
            self.apart = self.text.count("\n", before, self.at) > 1
            if self.at >= len(self.text) or (self.stop is not None and self.stop.match(self.text, self.at)):
                return self.broken(ended=True)
            token = _TOKEN.match(self.text, self.at)
            if token is None:
                return self.broken(ended=_OPEN_STRING.match(self.text, self.at) is not None)
            if not self.take(str(token.lastgroup), token[0]):
                return self.broken(ended=token.lastgroup == "word" and token.end() >= len(self.text))
        return Value(self.result, self.at)

    def broken(self, *, ended: bool) -> Broken:
        partial = None
        if ended and len(self.stack) == 1 and self.want == "more" and self.stack[0].kind == "{":
            pairs = self.stack[0].pairs
            if pairs and isinstance(pairs[-1][1], dict | list):
                partial = unique_keys(pairs)
        return Broken(self.at, ended, self.key, partial)

    def take(self, kind: str, token: str) -> bool:
        """Take one token; False if it may not stand here."""
        start = self.at
        self.at += len(token)
        match kind:
            case "open":
                return self.open(token.translate(_PLAIN), start)
            case "close":
                return self.close(_PARTNER[token.translate(_PLAIN)])
            case "comma":
                return self.comma()
            case "colon":
                return self.colon()
            case "string":
                return self.string(_unquoted(token), token)
            case "number":
                return self.number(token)
            case "word":
                return self.word(token)
        return False

    def open(self, bracket: str, start: int) -> bool:
        if bracket == "(" and not self.stack:
            return False
        adjacent = self.want == "more" and bracket == "{" and self.stack[-1].kind == "[" and self.stack[-1].items
        if adjacent and isinstance(self.stack[-1].items[-1], dict):
            self.want = "value"  # two complete objects in a list, the comma between them missing
        if self.want != "value" or len(self.stack) >= MOST_DEPTH:
            return False
        if bracket == "{":
            self.stack.append(_Frame("{", start))
            self.want = "key"
        elif bracket == "[":
            self.stack.append(_Frame("[", start))
        else:
            self.stack.append(_Frame("(", start))
        return True

    def close(self, partner: str) -> bool:
        frame = self.stack[-1] if self.stack else None
        if frame is None or self.want == "colon" or partner != ("(" if frame.kind == "call" else frame.kind):
            return False
        if frame.key is not None:
            return False  # a key without a value
        self.stack.pop()
        match frame.kind:
            case "{":
                return self.value(unique_keys(frame.pairs))
            case "[":
                return self.value(frame.items)
            case "(":
                # One value in parentheses is an expression; with a comma it is a tuple.
                return bool(frame.commas or not frame.items) and self.value(frame.items)
            case _:
                return self.value(PyCall(frame.name, unique_keys(frame.pairs), tuple(frame.items)))

    def comma(self) -> bool:
        if self.want != "more" or not self.stack:
            return False
        self.stack[-1].commas += 1
        self.want = "key" if self.stack[-1].kind == "{" else "value"
        return True

    def colon(self) -> bool:
        ready = self.want == "colon"
        self.want = "value"
        return ready

    def string(self, value: str | None, token: str) -> bool:
        if value is None:
            return False
        if self.want == "key" or (self.want == "more" and self.stack[-1].kind == "{" and self.before_colon()):
            return self.named(value)
        if self.want == "value" and self.stack and token[:1] == "`" and self.calls:
            return False
        return self.want == "value" and self.value(value)

    def number(self, token: str) -> bool:
        if self.want != "value" or not self.stack or len(token) > _MOST_DIGITS:
            return False
        return self.value(float(token) if set(token) & set(".eE") else int(token))

    def word(self, token: str) -> bool:
        adjacent = self.want == "more" and self.stack[-1].kind == "{" and not self.apart and self.before_colon()
        if self.want == "key" or adjacent:
            return token[0] != "-" and self.named(token)
        if self.want != "value":
            return False
        if self.calls:
            follow = skip(self.text, self.at)
            if self.text[follow : follow + 1] in ("(", "（") and self.may_call():
                self.at = follow + 1
                self.stack.append(_Frame("call", follow, name=token))
                return True
            if self.text[follow : follow + 1] == "=" and self.stack and self.stack[-1].kind == "call":
                self.at = follow + 1
                self.stack[-1].key = self.key = token
                return self.stack[-1].key is not None
        if not self.stack or token.lower() not in _WORDS:
            return False
        return self.value(_WORDS[token.lower()])

    def may_call(self) -> bool:
        """Calls stand at the top or in the one list around them; anywhere else they would be expressions."""
        return not self.stack or (len(self.stack) == 1 and self.stack[0].kind == "[")

    def before_colon(self) -> bool:
        follow = skip(self.text, self.at)
        return self.text[follow : follow + 1] in (":", "：")

    def named(self, key: str) -> bool:
        self.stack[-1].key = self.key = key
        self.want = "colon"
        return True

    def value(self, value: object) -> bool:
        """Put a complete value where it belongs: the container on top, or the result."""
        if not self.stack:
            self.result, self.done = value, True
            return True
        frame = self.stack[-1]
        if frame.key is not None:
            frame.pairs.append((frame.key, value))
            frame.key = None
        elif frame.kind == "{" or (frame.kind == "call" and frame.pairs):
            return False
        else:
            frame.items.append(value)
        self.want = "more"
        return True


def _unquoted(token: str) -> str | None:
    """The text of a string token; None where an escape has no certain meaning."""
    for quotes in _LONG_QUOTES:
        if token.startswith(quotes) and len(token) >= 2 * len(quotes):
            inner = token[len(quotes) : -len(quotes)]
            return inner if quotes[0] == "<" or "\\" not in inner else _unescaped(inner)
    inner = token[1:-1]
    return inner if "\\" not in inner or token[0] == "`" else _unescaped(inner)


def _unescaped(text: str) -> str | None:
    if re.search(r"(?<!\\)(?:\\\\)*\\u(?![0-9a-fA-F]{4})", text):
        return None
    return _ESCAPE.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    high, low, char = found.groups()
    if char is not None:
        return _ESCAPED.get(char, "\\" + char)  # \d can only mean a backslash and d
    code = int(high, 16)
    if low is None:
        return chr(code)
    if 0xD800 <= code < 0xDC00:  # noqa: PLR2004 - high surrogates
        return chr(0x10000 + ((code - 0xD800) << 10) + (int(low, 16) - 0xDC00))
    return chr(code) + chr(int(low, 16))
