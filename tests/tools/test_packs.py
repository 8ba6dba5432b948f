"""The shipped tool packs as a node has them: by bare name, from a checkout and a wheel, with and without settings."""

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec import json

from rea_edge.decision.command import read_line
from rea_edge.opening import chosen_examples
from rea_edge.records import Fault, Offer, Ok, Result, Tool
from rea_edge.toolhost import landlock
from rea_edge.toolhost.client import ToolHost
from rea_edge.toolhost.load import declarations
from tests.brokers import Emulated
from tests.evidence.playing import lines
from tests.tools.calling import ROOT, TOOLS

PACKS = tuple(sorted(file.stem for file in TOOLS.glob("*.py")))  # those that are code
SHIPPED = tuple(sorted(file.name for suffix in ("py", "toml") for file in TOOLS.glob(f"*.{suffix}")))
ALL = [name.partition(".")[0] for name in SHIPPED]
SETTINGS = {
    "REA_TOOL_FILES_FOLDERS": "logs={folder}",
    "REA_TOOL_GPIO_LINES": "horn=gpiochip0:0:out,fish_pump=gpiochip0:1:out:keeps,door=gpiochip0:2:in:pullup",
    "REA_TOOL_GPIO_CHIP": "sim:{folder}",
    "REA_TOOL_NETWORK_HOSTS": "router=192.0.2.1:80,broker=127.0.0.1:1",
    "REA_TOOL_OUTPUTS_NAMES": "siren:pulse,garden_lamp",
    "REA_TOOL_OUTPUTS_SYS": "sim:{folder}",
    "REA_TOOL_SERVICES_UNITS": "nginx,mosquitto,ssh:look",
}


def settings(folder: Path) -> dict[str, str]:
    return {name: value.format(folder=folder) for name, value in SETTINGS.items()}


def check(folder: Path, tools: list[str], home: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    """`rea-edge check` of a node with these tools, and a broker that answers."""
    with Emulated() as broker:
        config = folder / "config.toml"
        config.write_text(
            f'[node]\nid = "n1"\nstate_dir = "{folder}/state"\ntools = {json.encode(tools).decode()}\n'
            f'[broker]\nurl = "{broker.url}"\n'
        )
        return subprocess.run(
            [sys.executable, "-P", "-m", "rea_edge", "check", "--config", str(config)],
            env={"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(home), **environment},
            cwd=folder, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip


@contextmanager
def host(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *packs: str, **said: str
) -> Iterator[tuple[ToolHost, dict[str, Tool]]]:
    for name in [name for name in os.environ if name.startswith("REA_TOOL_")]:
        monkeypatch.delenv(name)
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    files = [TOOLS / f"{pack}.py" for pack in packs or PACKS]
    begun = ToolHost(folder, files, memory_mib=64, cpu_s=10, load_s=30.0, lock_s=30.0)
    try:
        loaded = begun.start()
        assert loaded.faults == ()
        yield begun, {tool.name: tool for tool in loaded.tools}
    finally:
        begun.stop(0.0)


def value(result: Result) -> object:
    assert isinstance(result, Ok), result
    return json.decode(result.data)


@pytest.mark.parametrize("configured", [False, True], ids=["no settings", "settings"])
def test_every_pack_loads_under_check(tmp_path: Path, configured: bool) -> None:
    done = check(tmp_path, ALL, ROOT, **(settings(tmp_path) if configured else {}))
    assert done.returncode == 0 and "WRONG" not in done.stdout, done.stdout
    named = ("set_fish_pump", "pulse_horn", "set_garden_lamp", "pulse_siren") if configured else ()
    for name in ("read_line", "read_output", "service_restart", "reach_host", "tail_file", "write_note", *named):
        assert f"tool {name}: " in done.stdout, done.stdout


def test_a_setting_that_is_wrong_is_a_fault_that_check_names(tmp_path: Path) -> None:
    done = check(tmp_path, ["gpio"], ROOT, REA_TOOL_GPIO_LINES="pump=17")
    assert done.returncode == 78
    assert "gpio.py:" in done.stdout and "REA_TOOL_GPIO_LINES: 'pump=17' is not name=CHIP:NUMBER" in done.stdout


def test_a_wheel_brings_every_pack_by_its_bare_name(tmp_path: Path) -> None:
    built = wheel(tmp_path)
    with zipfile.ZipFile(built) as files:
        shipped = [name for name in files.namelist() if name.startswith("rea_edge/_data/tools/")]
        assert sorted(shipped) == [f"rea_edge/_data/tools/{name}" for name in SHIPPED]
        files.extractall(tmp_path / "site")
    done = check(tmp_path, ALL, tmp_path / "site")
    assert done.returncode == 0 and f"from {tmp_path}/site/rea_edge/_data/tools/gpio.py" in done.stdout, done.stdout


def wheel(folder: Path) -> Path:
    source = folder / "source"
    names = ("rea_edge", "tools", "systemd", "pyproject.toml", "README.md", "LICENSE")
    for name in names:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, source / name)
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "--disable-pip-version-check",
        "-w",
        folder,
        source,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        pytest.skip(f"no wheel can be built here: {done.stderr[-300:]}")
    (built,) = folder.glob("*.whl")
    return built


def test_what_is_named_in_the_settings_is_an_enumeration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with host(tmp_path, monkeypatch, **settings(tmp_path)) as (_, tools):
        found = {
            (tool, name): tools[tool].parameters["properties"][name].get("enum")  # type: ignore[index]
            for tool, name in (
                ("read_line", "line"), ("read_output", "output"), ("set_fish_pump", "state"),
                ("service_status", "unit"), ("service_stop", "unit"), ("reach_host", "host"), ("read_file", "folder"),
            )
        }  # fmt: skip
    assert {key: value and sorted(value) for key, value in found.items()} == {
        ("read_line", "line"): ["door", "fish_pump"],
        ("read_output", "output"): ["garden_lamp", "siren"],
        ("set_fish_pump", "state"): ["off", "on"],
        ("service_status", "unit"): ["mosquitto", "nginx", "ssh"],
        ("service_stop", "unit"): ["mosquitto", "nginx"],
        ("reach_host", "host"): ["broker", "router"],
        ("read_file", "folder"): ["logs"],
    }


def test_every_output_that_is_named_has_a_tool_with_its_effect_and_its_probe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with host(tmp_path, monkeypatch, "gpio", "outputs", **settings(tmp_path)) as (_, tools):
        found = {name: (str(tool.effect), tool.verify and tool.verify.args) for name, tool in tools.items()}
        examples = {name: len(tool.examples) for name, tool in tools.items()}
    assert found == {
        "read_line": ("read", None),
        "pulse_horn": ("once", None),
        "set_fish_pump": ("idempotent", {"line": "fish_pump"}),
        "read_output": ("read", None),
        "pulse_siren": ("once", None),
        "set_garden_lamp": ("idempotent", {"output": "garden_lamp"}),
    }
    assert min(examples.values()) >= 4


@pytest.mark.parametrize(
    ("goal", "acts"),
    [
        ("Turn on the fish pump.", {"set_fish_pump on"}),
        ("Please switch the garden lamp off.", {"set_garden_lamp off"}),
        ("Turn off the fish pump if the door is on.", {"if read_line door -> state == on then set_fish_pump off"}),
        ("Pulse the horn.", {"pulse_horn ms=500"}),
        ("Pulse the siren for 300 ms.", {"pulse_siren ms=300"}),
        ("Turn the siren off.", set()),
        ("Turn on the horn.", set()),
        ("Restart mosquitto.", {"service_restart mosquitto"}),
        ("Start nginx if it failed.", {"if service_status nginx -> state == failed then service_start nginx"}),
        ("Stop ssh.", set()),
        ("Restart the board.", set()),
        ("Delete the log.", set()),
        ("Do not stop nginx.", set()),
    ],
)
def test_what_a_sentence_may_make_a_tiny_model_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, goal: str, acts: set[str]
) -> None:
    for name, value in settings(tmp_path).items():
        monkeypatch.setenv(name, value)
    tools = [tool for pack in PACKS for tool in declarations(str(TOOLS / f"{pack}.py"), 10.0)]
    reads = tuple(tool.name for tool in tools if tool.effect == "read")
    assert {line for line in lines(goal, tools) if not line.startswith(reads)} == acts


@pytest.mark.parametrize("pack", PACKS)
def test_every_example_of_a_configured_pack_reads_back_as_a_decision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: str
) -> None:
    for name, value in settings(tmp_path).items():
        monkeypatch.setenv(name, value)
    tools = declarations(str(TOOLS / f"{pack}.py"), 10.0)
    pairs = chosen_examples("command", tools, 100_000)
    assert len(pairs) == sum(len(tool.examples) for tool in tools)
    for _, answer in pairs:
        read_line(answer, [Offer.of(tool) for tool in tools])


@pytest.mark.skipif(landlock.version() < 1, reason="needs Landlock")
def test_files_runs_shut_into_its_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside/a.txt").write_text("seen")
    os.symlink("/etc/passwd", tmp_path / "inside/out")
    said = {"REA_TOOL_FILES_FOLDERS": f"logs={tmp_path}/inside"}
    with host(tmp_path, monkeypatch, "files", **said) as (begun, tools):
        assert {tool.sandbox is not None for tool in tools.values()} == {True}
        args = {"folder": "logs", "path": "a.txt", "start": 0}
        assert value(begun.call(tools["read_file"], args, "r-1", 30.0)) == {
            "content": "text", "bytes": 4, "text": "seen", "next": None,
        }  # fmt: skip
        assert value(begun.call(tools["list_files"], {"folder": "logs"}, "r-2", 30.0)) is not None
        refused = begun.call(tools["read_file"], {**args, "path": "out"}, "r-3", 30.0)
        assert isinstance(refused, Fault) and "leads over a symbolic link" in refused.message


def test_a_pulse_that_its_deadline_ends_leaves_the_line_to_the_chip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "0").write_text("in z\n")
    with host(tmp_path, monkeypatch, "gpio", **settings(tmp_path)) as (begun, tools):
        ended = begun.call(tools["pulse_horn"], {"ms": 5000}, "r-1", 1.0)
        assert isinstance(ended, Fault) and ended.fault == "timeout"
        assert (tmp_path / "0").read_text() == "out 1\n", "it was on when it was ended"
        done = begun.call(tools["pulse_horn"], {"ms": 10}, "r-2", 30.0)
        assert value(done) == {"ms": 10}, "nobody holds it any more"


def test_a_note_of_a_call_that_is_run_again_is_there_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with host(tmp_path, monkeypatch, "notes") as (begun, tools):
        for _ in range(2):
            assert value(begun.call(tools["write_note"], {"text": "cleaned"}, "r-1", 30.0)) == {"kept": 1}
        found = value(begun.call(tools["search_notes"], {"words": "cleaned", "most": 5}, "r-2", 30.0))
        assert isinstance(found, dict) and found["found"] == 1


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("read_line", {"line": "door"}),
        ("service_status", {"unit": "nginx"}),
        ("reach_host", {"host": "router"}),
        ("list_files", {"folder": "logs"}),
        ("read_output", {"output": "siren"}),
    ],
)
def test_without_settings_a_call_says_what_to_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, args: dict[str, object]
) -> None:
    with host(tmp_path, monkeypatch) as (begun, tools):
        refused = begun.call(tools[name], args, "r-1", 30.0)
    assert isinstance(refused, Fault) and "set REA_TOOL_" in refused.message
