"""Which words stand for a tool, by what its examples have in common and others have not."""

from collections.abc import Sequence
from typing import NamedTuple

from rea_edge.evidence import comparing
from rea_edge.evidence.lessons import Lesson, lessons_of, shares
from rea_edge.evidence.values import few_of
from rea_edge.evidence.words import COMMON, words
from rea_edge.parameters import shapes_of
from rea_edge.records import Calls, Tool

_NAMING = 0.5  # a word that names a tool stands in at least this share of its examples


def of_act(lessons: Sequence[Lesson], tool: Tool) -> list[Lesson]:
    """The examples that end in a call of this tool, under a condition or not."""
    return [lesson for lesson in lessons if lesson.act is not None and lesson.act.name == tool.name]


def names_of(tool: Tool, others: Sequence[Tool], lessons: Sequence[Lesson]) -> frozenset[str]:
    """The words that name an acting tool: parts of its name, else the words its examples have in common."""
    own = of_act(lessons, tool)
    parts = frozenset(tool.name.split("_"))
    if not own:
        return parts - {part for other in others for part in other.name.split("_")}
    elsewhere = [shares(of_act(lessons, other)) for other in others]
    refused = shares([lesson for lesson in lessons if lesson.decision is None])
    values = {word for _, some in few_of(tool) for value in some for word in words(str(value))}
    telling = {
        word: part
        for word, part in shares(own).items()
        if part >= _NAMING
        and word not in COMMON | values
        and all(there.get(word, 0.0) < part / 2 for there in elsewhere)
        and refused.get(word, 0.0) < part / 2
    }
    most = max(telling.values(), default=0.0)
    named = frozenset(word for word in telling if word in parts)
    return named or frozenset(word for word, part in telling.items() if part == most)


def telling_of(tool: Tool, others: Sequence[Tool], lessons: Sequence[Lesson]) -> frozenset[str] | None:
    """The words that only this reading tool says of itself or has in its examples; None where nothing was taught."""
    own = [lesson for lesson in lessons if isinstance(lesson.decision, Calls) and lesson in of_act(lessons, tool)]
    if not own:
        return None
    foreign = frozenset(word for lesson in lessons if lesson not in own for word in lesson.words)
    foreign = foreign.union(*(_said(other) for other in others))
    return _said(tool).union(*(lesson.words for lesson in own)) - foreign - COMMON


def own_words(tool: Tool, lessons: Sequence[Lesson]) -> frozenset[str]:
    """What a tool says of itself, and what is ordered of it in its examples: the units of its numbers are among it."""
    keys = words(" ".join(shapes_of(tool.parameters)).replace("_", " "))
    return (_said(tool) | keys).union(*(lesson.ordered for lesson in of_act(lessons, tool)))


def is_of_heat(tool: Tool, lessons: Sequence[Lesson]) -> bool:
    return comparing.is_heat(own_words(tool, lessons))


def _said(tool: Tool) -> frozenset[str]:
    return words(f"{tool.name.replace('_', ' ')} {tool.description}")


class Taught(NamedTuple):
    """All lessons, and the words that name each acting tool."""

    lessons: list[Lesson]
    names: dict[str, frozenset[str]]


def taught_by(tools: Sequence[Tool]) -> Taught:
    learned = [lesson for _, lesson in lessons_of(tools)]
    acts = [tool for tool in tools if tool.effect != "read"]
    names = {tool.name: names_of(tool, [other for other in acts if other is not tool], learned) for tool in acts}
    return Taught(learned, names)
