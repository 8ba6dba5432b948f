"""Whether the tools that declare a `verify` can be verified so: the tool they name reads, and takes and gives that.

Looked at once all files are loaded, by the daemon: no file knows the others.
"""

from collections.abc import Iterator, Mapping, Sequence

from rea_edge.parameters import needed_in, shapes_of
from rea_edge.records import Args, Criterion, Tool


def without_wrong_probes(tools: Sequence[Tool]) -> tuple[tuple[Tool, ...], tuple[str, ...]]:
    """The tools whose probe can be asked, or that have none, and what is wrong with each of the others."""
    by_name = {tool.name: tool for tool in tools}
    good: list[Tool] = []
    faults: list[str] = []
    for tool in tools:
        wrong = "" if tool.verify is None else next(wrong_with(tool.verify, by_name), "")
        if wrong:
            faults.append(f"{tool.source}: {tool.name}.verify{wrong}")
        else:
            good.append(tool)
    return tuple(good), tuple(faults)


def wrong_with(probe: Criterion, tools: Mapping[str, Tool]) -> Iterator[str]:
    """Why this read cannot be asked so, each with the key it is about in front."""
    read = tools.get(probe.tool)
    if read is None or read.effect != "read":
        why = "there is no such tool" if read is None else f"its effect is {read.effect}, not read"
        yield f".tool: {probe.tool!r} must be a tool that reads; {why}"
        return
    if read.rule is not None and read.rule.cost:
        yield f".tool: {probe.tool!r} costs {read.rule.cost:g}, and what is read so must be free"
    taken = shapes_of(read.parameters)
    for name in probe.args:
        if name not in taken:
            yield f".args.{name}: {read.name} has no such parameter; it has {', '.join(taken) or 'none'}"
    for name in needed_in(read.parameters):
        if name not in probe.args:
            yield f".args: {read.name} needs {name!r}"
    if probe.path and read.returns is not None and not _leads_somewhere(read.returns, probe.path.split(".")):
        yield f".path: a result of {read.name} has no {probe.path!r}"


def _leads_somewhere(shape: Args, keys: Sequence[str]) -> bool:
    """False only where the schema itself rules the path out."""
    properties = shape.get("properties")
    if not keys or not isinstance(properties, dict):
        return not keys or shape.get("type") not in ("number", "integer", "string", "boolean", "null")
    inner = properties.get(keys[0])
    if inner is None:
        return bool(shape.get("additionalProperties"))
    return not isinstance(inner, dict) or _leads_somewhere(inner, keys[1:])
