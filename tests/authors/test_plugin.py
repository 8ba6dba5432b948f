"""What a tool's author gets: pytest run as he runs it, in a folder of his own with his tool and his tests."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

VALVE = '''
import os, subprocess, time
from typing import Annotated, Literal
from msgspec import Meta
from rea_edge.tool import request_id, tool

@tool(effect="once", timeout_s=1.0, ranges={"percent": (0, 80)})
def open_valve(percent: Annotated[int, Meta(ge=0, le=100)], how: Literal["at_once", "late"] = "at_once") -> dict[str, int]:
    """Open the valve."""
    if how == "late":
        time.sleep(30)
    return {"percent": percent}

@tool(effect="read", timeout_s=2.0)
def hoard() -> str:
    """Take more memory than there is."""
    return str(len(bytearray(1 << 30)))

@tool(effect="read")
def whoami() -> list[str]:
    """Say which call this is, and by which setting."""
    return [request_id(), os.environ["REA_TOOL_VALVE"]]

@tool(effect="read", fields=["level"])
def level() -> dict[str, object]:
    """Read the level."""
    return {"level": 3, "serial": "12-34"}

@tool(effect="read")
def broken() -> int:
    """Fail."""
    raise OSError("no such device")
'''

GOOD = """
import pytest
from rea_edge.errors import DecisionRejected, EffectFailed, ToolInvalid

def failed(kind, call, *args, **keys):
    with pytest.raises(EffectFailed) as caught:
        call(*args, **keys)
    assert caught.value.kind == kind, caught.value
    return caught.value.message

def test_it_runs_under_its_true_limits(call, monkeypatch):
    monkeypatch.setenv("REA_TOOL_VALVE", "north")
    assert call("valve.py", "open_valve", percent=50) == {"percent": 50}
    failed("timeout", call, "valve.py", "open_valve", percent=50, how="late")
    failed("memory", call, "valve.py", "hoard")
    assert "no such device" in failed("tool_error", call, "valve.py", "broken")
    first, second = call("valve.py", "whoami"), call("valve.py", "whoami")
    assert first[0] != second[0] and first[1] == "north"

def test_what_the_gate_and_the_schema_refuse_does_not_run(call):
    assert "80" in failed("denied", call, "valve.py", "open_valve", percent=90)
    with pytest.raises(DecisionRejected, match="percent"):
        call("valve.py", "open_valve", percent="wide")
    failed("unknown_tool", call, "valve.py", "open_gate")

def test_only_the_allowed_fields_are_seen(call):
    assert call("valve.py", "level") == {"level": 3}

def test_a_file_that_does_not_load_says_why(call):
    with pytest.raises(ToolInvalid, match="async"):
        call("wrong.py", "wait")

@pytest.fixture
def tool_secrets():
    return {"weather_key": "open sesame"}

def test_a_secret_is_given_and_hidden(call):
    assert call("key.py", "tell") == {"characters": 11, "key": "***"}

def test_the_broker_and_the_endpoint_are_there(broker, endpoint):
    import socket, urllib.request
    with socket.create_connection(("127.0.0.1", broker.port), 5):
        pass
    server = endpoint(["Hello."])
    asked = urllib.request.Request(server.url + "/chat/completions", b'{"messages":[]}', {"Content-Type": "application/json"})
    assert b"Hello." in urllib.request.urlopen(asked, timeout=5).read()
"""

BELL = """
[ring_bell]
description = "Ring the bell."
effect = "once"
publish = "bell/{times}/ring"
await = "bell/rang"
[ring_bell.parameters]
required = ["times"]
properties.times = { type = "integer" }
"""

AT_THE_BELL = """
import paho.mqtt.client as paho

def test_the_bell_rings_as_often_as_it_is_told(broker, call):
    bell = paho.Client(paho.CallbackAPIVersion.VERSION2)
    bell.on_message = lambda bell, _, message: bell.publish("bell/rang", message.topic.split("/")[1])
    bell.connect("127.0.0.1", broker.port)
    bell.subscribe("bell/+/ring")
    bell.loop_start()
    try:
        assert call("bell.toml", "ring_bell", times=3) == 3
    finally:
        bell.disconnect()
        bell.loop_stop()
"""


KEY = '''
from rea_edge.tool import secret, tool

@tool(effect="read", needs=["weather_key"])
def tell() -> dict[str, object]:
    """Tell."""
    return {"characters": len(secret("weather_key")), "key": secret("weather_key")}
'''

WRONG = '''
from rea_edge.tool import tool

@tool(effect="read")
async def wait() -> int:
    """Wait."""
    return 1
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {"valve.py": VALVE, "key.py": KEY, "wrong.py": WRONG, "test_valve.py": GOOD}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def author_runs_pytest(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    # As an installed package has it; a clone that is only on the path has no entry point.
    plugin = ("-p", "rea_edge.pytest_plugin") if "rea_edge" not in _entry_points() else ()
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", *plugin, *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )


def _entry_points() -> set[str]:
    from importlib.metadata import entry_points

    return {one.name for one in entry_points(group="pytest11")}


def test_an_author_tests_a_tool_under_its_true_limits_with_three_fixtures(folder: Path) -> None:
    ran = author_runs_pytest(folder)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "6 passed" in ran.stdout


def test_an_author_tests_a_device_tool_against_a_device_on_the_brokers_fixture(folder: Path) -> None:
    (folder / "bell.toml").write_text(BELL)
    (folder / "test_bell.py").write_text(AT_THE_BELL)
    ran = author_runs_pytest(folder, "test_bell.py")
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_tool_that_gives_something_else_fails_its_test(folder: Path) -> None:
    (folder / "valve.py").write_text(VALVE.replace('return {"percent": percent}', 'return {"percent": 0}'))
    ran = author_runs_pytest(folder)
    assert ran.returncode == 1
    assert "1 failed, 5 passed" in ran.stdout, ran.stdout


def test_loading_the_plugin_imports_nothing_else_of_ours(folder: Path) -> None:
    seen = "import rea_edge.pytest_plugin, sys; print([m for m in sys.modules if m.startswith(('rea_edge.', 'httpx'))])"
    told = subprocess.run(
        [sys.executable, "-c", seen], env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert told.stdout.strip() == "['rea_edge.pytest_plugin']", told
