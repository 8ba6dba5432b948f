"""A reader of GBNF that writes random sentences: what our grammars use of it, and nothing else."""

import random
import re
from dataclasses import dataclass, field

TOKEN = re.compile(
    r'\s*(?:(?P<literal>"(?:[^"\\]|\\.)*")|(?P<chars>\[(?:[^\]\\]|\\.)*\])|(?P<name>[a-zA-Z][a-zA-Z0-9-]*)'
    r"|(?P<repeat>[?*+]|\{\d+,?\d*\})|(?P<mark>[()|]))"
)
ANY = [chr(code) for code in range(32, 127)] + list("äß中😀")
ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|.)")


def unescaped(text: str) -> str:
    named = {"n": "\n", "t": "\t", "r": "\r"}
    return ESCAPE.sub(lambda hit: chr(int(hit[1][1:], 16)) if len(hit[1]) > 1 else named.get(hit[1], hit[1]), text)


@dataclass
class Grammar:
    """`rules` by name, each a list of tokens as (kind, text)."""

    text: str
    rules: dict[str, list[tuple[str, str]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for line in filter(str.strip, self.text.splitlines()):
            name, body = line.split(" ::= ", 1)
            assert name not in self.rules, f"{name} is defined twice"
            self.rules[name] = []
            at = 0
            while body[at:].strip():
                found = TOKEN.match(body, at)
                assert found is not None, f"{name}: cannot read {body[at:]!r}"
                assert found.lastgroup is not None
                self.rules[name].append((found.lastgroup, found[found.lastgroup]))
                at = found.end()

    def sentence(self, seed: int) -> str:
        return self._choice(self.rules["root"], random.Random(seed))

    def _choice(self, tokens: list[tuple[str, str]], dice: random.Random) -> str:
        branches: list[list[tuple[str, str]]] = [[]]
        depth = 0
        for token in tokens:
            depth += {"(": 1, ")": -1}.get(token[1], 0) if token[0] == "mark" else 0
            if token == ("mark", "|") and depth == 0:
                branches.append([])
            else:
                branches[-1].append(token)
        return self._sequence(dice.choice(branches), dice)

    def _sequence(self, tokens: list[tuple[str, str]], dice: random.Random) -> str:
        said, at = "", 0
        while at < len(tokens):
            end = self._end(tokens, at)
            times = 1
            if end < len(tokens) and tokens[end][0] == "repeat":
                times = dice.randint(*self._range(tokens[end][1]))
            said += "".join(self._item(tokens[at:end], dice) for _ in range(times))
            at = end + (end < len(tokens) and tokens[end][0] == "repeat")
        return said

    def _end(self, tokens: list[tuple[str, str]], at: int) -> int:
        depth = 0
        for end in range(at, len(tokens)):
            depth += {"(": 1, ")": -1}.get(tokens[end][1], 0) if tokens[end][0] == "mark" else 0
            if depth == 0:
                return end + 1
        raise AssertionError("a bracket is not closed")

    def _range(self, repeat: str) -> tuple[int, int]:
        if repeat in "?*+":
            return {"?": (0, 1), "*": (0, 6), "+": (1, 6)}[repeat]
        low, _, high = repeat.strip("{}").partition(",")
        return int(low), int(high or low)

    def _item(self, tokens: list[tuple[str, str]], dice: random.Random) -> str:
        kind, text = tokens[0]
        if kind == "literal":
            return unescaped(text[1:-1])
        if kind == "chars":
            return dice.choice(self._members(text[1:-1]))
        if kind == "name":
            assert text in self.rules, f"{text} is used and not defined"
            return self._choice(self.rules[text], dice)
        return self._choice(tokens[1:-1], dice)

    def _members(self, inside: str) -> list[str]:
        negated, inside = inside.startswith("^"), inside.removeprefix("^")
        parts = re.findall(r"\\x[0-9a-fA-F]{2}|\\.|.", inside)
        members: set[str] = set()
        at = 0
        while at < len(parts):
            if at + 2 < len(parts) and parts[at + 1] == "-":
                low, high = unescaped(parts[at]), unescaped(parts[at + 2])
                members |= {chr(code) for code in range(ord(low), ord(high) + 1)}
                at += 3
            else:
                members.add(unescaped(parts[at]))
                at += 1
        return [char for char in ANY if char not in members] if negated else sorted(members)
