"""The one policy gate: whether a call may run. Pure. Every act passes here: of a task, a direct call, a resumed run.

It holds what is refused and why; what needs a person's yes, rates and ranges are not here yet.
"""

from collections.abc import Collection

from rea_edge.records import Call, EffectClass, Frozen, Mode, Offer, Tool


class Policy(Frozen, frozen=True, kw_only=True):
    """What holds for one run: its mode, and the tools it may use (None: every tool of the node)."""

    mode: Mode
    tools: tuple[str, ...] | None = None


def refusal(policy: Policy, call: Call, effect: EffectClass, known: Collection[str]) -> str | None:
    """Why this call may not run, in words for the model and the sender; None means it may.

    `known` are the tools that exist now: a resumed run may name one that is gone.
    """
    if call.name not in known:
        return f"{call.name} does not exist on this node any more"
    if policy.tools is not None and call.name not in policy.tools:
        return f"{call.name} is not allowed for this type of task; allowed: {', '.join(policy.tools) or 'none'}"
    if policy.mode == "query" and effect != "read":
        return f"{call.name} acts, and this request may only read (mode query)"
    return None


def offered(policy: Policy, tools: Collection[Tool]) -> tuple[Offer, ...]:
    """The tools that a run under this policy is shown, in the order of their names."""
    shown = (
        tool for tool in tools if refusal(policy, Call(name=tool.name, args={}), tool.effect, (tool.name,)) is None
    )
    return tuple(
        Offer(name=tool.name, effect=tool.effect, parameters=tool.parameters, returns=tool.returns)
        for tool in sorted(shown, key=lambda tool: tool.name)
    )
