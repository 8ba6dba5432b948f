"""What a declaration may say beyond its call: its bounds at the gate, and what of its result may be seen.

Imported in short-lived children only. Raises ToolInvalid with file, tool and key.
"""

from collections.abc import Mapping

import msgspec

from rea_edge.condition import is_path
from rea_edge.errors import ToolInvalid
from rea_edge.records import Args, Redaction, Rule, Sandbox, Tool
from rea_edge.rules import Gate, RuleInvalid, rule_of
from rea_edge.toolhost.confine import STATE

NUMBERS = frozenset({"integer", "number"})


class Extras(Gate, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of a declaration that are the same for every kind of tool."""

    fields: tuple[str, ...] = ()
    # paths into the result that may be seen, such as "disks.name"; lists are looked through
    redact: tuple[Redaction, ...] = ()
    # addresses: IP, MAC and mail addresses are hidden; credentials always are
    summary: bool = False
    # a result of more than 2 KiB is given as its counts, ends and figures
    sandbox: Sandbox | None = None
    # paths to read and to write, beside what every program needs; network = true allows TCP


def with_extras(tool: Tool, place: str, said: Mapping[str, object]) -> Tool:
    """The tool with what its declaration says in these keys."""
    try:
        extras = msgspec.convert(dict(said), Extras)
        rule = rule_of(extras)
    except RuleInvalid as exc:
        raise ToolInvalid(f"{place}.{exc.key}", str(exc)) from exc
    except msgspec.ValidationError as exc:
        sentence, _, path = str(exc).partition(" - at `$")
        raise ToolInvalid(f"{place}{path.rstrip('`')}", sentence[0].lower() + sentence[1:]) from exc
    for path in extras.fields:
        if not is_path(path):
            raise ToolInvalid(f"{place}.fields", f"{path!r} is no path such as value or disks.free")
    for path in (*extras.sandbox.read, *extras.sandbox.write) if extras.sandbox else ():
        if not path.startswith(("/", STATE)):
            raise ToolInvalid(f"{place}.sandbox", f"{path!r} is no absolute path, nor below {STATE}")
    for key in extras.ranges:
        check_number(f"{place}.ranges.{key}", tool.parameters, key)
    return msgspec.structs.replace(
        tool,
        fields=extras.fields,
        redact=extras.redact,
        summary=extras.summary,
        sandbox=extras.sandbox,
        rule=None if rule == Rule() else rule,
    )


def check_number(place: str, parameters: Args, key: str) -> None:
    properties = parameters.get("properties")
    shape = properties.get(key) if isinstance(properties, dict) else None
    if not isinstance(shape, dict):
        raise ToolInvalid(place, f"{key!r} is not a parameter")
    kinds = shape.get("type")
    if not NUMBERS & set(kinds if isinstance(kinds, list) else [kinds]):
        raise ToolInvalid(place, f"{key!r} is no number, so it has no range")
