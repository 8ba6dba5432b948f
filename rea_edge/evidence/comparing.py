"""How a text compares a number or a word, by what stands right before it: the few ways that mean the same everywhere.

Holds no tools and learns nothing (see `heard`).
"""

import re
from typing import NamedTuple

from rea_edge.records import Op

_THAN: tuple[tuple[Op, str], ...] = (
    (">", "more|greater|higher|larger|bigger|stronger|hotter|warmer"),
    ("<", "less|fewer|lower|smaller|weaker|colder|cooler"),
)
# Of numbers. Those with a negation in them are there for scripts without blanks alone: elsewhere it is held back.
_NUMBER: tuple[tuple[Op, str], ...] = (
    (">=", r"\bat least|>=|≥|至少|不低于|不小于|不少于"),
    ("<=", r"\bat most|<=|≤|至多|不超过|不高于|不大于"),
    *((op, rf"\b(?:{words}) than") for op, words in _THAN),
    (">", r"\bover|\babove|\bexceeds?|\bexceeding|>|超过|高于|大于"),
    ("<", r"\bunder|\bbelow|<|低于|小于"),
)
_TEXT: tuple[tuple[Op, str], ...] = (
    ("!=", r"(?:\b(?:is|are|was|were|has|have)|['’]s) not|不是"),
    ("==", r"\b(?:is|are|was|were|has|have)|['’]s|是"),
)
_HEAT = re.compile(r"\b(?:hotter|warmer|colder|cooler)\b")
_HEATED = frozenset(
    re.findall(r"\w+", "temperature temperatures thermometer hot warm cold cool heat c celsius degrees")
)


class Compared(NamedTuple):
    """`at` is where the words of the comparison begin; `heat`: they are said of temperatures alone."""

    op: Op
    at: int
    heat: bool


def before(text: str, at: int, *, number: bool) -> Compared | None:
    """What the words right before a place say, of a number or of a text; `text` is in lower case."""
    said = text[:at].rstrip(" \"'“‘")
    for op, ways in _NUMBER if number else _TEXT:
        found = re.search(rf"(?:{ways})$", said)
        if found:
            return Compared(op, found.start(), bool(_HEAT.match(found[0])))
    return None


def is_heat(words: frozenset[str]) -> bool:
    """Whether these words of a tool speak of a temperature."""
    return bool(words & _HEATED)
