"""What settings and declarations call by a name that nothing here has: for the daemon's faults and for `check` alike."""

from collections.abc import Collection, Mapping

from rea_edge.config import Settings
from rea_edge.daemon.gates import rule_faults
from rea_edge.records import Tool
from rea_edge.rules import criterion_of
from rea_edge.toolhost.probes import wrong_in


def misnamed(settings: Settings, tools: Mapping[str, Tool]) -> list[str]:
    """All of it, each with the place where it stands."""
    return [*misnamed_tools(settings, tools), *rule_faults(settings.gates, tools)]


def misnamed_tools(settings: Settings, tools: Mapping[str, Tool], withheld: Collection[str] = ()) -> list[str]:
    """That of `[access]` and `[task.NAME]`: it closes nothing to anybody, or offers nothing, where it should. `withheld`
    are tools that may come."""
    callers, known = sorted(settings.access.callers), {*tools, *withheld}
    found = [f"access.callers.{name}: there is no such tool" for name in callers if name not in known]
    for kind, one in settings.task_types.items():
        found += [f"task.{kind}.tools: there is no tool {name!r}" for name in one.tools or () if name not in known]
        found += [
            f"task.{kind}.done_when: there is no tool {wanted.tool!r}"
            for wanted in one.done_when
            if wanted.tool not in known
        ]
        found += [
            f"task.{kind}.done_when[{place}]{wrong}"
            for place, wanted in enumerate(one.done_when)
            if wanted.tool in tools
            for wrong in wrong_in(criterion_of(wanted), tools[wanted.tool])
        ]
    return found
