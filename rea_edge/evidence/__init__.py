"""What the words of a goal speak for, so that a tiny model in protocol `command` decides only among that.

Learned from the tools' own examples, never from a list of devices: which words name an acting tool, which value a
word means, which comparison. What a goal does not speak for is not offered, so a wrong guess of the model is `cannot`
rather than an act. Pure; holds no grammar (see `decision.grammar`) and asks nothing.

The rules, all for acts (a reading harms nobody, it needs a word in common with its tool):
an act's tool is named in the goal, and of several no one is run in a run of one line; each of its values is in the
goal or stands for a word of it; every number of the goal is used exactly once; where the goal has words of a
condition, the act stands under one whose comparison an example has shown; a goal that negates, delays or excepts
speaks for no act.

Inside, a file imports only from those before it: words, lessons, values, heard.
"""

from collections.abc import Sequence

from rea_edge.bounds import Bounds
from rea_edge.evidence.heard import Heard
from rea_edge.records import Tool


def narrowed(goal: str, tools: Sequence[Tool], commands: int) -> tuple[tuple[Tool, ...], Bounds]:
    """Give the tools that the goal speaks for, their parameters cut down to what it says, and the bounds of a line.

    `commands` is how many lines may run. The same goal and tools give the same.
    """
    heard = Heard(goal, tools, commands)
    kept = [narrow for tool in tools if (narrow := heard.narrow(tool)) is not None]
    return tuple(kept), heard.bounds()
