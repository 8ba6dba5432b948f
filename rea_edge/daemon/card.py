"""How a tool is told to others: what it takes and does, what it costs, what it waits for, why it never runs. Reads only."""

from collections.abc import Sequence

import msgspec

from rea_edge import approval
from rea_edge.config import Settings
from rea_edge.daemon.approvals import Approvals
from rea_edge.records import Args, Tool
from rea_edge.taint import is_outward
from rea_edge.toolhost.confine import unmet
from rea_edge.wire import PUBLISH_MAX

Whole = dict[str, object]
DECLARED = (
    "kind", "timeout_s", "retries", "p95_s", "device", "examples", "returns", "fields", "redact", "summary", "verify",
    "rule",
)  # fmt: skip


def told(tool: Tool, settings: Settings, approvals: Approvals) -> Whole:
    """One tool on the card. What says nothing of it is left out."""
    known = {tool.name: tool}
    confirm, cost = approvals.terms(tool.name, known).confirm, approvals.cost(tool.name, known)
    lacks = unmet(tool)
    never = approvals.hindrance(tool.name, known)
    if lacks and lacks.whole and settings.tools.sandbox == "required":
        never = lacks.why
    said = {
        "cost": cost,
        "confirm": "" if confirm == "never" else confirm,
        "never_runs": never,
        "outward": is_outward(tool),
        "sandbox_unmet": lacks.why if lacks and lacks.why != never else None,
    }
    return {
        "name": tool.name,
        "effect": tool.effect,
        "risk": approval.RISK[tool.effect],
        "description": tool.description,
        "parameters": tool.parameters,
        **({} if tool.returns is None else {"returns": tool.returns}),
        "takes_s": takes_s(tool, approvals),
        **{key: value for key, value in said.items() if value},
    }


def takes_s(tool: Tool, approvals: Approvals) -> float:
    """The most that a call may take, for who waits for its end."""
    needed = approvals.terms(tool.name, {tool.name: tool})
    return tool.timeout_s * (tool.retries + 1) + (0.0 if needed.confirm == "never" else needed.seconds)


def row(tool: Tool, settings: Settings, approvals: Approvals) -> Args:
    """One tool in `query tools`: of its declaration what is listed, and what the card says. No programs, paths, topics,
    files or names of secrets."""
    declared: Args = msgspec.to_builtins(tool)
    return {key: declared[key] for key in DECLARED if key in declared} | told(tool, settings, approvals)


def fitted(card: Whole, tools: Sequence[Whole]) -> bytes:
    """The card with these tools, in one message. Where they do not fit, `query tools` has the rest: first their words
    and schemas are left out, then all but their names, then those that come last."""
    brief = [{key: one[key] for key in one if key not in ("description", "parameters", "returns")} for one in tools]
    names = [{"name": one["name"]} for one in tools]
    for shown in (tools, brief, names):
        cut = {} if shown is tools else {"cut": "the whole of the tools is in query tools"}
        payload = msgspec.json.encode({**card, "tools": shown, **cut})
        if len(payload) <= PUBLISH_MAX:
            return payload
    while len(payload) > PUBLISH_MAX and names:
        names = names[: -(len(names) // 8 + 1)]
        payload = msgspec.json.encode({**card, "tools": names, "tools_total": len(tools), **cut})
    return payload
