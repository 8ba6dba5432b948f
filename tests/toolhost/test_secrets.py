"""A secret reaches the calls of the tools that need it, and nothing else: not other tools, their host, or what they say."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from rea_edge.errors import ToolInvalid
from rea_edge.records import Fault
from rea_edge.toolhost.tables import from_toml
from tests.toolhost.rig import Rig, name_of, started, value

KEY = 'k3y-"ün\\der"/the mat'
OTHER = "another-secret-of-the-node"
SECRETS = {"weather_key": KEY, "other_key": OTHER}

TOOLS = """
import json, urllib.parse
from rea_edge.tool import secret

SEEN = os.path.join(HERE, "seen")

def leave(text):
    with open(SEEN, "w") as file:
        file.write(text)

@tool(effect="read", needs=["weather_key"])
def use() -> int:
    'Use it, and tell a test by a file.'
    leave(secret("weather_key"))
    return 1

@tool(effect="read", needs=["weather_key"])
def other() -> str:
    'Ask for what it does not need.'
    return secret("other_key")

@tool(effect="read")
def stranger() -> str:
    'Needs nothing.'
    from rea_edge import tool as authors
    return repr(authors.given) + repr(dict(os.environ)) + open("/proc/self/cmdline").read()

@tool(effect="read", needs=["weather_key"])
def child() -> str:
    'What a program that it starts is given.'
    return subprocess.run(["sh", "-c", "env; cat /proc/self/cmdline"], capture_output=True, text=True).stdout

@tool(effect="read", needs=["weather_key"])
def say(shift: int, times: int) -> int:
    'Print it in many ways.'
    key = secret("weather_key")
    for form in (key, json.dumps(key), json.dumps(key, ensure_ascii=False), repr(key), urllib.parse.quote(key), urllib.parse.quote(key, "")):
        print("say", form, flush=True)
    print("x" * shift + key * times)
    return 1

@tool(effect="read", needs=["weather_key"])
def throw(padding: int) -> int:
    'Raise with it.'
    raise OSError("x" * padding + secret("weather_key"))

@tool(effect="read", needs=["weather_key"])
def shut() -> bool:
    'Whether another process of its user can look into it.'
    import ctypes
    return ctypes.CDLL(None).prctl(3, 0, 0, 0, 0) == 0
"""
PROGRAMS = """
[greet]
description = "Show what the environment has."
effect = "read"
needs = ["weather_key"]
env = { API_KEY = "weather_key" }
command = ["env"]
[shout]
description = "Fail, saying it last."
effect = "read"
needs = ["weather_key"]
env = { API_KEY = "weather_key" }
command = ["sh", "-c", "printf %s \\"$API_KEY\\" >&2; printf '%0390d' 0 >&2; exit 3"]
[plain]
description = "Show the environment."
effect = "read"
command = ["env"]
"""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("log") / "log"


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory, log: Path) -> Iterator[Rig]:
    """With standard error, which is the daemon's log, in a file."""
    kept, taken = os.dup(2), os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(taken, 2)
    try:
        files = {"tools.py": TOOLS, "programs.toml": PROGRAMS}
        with started(tmp_path_factory.mktemp("secrets"), files, secrets=SECRETS) as rig:
            assert not rig.loaded.faults
            yield rig
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(taken)


def test_a_tool_that_needs_a_secret_has_it(rig: Rig) -> None:
    assert value(rig.call("use")) == 1
    assert (rig.state_dir / "seen").read_text() == KEY


def test_a_secret_that_a_tool_does_not_declare_is_not_given_to_it(rig: Rig) -> None:
    result = rig.call("other")
    assert name_of(result) == "tool_error" and isinstance(result, Fault) and "must declare needs" in result.message


def test_a_tool_that_needs_none_finds_none(rig: Rig) -> None:
    rig.call("use")
    for name in ("stranger", "plain"):
        seen = str(value(rig.call(name)))
        assert "given" not in seen and "k3y-" not in seen and OTHER not in seen


def test_what_a_tool_starts_is_not_given_its_secret(rig: Rig) -> None:
    assert "k3y-" not in str(value(rig.call("child")))


def test_the_host_that_tools_are_copies_of_never_has_a_secret_in_its_memory(rig: Rig) -> None:
    if os.geteuid() != 0:
        pytest.skip("NOT CHECKED: only root can look into another process")
    for _ in range(3):
        rig.call("use")
    (rig.state_dir / "seen").unlink(missing_ok=True)
    held = memory_of(rig.host.pids()[0])
    assert b"rea_edge" in held, "the memory was read"
    assert b"k3y-" not in held and OTHER.encode() not in held


def memory_of(pid: int) -> bytes:
    found = b""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as mem:
        for line in maps:
            if (span := re.match(r"([0-9a-f]+)-([0-9a-f]+) rw", line)) and "[v" not in line:
                mem.seek(int(span[1], 16))
                found += mem.read(int(span[2], 16) - int(span[1], 16))
    return found


def test_a_process_with_a_secret_cannot_be_looked_into_nor_leave_a_core(rig: Rig) -> None:
    assert value(rig.call("shut")) is True


@pytest.mark.parametrize(
    ("shift", "times"),
    [pytest.param(0, 1, id="whole"), *(pytest.param(n, 999, id=f"cut {n}") for n in range(0, 20, 4))],
)
def test_what_a_tool_prints_is_logged_without_its_secret(rig: Rig, log: Path, shift: int, times: int) -> None:
    before = log.stat().st_size
    rig.call("say", shift=shift, times=times)
    said = log.read_bytes()[before:].decode()
    assert len(re.findall("text=say ['\"]?[*]{3}", said)) == 6
    assert "k3y" not in said and "mat" not in said, "not even a part of it, where the rest was dropped"


@pytest.mark.parametrize("padding", [0, 480, 485, 490])
def test_what_a_tool_raises_is_told_and_logged_without_its_secret(rig: Rig, log: Path, padding: int) -> None:
    result = rig.call("throw", padding=padding)
    assert isinstance(result, Fault) and result.message.startswith("OSError: ") and "k3y" not in result.message
    assert "k3y" not in log.read_text()


def test_a_program_has_it_in_the_variable_that_was_declared(rig: Rig) -> None:
    seen = str(value(rig.call("greet")))
    assert f"API_KEY={KEY}" in seen.splitlines() and seen.count("k3y-") == 1 and OTHER not in seen


def test_the_last_words_of_a_program_are_told_without_its_secret_also_where_they_are_cut(rig: Rig) -> None:
    result = rig.call("shout")
    assert isinstance(result, Fault) and result.message == "exit 3: " + "0" * 390


def test_a_tool_whose_secret_the_node_does_not_have_is_absent_and_said_so(tmp_path: Path) -> None:
    files = {"tools.py": TOOLS, "programs.toml": PROGRAMS}
    with started(tmp_path, files, secrets={"other_key": OTHER}) as rig:
        assert set(rig.tools) == {"stranger", "plain"}
        wanted = "use.needs: 'weather_key', which [secrets] does not name; it names other_key"
        assert f"{tmp_path}/tools.py: {wanted}" in rig.loaded.faults


TABLE = '[t]\ndescription = "A tool."\neffect = "read"\ncommand = ["true"]\n'


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        pytest.param('needs = ["k"]', "needs and env must name the same secrets", id="no variable for it"),
        pytest.param('env = {K = "k"}', "needs and env must name the same secrets", id="not declared"),
        pytest.param('needs = ["k"]\nenv = "K"', "a table of environment variables", id="no table"),
        pytest.param('needs = ["k"]\nenv = {PATH = "k"}', "cannot be given", id="ours"),
        pytest.param('needs = ["k"]\nenv = {LD_PRELOAD = "k"}', "cannot be given", id="the loader's"),
        pytest.param('needs = ["k"]\nenv = {"A=B" = "k"}', "cannot be given", id="no variable"),
    ],
)
def test_a_program_is_given_secrets_by_declared_variables_only(lines: str, says: str) -> None:
    with pytest.raises(ToolInvalid) as caught:
        from_toml(TABLE + lines, "f.toml")
    assert caught.value.place == "f.toml: t.env" and says in str(caught.value)
