"""`[gate.TOOL]` tables to rules. Whether the tools exist is not known here. Raises `ConfigInvalid` with the key's path."""

import re
from collections.abc import Callable
from typing import TypeVar

from rea_edge import rules
from rea_edge.condition import is_path
from rea_edge.config.settings import Gate, Wanted
from rea_edge.errors import ConfigInvalid
from rea_edge.records import Criterion, Rule

TOOL = re.compile(r"[a-z][a-z0-9_]{0,47}")
_T = TypeVar("_T")


def rule_of(gate: Gate, place: str) -> Rule:
    """The rule that a table says."""
    for key, (least, most) in gate.ranges.items():
        if not least <= most:
            raise ConfigInvalid(f"{place}.ranges.{key}", f"expected [least, most], got [{least:g}, {most:g}]")
    for index, tool in enumerate(gate.requires):
        check_tool(tool, f"{place}.requires[{index}]")
    for index, wanted in enumerate(gate.only_if):
        check_wanted(wanted, f"{place}.only_if[{index}]")
    return Rule(
        ranges=gate.ranges,
        rate=_read(rules.rate_of, gate.rate, f"{place}.rate"),
        dwell_s=gate.dwell_s or 0.0,
        hours=_read(rules.hours_of, gate.hours, f"{place}.hours"),
        requires=gate.requires,
        only_if=tuple(map(criterion_of, gate.only_if)),
    )


def criterion_of(wanted: Wanted) -> Criterion:
    value = wanted.value if wanted.equals is None else wanted.equals
    return Criterion(tool=wanted.tool, args=wanted.args, path=wanted.path, op=wanted.op or "==", value=value)


def check_tool(name: str, place: str) -> None:
    if not TOOL.fullmatch(name):
        raise ConfigInvalid(place, f"expected the name of a tool, got {name!r}")


def check_wanted(wanted: Wanted, place: str) -> None:
    """Refuse what says no condition, or two."""
    check_tool(wanted.tool, f"{place}.tool")
    if wanted.path and not is_path(wanted.path):
        raise ConfigInvalid(f"{place}.path", f"expected a path such as value or disks.0.free, got {wanted.path!r}")
    compares = (wanted.op is not None, wanted.value is not None)
    if (wanted.equals is not None, *compares) not in ((True, False, False), (False, True, True)):
        raise ConfigInvalid(place, "expected either equals, or op and value")


def _read(reader: Callable[[str], _T], text: str | None, place: str) -> _T | None:
    if text is None:
        return None
    try:
        return reader(text)
    except ValueError as exc:
        raise ConfigInvalid(place, f"{exc}, got {text!r}") from exc
