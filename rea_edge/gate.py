"""The one policy gate: whether a call may run. Pure. Every act passes here: of a task, a direct call, a resumed run.

Two questions. `refusal` can be asked at any time; `too_soon` only at the moment of the start, by whoever counts the
starts. What needs a person's yes is not here yet.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import structs

from rea_edge import budget, condition
from rea_edge.parameters import shape_of
from rea_edge.records import (
    Args,
    Call,
    Criterion,
    EffectClass,
    Frozen,
    Limits,
    Mode,
    Offer,
    Rule,
    Run,
    Tool,
    Usage,
)


class Policy(Frozen, frozen=True, kw_only=True):
    """What holds for one run: its mode, and the tools it may use (None: every tool of the node).

    `closed` are tools that are not open to its sender. `lost`: why the node's earlier state is gone, `halted`: who has
    stopped all that acts; both until released.
    """

    mode: Mode
    tools: tuple[str, ...] | None = None
    closed: tuple[str, ...] = ()
    lost: str | None = None
    halted: str | None = None


class Facts(Frozen, frozen=True, kw_only=True):
    """What the rules of a tool look at. `minute` is that of the local day, None while the clock is not trusted;
    `done` names the tools that gave a value in this run, None for a direct call, which has none before it."""

    minute: int | None = None
    done: frozenset[str] | None = None


def refusal(policy: Policy, call: Call, effect: EffectClass, known: Mapping[str, Tool]) -> str | None:
    """Why this call may not run by mode and allow-list, in words for the model and the sender; None means it may.

    `known` are the tools that exist now: a resumed run may name one that is gone.
    """
    if call.name not in known:
        return f"{call.name} does not exist on this node any more"
    if policy.tools is not None and call.name not in policy.tools:
        return f"{call.name} is not allowed for this type of task; allowed: {', '.join(policy.tools) or 'none'}"
    if call.name in policy.closed:
        return f"{call.name} is not open to this sender"
    if policy.mode == "query" and effect != "read":
        return f"{call.name} acts, and this request may only read (mode query)"
    if policy.halted is not None and effect != "read":
        return held_back(policy.halted, call.name)
    if policy.lost is not None and effect == "once":
        # What an earlier state knew to be done may be asked for again: only a person can tell.
        return (
            f"the state of this node was lost ({policy.lost}): an operator must release it before {call.name} may run"
        )
    return None


def held_back(halted: str, name: str) -> str:
    """Why a tool that acts does not run on a node that is halted."""
    return f"{halted}: an operator must release it before {name} may run"


def breach(rule: Rule, call: Call, parameters: Args, facts: Facts) -> str | None:
    """Which bound of a rule this call breaks whatever was done before and whatever any device says; None: none."""
    if facts.done is not None and (missing := [name for name in rule.requires if name not in facts.done]):
        return f"{call.name} requires {missing[0]} first: call that, and look at its result"
    for key, (least, most) in rule.ranges.items():
        value = _given(call, parameters, key)
        if not _left_out(call, parameters, key) and not _between(least, value, most):
            return f"{call.name}: {key} must be from {least:g} to {most:g} on this node, not {value!r}"
    for key, allowed in rule.values.items():
        value = _given(call, parameters, key)
        if (key in call.args or value is not None) and not any(condition.equal(value, one) for one in allowed):
            return f"{call.name}: {key} must be one of {', '.join(map(str, allowed))} on this node, not {value!r}"
    if rule.hours is None:
        return None
    if facts.minute is None:
        return f"{call.name} may run {rule.hours} only, and the clock of this node is not trusted"
    return None if facts.minute in rule.hours else f"{call.name} may run {rule.hours} only, by the clock of this node"


def cost_of(rules: Iterable[Rule]) -> float:
    """What one start costs, by the rule that says most."""
    return max((rule.cost for rule in rules), default=0.0)


def too_dear(name: str, cost: float, limits: Limits, used: Usage) -> str | None:
    """Why a call is not begun for what it costs, or None. Landing exactly on the limit is allowed."""
    left = budget.cost_left(limits, used)
    if left is None or cost <= left:
        return None
    return f"{name} costs {cost:g}, and {left:g} of {limits.cost:g} are left for this task"


def too_soon(rule: Rule, name: str, ago_s: Sequence[float]) -> str | None:
    """Why this tool may not start at this moment, by when it started before (seconds ago, the newest first)."""
    if ago_s and ago_s[0] < rule.dwell_s:
        return f"{name} ran {ago_s[0]:.0f} s ago and must rest {rule.dwell_s:g} s: again in {_up(rule.dwell_s - ago_s[0])} s"
    if rule.rate is None:
        return None
    within = [ago for ago in ago_s if ago < rule.rate.seconds]
    if len(within) < rule.rate.times:
        return None
    wait_s = rule.rate.seconds - within[rule.rate.times - 1]
    return f"{name} ran {len(within)} times in {rule.rate.seconds:g} s, which is the most: again in {_up(wait_s)} s"


def unlocked(criterion: Criterion, name: str, said: object, *, shown: bool = True) -> str | None:
    """Why an interlock holds `name` back, by the value that its read gave; None where it lets it run. `shown`: the
    value itself may be told."""
    lacking = condition.lacking(criterion, said)
    if lacking and not shown:
        lacking = "it says something else, in words that are not shown here"
    return f"{name} may run only with {condition.in_words(criterion)}; {lacking}" if lacking else None


def done_in(run: Run) -> frozenset[str]:
    """The tools that gave a value in this run."""
    return frozenset(one.tool for one in run.done if one.result == "ok")


def offered(policy: Policy, tools: Collection[Tool]) -> tuple[Offer, ...]:
    """The tools that a run under this policy is shown, in the order of their names.

    Those that wait for a release are among them: who asks for one is told what it waits for.
    """
    policy = structs.replace(policy, lost=None, halted=None)
    shown = (
        tool for tool in tools if refusal(policy, Call(name=tool.name, args={}), tool.effect, {tool.name: tool}) is None
    )
    return tuple(Offer.of(tool) for tool in sorted(shown, key=lambda tool: tool.name))


def _given(call: Call, parameters: Args, key: str) -> object:
    return call.args.get(key, shape_of(parameters, key).get("default"))


def _left_out(call: Call, parameters: Args, key: str) -> bool:
    """Whether a parameter has no value, also where that is said: a null that is no default may mean anything to a tool."""
    shape = shape_of(parameters, key)
    if key in call.args:
        return call.args[key] is None and "default" in shape and shape["default"] is None
    return shape.get("default") is None


def _between(least: float, value: object, most: float) -> bool:
    # Anything but a number is out of any range: a rule that cannot be applied must not let a call through.
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most


def _up(seconds: float) -> int:
    return max(1, math.ceil(seconds))
