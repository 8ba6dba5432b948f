"""Files that do not load, and what the ones that do declare. One host loads them all: a fault must not spread."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rea_edge.errors import ToolInvalid
from rea_edge.records import Example, Tool
from rea_edge.tool import KEYS
from rea_edge.toolhost.client import ToolHost
from rea_edge.toolhost.command import BadArgs, argument_list
from rea_edge.toolhost.tables import from_toml
from tests.toolhost.rig import HEAD, Rig, comes_true, name_of, started, value

LINES = HEAD.count("\n")


def declared(
    decorator: str, signature: str = "def t() -> None:", docstring: str = "'A tool.'", before: str = ""
) -> str:
    return f"{before}\n@tool({decorator})\n{signature}\n    {docstring}\n"


# name, source, the line that is at fault (counted in the source), what the fault says
BAD_PYTHON = [
    ("async", declared("effect='read'", "async def t() -> None:"), 2, "async"),
    ("generator", declared("effect='read'", docstring="'A tool.'; yield 1"), 2, "generator"),
    ("star_args", declared("effect='read'", "def t(*args: int) -> None:"), 2, "*args"),
    ("star_kwargs", declared("effect='read'", "def t(**kwargs: int) -> None:"), 2, "**kwargs"),
    ("positional", declared("effect='read'", "def t(a: int, /) -> None:"), 2, "positional-only"),
    ("no_annotation", declared("effect='read'", "def t(a) -> None:"), 2, "'a' of t has no annotation"),
    ("no_return", declared("effect='read'", "def t():"), 2, "no annotation of what it returns"),
    ("no_docstring", declared("effect='read'", docstring="pass"), 2, "no docstring"),
    ("blank_docstring", declared("effect='read'", docstring="'  '"), 2, "no docstring"),
    ("bad_effect", declared("effect='write'"), 2, "read, idempotent, once"),
    ("no_effect", declared(""), 2, "t.effect: expected one of read, idempotent, once, got None"),
    ("bare", "@tool\ndef t() -> None:\n    'A tool.'\n", 1, 'write @tool(effect="read"), with brackets'),
    ("bare_lambda", "tool(print)", 1, 'write @tool(effect="read"), with brackets'),
    (
        "bad_key",
        declared("effect='read', colour=1"),
        2,
        f"'colour' is not a key of a tool; the keys are {', '.join(KEYS)}",
    ),
    (
        "table_key",
        declared("effect='once', publish=1"),
        2,
        "t.publish: 'publish' is not a key of a tool; the keys are effect",
    ),
    ("retries_dear", declared("effect='read', retries=1, cost=1"), 2, "that costs is never tried again"),
    ("retries_once", declared("effect='once', retries=1"), 2, "never tried again"),
    ("many_retries", declared("effect='read', retries=6"), 2, "t.retries: expected a whole number from 0 to 5, got 6"),
    (
        "no_time",
        declared("effect='read', timeout_s=0"),
        2,
        "t.timeout_s: expected seconds, more than 0 and at most 3600, got 0",
    ),
    ("bad_name", declared("effect='read'", "def T() -> None:"), 2, "not a tool name"),
    ("lambda", "tool(effect='read')(lambda: 1)", 1, "not a tool name"),
    ("builtin", "tool(effect='read')(len)", 1, "only a plain function"),
    ("bytes", declared("effect='read'", "def t(a: bytes) -> None:"), 2, "t.a: bytes are no JSON value: take a str"),
    ("bytes_inside", declared("effect='read'", "def t(a: dict[str, list[bytes]]) -> None:"), 2, "t.a: bytes are no"),
    ("bytes_back", declared("effect='read'", "def t() -> bytes:"), 2, "t.returns: bytes are no JSON value"),
    ("a_set", declared("effect='read'", "def t(a: set[int]) -> None:"), 2, "t.a: set[int]: "),
    ("no_schema", declared("effect='read'", "def t(a: Exception) -> None:"), 2, "t.a: Exception is no JSON value"),
    ("no_list", declared("effect='read', examples='Go.'"), 2, "t.examples: expected pairs of what a person says"),
    ("no_such_type", declared("effect='read'", "def t(a: 'Nowhere') -> None:"), 2, "Nowhere"),
    ("bad_example", declared("effect='read', examples=[('Go.', {'speed': 1})]"), 2, "speed"),
    ("bad_value", declared("effect='read', examples=[('Go.', {'a': 'x'})]", "def t(a: int) -> None:"), 2, "an integer"),
    ("bad_pair", declared("effect='read', examples=['Go.']"), 2, "'Go.'"),
    ("syntax", "\n\ndef (:\n", 3, "SyntaxError"),
    ("raises", "\ndef f():\n    1/0\n\nf()\n", 3, "ZeroDivisionError"),
    ("exits", "sys.exit(3)\n", 1, "SystemExit"),
    ("twice", declared("effect='read'") + declared("effect='read'"), 6, "declared already"),
    ("hangs", "\ntime.sleep(60)\n", 2, "did not load in 1 s"),
    ("spins", "\n\nwhile True:\n    pass\n", 3, "did not load in 1 s"),
]
# These cannot say on which line it was.
BAD_FILES = [
    ("stubborn.py", "while True:\n    try:\n        time.sleep(60)\n    except BaseException: pass\n", "timeout"),
    ("crashes.py", "import ctypes\nctypes.string_at(0)\n", "crashed"),
    ("leaves.py", "os._exit(0)\n", "crashed"),
    ("floods.py", "while True:\n    print('x' * 1000)\n", "output"),
    ("eats.py", "x = bytearray(1 << 30)\n", "MemoryError"),
    ("threads.py", "import threading\nthreading.Thread(target=time.sleep, args=(60,)).start()\n", "a thread"),
    ("kind.txt", "", "neither a .py nor a .toml file"),
    ("first.py", declared("effect='read'", "def doubled() -> None:"), "second.py too: rename one of them"),
]  # fmt: skip
GOOD = {
    "second.py": declared("effect='read'", "def doubled() -> None:"),
    "good.py": """from __future__ import annotations
from typing import Annotated, Literal, NotRequired, TypedDict
from msgspec import Meta

class Place(TypedDict):
    title: str
    floor: NotRequired[int]

subprocess.Popen(["sleep", "60"])
print("loading good.py")

@tool(effect="idempotent", timeout_s=2, retries=3, device="valve", examples=[
    ("Open the valve halfway.", {"percent": 50}), ("Open it.", "open_valve 100"), ("Open the gate.", "cannot")])
def open_valve(
    percent: Annotated[int, Meta(ge=0, le=100, description="of full flow")],
    name: Annotated[str, Meta(min_length=1, max_length=8, pattern="^[a-z]+$")] = "main",
    *,
    speed: Annotated[float, Meta(gt=0, lt=1)] | None = None,
    where: Place | None = None,
    tags: Annotated[list[Literal["a", "b"]], Meta(max_length=2)] = [],
) -> dict[str, int]:
    '''Open the boiler valve to a percentage.

    This line is for readers of the source.
    '''
    return {"percent": percent, "tags": len(tags)}
""".replace("from __future__ import annotations\n", ""),
    "good.toml": """
[restart]
description = "Restart a service."
effect = "once"
timeout_s = 20
command = ["systemctl", "restart", "{unit}"]
examples = [["Restart the web server.", {unit = "nginx"}], ["Sing.", "cannot"]]
[restart.parameters]
type = "object"
required = ["unit"]
properties.unit = {enum = ["nginx", "ssh"], description = "which"}
""",
}


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    files = {f"{name}.py": source for name, source, _, _ in BAD_PYTHON}
    files |= {name: source for name, source, _ in BAD_FILES} | GOOD
    with started(tmp_path_factory.mktemp("loading"), files, load_s=1.0) as rig:
        yield rig


def fault_of(rig: Rig, file: str) -> str:
    (fault,) = [fault for fault in rig.loaded.faults if fault.startswith(f"{rig.state_dir}/{file}")]
    return fault


@pytest.mark.parametrize(
    ("name", "line", "says"), [(n, li, says) for n, _, li, says in BAD_PYTHON], ids=[b[0] for b in BAD_PYTHON]
)
def test_a_python_file_that_is_wrong_is_a_fault_naming_file_and_line(rig: Rig, name: str, line: int, says: str) -> None:
    fault = fault_of(rig, f"{name}.py:")
    assert fault.startswith(f"{rig.state_dir}/{name}.py:{LINES + line}: "), fault
    assert says in fault


@pytest.mark.parametrize(("file", "says"), [(file, says) for file, _, says in BAD_FILES], ids=[b[0] for b in BAD_FILES])
def test_a_file_that_misbehaves_while_it_loads_is_a_fault_naming_it(rig: Rig, file: str, says: str) -> None:
    assert says in fault_of(rig, file)


def test_the_other_files_load(rig: Rig) -> None:
    assert set(rig.tools) == {"open_valve", "restart"}
    assert len(rig.loaded.faults) == len(BAD_PYTHON) + len(BAD_FILES)
    assert value(rig.call("open_valve", percent=7, tags=["a"])) == {"percent": 7, "tags": 1}


def test_nothing_that_a_file_started_while_it_loaded_is_left(rig: Rig) -> None:
    assert rig.tools_left() == []
    assert comes_true(lambda: not rig.left())


def test_a_python_declaration_says_what_its_author_wrote(rig: Rig) -> None:
    place = {
        "type": "object",
        "properties": {"title": {"type": "string"}, "floor": {"type": "integer"}},
        "required": ["title"],
    }
    number = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
    assert rig.tools["open_valve"] == Tool(
        name="open_valve",
        description="Open the boiler valve to a percentage.",
        parameters={
            "type": "object",
            "properties": {
                "percent": {"type": "integer", "minimum": 0, "maximum": 100, "description": "of full flow"},
                "name": {"type": "string", "minLength": 1, "maxLength": 8, "pattern": "^[a-z]+$", "default": "main"},
                "speed": {"anyOf": [number, {"type": "null"}], "default": None},
                "where": {"anyOf": [place, {"type": "null"}], "default": None},
                "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 2, "default": []},
            },
            "required": ["percent"],
            "additionalProperties": False,
        },
        effect="idempotent",
        kind="python",
        timeout_s=2.0,
        retries=3,
        device="valve",
        examples=(
            Example(say="Open the valve halfway.", answer={"percent": 50}),
            Example(say="Open it.", answer="open_valve 100"),
            Example(say="Open the gate.", answer="cannot"),
        ),
        returns={"type": "object", "additionalProperties": {"type": "integer"}},
        source=f"{rig.state_dir}/good.py",
    )


def test_a_command_declaration_says_what_its_author_wrote(rig: Rig) -> None:
    assert rig.tools["restart"] == Tool(
        name="restart",
        description="Restart a service.",
        parameters={
            "type": "object",
            "properties": {"unit": {"enum": ["nginx", "ssh"], "description": "which"}},
            "required": ["unit"],
            "additionalProperties": False,
        },
        effect="once",
        kind="command",
        timeout_s=20.0,
        examples=(
            Example(say="Restart the web server.", answer={"unit": "nginx"}),
            Example(say="Sing.", answer="cannot"),
        ),
        command=("systemctl", "restart", "{unit}"),
        source=f"{rig.state_dir}/good.toml",
    )


def test_a_host_without_any_file_starts_and_has_no_tools(tmp_path: Path) -> None:
    with started(tmp_path, {}) as rig:
        assert rig.loaded.tools == () and rig.loaded.faults == ()
        assert rig.host.alive
        stranger = Tool(name="t", description="", parameters={}, effect="read")
        assert name_of(rig.host.call(stranger, {}, "r-1", 1.0)) == "unknown_tool"


@pytest.mark.parametrize("name", ["gone.py", "gone.toml", "gone"])
def test_a_path_that_leads_to_nothing_is_said_so(tmp_path: Path, name: str) -> None:
    host = ToolHost(tmp_path, (tmp_path / name,), memory_mib=48)
    try:
        assert host.start().faults == (f"{tmp_path / name}: there is no such file or folder",)
    finally:
        host.stop(0.0)


def test_a_file_that_ends_the_host_although_its_trial_went_well_is_left_out(tmp_path: Path) -> None:
    moody = "if open('/proc/self/oom_score_adj').read().strip() != '800':\n    os._exit(7)\n"
    files = {"moody.py": moody + declared("effect='read'"), "well.py": declared("effect='read'", "def well() -> None:")}
    with started(tmp_path, files) as rig:
        (fault,) = rig.loaded.faults
        assert fault.startswith(f"{tmp_path}/moody.py: ends the tool host")
        assert set(rig.tools) == {"well"}
        assert value(rig.call("well")) is None


# --- TOML tables, as values: no process needed

TABLE = '[t]\ndescription = "A tool."\neffect = "read"\n'
TEXT = 'parameters = {required = ["text"], properties = {text = {type = "string"}}}\n'

BAD_TOML = [
    ("[t]\n= 3\n", "f.toml:2", "Invalid"),
    ("t = 3\n", "f.toml: t", "is not a table"),
    ("[T]\n", "f.toml: T", "not a tool name"),
    ('[t]\neffect = "read"\ncommand = ["x"]\n', "f.toml: t.description", "its first line is what the model reads"),
    ('[t]\ndescription = "A tool."\ncommand = ["x"]\n', "f.toml: t.effect", "one of read, idempotent, once, got None"),
    (TABLE, "f.toml: t", "neither a command nor an MQTT tool"),
    (TABLE + "command = []\n", "f.toml: t.command", "the program first"),
    (TABLE + 'command = "ls -l"\n', "f.toml: t.command", "the program first"),
    (TABLE + 'command = ["{text}"]\n' + TEXT, "f.toml: t.command", "cannot be a parameter"),
    (TABLE + 'command = ["x", "{other}"]\n' + TEXT, "f.toml: t.command", "{other} is not a parameter"),
    (TABLE + 'command = ["x"]\n' + TEXT, "f.toml: t.command", "'text' is used nowhere"),
    (
        TABLE + 'command = ["x", "{a}"]\nparameters = {properties = {a = {type = "string"}}}\n',
        "f.toml: t.command",
        "neither required",
    ),
    (
        TABLE + 'command = ["x", "{a}"]\nparameters = {required = ["a"], properties = {a = {type = "array"}}}\n',
        "f.toml: t.command",
        "must be one of",
    ),
    (TABLE + 'command = ["x"]\nparameters = {required = ["a"]}\n', "f.toml: t.parameters", "required names 'a'"),
    (
        TABLE + 'command = ["x"]\nparameters = {type = "array"}\n',
        "f.toml: t.parameters",
        "expected a JSON Schema with type",
    ),
    (
        TABLE + 'command = ["x"]\nparameters = {properties = {a = {dependentRequired = []}}}\n',
        "f.toml: t.parameters",
        "`a.dependentRequired` is not supported",
    ),
    (
        TABLE + 'command = ["x"]\nparameters = {properties = {"a b" = {}}}\n',
        "f.toml: t.parameters",
        "not a parameter name",
    ),
    (TABLE + 'command = ["x"]\nreturns = {type = "text"}\n', "f.toml: t.returns", "`type` must be one of"),
    (TABLE + 'command = ["x"]\nexamples = [["Go.", {a = 1}]]\n', "f.toml: t.examples", "a"),
    (TABLE + 'command = ["x", "{text}"]\nexamples = [["Go.", {}]]\n' + TEXT, "f.toml: t.examples", "text"),
    (TABLE + 'command = ["x"]\nexamples = ["Go."]\n', "f.toml: t.examples", "'Go.'"),
    (TABLE + 'command = ["x"]\nverify = "y"\n', "f.toml: t.verify", "expected"),
    (TABLE + 'command = ["x"]\npublish = "y"\n', "f.toml: t.publish", "beside command"),
    (TABLE + 'command = ["x"]\nshell = true\n', "f.toml: t.shell", "'shell' is not a key"),
]


@pytest.mark.parametrize(
    ("text", "place", "says"), BAD_TOML, ids=[f"{place} {says}"[8:40] for _, place, says in BAD_TOML]
)
def test_a_table_that_is_wrong_is_refused_naming_file_tool_and_key(text: str, place: str, says: str) -> None:
    with pytest.raises(ToolInvalid) as caught:
        from_toml(text, "f.toml")
    assert caught.value.place == place
    assert says in str(caught.value)


FREE = {"type": "string"}


@pytest.mark.parametrize(
    ("command", "schema", "given", "parts"),
    [
        pytest.param(["x", "{a}"], FREE, "b", ["x", "b"], id="a value fills its place"),
        pytest.param(["x", "--unit={a}"], FREE, "-b", ["x", "--unit=-b"], id="inside an argument"),
        pytest.param(["x", "{a}:{a}"], FREE, "b c", ["x", "b c:b c"], id="twice in one, spaces kept"),
        pytest.param(["x", "{a}"], FREE, "-b", None, id="an option from a free text"),
        pytest.param(["x", "{a}{a}"], FREE, "-", None, id="a lone dash"),
        pytest.param(["x", "--", "{a}"], FREE, "-b", ["x", "--", "-b"], id="after the end of options"),
        pytest.param(["x", "{a}", "--"], FREE, "-b", None, id="before the end of options"),
        pytest.param(["x", "{a}"], {"enum": ["-b"]}, "-b", ["x", "-b"], id="an option that is enumerated"),
        pytest.param(
            ["x", "{a}"], {"type": "string", "pattern": "^-b"}, "-bc", ["x", "-bc"], id="an option by pattern"
        ),
        pytest.param(["x", "-n{a}"], FREE, "-b", ["x", "-n-b"], id="an option of the author's"),
        pytest.param(["x", "{a}"], {"type": "integer"}, -3, None, id="a negative number"),
        pytest.param(["x", "{a}"], {"type": "number"}, 2.5, ["x", "2.5"], id="a number"),
        pytest.param(["x", "{a}"], {"type": "boolean"}, True, ["x", "true"], id="a boolean"),
        pytest.param(["x", "{a}"], FREE, None, None, id="no value"),
        pytest.param(["x", "{a}"], FREE, ["b"], None, id="more than one value"),
        pytest.param(["x", "{a}"], FREE, "b\0", None, id="a NUL character"),
        pytest.param(["x", "{{a}}"], FREE, "b", ["x", "{b}"], id="braces around a place"),
    ],
)
def test_each_place_becomes_part_of_one_argument(
    command: list[str], schema: dict[str, object], given: object, parts: list[str] | None
) -> None:
    parameters: dict[str, object] = {"type": "object", "properties": {"a": schema}}
    tool = Tool(name="t", description="", parameters=parameters, effect="read", kind="command", command=tuple(command))
    if parts is None:
        with pytest.raises(BadArgs):
            argument_list(tool, {"a": given})
    else:
        assert argument_list(tool, {"a": given}) == parts


def test_a_default_fills_a_place_that_was_not_given() -> None:
    parameters: dict[str, object] = {"type": "object", "properties": {"a": {"type": "integer", "default": 3}}}
    tool = Tool(name="t", description="", parameters=parameters, effect="read", kind="command", command=("x", "{a}"))
    assert argument_list(tool, {}) == ["x", "3"]
