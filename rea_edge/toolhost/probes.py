"""Whether the tools that declare a `verify` can be verified so: the tool they name reads, and takes and gives that.

Looked at once all files are loaded, by the daemon: no file knows the others.
"""

from collections.abc import Iterator, Mapping, Sequence

from rea_edge.device.topic import without_reaching
from rea_edge.errors import DecisionRejected
from rea_edge.parameters import PLACE, needed_in, shape_of, shapes_of
from rea_edge.records import Args, Criterion, Tool


def usable(tools: Sequence[Tool], root: str) -> tuple[tuple[Tool, ...], tuple[str, ...]]:
    """The tools that stay away from the root of the nodes' topics, and whose probe does, and what is wrong with each of
    the others."""
    apart, reaching = without_reaching(tools, root)
    good, wrong = without_wrong_probes(apart)
    return good, (*reaching, *wrong)


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
    yield from wrong_in(probe, read)
    for name in needed_in(read.parameters):
        if name not in probe.args:
            yield f".args: {read.name} needs {name!r}"


def wrong_in(asked: Criterion, tool: Tool) -> Iterator[str]:
    """What this tool cannot have been called with, or never gives; the same for criteria of tasks."""
    taken = shapes_of(tool.parameters)
    for name in asked.args:
        if name not in taken:
            yield f".args.{name}: {tool.name} has no such parameter; it has {', '.join(taken) or 'none'}"
    yield from _refused(asked.args, tool)
    if asked.path and tool.returns is not None and not _leads_somewhere(tool.returns, asked.path.split(".")):
        yield f".path: a result of {tool.name} has no {asked.path!r}"
    known = _values_at(tool.returns or {}, asked.path.split(".") if asked.path else [])
    if known and asked.op in ("==", "!=") and not _is_place(asked.value) and asked.value not in known:
        yield f": {tool.name} never gives {asked.value!r} there; it gives {', '.join(map(str, known))}"


def _refused(args: Args, tool: Tool) -> Iterator[str]:
    """Values that this tool would refuse, each by itself."""
    taken = shapes_of(tool.parameters)
    literal = {name: value for name, value in args.items() if name in taken and not _is_place(value)}
    if not literal:
        return
    from rea_edge import schema  # a node whose tools ask for nothing does without

    for name, value in literal.items():
        alone = {**tool.parameters, "properties": {name: taken[name]}, "required": []}
        try:
            valid = schema.compile(alone, place="").check({name: value})
        except DecisionRejected as exc:
            yield f".args.{name}: {tool.name} does not take {value!r}: {exc.message}"
        else:
            if valid != {name: value}:
                yield f".args.{name}: {tool.name} takes that as {valid!r}: write it so"


def _is_place(value: object) -> bool:
    return isinstance(value, str) and PLACE.fullmatch(value) is not None


def _values_at(shape: Args, keys: Sequence[str]) -> Sequence[object]:
    """The values that a schema lists at a path; none where it does not."""
    for key in keys:
        shape = shape_of(shape, key)
    listed = shape.get("enum")
    return listed if isinstance(listed, list) else ()


def _leads_somewhere(shape: Args, keys: Sequence[str]) -> bool:
    """False only where the schema itself rules the path out."""
    properties = shape.get("properties")
    if not keys or not isinstance(properties, dict):
        return not keys or shape.get("type") not in ("number", "integer", "string", "boolean", "null")
    inner = properties.get(keys[0])
    if inner is None:
        return bool(shape.get("additionalProperties"))
    return not isinstance(inner, dict) or _leads_somewhere(inner, keys[1:])
