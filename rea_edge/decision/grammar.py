"""The GBNF grammar of the command protocol, generated from what tools declare.

Holds no reading (see `command`) and knows no server: the text is what llama.cpp takes as `grammar`. The same tools
give the same text. Whatever the grammar allows is a line that `command.read_line` can read.
"""

from collections.abc import Iterator, Sequence

from rea_edge.bounds import Bounds
from rea_edge.condition import is_path
from rea_edge.decision.command import RESERVED, bare_key
from rea_edge.parameters import needed_in, shapes_of
from rea_edge.records import Args, Offer, Tool
from rea_edge.telling import written

# A bounded integer with at most this many values is listed value by value: a tiny model then cannot miss the range.
LISTED_INTEGERS = 101
LISTED_FORMS = 8  # more integers than this are shown to the model as a range
PATH_DEPTH = 4

_COMMON = r"""
number ::= "-"? ("0" | [1-9] [0-9]{0,8}) ("." [0-9]{1,4})?
integer ::= "-"? ("0" | [1-9] [0-9]{0,8})
string ::= [A-Za-z_] [A-Za-z0-9_-]* | quoted
quoted ::= "\"" ([^"\\\x00-\x1f\x7f-\x9f] | "\\" ["\\/nrt])* "\""
any ::= number | string | "true" | "false"
order ::= " > " | " >= " | " < " | " <= " | " == " | " != "
equal ::= " == " | " != "
key ::= [A-Za-z0-9_-]{1,12}
"""


def grammar(tools: Sequence[Tool | Offer], commands: int, bounds: Bounds | None = None) -> str:
    """Give the grammar of one answer: a call, a guard where one tool reads and one acts, `cannot`, perhaps `done`.

    `commands` is how many lines a run may run; `done` is offered only where it is over 1. A tool whose name is a word
    of the language is left out. Within `bounds` acts and guards are there as far as the goal speaks for them.
    """
    named = [(f"t{at}", tool) for at, tool in enumerate(tools) if tool.name not in RESERVED]
    reads = [(rule, tool) for rule, tool in named if tool.effect == "read"]
    acts = [rule for rule, tool in named if tool.effect != "read"]
    plain, guarded = bounds is None or bounds.plain, bounds is None or bool(bounds.tests)
    alone = bounds is None or bounds.reads
    lines = [rule for rule, tool in named if (alone if tool.effect == "read" else plain)]
    rules = [f"{rule} ::= {_call(tool)}" for rule, tool in named]
    if reads and acts and guarded:
        lines.append('"if " test " then " act')
        compared = [(rule, _test(tool) if bounds is None else _bounded_test(tool, bounds)) for rule, tool in reads]
        rules.append("test ::= " + " | ".join(f'{rule} " -> " ({test})' for rule, test in compared if test))
        rules.append("act ::= " + " | ".join(acts))
    lines += ['"cannot"', '"done"'] if commands > 1 else ['"cannot"']
    return "root ::= " + " | ".join(lines) + "\n" + "\n".join(rules) + _COMMON


def grammar_of(lines: Sequence[str]) -> str:
    """Give the grammar of an answer that is one of these lines."""
    return "root ::= " + " | ".join(_literal(line) for line in lines)


def tests(tool: Tool | Offer, bounds: Bounds) -> list[tuple[str, str, int | float | str]]:
    """The comparisons (path, operator, operand) that the bounds leave of a tool's result."""
    typed = dict(paths(tool.returns))
    return [
        (path, op, value)
        for path in bounds.paths.get(tool.name, ())
        for op, value in bounds.tests
        if path not in typed or takes(typed[path], value)
    ]


def takes(shape: Args, value: int | float | str) -> bool:
    """Whether what is typed so may be compared with this value."""
    few = shape.get("enum")
    return _is_text(shape) == isinstance(value, str) and (not isinstance(few, list) or value in few)


def call_forms(tool: Tool | Offer) -> str:
    """Show the form of a tool's call to the model: "set_fan on=true|false"."""
    return " ".join([tool.name, *(f"[{form}]" if optional else form for form, optional in _forms(tool.parameters))])


def paths(returns: Args | None) -> list[tuple[str, Args]]:
    """List the paths of the numbers and texts in a typed result, each with its schema, in declared order."""
    return [(path, shape) for path, shape in _leaves(returns or {}, "", 0) if is_path(path)]


def _call(tool: Tool | Offer) -> str:
    parts = [_literal(tool.name)]
    for key, shape, optional, bare in arguments(tool.parameters):
        prefix = " " if bare else f" {written(key)}="
        argument = f"{_literal(prefix)} {_value(shape)}"
        parts.append(f"({argument})?" if optional else argument)
    return " ".join(parts)


def arguments(parameters: Args) -> Iterator[tuple[str, Args, bool, bool]]:
    """Give key, schema, optional and bare of each parameter that a line can say; the bare one comes first."""
    shapes, bare = shapes_of(parameters), bare_key(parameters)
    for key in sorted(shapes, key=lambda key: key != bare):
        shape = _some(shapes[key])
        optional = key not in needed_in(parameters)
        nested = shape.get("type") in ("array", "object")
        # An optional list or object is left out: a model small enough for this protocol does not write it.
        if not (optional and nested):
            yield key, shape, optional, key == bare


def _some(shape: object) -> Args:
    """The schema of a value that is there: `X or null` is asked for as X, since null says nothing in a line."""
    if not isinstance(shape, dict):
        return {}
    branches, names = shape.get("anyOf"), shape.get("type")
    if isinstance(branches, list):
        real = [branch for branch in branches if not (isinstance(branch, dict) and branch.get("type") == "null")]
        return _some(real[0]) if len(real) == 1 else shape
    if isinstance(names, list):
        real = [name for name in names if name != "null"]
        return {**shape, "type": real[0]} if len(real) == 1 else shape
    return shape


def _value(shape: Args) -> str:
    few = choices(shape)
    if few is not None:
        return "(" + " | ".join(_literal(written(member)) for member in few) + ")"
    match shape.get("type"):
        case "integer" | "number" as name:
            return name
        case "string":
            return "string"
        case "array" | "object":
            return "quoted"
    return "any"


def choices(shape: object) -> list[object] | None:
    """List the values a schema allows where they are few, else None."""
    match shape:
        case {"enum": list(members)}:
            return members
        case {"const": member}:
            return [member]
        case {"anyOf": list(branches)}:
            lists = [choices(branch) for branch in branches]
            return (
                [member for some in lists for member in some or ()] if all(some is not None for some in lists) else None
            )
        case {"type": "boolean"}:
            return [True, False]
        case {"type": "null"}:
            return [None]
        case {"type": "number", "minimum": low, "maximum": high} if low == high:
            return [low]
        case {"type": "integer", "minimum": int(low), "maximum": int(high)} if 0 <= high - low < LISTED_INTEGERS:
            return list(range(low, high + 1))
    return None


def _bounded_test(tool: Tool | Offer, bounds: Bounds) -> str:
    return " | ".join(_literal(f"{path} {op} {written(value)}") for path, op, value in tests(tool, bounds))


def _is_text(shape: Args) -> bool:
    return shape.get("type") == "string" or "enum" in shape


def _test(tool: Tool | Offer) -> str:
    tests = [f"{_literal(path)} {_comparison(shape)}" for path, shape in paths(tool.returns)]
    if tests:
        return "(" + " | ".join(tests) + ")"
    return '(key ("." key){0,2} (order number | equal string))'


def _comparison(shape: Args) -> str:
    return f"equal {_value(shape)}" if _is_text(shape) else "order number"


def _leaves(shape: Args, prefix: str, depth: int) -> Iterator[tuple[str, Args]]:
    match shape:
        case {"properties": dict(shapes)} if depth < PATH_DEPTH:
            for key, inner in shapes.items():
                if "." not in key:
                    yield from _leaves(_some(inner), f"{prefix}.{key}" if prefix else key, depth + 1)
        case {"type": "number" | "integer" | "string"} | {"enum": _} if prefix:
            yield prefix, shape


def _forms(parameters: Args) -> Iterator[tuple[str, bool]]:
    for key, shape, optional, bare in arguments(parameters):
        few = choices(shape)
        if few is None:
            said = f"<{shape.get('type', 'value')}>"
        elif len(few) > LISTED_FORMS and all(isinstance(member, int) for member in few):
            said = f"{few[0]}..{few[-1]}"
        else:
            said = "|".join(written(member) for member in few)
        yield (said if bare else f"{written(key)}={said}"), optional


def _literal(text: str) -> str:
    """Quote a text as a GBNF literal; what is outside printable ASCII stays as UTF-8, controls become \\x."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(f"\\x{ord(char):02x}" if ord(char) < 32 else char for char in escaped) + '"'
