"""What a goal orders, piece by piece: each piece is one act with its values, or the whole is not certain.

A piece is certain where it names one tool (or goes on with the one before), says each value in one way only and each of
its numbers once, and has no word that negates, delays, relates or is a unit nobody taught.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from rea_edge.decision.grammar import choices
from rea_edge.evidence import comparing
from rea_edge.evidence.chosen import Chosen, parameters, single
from rea_edge.evidence.naming import Taught, is_of_heat, of_act, own_words
from rea_edge.evidence.values import few_of, fits, only
from rea_edge.evidence.words import (
    BESIDES,
    COMMON,
    HELD_BACK,
    POLITE,
    PRONOUN,
    RELATIVE,
    STATES,
    numbers,
    operands,
    units,
    words,
)
from rea_edge.parameters import needed_in
from rea_edge.records import Args, Tool

_BORDER = re.compile(
    r"[,;.!?](?=\s|$)|[，；。！？\n]|\s[-–—]\s|\b(?:and|then|also|plus|afterwards|finally)\b|并且|然后|同时|再|和|并|且"
)


class Act(NamedTuple):
    """A tool cut down to what is said, and the values that are certain: all but texts of which any may stand."""

    tool: Tool
    args: Args


class Plan(NamedTuple):
    """`lines` counts the readings too that are asked for besides the acts."""

    acts: list[Act]
    lines: int


class Orders:
    """The ordering part of a goal. `reads` those that ask for a reading,
    `about` is where values are that "it" may stand for."""

    def __init__(
        self,
        text: str,
        condition: str,
        about: Chosen,
        tools: Sequence[Tool],
        taught: Taught,
        reads: frozenset[str],
    ) -> None:
        self._text = text
        self._under = words(condition)
        self._about = about
        self._tools = tools
        self._lessons, self._names = taught
        self._taught = taught
        self._reads = reads
        self.words = words(text)

    def named(self) -> list[Tool]:
        """The acting tools that are named, whether or not the order is certain."""
        return self._named(self.words) or self._meant_by_it(self.words)

    def plan(self) -> Plan | None:
        """Every act that is asked for; None if any of it is not certain."""
        found: list[Act] = []
        readings = 0
        for piece in _pieces(self._text):
            said = words(piece)
            named = self._named(said)
            if not named and not numbers(piece) and (said <= COMMON | POLITE or said & STATES):
                continue  # it is polite, or says how things are
            named = named or self._gone_on_with(piece, found)
            if not named and said & self._reads:
                readings += 1
                continue
            named = named or self._meant_by_it(said)
            act = self._act(named[0], piece, found[-1:]) if len(named) == 1 else None
            if act is None:
                return None
            found.append(act)
        return Plan(found, len(found) + readings)

    def _named(self, said: frozenset[str]) -> list[Tool]:
        return [tool for tool in self._tools if said & self._names[tool.name]]

    def _meant_by_it(self, said: frozenset[str]) -> list[Tool]:
        """What the condition names, where the order says only "it"."""
        return self._named(self._under) if said & PRONOUN else []

    def _gone_on_with(self, piece: str, found: Sequence[Act]) -> list[Tool]:
        """The tool of the piece before, where this one has only words of its orders."""
        return [act.tool for act in found[-1:] if words(piece) <= self._words_of(act.tool) | COMMON | POLITE]

    def _act(self, tool: Tool, piece: str, before: Sequence[Act]) -> Act | None:
        tool = next(one for one in self._tools if one.name == tool.name)
        if self._is_doubtful(tool, piece):
            return None
        heard = Chosen(piece, self._taught)
        fixed: dict[str, list[object]] = {}
        free: Args = {}
        for key, shape, required in parameters(tool):
            values = heard.of(tool, key, shape)
            if values is None:
                free[key] = shape
            elif values := values or self._elsewhere(tool, heard, key, shape, before):
                fixed[key] = values
            elif required:
                return None
        # A number may also belong to a text that the model writes.
        chosen = single(fixed, () if free else heard.numbers)
        return None if chosen is None else Act(_with(tool, chosen, free), chosen)

    def _elsewhere(self, tool: Tool, heard: Chosen, key: str, shape: object, before: Sequence[Act]) -> list[object]:
        """What a piece leaves out: the thing that "it" stands for, or what was said in the piece before."""
        if heard.words & PRONOUN and (values := self._about.spoken(choices(shape) or ())):
            return values
        if not heard.words <= self._words_of(tool) | self._names[tool.name] | COMMON | POLITE:
            return []
        return [act.args[key] for act in before if key in act.args and fits(shape, act.args[key])]

    def _is_doubtful(self, tool: Tool, piece: str) -> bool:
        said = words(piece)
        taught = frozenset(word for lesson in of_act(self._lessons, tool) for word in lesson.ordered)
        states = said & STATES and said & self._names[tool.name]
        return bool(states or said & (HELD_BACK | RELATIVE | BESIDES) - taught) or not self._is_exact(tool, piece)

    def _is_exact(self, tool: Tool, piece: str) -> bool:
        """Whether its numbers are said as they are, in the tool's own units: no "at least", no "2 minutes"."""
        own = own_words(tool, self._lessons) | COMMON | POLITE
        own |= {"degree", "degrees"} if is_of_heat(tool, self._lessons) else frozenset()
        compared = (comparing.before(piece, one.at, number=True) for one in operands(piece, numbers(piece)))
        return not any(compared) and all(unit in own or not unit.isascii() for unit in units(piece))

    def _words_of(self, tool: Tool) -> frozenset[str]:
        """The words of its values and of what was ordered of it."""
        whole = next(one for one in self._tools if one.name == tool.name)
        values = (words(str(value)) for _, some in few_of(whole) for value in some)
        return frozenset().union(*values, *(lesson.ordered for lesson in of_act(self._lessons, tool)))


def _pieces(text: str) -> Iterator[str]:
    return (piece for piece in _BORDER.split(text) if piece.strip())


def _with(tool: Tool, chosen: Args, free: Args) -> Tool:
    shapes = {**{key: only([value]) for key, value in chosen.items()}, **free}
    needed = [key for key in free if key in needed_in(tool.parameters)]
    ordered = {key: shapes[key] for key, _, _ in parameters(tool) if key in shapes}
    parameters_ = {**tool.parameters, "properties": ordered, "required": [*chosen, *needed]}
    return msgspec.structs.replace(tool, parameters=parameters_)
