"""What was said in one protocol, told again in another: as if the model had answered in it from the start. Pure.

Holds how a decision is written; reads answers by `decision` and changes nothing that was observed.
"""

from collections.abc import Mapping, Sequence
from typing import assert_never

import msgspec
from msgspec import Raw

from rea_edge import decision
from rea_edge.context import message_of, native_calls
from rea_edge.records import Begun, Call, Calls, Decision, Finish, GiveUp, Guard, Malformed, Protocol

_OBSERVED = ("Observation of ", "Result: ")  # how results begin that a model was told as text
_THOUGHT_CHARS = 200  # as the schema of protocol json allows


def retold(history: Sequence[Sequence[Raw]], begun: Begun, protocol: Protocol) -> tuple[tuple[Raw, ...], ...]:
    """The rounds of a run that began in `begun.protocol`, in the form of `protocol`.

    A model writes again what it sees itself write, so that no turn may keep the old form. What could not be read and
    gave no result is left out; what has no form in the new protocol (a guarded line) stays as it is.
    """
    told = (_round(round_, begun, protocol) for round_ in history)
    return tuple(round_ for round_ in told if round_)


def written_call(protocol: Protocol, call: Call) -> str:
    """A call as an answer in this protocol has it; native calls, which stand beside the text, as a JSON object."""
    match protocol:
        case "react":
            return f"Action: {call.name}\nAction Input: {_json(call.args)}"
        case "command":
            return " ".join([call.name, *(f"{key}={_json(value)}" for key, value in call.args.items())])
        case "json":
            return _json({"action": "tool", "tool_name": call.name, "tool_args": call.args})
        case "native":
            return _json({"name": call.name, "arguments": call.args})


def _round(round_: Sequence[Raw], begun: Begun, protocol: Protocol) -> tuple[Raw, ...]:
    turn, *results = round_
    read = _read(turn, begun)
    if isinstance(read, Malformed):
        return tuple(round_) if any(_content(result).startswith(_OBSERVED) for result in results) else ()
    written = _written(read, protocol, begun.aliases)
    if written is None:
        return tuple(round_)
    observed = _results_as_text(turn, results)
    return (message_of(role="assistant", content=written), *observed)


def _read(turn: Raw, begun: Begun) -> Decision | Malformed:
    """What a turn was taken for, in our names."""
    if calls := native_calls(turn):
        back = {alias: name for name, alias in begun.aliases.items()}
        made = tuple(Call(name=back.get(name, name), args=args) for name, args in calls.values())
        return Calls(calls=made, thought=_content(turn))
    said: dict[str, object] = {"content": _content(turn)}
    return decision.read_or_fault(said, "stop", begun.offers, begun.protocol, begun.aliases, begun.bounds)


def _written(read: Decision, protocol: Protocol, aliases: Mapping[str, str]) -> str | None:
    match read:
        case Calls(calls=calls, thought=thought):
            named = [msgspec.structs.replace(call, name=aliases.get(call.name, call.name)) for call in calls]
            written = [written_call(protocol, call) for call in named]
            return "\n".join([_with_thought(written[0], thought.strip(), protocol), *written[1:]])
        case Finish(answer=answer):
            return f"Final Answer: {answer}" if protocol == "react" else _ended("finish", "terminal_answer", answer)
        case GiveUp(reason=reason):
            return f"Final Answer: {reason}" if protocol == "react" else _ended("give_up", "reason", reason)
        case Guard():
            return None
        case _:
            assert_never(read)


def _with_thought(call: str, thought: str, protocol: Protocol) -> str:
    if not thought or protocol == "command":
        return call
    if protocol == "react":
        return f"Thought: {thought}\n{call}"
    members: dict[str, object] = msgspec.json.decode(call, type=dict[str, object])
    return _json({**members, "thought": thought[:_THOUGHT_CHARS]})


def _ended(action: str, key: str, text: str) -> str:
    return _json({"action": action, key: text})


def _results_as_text(turn: Raw, results: Sequence[Raw]) -> tuple[Raw, ...]:
    """Results of native calls as one message of the user; those that were told as text keep their bytes."""
    calls = native_calls(turn)
    if not calls:
        return tuple(results)
    lines: list[str] = []
    for result in results:
        call_id = msgspec.json.decode(result, type=dict[str, object]).get("tool_call_id")
        name, _ = calls.get(str(call_id), ("", {}))
        lines.append(f"Observation of {name}: {_content(result)}" if name else _content(result))
    return (message_of(role="user", content="\n".join(lines)),) if lines else ()


def _content(turn: Raw) -> str:
    content = msgspec.json.decode(turn, type=dict[str, object]).get("content")
    return content if isinstance(content, str) else ""


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
