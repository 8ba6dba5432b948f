"""Every line that an answer of the command protocol may be, where they can be listed, and patterns for the rest.

Holds no evidence (the bounds come from `evidence`) and no grammar text (see `grammar`). What is listed is a line that
`command.read_line` can read.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, product

from rea_edge.bounds import Bounds
from rea_edge.decision.command import RESERVED, read_line
from rea_edge.decision.grammar import arguments, choices, tests
from rea_edge.errors import DecisionRejected
from rea_edge.records import Args, Decision, Offer, Tool
from rea_edge.telling import written

MOST = 400  # more lines are not listed: a grammar of rules is shorter then

_INTEGER = r"-?(0|[1-9][0-9]{0,8})"
_NUMBER = rf"{_INTEGER}(\.[0-9]{{1,4}})?"
_QUOTED = r'"[^"\\]*"'
_STRING = rf"([A-Za-z_][A-Za-z0-9_-]*|{_QUOTED})"

Fits = Callable[[Decision], bool]


def lines(tools: Sequence[Tool | Offer], commands: int, bounds: Bounds, fits: Fits) -> list[str] | None:
    """Give every line within the bounds, `cannot` (and `done`) last; None where there is no end or more than `MOST`.

    `fits` is asked about each; what it refuses is left out.
    """
    offers = [one if isinstance(one, Offer) else Offer.of(one) for one in tools]
    calls = {offer.name: _calls(offer) for offer in offers if offer.name not in RESERVED}
    if any(some is None for some in calls.values()):
        return None
    found = list(islice(_every(offers, {name: some or [] for name, some in calls.items()}, bounds), MOST + 1))
    if len(found) > MOST:
        return None
    ends = ["cannot", "done"] if commands > 1 else ["cannot"]
    return [line for line in found if _reads(line, offers, fits)] + ends


def line_schema(listed: Sequence[str] | None, tools: Sequence[Tool | Offer], commands: int, bounds: Bounds) -> Args:
    """Give the JSON Schema of an answer for servers without grammars: one object whose `command` is one of the lines.

    Where they are not listed, each sort of line is a pattern.
    """
    said: Args = {"enum": list(listed)} if listed is not None else {"anyOf": _patterns(tools, commands, bounds)}
    return {
        "type": "object",
        "properties": {"command": {"type": "string", **said}},
        "required": ["command"],
        "additionalProperties": False,
    }


def _every(offers: Sequence[Offer], calls: dict[str, list[str]], bounds: Bounds) -> Iterator[str]:
    reads = [offer for offer in offers if offer.effect == "read"]
    acts = [line for offer in offers if offer.effect != "read" for line in calls.get(offer.name, [])]
    for offer in reads if bounds.reads else ():
        yield from calls.get(offer.name, [])
    if bounds.plain:
        yield from acts
    for offer in reads:
        for read, (path, op, value), act in product(calls.get(offer.name, []), tests(offer, bounds), acts):
            yield f"if {read} -> {path} {op} {written(value)} then {act}"


def _calls(offer: Offer) -> list[str] | None:
    parts: list[list[str]] = []
    for key, shape, optional, bare in arguments(offer.parameters):
        few = choices(shape)
        if few is None:
            return None
        prefix = " " if bare else f" {written(key)}="
        parts.append(([""] if optional else []) + [f"{prefix}{written(value)}" for value in few])
    return ["".join([offer.name, *some]) for some in islice(product(*parts), MOST + 1)]


def _reads(line: str, offers: Sequence[Offer], fits: Fits) -> bool:
    try:
        return fits(read_line(line, offers))
    except DecisionRejected:
        return False


def _patterns(tools: Sequence[Tool | Offer], commands: int, bounds: Bounds) -> list[Args]:
    named = [tool for tool in tools if tool.name not in RESERVED]
    calls = {tool.name: _call_pattern(tool) for tool in named}
    acts = [tool for tool in named if tool.effect != "read"]
    found = [calls[tool.name] for tool in named if (bounds.reads if tool.effect == "read" else bounds.plain)]
    then = "|".join(calls[tool.name] for tool in acts)
    for tool in named if acts else ():
        some = [f"{path} {op} {written(value)}" for path, op, value in tests(tool, bounds)]
        if tool.effect == "read" and some:
            found.append(f"if {calls[tool.name]} -> ({'|'.join(map(re.escape, some))}) then ({then})")
    found += ["cannot|done"] if commands > 1 else ["cannot"]
    return [{"pattern": f"^({pattern})$"} for pattern in found]


def _call_pattern(tool: Tool | Offer) -> str:
    said = re.escape(tool.name)
    for key, shape, optional, bare in arguments(tool.parameters):
        argument = (" " if bare else f" {re.escape(written(key))}=") + _value_pattern(shape)
        said += f"({argument})?" if optional else argument
    return said


def _value_pattern(shape: Args) -> str:
    few = choices(shape)
    if few is not None:
        return "(" + "|".join(re.escape(written(value)) for value in few) + ")"
    match shape.get("type"):
        case "integer":
            return _INTEGER
        case "number":
            return _NUMBER
        case "string":
            return _STRING
        case "array" | "object":
            return _QUOTED
    return f"({_NUMBER}|{_STRING}|true|false)"
