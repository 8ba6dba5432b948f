"""What a run's questions begin with: the messages before the first answer, and what constrains every answer.

Pure: the same input gives the same bytes, with no clock and nothing that changes at the head, so that a local server
keeps its cache over tasks. Holds no decision rules (those are `prompts/`) and reads no answers (see `decision`).
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import assert_never

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from rea_edge.bounds import Bounds
from rea_edge.budget import BYTES_PER_TOKEN
from rea_edge.decision.bounded import check
from rea_edge.decision.command import call_line, example_call
from rea_edge.decision.grammar import call_forms, grammar, grammar_of
from rea_edge.decision.lines import line_schema, lines
from rea_edge.errors import DecisionRejected
from rea_edge.markup import plain, without_markup
from rea_edge.members import kept
from rea_edge.records import Args, Call, Decision, Example, Offer, Protocol, Tool
from rea_edge.retold import written_call
from rea_edge.taint import ON_THE_BOARD

EXAMPLE_TOKENS = 300
TEMPERATURE = 0.2  # a little freedom leaves a rut, more costs format
NEAREST = 6
DESCRIPTION_CHARS = 400  # of what another device says of a tool
_TURN_TOKENS = 8  # what a chat template adds around one question and its answer
_CANNOT = "no tool fits"
_UNBOUNDED = Bounds(plain=True)


def opening(
    protocol: Protocol,
    prompt: str,
    tools: Sequence[Tool],
    goal: str,
    context: Args,
    *,
    commands: int = 1,
    example_tokens: int = EXAMPLE_TOKENS,
) -> tuple[Raw, ...]:
    """Give the messages before the first answer, each a JSON object; the goal comes last.

    `prompt` is the text of the decision rules. Worked examples of the tools follow it, within `example_tokens` (an
    estimate); native calls need none, as the tools stand in the request body. In `command` they are turns of their
    own, and the ones nearest to the goal stand a second time right before it: a tiny model copies what it saw last.
    Where more than one line may run, each is shown with its result and `done`, and two acts one after the other.
    """
    tools = as_text(tools)
    pairs = chosen_examples(protocol, tools, example_tokens)
    match protocol:
        case "native":
            turns: list[tuple[str, str]] = [("system", prompt)]
        case "json" | "react":
            turns = [("system", "\n".join([prompt, _declared(tools), *_listed(pairs)]))]
        case "command":
            turns = [("system", f"{prompt} {_commands(tools, commands)}")]
            shown = [*pairs, *nearest(goal, tuple(_pairs(protocol, tools)))]
            turns += _one_line_each(shown) if commands == 1 else _to_the_end(shown)
        case _:
            assert_never(protocol)
    turns.append(("user", f"{goal}\nContext: {_encoded(context)}" if context else goal))
    return tuple(Raw(msgspec.json.encode({"role": role, "content": content})) for role, content in turns)


def constraint(
    protocol: Protocol,
    tools: Sequence[Tool],
    *,
    llama_cpp: bool,
    commands: int,
    temperature: float | None = None,
    bounds: Bounds | None = None,
    json_schema: bool = False,
    without: Collection[str] = (),
) -> str:
    """Give the constant members of the request body that go with a protocol, as JSON without the braces.

    `llama_cpp`: the server takes a grammar and keeps to a JSON Schema; `json_schema`: it keeps to a JSON Schema alone;
    others get neither. Without a `temperature` command answers are asked for at 0, all others at `TEMPERATURE`. With
    `bounds` a command line is one of those within them; `tools` are then what the goal left of them. `without`: members
    that the server refuses by name.
    """
    tools, keeps_schema = as_text(tools), llama_cpp or json_schema
    takes_grammar = llama_cpp and "grammar" not in without
    members: dict[str, object] = {}
    match protocol:
        case "native":
            if tools:
                members["tools"] = [_function(tool) for tool in tools]
        case "json":
            if keeps_schema:
                members["response_format"] = _response_format("decision", _decision_schema(tools))
        case "react":
            members["stop"] = ["\nObservation:"]
        case "command":
            listed = _listed_lines(tools, commands, bounds)
            if takes_grammar:
                members["grammar"] = grammar_of(listed) if listed else grammar(tools, commands, bounds)
            elif keeps_schema:
                schema = line_schema(listed, tools, commands, bounds or _UNBOUNDED)
                members["response_format"] = _response_format("line", schema)
        case _:
            assert_never(protocol)
    if temperature is None:
        temperature = 0 if protocol == "command" else TEMPERATURE
    members["temperature"] = temperature
    return _encoded(kept(members, without))[1:-1]


def as_text(tools: Sequence[Tool]) -> Sequence[Tool]:
    """The tools as a model may read of them: what another device says of its own, such as a card, is text alone."""
    return [tool if tool.kind in ON_THE_BOARD else _plain(tool) for tool in tools]


def chosen_examples(protocol: Protocol, tools: Sequence[Tool], tokens: int) -> list[tuple[str, str]]:
    """Choose what people say and what answers it: every tool's first, then every second..., while there is room.

    Taking them in turns covers each tool before any tool's examples run out. What is shown last is copied most, so
    `cannot` comes first, then plain calls, then guards. An example that its own tools cannot read is left out.
    """
    chosen: list[tuple[str, str]] = []
    left = tokens
    for say, answer in _pairs(protocol, tools):
        left -= _TURN_TOKENS + len((say + answer).encode()) // BYTES_PER_TOKEN
        if left < 0:
            break
        chosen.append((say, answer))
    return sorted(chosen, key=lambda pair: _rank(pair[1]))


def nearest(goal: str, pairs: Sequence[tuple[str, str]], count: int = NEAREST) -> list[tuple[str, str]]:
    """Give the examples that share the rarest words with the goal, the nearest last; all numbers are one word."""
    spread = Counter(word for say, _ in pairs for word in _words(say))
    weight = {word: math.log((len(pairs) + 1) / (seen + 0.5)) for word, seen in spread.items()}
    asked = _words(goal)

    def closeness(pair: tuple[str, str]) -> float:
        said = _words(pair[0])
        shared = math.fsum(weight[word] for word in said & asked)
        return shared / math.sqrt(math.fsum(weight[word] for word in said) or 1.0)

    return sorted(pairs, key=closeness)[-count:] if count else []


def _plain(tool: Tool) -> Tool:
    said = tuple(Example(say=plain(one.say), answer=one.answer) for one in tool.examples)
    parameters = without_markup(tool.parameters)
    assert isinstance(parameters, dict)
    description = plain(tool.description)[:DESCRIPTION_CHARS]
    return replace(tool, description=description, parameters=parameters, examples=said)


def _one_line_each(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    return [turn for say, line in pairs for turn in (("user", say), ("assistant", line))]


def _to_the_end(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Examples played on: what a line gave, then `done`. What two acts in one goal look like is shown first."""
    plain = [(say, line) for say, line in pairs if line != "cannot" and not line.startswith("if ")]
    others = [(say, line) for say, line in plain if line.split()[0] != plain[0][1].split()[0]]
    both = [[plain[0], others[-1]]] if others else []
    turns: list[tuple[str, str]] = []
    for acts in [*both, *([pair] for pair in pairs)]:
        said = " ".join(say for say, _ in acts)
        for _, line in acts:
            turns += [("user", said), ("assistant", line)]
            said = f"Result: {line}: ok"
        if acts[-1][1] != "cannot":
            turns += [("user", said), ("assistant", "done")]
    return turns


def _listed_lines(tools: Sequence[Tool], commands: int, bounds: Bounds | None) -> list[str] | None:
    if bounds is None:
        return None
    offers = [Offer.of(tool) for tool in tools]

    def fits(decision: Decision) -> bool:
        try:
            check(decision, bounds, offers)
        except DecisionRejected:
            return False
        return True

    return lines(tools, commands, bounds, fits)


def _response_format(name: str, schema: Args) -> Args:
    return {"type": "json_schema", "json_schema": {"name": name, "schema": schema}}


def _words(text: str) -> frozenset[str]:
    return frozenset("#" if word[0].isdigit() else word for word in re.findall(r"\w+", text.lower()))


def _rank(answer: str) -> int:
    return 0 if answer == "cannot" else 2 if answer.startswith("if ") else 1


def _pairs(protocol: Protocol, tools: Sequence[Tool]) -> Iterator[tuple[str, str]]:
    """Every example that can be written in this protocol, in turns over the tools."""
    if protocol == "native":
        return
    for tool, example in _in_turns(tools):
        answer = _answer(protocol, tool, example, tools)
        if answer is not None:
            yield example.say, answer


def _in_turns(tools: Sequence[Tool]) -> Iterator[tuple[Tool, Example]]:
    for at in range(max((len(tool.examples) for tool in tools), default=0)):
        for tool in tools:
            if at < len(tool.examples):
                yield tool, tool.examples[at]


def _answer(protocol: Protocol, tool: Tool, example: Example, tools: Sequence[Tool]) -> str | None:
    """Write an example's answer as the protocol has it; None where it cannot be read."""
    if protocol == "command":
        return (
            example.answer
            if isinstance(example.answer, str)
            else call_line(_own(tool, example.answer), tool.parameters)
        )
    try:
        call = example_call(example.answer, tools) if isinstance(example.answer, str) else _own(tool, example.answer)
    except DecisionRejected:
        return None
    if call is not None:
        return written_call(protocol, call)
    return f"Final Answer: {_CANNOT}" if protocol == "react" else _encoded({"action": "give_up", "reason": _CANNOT})


def _own(tool: Tool, args: Args) -> Call:
    return Call(name=tool.name, args=args)


def _commands(tools: Sequence[Tool], commands: int) -> str:
    forms = [call_forms(tool) for tool in tools] + ["cannot"] + (["done"] if commands > 1 else [])
    return f"Commands: {'; '.join(forms)}."


def _declared(tools: Sequence[Tool]) -> str:
    lines = [f"- {tool.name}: {tool.description} Arguments: {_encoded(tool.parameters)}" for tool in tools]
    return "\n".join(["Tools:", *(lines or ["(none)"])])


def _listed(pairs: Sequence[tuple[str, str]]) -> list[str]:
    return ["First answers to example goals:", *(f"Goal: {say}\n{answer}" for say, answer in pairs)] if pairs else []


def _function(tool: Tool) -> Args:
    described = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": described}


def _decision_schema(tools: Sequence[Tool]) -> Args:
    """One branch per tool with its own arguments, then finish and give_up."""
    branches = [_branch("tool", {"tool_name": {"const": tool.name}, "tool_args": tool.parameters}) for tool in tools]
    branches.append(_branch("finish", {"terminal_answer": {"type": "string"}}))
    branches.append(_branch("give_up", {"reason": {"type": "string"}}))
    return {"anyOf": branches}


def _branch(action: str, required: Args) -> Args:
    properties: Args = {"action": {"const": action}, **required, "thought": {"type": "string", "maxLength": 200}}
    return {
        "type": "object",
        "properties": properties,
        "required": ["action", *required],
        "additionalProperties": False,
    }


def _encoded(value: object) -> str:
    return msgspec.json.encode(value).decode()
