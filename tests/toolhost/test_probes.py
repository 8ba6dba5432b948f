"""`verify` of a declaration: taken where it can be asked, refused with file, tool and key where not."""

from pathlib import Path

import pytest

from rea_edge.records import Criterion
from rea_edge.toolhost.probes import usable
from rea_edge.toolhost.tables import from_toml
from tests.toolhost.rig import started

READS = '''
from typing import Literal, TypedDict


class Level(TypedDict):
    percent: int


@tool(effect="read")
def look(name: str, deep: bool = False) -> Level:
    """Look."""
    return {"percent": 1}


@tool(effect="read")
def mode() -> Literal["on", "off"]:
    """Look at the switch."""
    return "on"


@tool(effect="read", cost=2)
def pay(name: str = "") -> int:
    """Look, for money."""
    return 1


@tool(effect="idempotent")
def turn(percent: int) -> int:
    """Turn."""
    return percent
'''
PYTHON = '''
@tool(effect="once", verify={"tool": "look", "args": {"name": "{name}"}, "path": "percent", "equals": "{percent}"})
def bolt(name: str, percent: int = 3) -> int:
    """Bolt."""
    return percent
'''
TABLE = """
[shoot]
description = "Shoot."
effect = "once"
command = ["true", "{name}"]
verify = {tool = "look", args = {name = "{name}"}, path = "percent", op = ">=", value = 3}
parameters = {required = ["name"], properties = {name = {type = "string"}}}
"""


def test_both_kinds_of_tool_name_their_probe(tmp_path: Path) -> None:
    with started(tmp_path, {"reads.py": READS, "acts.py": PYTHON, "acts.toml": TABLE}) as rig:
        assert rig.loaded.faults == ()
        asked = {"name": "{name}"}
        assert rig.tools["bolt"].verify == Criterion(
            tool="look", args=asked, path="percent", op="==", value="{percent}"
        )
        assert rig.tools["shoot"].verify == Criterion(tool="look", args=asked, path="percent", op=">=", value=3)
        assert rig.tools["look"].verify is None


@pytest.mark.parametrize(
    ("verify", "words"),
    [
        pytest.param(
            '{"tool": "look", "args": {"name": "x"}}', "bolt.verify: expected either equals", id="no condition"
        ),
        pytest.param('{"tool": "look", "equal": 1}', "bolt.verify", id="an unknown key"),
        pytest.param('{"tool": "A b", "equals": 1}', "bolt.verify.tool: expected the name of a tool", id="no name"),
        pytest.param(
            '{"tool": "look", "args": {"name": "{who}"}, "equals": 1}',
            "bolt.verify.args.name: {who} is not a parameter",
            id="no parameter of the tool",
        ),
        pytest.param(
            '{"tool": "look", "args": {"name": "a-{name}"}, "equals": 1}',
            "bolt.verify.args.name: {name} stands for a whole value",
            id="a part of a text",
        ),
        pytest.param(
            '{"tool": "look", "args": {"name": "x"}, "path": "percent", "equals": "{where}"}',
            "bolt.verify.equals: {where} is not a parameter",
            id="no parameter to compare with",
        ),
        pytest.param(
            '{"tool": "see", "equals": 1}',
            "bolt.verify.tool: 'see' must be a tool that reads; there is no",
            id="no tool",
        ),
        pytest.param(
            '{"tool": "turn", "equals": 1}',
            "bolt.verify.tool: 'turn' must be a tool that reads; its effect",
            id="one that acts",
        ),
        pytest.param(
            '{"tool": "mode", "equals": "onn"}',
            "bolt.verify: mode never gives 'onn' there; it gives off, on",
            id="no value of its",
        ),
        pytest.param(
            '{"tool": "look", "args": {"name": "x", "deep": "very"}, "equals": 1}',
            "bolt.verify.args.deep: look does not take 'very'",
            id="an argument of another type",
        ),
        pytest.param(
            '{"tool": "pay", "equals": 1}', "bolt.verify.tool: 'pay' costs 2, and what is read so", id="one that costs"
        ),
        pytest.param(
            '{"tool": "look", "args": {"name": "x", "far": 1}, "equals": 1}',
            "bolt.verify.args.far: look has no such parameter; it has name, deep",
            id="no parameter of the read",
        ),
        pytest.param('{"tool": "look", "equals": 1}', "bolt.verify.args: look needs 'name'", id="an argument too few"),
        pytest.param(
            '{"tool": "look", "args": {"name": "x"}, "path": "level", "equals": 1}',
            "bolt.verify.path: a result of look has no 'level'",
            id="no such path",
        ),
        pytest.param(
            '{"tool": "look", "args": {"name": "x"}, "path": "percent.now", "equals": 1}',
            "bolt.verify.path: a result of look has no 'percent.now'",
            id="a path into a number",
        ),
    ],
)
def test_a_probe_that_cannot_be_asked_is_refused_with_its_place(tmp_path: Path, verify: str, words: str) -> None:
    source = f'@tool(effect="once", verify={verify})\ndef bolt(name: str) -> int:\n    """Bolt."""\n    return 1\n'
    with started(tmp_path, {"reads.py": READS, "bad.py": source}) as rig:
        assert set(rig.tools) == {"look", "mode", "pay", "turn"}
        (fault,) = rig.loaded.faults
        assert "bad.py" in fault and words in fault, fault


def test_a_tool_that_reads_has_nothing_to_verify(tmp_path: Path) -> None:
    source = '@tool(effect="read", verify={"tool": "b", "equals": 1})\ndef a() -> int:\n    """A."""\n    return 1\n'
    with started(tmp_path, {"bad.py": source}) as rig:
        assert "a.verify: a tool that reads has no effect" in rig.loaded.faults[0]


def test_a_tool_goes_with_the_probe_that_could_reach_the_nodes_own_topics() -> None:
    tools = from_toml(
        """
        [look]
        description = "Look."
        effect = "read"
        await = "{room}/v1"
        parameters = {required = ["room"], properties = {room = {type = "string"}}}
        [peek]
        description = "Look."
        effect = "read"
        await = "door/state"
        [open]
        description = "Open."
        effect = "once"
        publish = "door/open"
        verify = {tool = "look", args = {room = "hall"}, equals = "open"}
        [shut]
        description = "Shut."
        effect = "once"
        publish = "door/shut"
        verify = {tool = "peek", equals = "shut"}
        """,
        "/t/d.toml",
    )
    kept, faults = usable(tools, "rea/v1")
    assert [tool.name for tool in kept] == ["peek", "shut"]
    assert "look.await: '{room}/v1' can reach rea/v1/#" in faults[0]
    assert faults[1] == "/t/d.toml: open.verify.tool: 'look' must be a tool that reads; there is no such tool"
