"""What the words of a goal speak for, so that a tiny model in protocol `command` decides only among that.

Learned from the tools' own examples, never from a list of devices: which words name an acting tool, which value a
word means, which comparison. What a goal does not speak for is not offered, so a wrong guess of the model is `cannot`
rather than an act. Pure; holds no grammar (see `decision.grammar`) and asks nothing.

The rules, all for acts (a reading harms nobody, it needs a word in common with its tool):
the goal is cut at its word of a condition, and what stands in the condition never speaks for the act, nor the other way
round; what is ordered is read piece by piece, each piece names one tool (or goes on with the one before), says each
value in one way only, by itself or by a word that an example taught for it, and uses each of its numbers once, in a
unit that the tool knows; a condition compares one thing with one number or text, in words of the examples or in the few
that mean the same everywhere, and has no unknown word; what negates, delays, excepts, relates or adds something speaks
for no act. All that is asked for is offered, or nothing of it: a part must not pass for the whole.

Inside, a file imports only from those before it: words, comparing, clauses, lessons, values, naming, chosen,
conditions, orders, heard.
"""

from collections.abc import Sequence

from rea_edge.bounds import Bounds
from rea_edge.evidence.words import IF
from rea_edge.evidence.words import words as words_of
from rea_edge.records import Criterion, Tool

_ANY = 1 << 30


def narrowed(goal: str, tools: Sequence[Tool], commands: int) -> tuple[tuple[Tool, ...], Bounds]:
    """Give the tools that the goal speaks for, their parameters cut down to what it says, and the bounds of a line.

    `commands` is how many lines may run. The same goal and tools give the same.
    """
    from rea_edge.evidence.heard import Heard

    return Heard(goal, tools, commands).narrowed()


def condition_of(goal: str, tools: Sequence[Tool]) -> Criterion | None:
    """What a goal makes the condition of all its acts; None where it has no word of a condition or is not certain."""
    if not words_of(goal) & IF:
        return None
    # Two MiB that a node without such goals does not pay.
    from rea_edge.evidence.heard import Heard

    return Heard(goal, tools, _ANY).condition()
