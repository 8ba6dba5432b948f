"""A pytest plugin for authors of tools: `broker`, `endpoint`, `call` and its `tool_secrets`. Loaded by pytest itself once
this is installed.

    def test_the_valve_opens_halfway(call):
        assert call("valve.py", "open_valve", percent=50) == {"percent": 50}

A fixture of the same name in a test file or `conftest.py` takes its place. Loading it imports nothing else of ours.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from rea_edge.emulated.broker import Broker
    from rea_edge.emulated.endpoint import ScriptedEndpoint
    from rea_edge.emulated.script import Script


class CallTool(Protocol):
    def __call__(self, file: str | Path, tool: str, /, **args: object) -> object: ...


@pytest.fixture
def broker() -> "Iterator[Broker]":
    """The emulated broker, started: `broker.url`, `broker.port`, and its faults."""
    from rea_edge.emulated.broker import Broker

    with Broker() as started:
        yield started


@pytest.fixture
def endpoint() -> "Iterator[Callable[[Script], ScriptedEndpoint]]":
    """`endpoint(answers)` starts a model server that says what it is told; `.url` is for an `[[endpoint]]`."""
    from rea_edge.emulated.endpoint import ScriptedEndpoint

    with ExitStack() as stack:
        yield lambda answers: stack.enter_context(ScriptedEndpoint(answers))


@pytest.fixture
def tool_secrets() -> dict[str, str]:
    """The secrets that tools under test may need, by name: none, until a fixture of this name gives some."""
    return {}


@pytest.fixture
def call(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, tool_secrets: dict[str, str]
) -> Iterator[CallTool]:
    """`call(file, tool, key=value...)` runs a tool under its true limits and gives its result.

    `file` is relative to the test's own folder. It is loaded at its first call, with the settings `REA_TOOL_*` of that
    moment, and again in each test. The devices of MQTT tools are those on the fixture `broker`. Raises `ToolInvalid`,
    `DecisionRejected`, `EffectFailed`: see `Workbench`.
    """
    from rea_edge.workbench import Workbench

    def broker_url() -> str:
        url: str = request.getfixturevalue("broker").url
        return url

    loaded: dict[Path, Workbench] = {}
    with ExitStack() as stack:

        def call_tool(file: str | Path, tool: str, /, **args: object) -> object:
            path = request.path.parent / file
            if path not in loaded:
                state_dir = tmp_path_factory.mktemp("tool-state")
                bench = Workbench(path, state_dir, broker=broker_url, secrets=tool_secrets)
                loaded[path] = stack.enter_context(bench)
            return loaded[path].call(tool, args)

        yield call_tool
