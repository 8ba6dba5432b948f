"""Other names for tools whose own an endpoint or a protocol cannot take, and the way back. Pure.

A run keeps its table, so that its answers are read back the same after a restart and in a replay.
"""

import re
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from rea_edge.records import Call, Calls, Decision, Example, Guard, Malformed, Offer, Tool

# Words of our protocols, and tools that chat templates and servers treat as their own: called with code instead of
# arguments, or run on the server. Compared without case and underscores.
TAKEN = frozenset(
    {
        "if", "then", "done", "cannot", "tool", "finish", "finished", "final", "finalanswer", "answer", "giveup",
        "python", "ipython", "browser", "bravesearch", "wolframalpha", "codeinterpreter", "websearch", "filesearch",
    }
)  # fmt: skip

_LEAD = r"^|[:;,(`'\"] ?|\b(?:of|with|requires|call|tool) "
_NEVER = r"(?!)"


def aliases(names: Sequence[str], wanted: Mapping[str, str]) -> dict[str, str]:
    """Give the tools that go by another name, each with it. `wanted` is the operator's table; no two become one."""
    given = {name: wanted.get(name, f"{name}_tool" if _bare(name) in TAKEN else name) for name in names}
    used = {alias for name, alias in given.items() if name == alias}
    for name, alias in given.items():
        while alias != name and alias in used:
            alias += "_"
        used.add(alias)
        given[name] = alias
    return {name: alias for name, alias in given.items() if name != alias}


def renamed_tools(tools: Sequence[Tool], table: Mapping[str, str]) -> list[Tool]:
    """The tools as the model is told of them, their examples included."""
    if not table:
        return list(tools)
    word = re.compile(rf"\b(?:{'|'.join(map(re.escape, table))})\b")

    def said(example: Example) -> Example:
        if not isinstance(example.answer, str) or example.answer == "cannot":
            return example
        return replace(example, answer=word.sub(lambda found: table[found[0]], example.answer))

    return [
        replace(tool, name=table.get(tool.name, tool.name), examples=tuple(map(said, tool.examples))) for tool in tools
    ]


def renamed_offers(offers: Sequence[Offer], table: Mapping[str, str]) -> Sequence[Offer]:
    return [replace(offer, name=table.get(offer.name, offer.name)) for offer in offers] if table else offers


def ours(read: Decision | Malformed, table: Mapping[str, str]) -> Decision | Malformed:
    """A decision in the model's names as the same one in ours."""
    back = {alias: name for name, alias in table.items()}

    def call(one: Call) -> Call:
        return replace(one, name=back.get(one.name, one.name))

    match read:
        case Calls(calls=calls) if back:
            return replace(read, calls=tuple(map(call, calls)))
        case Guard() if back:
            return replace(read, read=call(read.read), then=call(read.then))
        case _:
            return read


def in_their_names(text: str, table: Mapping[str, str]) -> str:
    """Words of ours about tools, by the names that the model knows; never for what a tool or a person has said.

    A name that is a word of every day (`done`, `python`) is one only at the beginning, or where a name is to come.
    """
    if not table:
        return text
    names = "|".join(re.escape(name) for name in table if "_" in name) or _NEVER
    words = "|".join(re.escape(name) for name in table if "_" not in name) or _NEVER
    pattern = rf"(?P<lead>{_LEAD})(?P<word>{words})\b|\b(?P<name>{names})\b"

    def told(found: re.Match[str]) -> str:
        return (found["lead"] or "") + table[found["word"] or found["name"]]

    return re.sub(pattern, told, text)


def _bare(name: str) -> str:
    return name.replace("_", "").lower()
