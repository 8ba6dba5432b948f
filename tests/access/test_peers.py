"""Two nodes under the shipped rules: one calls the other only where the operator has said so, and only in its own name."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.access.conftest import Doors, Login
from tests.access.test_approving import ROOT, TOOLS, typed
from tests.brokers import wait_until

IN, OUT = "rea/v1/boiler-1/in", "rea/v1/boiler-1/out"


def doors_of(folder: Path) -> Doors:
    """A broker of its own: another one would know these nodes with another state."""
    folder.mkdir()
    return Doors(folder)


def allowed(folder: Path) -> Doors:
    """The shipped files with the block of panel-1 taken out of comment, for boiler-2."""
    doors = doors_of(folder)
    rules = folder / "nodes.acl"
    text = rules.read_text()
    assert text.count("#user panel-1") == 1
    rules.write_text(text.replace("#user", "user").replace("#topic", "topic").replace("panel-1", "boiler-2"))
    return doors


def settings(doors: Doors, folder: Path, name: str, more: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "password").write_text(f"{name}'s")
    config = folder / "config.toml"
    config.write_text(
        f'[node]\nstate_dir = "{folder / "state"}"\n{more}'
        f'[broker]\nurl = "mqtt://127.0.0.1:{doors.nodes}"\nusername = "{name}"\n'
        f'password_file = "{folder / "password"}"\n'
    )
    return config


@contextmanager
def running(*configs: Path) -> Iterator[None]:
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for config in configs:
            words = [sys.executable, "-m", "rea_edge", "run", "--config", str(config)]
            with (config.parent / "log").open("wb") as log:
                processes.append(subprocess.Popen(words, cwd=ROOT, stderr=log, stdin=subprocess.DEVNULL))
        yield
    finally:
        for process in processes:
            process.send_signal(signal.SIGKILL)
            process.wait()


def accept(config: Path) -> tuple[int, str]:
    words = [sys.executable, "-m", "rea_edge", "peers", "accept", "far", "--config", str(config)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False, env=os.environ)
    return done.returncode, done.stdout + done.stderr


def called(doors: Doors, folder: Path) -> tuple[int, str]:
    return typed(doors, folder, "ann", "call", "far__ring", "--node", "boiler-2")


def test_a_node_calls_another_where_the_operator_has_said_so_and_in_no_other_name(
    tmp_path: Path, protocol: str
) -> None:
    tools = tmp_path / "devices.py"
    tools.write_text(TOOLS)
    with allowed(tmp_path / "doors") as doors:
        far = settings(doors, tmp_path / "far", "boiler-1", f'tools = ["{tools}"]\n')
        near = settings(doors, tmp_path / "near", "boiler-2", '[peer.far]\nnode = "boiler-1"\ntools = ["ring"]\n')
        for config in (far, near):
            config.write_text(config.read_text() + f'protocol = "{protocol}"\n')
        with running(far, near):
            wait_until(lambda: accept(near)[0] == 0, "the card is accepted", 30)
            wait_until(lambda: called(doors, tmp_path) == (0, '"rang"\n'), "the call is carried out", 30)
            other = Login(doors.nodes, "boiler-2", "5")
            ear = Login(doors.nodes, "boiler-1", "5").subscribe(f"{IN}/#", f"{OUT}/#")
            try:
                other.subscribe(f"{OUT}/#")
                for topic in (f"{IN}/ann/call/ring", f"{IN}/boiler-2/task", f"{IN}/boiler-2/node", f"{OUT}/_all/card"):
                    assert other.publish(topic, "mine").is_failure, topic
                ear.publish(f"{OUT}/ann/reply/x1", "not yours")
                ear.publish(f"{OUT}/boiler-2/reply/x1", "fence")
                assert f"{OUT}/ann/reply/x1" not in other.until("fence")
            finally:
                other.leave()
                ear.leave()


def test_as_shipped_no_node_calls_another_nor_sees_its_card(tmp_path: Path) -> None:
    with doors_of(tmp_path / "doors") as doors:
        tools = tmp_path / "devices.py"
        tools.write_text(TOOLS)
        far = settings(doors, tmp_path / "far", "boiler-1", f'tools = ["{tools}"]\n')
        near = settings(doors, tmp_path / "near", "boiler-2", '[peer.far]\nnode = "boiler-1"\ntools = ["ring"]\n')
        with running(far, near):
            wait_until(lambda: typed(doors, tmp_path, "ann", "tools")[0] == 0, "the far one is there", 30)
            code, said = accept(near)
            assert code == 1 and "no card of boiler-1" in said
            wait_until(
                lambda: typed(doors, tmp_path, "ann", "status", "--node", "boiler-2")[0] == 0, "so is the near", 30
            )
            code, said = called(doors, tmp_path)
            assert code == 1 and "nobody has accepted" in said
            status = json.loads(typed(doors, tmp_path, "ann", "status", "--node", "boiler-2", "--json")[1])
            assert "may this node read rea/v1/boiler-1/out/_all/card" in str(status)
            other = Login(doors.nodes, "boiler-2", "5")
            try:
                assert other.publish(f"{IN}/boiler-2/call/ring", '{"id":"c1"}').is_failure
            finally:
                other.leave()
