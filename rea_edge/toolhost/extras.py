"""What a declaration may say beyond its call: its bounds at the gate, and what of its result may be seen.

Imported in short-lived children only. Raises ToolInvalid with file, tool and key.
"""

import re
from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from rea_edge.condition import is_path
from rea_edge.errors import ToolInvalid
from rea_edge.keys import TAKES
from rea_edge.parameters import PLACE, needed_in, shape_of, shapes_of
from rea_edge.records import Args, Redaction, Rule, Sandbox, SecretName, Tool
from rea_edge.rules import Gate, RuleInvalid, Wanted, check_pairs, check_wanted, criterion_of, rule_of
from rea_edge.takes import plainly, remedy
from rea_edge.tool import LONGEST_S
from rea_edge.toolhost.confine import STATE

NUMBERS = frozenset({"integer", "number"})
MOST_SECRETS = 8


class Extras(Gate, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of a declaration that are the same for every kind of tool."""

    fields: tuple[str, ...] = ()
    # paths into the result that may be seen, such as "disks.name"; lists are looked through
    redact: tuple[Redaction, ...] = ()
    # addresses: IP, MAC and mail addresses are hidden; credentials always are
    verify: Wanted | None = None
    # a read that tells whether a call took effect, whose end nobody saw: {tool, args, path, equals} or op and value;
    # in args and value "{name}" stands for the call's argument
    summary: bool = False
    # a result of more than 2 KiB is given as its counts, ends and figures
    needs: Annotated[tuple[SecretName, ...], Meta(max_length=MOST_SECRETS)] = ()
    # secrets that its calls are given, by the names of [secrets]; nobody else's are
    p95_s: Annotated[float, Meta(gt=0, le=LONGEST_S)] = 2.0
    # seconds that 95 % of its calls should take at most; beyond, the status says so
    outward: bool = False
    # what it does leaves the board: a model that has read free text needs a person's yes for it
    sandbox: Sandbox | None = None
    # paths to read and to write, beside what every program needs; network = true allows TCP


def with_extras(tool: Tool, place: str, said: Mapping[str, object]) -> Tool:
    """The tool with what its declaration says in these keys."""
    try:
        check_pairs(said.get("ranges"))
        extras = msgspec.convert(dict(said), Extras)
        rule = rule_of(extras)
        if extras.verify is not None:
            check_wanted(extras.verify, "verify")
    except RuleInvalid as exc:
        raise ToolInvalid(f"{place}.{exc.key}", str(exc)) from exc
    except msgspec.ValidationError as exc:
        sentence, _, path = str(exc).partition(" - at `$")
        key = re.split(r"[.\[]", path.strip("`."))[0]
        words = plainly(sentence) + remedy(str(exc), Extras)
        raise ToolInvalid(
            f"{place}{path.rstrip('`')}", f"{words}; {key} takes {TAKES.get(key, 'something else')}"
        ) from exc
    for path in extras.fields:
        if not is_path(path):
            raise ToolInvalid(f"{place}.fields", f"{path!r} is no path into a result, such as value or disks.free")
    for path in (*extras.sandbox.read, *extras.sandbox.write) if extras.sandbox else ():
        if not path.startswith(("/", STATE)):
            raise ToolInvalid(f"{place}.sandbox", f"{path!r} is no absolute path, nor below {STATE}")
    for key in extras.ranges:
        check_number(f"{place}.ranges.{key}", tool.parameters, key)
    if extras.cost and tool.retries:
        raise ToolInvalid(f"{place}.retries", "a tool that costs is never tried again by itself: leave retries out")
    if extras.verify is not None:
        check_probe(f"{place}.verify", tool, extras.verify)
    return msgspec.structs.replace(
        tool,
        verify=None if extras.verify is None else criterion_of(extras.verify),
        fields=extras.fields,
        redact=extras.redact,
        summary=extras.summary,
        outward=extras.outward,
        sandbox=extras.sandbox,
        needs=extras.needs,
        p95_s=extras.p95_s,
        rule=None if rule == Rule() else rule,
    )


def check_number(place: str, parameters: Args, key: str) -> None:
    if key not in shapes_of(parameters):
        known = ", ".join(shapes_of(parameters)) or "none"
        raise ToolInvalid(place, f"{key!r} is not a parameter; there are {known}")
    kinds = shape_of(parameters, key).get("type")
    if not NUMBERS & set(kinds if isinstance(kinds, list) else [kinds]):
        raise ToolInvalid(place, f"{key!r} is no number, so it has no range")


def check_probe(place: str, tool: Tool, probe: Wanted) -> None:
    """Refuse what could not be filled in. Whether the tool that is named exists is not known here."""
    if tool.effect == "read":
        raise ToolInvalid(place, "a tool that reads has no effect to verify")
    expected = ("value", probe.value) if probe.equals is None else ("equals", probe.equals)
    for key, value in (*((f"args.{name}", value) for name, value in probe.args.items()), expected):
        for name in PLACE.findall(value) if isinstance(value, str) else ():
            if value != f"{{{name}}}":
                raise ToolInvalid(f"{place}.{key}", f"{{{name}}} stands for a whole value, and alone: {value!r}")
            check_filled(f"{place}.{key}", tool.parameters, name)


def check_filled(place: str, parameters: Args, name: str) -> None:
    if name not in shapes_of(parameters):
        raise ToolInvalid(place, f"{{{name}}} is not a parameter")
    if name not in needed_in(parameters) and "default" not in shape_of(parameters, name):
        raise ToolInvalid(place, f"{{{name}}} is neither required nor has it a default")
