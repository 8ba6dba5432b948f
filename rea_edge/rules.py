"""The bounds of a tool as they are written in `[gate.NAME]` or a declaration, and read to a `Rule`. Pure.

rate    = number "/" ("second" / "minute" / "hour" / "day")
hours   = HH:MM "-" HH:MM        local time; over midnight where the second is the earlier one
"""

import re
from collections.abc import Callable, Mapping
from typing import Annotated, TypeVar

from msgspec import Meta, Struct, field

from rea_edge.condition import is_path
from rea_edge.records import Confirm, Criterion, Hours, Op, Rate, Rule

MOST_IN_A_RATE = 120  # starts that are remembered of one tool
_SECONDS = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0}
_RATE = re.compile(r"([1-9][0-9]{0,2})\s*/\s*(second|minute|hour|day)")
_HOURS = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])\s*-\s*([01][0-9]|2[0-3]):([0-5][0-9])")
_TOOL = re.compile(r"[a-z][a-z0-9_]{0,47}")
_T = TypeVar("_T")


class RuleInvalid(ValueError):
    """`key` is the path of what cannot be, below the table; whoever reads the table says where that stands."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


class Wanted(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A result that must be seen, `{tool = "pump", path = "on", equals = true}`: one of `done_when` or `only_if`."""

    tool: str
    args: dict[str, object] = field(default_factory=dict)
    # arguments that the call must have had; default: any
    path: str = ""
    # into the result; default: the whole of it
    equals: bool | int | float | str | None = None
    # this value; or
    op: Op | None = None
    value: bool | int | float | str | None = None
    # compared so, number with number and text with text


class Gate(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[gate.TOOL]`, or a part of a declaration: bounds of one tool, for the model and for direct calls alike."""

    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    # parameter = [least, most], both allowed; within what the tool itself takes
    rate: str | None = None
    # 6/minute: the most starts in any second, minute, hour or day; kept over restarts
    dwell_s: Annotated[float, Meta(ge=0.1, le=86_400)] | None = None
    # least seconds between two starts; kept over restarts
    hours: str | None = None
    # 07:00-22:00: when it may run, by local time; while the clock is not trusted it may not
    requires: tuple[str, ...] = ()
    # tools that must have given a value in the same task before
    only_if: tuple[Wanted, ...] = ()
    # interlocks: reads whose fresh value must meet a condition right before the start
    confirm: Confirm = "never"
    # always: each call waits for a person's yes; task: only those that a model asks for
    cost: Annotated[float, Meta(ge=0, le=1e9)] = 0.0
    # of one start, in a unit that the operator chooses for all tools, such as euro cents; counted against limits.cost


class NodeGate(Gate, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[gate.TOOL]` as a node has it: a declaration may ask for a yes, who gives it is the node's to say."""

    values: dict[str, Annotated[tuple[bool | int | float | str, ...], Meta(min_length=1, max_length=256)]] = field(
        default_factory=dict
    )
    # parameter = [what it may be], nothing else: which of its devices a tool may reach; a declaration has enum for this
    approvers: Annotated[tuple[str, ...], Meta(max_length=32)] = ()
    # names of those who may say yes, never to a call of their own; not with [access] identity = "none"
    approve_s: Annotated[float, Meta(ge=1, le=86_400)] = 120.0
    # seconds they have; no answer means no. A person must see it, look at the device, and answer


def rule_of(gate: Gate) -> Rule:
    """The rule that a table says. Raises `RuleInvalid`. Whether its tools and parameters exist is not known here."""
    for key, (least, most) in gate.ranges.items():
        if not least <= most:
            raise RuleInvalid(f"ranges.{key}", f"expected [least, most], got [{least:g}, {most:g}]")
    for index, tool in enumerate(gate.requires):
        check_tool(tool, f"requires[{index}]")
    for index, wanted in enumerate(gate.only_if):
        check_wanted(wanted, f"only_if[{index}]")
    return Rule(
        ranges=gate.ranges,
        values=gate.values if isinstance(gate, NodeGate) else {},
        rate=_read(rate_of, gate.rate, "rate"),
        dwell_s=gate.dwell_s or 0.0,
        hours=_read(hours_of, gate.hours, "hours"),
        requires=gate.requires,
        only_if=tuple(map(criterion_of, gate.only_if)),
        confirm=gate.confirm,
        cost=gate.cost,
        approvers=gate.approvers if isinstance(gate, NodeGate) else (),
        approve_s=gate.approve_s if isinstance(gate, NodeGate) else Rule().approve_s,
    )


def criterion_of(wanted: Wanted) -> Criterion:
    value = wanted.value if wanted.equals is None else wanted.equals
    return Criterion(tool=wanted.tool, args=wanted.args, path=wanted.path, op=wanted.op or "==", value=value)


def check_pairs(ranges: object) -> None:
    """Refuse what stands for a range and is no pair of numbers, as it was written."""
    for key, pair in ranges.items() if isinstance(ranges, Mapping) else ():
        if (
            not isinstance(pair, list | tuple)
            or len(pair) != 2
            or not all(isinstance(end, int | float) for end in pair)
        ):
            raise RuleInvalid(f"ranges.{key}", f"expected [least, most], such as [0, 80], got {pair!r:.100}")


def check_tool(name: str, key: str) -> None:
    if not _TOOL.fullmatch(name):
        raise RuleInvalid(key, f"expected the name of a tool, got {name!r}")


def check_wanted(wanted: Wanted, key: str) -> None:
    """Refuse what says no condition, or two."""
    check_tool(wanted.tool, f"{key}.tool")
    if wanted.path and not is_path(wanted.path):
        raise RuleInvalid(f"{key}.path", f"expected a path such as value or disks.0.free, got {wanted.path!r}")
    compares = (wanted.op is not None, wanted.value is not None)
    if (wanted.equals is not None, *compares) not in ((True, False, False), (False, True, True)):
        raise RuleInvalid(key, "expected either equals, or op and value")


def rate_of(text: str) -> Rate:
    """Read `6/minute`. Raises `ValueError` with what is expected."""
    found = _RATE.fullmatch(text.strip())
    if found is None or int(found[1]) > MOST_IN_A_RATE:
        raise ValueError(f"expected a rate such as 6/minute, at most {MOST_IN_A_RATE} per second, minute, hour or day")
    return Rate(times=int(found[1]), seconds=_SECONDS[found[2]])


def hours_of(text: str) -> Hours:
    """Read `07:00-22:00`. Raises `ValueError` with what is expected."""
    found = _HOURS.fullmatch(text.strip())
    if found is None:
        raise ValueError("expected hours such as 07:00-22:00")
    first, last = int(found[1]) * 60 + int(found[2]), int(found[3]) * 60 + int(found[4])
    if first == last:
        raise ValueError("expected two different times: the tool would never run, or always")
    return Hours(first=first, last=last)


def _read(reader: Callable[[str], _T], text: str | None, key: str) -> _T | None:
    if text is None:
        return None
    try:
        return reader(text)
    except ValueError as exc:
        raise RuleInvalid(key, f"{exc}, got {text!r}") from exc
