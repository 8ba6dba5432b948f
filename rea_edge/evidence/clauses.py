"""A goal cut into what is ordered and under what condition, so that a word of the one never speaks for the other."""

import re
from collections.abc import Sequence

from msgspec import Struct

from rea_edge.evidence.words import COMMON, IF, POLITE, numbers, operands, words

_EMPTY = COMMON | POLITE | {"then", "only"}
# Where a condition ends: a comma, its `then`, the end of the sentence.
_END = re.compile(r"[,;:](?=\s)(?:\s*then\b)?|[，；：。！？](?:就|则)?|\bthen\b|就|则|[.!?](?=\s|$)|$")
_UNIT = re.compile(r"\s*(?:°\s*)?(?:degrees?|percent|%|[^\W\d_]{1,2}\b)?", re.IGNORECASE)


class Clauses(Struct, frozen=True):
    """Both as long as the goal, blank where the other stands: places stay the same. `condition` is blank where there
    is none, and all of the goal where only taught words say that there is one (not `parted`). Where it is not certain
    which is which, `certain` is False."""

    order: str
    condition: str
    certain: bool = True
    parted: bool = True


def clauses(goal: str, cues: frozenset[str], texts: Sequence[str]) -> Clauses:
    """Cut a goal at its word of a condition. `texts` are what a reading may be compared with, besides numbers.

    Where only taught `cues` say that there is a condition, it is the part between commas that has a cue; without a comma
    nobody knows where it ends: the order is then the whole goal without what it compares with.
    """
    places = _places(goal)
    if not places:
        return _taught_clauses(goal, cues, texts) if words(goal) & cues else Clauses(goal, " " * len(goal))
    start, end = places[0], _end(goal, places[0], texts)
    before, after = _says(goal[:start]), _says(goal[end:])
    condition = " " * start + goal[start:end] + " " * (len(goal) - end)
    return Clauses(blanked(goal, [(start, end)]), condition, certain=len(places) == 1 and not (before and after))


def _taught_clauses(goal: str, cues: frozenset[str], texts: Sequence[str]) -> Clauses:
    parts = [(part.start(), part.end()) for part in re.finditer(r"[^,，]+", goal)]
    inside = [(start, end) for start, end in parts if words(goal[start:end]) & cues]
    outside = [span for span in parts if span not in inside]
    if len(parts) == 2 and len(inside) == 1:
        return Clauses(blanked(goal, inside), blanked(goal, outside))
    return Clauses(blanked(goal, [(found.at, found.end) for found in operands(goal, texts)]), goal, parted=False)


def _end(goal: str, start: int, texts: Sequence[str]) -> int:
    """Where the condition that starts there ends: at its mark, or, if nothing is ordered outside, after its operand."""
    mark = _END.search(goal, start)
    assert mark is not None  # the end of a goal is one
    if _says(goal[:start]) or _says(goal[mark.end() :]):
        return mark.end()
    inside = goal[start : mark.start()]
    compared = operands(inside, [*numbers(inside), *texts])
    if not compared:
        return mark.end()
    first = min(operand.end for operand in compared)
    unit = _UNIT.match(inside, first)
    return start + (unit.end() if unit else first)


def _places(goal: str) -> list[int]:
    latin = [hit.start() for hit in re.finditer(r"[^\W\d_]+", goal) if hit[0].lower() in IF]
    wide = [hit.start() for word in IF if not word.isascii() for hit in re.finditer(word, goal)]
    return sorted({*latin, *wide})


def blanked(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """The text with blanks in these places."""
    for start, end in spans:
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def _says(text: str) -> bool:
    return bool(words(text) - _EMPTY)
