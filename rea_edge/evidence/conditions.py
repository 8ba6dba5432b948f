"""The condition of a goal: what is compared with what, if that is certain.

It is where exactly one number or text is compared, all other words are known, and nothing is negated or added.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rea_edge.condition import op_of
from rea_edge.decision.grammar import choices, paths
from rea_edge.evidence import comparing
from rea_edge.evidence.clauses import Clauses, blanked
from rea_edge.evidence.lessons import Lesson, spoken_for
from rea_edge.evidence.words import (
    BESIDES,
    CHANGES,
    COMMON,
    HELD_BACK,
    IF,
    POLITE,
    Operand,
    before_place,
    numbers,
    operands,
    words,
)
from rea_edge.records import Guard, Op, Tool

_BEHIND_A_NUMBER = re.compile(r"\d\s*°?\s*$")


class Test(NamedTuple):
    """One comparison: `at` is where its words begin, `end` where its operand ends; `heat`: of a temperature alone."""

    op: Op
    value: int | float | str
    at: int
    end: int
    heat: bool


def guards(lessons: Sequence[Lesson]) -> list[tuple[Lesson, Guard]]:
    return [(lesson, lesson.decision) for lesson in lessons if isinstance(lesson.decision, Guard)]


def cues(lessons: Sequence[Lesson]) -> frozenset[str]:
    """Words that stand in the conditions of guarded examples alone."""
    counted = Counter(word for lesson, _ in guards(lessons) for word in lesson.conditional)
    # A noun that by chance no other example has is no cue: a cue is taught with more than one tool or twice.
    return frozenset(word for word, count in counted.items() if count > 1) - _plain_words(lessons) - COMMON


def compared_texts(lessons: Sequence[Lesson], tools: Sequence[Tool]) -> list[str]:
    """What a reading may be besides a number: by the examples, and by what the reading tools return."""
    taught = [guard.value for _, guard in guards(lessons)]
    typed = [
        value for tool in tools if tool.effect == "read" for _, shape in paths(tool.returns) for value in _few(shape)
    ]
    return sorted({value for value in [*taught, *typed] if isinstance(value, str)})


def test_of(cut: Clauses, lessons: Sequence[Lesson], tools: Sequence[Tool]) -> Test | None:
    """The comparison that the condition makes; None where it is not certain."""
    if not cut.certain:
        return None
    found = list(_tests(cut.condition, lessons, compared_texts(lessons, tools)))
    if len(found) != 1 or len(numbers(cut.condition)) > isinstance(found[0].value, int | float):
        return None
    test = found[0]
    besides = words(blanked(cut.condition, [(test.at, test.end)])) - IF - {"then"}
    tail = words(cut.condition[test.end :]) - IF - {"then"} if cut.parted else frozenset()
    reading = _reading_words(lessons, tools)
    known = reading | frozenset(word for lesson in lessons for word in lesson.words)
    sound = not besides & (HELD_BACK | BESIDES) and _known(besides, known) and _known(tail, reading)
    return test if sound else None


def _tests(condition: str, lessons: Sequence[Lesson], texts: Sequence[str]) -> Iterator[Test]:
    for operand in operands(condition, [*numbers(condition), *texts]):
        if isinstance(operand.value, str) and _BEHIND_A_NUMBER.search(condition[: operand.at]):
            continue  # its unit, which a tool that lists what it returns names too
        said = comparing.before(condition, operand.at, number=not isinstance(operand.value, str))
        if said is not None:
            yield Test(said.op, operand.value, said.at, operand.end, said.heat)
        elif op := _taught_op(condition, operand, lessons):
            yield Test(op, operand.value, operand.at, operand.end, heat=False)


def _taught_op(condition: str, operand: Operand, lessons: Sequence[Lesson]) -> Op | None:
    """How the examples compare after the words that stand right before this operand."""
    plain = _plain_words(lessons)
    taught: list[tuple[frozenset[str], object]] = []
    for lesson, guard in guards(lessons):
        same = [one for one in operands(lesson.say, [guard.value]) if one.value == guard.value]
        taught += [(before_place(lesson.say, one.at) - plain, guard.op) for one in same]
    ops = {str(op) for op in spoken_for(before_place(condition, operand.at), taught)}
    return op_of(ops.pop()) if len(ops) == 1 else None


def _plain_words(lessons: Sequence[Lesson]) -> frozenset[str]:
    return frozenset(word for one in lessons if not isinstance(one.decision, Guard) for word in one.words)


def _reading_words(lessons: Sequence[Lesson], tools: Sequence[Tool]) -> frozenset[str]:
    """What the tools that read say of themselves, units among it, and what stands in taught conditions."""
    own = (words(f"{tool.name.replace('_', ' ')} {tool.description}") for tool in tools if tool.effect == "read")
    return frozenset(
        word for some in [*own, *(one.conditional - one.ordered for one, _ in guards(lessons))] for word in some
    )


def _known(said: frozenset[str], known: frozenset[str]) -> bool:
    """Whether no word is new; of scripts without blanks nobody can tell."""
    return all(word in known or not word.isascii() for word in said - COMMON - POLITE - CHANGES)


def _few(shape: object) -> list[object]:
    return choices(shape) or []
