"""What one tool of a node is, in words for the person who answers for it: what it does and takes, and what holds it.

Made from the declaration, and what the settings of this node make of it. Looks at this machine only for the program of a
command tool and for Landlock.
"""

import shutil
from collections.abc import Iterator

from msgspec import Struct

from rea_edge import approval, condition, gate
from rea_edge.cli.wording import narrowed, takes
from rea_edge.config import Settings
from rea_edge.device.message import qos_of
from rea_edge.parameters import needed_in, shapes_of
from rea_edge.records import Rule, Tool
from rea_edge.toolhost.confine import unmet


class Argument(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`takes` is what this node lets through, `declared` what the tool itself takes, where that is more."""

    name: str
    takes: str
    declared: str = ""
    required: bool = True
    default: object = None
    description: str = ""


class Explained(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`limits` are sentences; `callers` None: whoever may send; `never_runs` says why, where that is so."""

    name: str
    kind: str
    source: str
    effect: str
    description: str
    risk: str
    arguments: tuple[Argument, ...] = ()
    limits: tuple[str, ...] = ()
    timeout_s: float
    p95_s: float
    retries: int = 0
    cost: float = 0.0
    callers: tuple[str, ...] | None = None
    task_types: tuple[str, ...] = ()
    waits: str = ""
    never_runs: str = ""
    sandbox: str = ""
    secrets: tuple[str, ...] = ()
    way: str = ""


def explained(tool: Tool, settings: Settings) -> Explained:
    rules = [rule for rule in (tool.rule, settings.gates.get(tool.name)) if rule is not None]
    callers = settings.access.callers.get(tool.name)
    return Explained(
        name=tool.name,
        kind=tool.kind,
        source=tool.source,
        effect=tool.effect,
        description=tool.description,
        risk=approval.RISK[tool.effect],
        arguments=tuple(arguments(tool, rules)),
        limits=tuple(limit for rule in rules for limit in limits(rule)),
        timeout_s=tool.timeout_s,
        p95_s=tool.p95_s,
        retries=0 if gate.cost_of(rules) else tool.retries,
        cost=gate.cost_of(rules),
        callers=callers,
        task_types=tuple(sorted(task_types(tool, settings))),
        waits=waits(tool, settings),
        never_runs=never_runs(tool, settings),
        sandbox=sandbox(tool, settings),
        secrets=tool.needs,
        way=way(tool),
    )


def lines(one: Explained) -> Iterator[str]:
    """The same as one short block."""
    yield one.description
    yield one.risk
    for argument in one.arguments:
        wider = f" (the tool itself takes {argument.declared})" if argument.declared else ""
        default = (
            ""
            if argument.default is None
            else f", else {argument.default if argument.default != '' else 'an empty text'}"
        )
        yield f"{argument.name}: {argument.takes}{wider}{'' if argument.required else f'; may be left out{default}'}"
    yield from one.limits
    again = f", {one.retries} times more after a failure" if one.retries else ""
    yield f"at most {one.timeout_s:g} s{again}; 95 % of its calls within {one.p95_s:g} s"
    if one.cost:
        yield f"costs {one.cost:g}"
    who = "whoever may send" if one.callers is None else ", ".join(one.callers) or "nobody"
    yield f"called by {who}; on offer in tasks of type {', '.join(one.task_types) or '(none)'}"
    yield from (text for text in (one.waits, one.sandbox) if text)
    if one.secrets:
        yield f"is given {', '.join(one.secrets)} of [secrets]"
    if one.never_runs:
        yield f"NEVER RUNS: {one.never_runs}"


def arguments(tool: Tool, rules: list[Rule]) -> Iterator[Argument]:
    required = needed_in(tool.parameters)
    for name, shape in shapes_of(tool.parameters).items():
        held = narrowed(shape, [rule.ranges[name] for rule in rules if name in rule.ranges])
        known = shape if isinstance(shape, dict) else {}
        yield Argument(
            name=name,
            takes=takes(held),
            declared="" if held is shape else takes(shape),
            required=name in required,
            default=known.get("default"),
            description=str(known.get("description", "")),
        )


def limits(rule: Rule) -> Iterator[str]:
    if rule.rate is not None:
        yield f"starts at most {rule.rate.times} times in {rule.rate.seconds:g} s"
    if rule.dwell_s:
        yield f"rests {rule.dwell_s:g} s between two starts"
    if rule.hours is not None:
        yield f"runs {rule.hours} only, by the clock of this node"
    if rule.requires:
        yield f"runs in a task only after {' and '.join(rule.requires)}"
    for criterion in rule.only_if:
        yield f"runs only with {condition.in_words(criterion)}, read afresh"


def task_types(tool: Tool, settings: Settings) -> Iterator[str]:
    """The types of tasks in which a model may call it."""
    for name in {"default", *settings.task_types}:
        kind = settings.task_type(name)
        assert kind is not None
        if (kind.tools is None or tool.name in kind.tools) and (tool.effect == "read" or kind.mode != "query"):
            yield name


def waits(tool: Tool, settings: Settings) -> str:
    needed = approval.terms(tool.rule, settings.gates.get(tool.name))
    if needed.confirm == "never":
        return ""
    which = "each call" if needed.confirm == "always" else "each call that a model asks for"
    return f"{which} waits {needed.seconds:g} s for a yes of {' or '.join(needed.approvers) or 'nobody'}"


def never_runs(tool: Tool, settings: Settings) -> str:
    lacks = unmet(tool)
    if lacks is not None and lacks.whole and settings.tools.sandbox == "required":
        return lacks.why
    needed = approval.terms(tool.rule, settings.gates.get(tool.name))
    return approval.hindrance(needed, tool.name, settings.access.identity) or ""


def sandbox(tool: Tool, settings: Settings) -> str:
    if tool.kind not in ("python", "command"):
        return ""
    user = f"as user {settings.tools.user}" if settings.tools.user else "as the daemon's user"
    shut = tool.sandbox
    if shut is None:
        return f"no sandbox: sees what it may {user}"
    sees = f"reads {', '.join(shut.read) or 'nothing'}, writes {', '.join(shut.write) or 'nothing'}"
    lacks = unmet(tool)
    return f"sandbox: {sees}, {'TCP' if shut.network else 'no TCP'}, {user}" + (f"; {lacks.why}" if lacks else "")


def way(tool: Tool) -> str:
    """How an MQTT tool speaks with its device; empty for others."""
    said = tool.exchange
    if said is None:
        return ""
    parts = [f"publishes {said.publish} (QoS {qos_of(tool)})"] if said.publish else []
    parts += [f"awaits {said.reply}"] if said.reply else []
    parts += [f"looks at {one.topic}" for one in said.availability]
    return ", ".join(parts)


def missing_program(tool: Tool) -> str:
    """Why the program of a command tool cannot be started by whoever asks; empty where it can, or there is none."""
    if tool.kind != "command" or shutil.which(tool.command[0]):
        return ""
    where = "cannot be executed, or is not there" if "/" in tool.command[0] else "is nowhere in PATH"
    return f"its program {tool.command[0]!r} {where}: install it, or correct `command` in {tool.source}"
