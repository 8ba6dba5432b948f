"""What the author of a Python tool imports: the decorator `tool`, `request_id()` and `secret(name)`.

Holds the declaration and those checks that need no schema; it runs nothing and must import of ours only `errors`,
so that a tool file can be imported, called and tested like any other. A declared function is returned unchanged.

    @tool(effect="once", timeout_s=5.0, examples=[("Open the valve halfway.", {"percent": 50}), ("Sing.", "cannot")])
    def open_valve(percent: Annotated[int, Meta(ge=0, le=100)]) -> dict[str, int]:
        '''Open the boiler valve to a percentage.'''

Each call runs in a process of its own, forked after the file was loaded: open devices inside the function
(descriptors opened while the file loads are closed there), start no threads while the file loads, and keep
nothing in globals. `print` goes to the log. Raise any exception to say that it failed; its text reaches the model.
Settings come as environment variables named `REA_TOOL_*`; `REA_STATE_DIR` is a folder that outlives restarts.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from types import CodeType, FunctionType
from typing import Literal, ParamSpec, TypeVar

from msgspec import Struct

from rea_edge.errors import ToolInvalid
from rea_edge.keys import TAKES, expected

P = ParamSpec("P")
R = TypeVar("R")

EFFECTS = ("read", "idempotent", "once")
BASE_KEYS = ("effect", "timeout_s", "retries", "device", "examples")
MORE_KEYS = (
    "ranges", "rate", "dwell_s", "hours", "requires", "only_if", "fields", "redact", "summary", "sandbox", "verify",
    "confirm",
    "needs",
    "cost",
    "p95_s",
    "outward",
)  # fmt: skip
KEYS = (*BASE_KEYS, *MORE_KEYS)
LONGEST_S = 3600.0
MOST_RETRIES = 5
NAME = re.compile(r"[a-z][a-z0-9_]{0,47}")
PARAMETER_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,47}")
CO_VARARGS, CO_VARKEYWORDS, CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR = 0x04, 0x08, 0x20, 0x80, 0x200


class Declared(Struct, frozen=True):
    """A function as its author declared it, before its annotations are read; `place` is `file:line`."""

    function: Callable[..., object]
    name: str
    description: str
    place: str
    effect: str
    timeout_s: float
    retries: int
    device: str
    examples: tuple[tuple[str, object], ...]
    more: Mapping[str, object] = {}


# Filled while a tool file loads and read right after it by the tool host; nothing else looks at it.
declared: list[Declared] = []
# The secrets of the call under way, in its own process and nowhere else. A test of a tool may fill it.
given: dict[str, str] = {}


def tool(
    bare: object = None,
    /,
    *,
    effect: Literal["read", "idempotent", "once"] | None = None,
    timeout_s: float = 10.0,
    retries: int = 0,
    device: str = "",
    examples: Sequence[tuple[str, Mapping[str, object] | str]] = (),
    ranges: Mapping[str, tuple[float, float]] | None = None,
    rate: str | None = None,
    dwell_s: float | None = None,
    hours: str | None = None,
    requires: Sequence[str] | None = None,
    only_if: Sequence[Mapping[str, object]] | None = None,
    fields: Sequence[str] | None = None,
    redact: Sequence[str] | None = None,
    summary: bool | None = None,
    sandbox: Mapping[str, object] | None = None,
    verify: Mapping[str, object] | None = None,
    confirm: Literal["never", "task", "always"] | None = None,
    needs: Sequence[str] | None = None,
    cost: float | None = None,
    p95_s: float | None = None,
    outward: bool | None = None,
    **unsupported: object,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Declare a function as a device tool.

    `effect`: `read` changes nothing, `idempotent` may run again with the same arguments, `once` must not.
    `timeout_s`: most seconds one attempt may take. `retries`: further attempts after a failure (never for `once`).
    `device`: calls on one device exclude each other, `read` shares; default: all tools of the file.
    `examples`: pairs of what a person says and the arguments, a command line, or `cannot`.
    Bounds at the gate, which the node's owner may only tighten: `ranges` {parameter: (least, most)}, `rate` "6/minute",
    `dwell_s` least seconds between two starts, `hours` "07:00-22:00", `requires` tools that must have given a value in
    the same task, `only_if` [{"tool", "args", "path", "op", "value"}] reads whose fresh value lets it run.
    `outward=True`: it tells or does something beyond the board (a mail, a web request, another device), so that a model
    which has read free text needs a person's yes for it, as for `once`.
    `confirm="always"`: each call waits for a person's yes, `"task"`: those that a model asks for; the node says whose.
    Of the result: `fields` may be seen (paths; default all), `redact=("addresses",)` hides IP, MAC and mail addresses,
    `summary=True` gives more than 2 KiB as counts, ends and figures.
    `sandbox={"read": ["/sys/class/hwmon"], "write": [], "network": False}`: it sees nothing else of the file system than
    this and what every program needs, and no TCP; a path may begin with `$REA_STATE_DIR`.
    `verify={"tool": "read_valve", "args": {"name": "{name}"}, "path": "percent", "equals": "{percent}"}`: the read, and
    its value (or `op` and `value`), that say that a call took effect whose end nobody saw; `"{name}"` is its argument.
    `cost`: of one start, in the unit that the node's operator has chosen; it counts against `[limits] cost`.
    `p95_s`: seconds that 95 % of its calls should take at most (default 2); where they take longer the status says so.
    `needs=["weather_key"]`: secrets of the node (`[secrets] weather_key_file`) that `secret("weather_key")` gives it.
    Raises ToolInvalid, which the tool host reports as a fault of the file.
    """

    values = (
        *(ranges, rate, dwell_s, hours, requires, only_if, fields, redact, summary, sandbox, verify, confirm),
        needs,
        cost,
        p95_s,
        outward,
    )
    more = {key: value for key, value in zip(MORE_KEYS, values, strict=True) if value is not None}

    def declare(function: Callable[P, R]) -> Callable[P, R]:
        if not isinstance(function, FunctionType):
            raise ToolInvalid(repr(function), "only a plain function can be a tool")
        name, place = function.__name__, place_of(function)
        check_keys(f"{place}: {name}", effect, timeout_s, retries, device, unsupported, KEYS)
        check_function(place, function)
        pairs = tuple(checked_pair(f"{place}: {name}.examples", pair) for pair in listed(place, name, examples))
        description = first_line(place, function.__doc__)
        declared.append(
            Declared(function, name, description, place, str(effect), float(timeout_s), retries, device, pairs, more)
        )
        return function

    if bare is not None:
        place = place_of(bare) if isinstance(bare, FunctionType) else repr(bare)
        raise ToolInvalid(place, f'write @tool(effect="read"), with brackets: effect is {TAKES["effect"]}')
    return declare


def place_of(function: FunctionType) -> str:
    return f"{function.__code__.co_filename}:{function.__code__.co_firstlineno}"


def listed(place: str, name: str, examples: object) -> Sequence[object]:
    if isinstance(examples, str) or not isinstance(examples, Sequence):
        raise ToolInvalid(f"{place}: {name}.examples", expected("examples", examples))
    return examples


def request_id() -> str:
    """The id of the call under way (also `REA_REQUEST_ID`), unique over nodes; empty outside a call."""
    return os.environ.get("REA_REQUEST_ID", "")


def secret(name: str) -> str:
    """A secret of the node, that this tool's `needs` names. It is in this process's memory and nowhere else: give it to
    nobody by argument or environment. What the tool prints, returns or raises is searched for it, and it is hidden.
    """
    if name not in given:
        raise LookupError(f"no secret {name!r} was given to this call: the tool must declare needs=[{name!r}]")
    return given[name]


def check_keys(
    place: str,
    effect: object,
    timeout_s: object,
    retries: object,
    device: object,
    unsupported: Mapping[str, object],
    known: Sequence[str],
) -> None:
    """Refuse what a declaration may not say; the same for Python and command tools. `place` names file and tool, `known`
    are the keys of its kind."""
    for key in unsupported:
        raise ToolInvalid(f"{place}.{key}", f"{key!r} is not a key of a tool; the keys are {', '.join(known)}")
    if effect not in EFFECTS:
        raise ToolInvalid(f"{place}.effect", expected("effect", effect))
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, int | float) or not 0 < timeout_s <= LONGEST_S:
        raise ToolInvalid(f"{place}.timeout_s", expected("timeout_s", timeout_s))
    if isinstance(retries, bool) or not isinstance(retries, int) or not 0 <= retries <= MOST_RETRIES:
        raise ToolInvalid(f"{place}.retries", expected("retries", retries))
    if retries and effect == "once":
        raise ToolInvalid(f"{place}.retries", "a tool with effect 'once' is never tried again: leave retries out")
    if not isinstance(device, str):
        raise ToolInvalid(f"{place}.device", expected("device", device))


def check_function(place: str, function: FunctionType) -> None:
    code: CodeType = function.__code__
    if code.co_flags & (CO_COROUTINE | CO_ASYNC_GENERATOR):
        raise ToolInvalid(place, f"{function.__name__} is async; a tool is a plain function")
    if code.co_flags & CO_GENERATOR:
        raise ToolInvalid(place, f"{function.__name__} is a generator; a tool returns one value")
    if code.co_flags & (CO_VARARGS | CO_VARKEYWORDS) or code.co_posonlyargcount:
        raise ToolInvalid(place, f"{function.__name__} takes *args, **kwargs or positional-only arguments; name each")
    if not NAME.fullmatch(function.__name__):
        raise ToolInvalid(place, f"{function.__name__!r} is not a tool name: {NAME.pattern}")
    hints = function.__annotations__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    for name in names:
        if name not in hints:
            raise ToolInvalid(place, f"parameter {name!r} of {function.__name__} has no annotation")
        if not PARAMETER_NAME.fullmatch(name):
            raise ToolInvalid(place, f"{name!r} is not a parameter name: {PARAMETER_NAME.pattern}")
    if "return" not in hints:
        raise ToolInvalid(place, f"{function.__name__} has no annotation of what it returns")


def checked_pair(place: str, pair: object) -> tuple[str, object]:
    match pair:
        case (str() as say, (str() | Mapping()) as answer):
            return say, dict(answer) if isinstance(answer, Mapping) else answer
    raise ToolInvalid(place, expected("examples", pair))


def first_line(place: str, text: str | None) -> str:
    line = (text or "").strip().partition("\n")[0].strip()
    if not line:
        raise ToolInvalid(place, "there is no docstring or description; its first line is what the model reads")
    return line
