"""The core of `rea-edge decide`: recorded messages in, one outcome a line out, to see how a reply is read.

Holds the lines and the tool file of that command; reads no configuration and runs nothing. Tools come in the OpenAI
form and mean what JSON Schema says: any name, keywords outside our subset are left out of the check, objects are open.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TextIO, assert_never, get_args

from rea_edge import decision, schema
from rea_edge.decision.turn import Asked
from rea_edge.errors import DecisionRejected, ToolInvalid
from rea_edge.records import Args, Call, Calls, Decision, Finish, GiveUp, Guard, Offer

_PROTOCOLS: tuple[Asked, ...] = get_args(Asked)


def main_loop(lines: Iterable[str | bytes], out: TextIO, tools_file: Path, err: TextIO) -> None:
    """Write one outcome for each line, at once and in pure ASCII; raises ToolInvalid where the tool file is none.

    A line is an object with `message`, `finish_reason`, `tools` (names; absent: all) and `protocol` (absent: any).
    A line that is no such object gives an outcome too, an `unparseable` that says so.
    """
    offers = read_tools(tools_file, err)
    for line in lines:
        out.write(json.dumps(outcome_of_line(line, offers), ensure_ascii=True) + "\n")
        out.flush()


def read_tools(path: Path, err: TextIO) -> dict[str, Offer]:
    """The tools of a file by name; what their schemas say beyond our subset is named on `err`."""
    try:
        listed = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as exc:
        raise ToolInvalid(str(path), f"is not a JSON file: {exc}") from exc
    if isinstance(listed, dict):
        listed = listed.get("tools")
    if not isinstance(listed, list):
        raise ToolInvalid(str(path), "must be a list of tools")
    offers: dict[str, Offer] = {}
    for number, item in enumerate(listed):
        offer = _offer(item)
        if offer is None:
            raise ToolInvalid(f"{path}: tool {number + 1}", "has no name")
        offers[offer.name] = offer
        for keyword in schema.compile(offer.parameters, place=offer.name, lenient=True).ignored:
            print(f"{offer.name}: {keyword} is not checked", file=err)
    return offers


def outcome_of_line(line: str | bytes, offers: Mapping[str, Offer]) -> dict[str, object]:
    """Read one line and its message."""
    try:
        case = json.loads(line)
    except (ValueError, RecursionError):
        return _error("unparseable", "the line is not JSON")
    if not isinstance(case, dict):
        return _error("unparseable", "the line is not a JSON object")
    names, reason, protocol = case.get("tools"), case.get("finish_reason"), case.get("protocol")
    offered = list(offers.values()) if not isinstance(names, list) else [_named(name, offers) for name in names]
    message = case.get("message")
    return outcome(
        message if isinstance(message, dict) else {},
        reason if isinstance(reason, str) else None,
        [offer for offer in offered if offer is not None],
        next((known for known in _PROTOCOLS if known == protocol), "any"),
    )


def outcome(
    message: Mapping[str, object], finish_reason: str | None, offers: list[Offer], protocol: Asked
) -> dict[str, object]:
    """One message as the outcome that is written."""
    try:
        return _shown(decision.read(message, finish_reason, offers, protocol))
    except DecisionRejected as rejected:
        return _error(rejected.kind, rejected.message)


def _shown(decided: Decision) -> dict[str, object]:
    match decided:
        case Calls(calls=calls):
            return {"decision": "tool", "calls": [_call(call) for call in calls]}
        case Guard(read=read, path=path, op=op, value=value, then=then):
            guard = {**_call(read), "path": path, "op": op, "value": value}
            return {"decision": "tool", "calls": [_call(then)], "guard": guard}
        case Finish(answer=answer):
            return {"decision": "finish", "answer": answer}
        case GiveUp(reason=reason):
            return {"decision": "give_up", "reason": reason}
        case _:
            assert_never(decided)


def _call(call: Call) -> dict[str, object]:
    return {"name": call.name, "args": call.args}


def _error(kind: str, message: str) -> dict[str, object]:
    return {"decision": "error", "error_kind": kind, "message": message}


def _named(name: object, offers: Mapping[str, Offer]) -> Offer | None:
    """An offered tool by name (a name that the file lacks takes any arguments), or a definition in its place."""
    if isinstance(name, str):
        return offers.get(name) or Offer(name=name, effect="once", parameters={"type": "object"})
    return _offer(name)


def _offer(item: object) -> Offer | None:
    inner = item.get("function", item) if isinstance(item, dict) else None
    if not isinstance(inner, dict) or not isinstance(inner.get("name"), str):
        return None
    parameters = inner.get("parameters", inner.get("input_schema"))
    shape: Args = _opened(parameters) if isinstance(parameters, dict) and parameters else {"type": "object"}
    effect = inner.get("effect")
    return Offer(name=inner["name"], effect="read" if effect == "read" else "once", parameters=shape)


def _opened(parameters: Args) -> Args:
    """The schema with JSON Schema's own default written out: an object that does not say otherwise is open."""
    copy: Args = json.loads(json.dumps(parameters))
    stack: list[object] = [copy]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            if isinstance(node.get("properties"), dict) and isinstance(node.get("type", "object"), str | list):
                node.setdefault("additionalProperties", True)
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
    return copy
