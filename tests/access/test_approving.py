"""A whole node at the nodes' door, and people at theirs, under the shipped rules: who sees what waits, and whose yes counts."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from tests.access.conftest import Doors, Join
from tests.brokers import wait_until

ROOT = Path(__file__).parents[2]
TOOLS = '''
from rea_edge.tool import tool

@tool(effect="once")
def ring() -> str:
    """Ring the bell."""
    return "rang"
'''


@contextmanager
def node(doors: Doors, folder: Path) -> Iterator[None]:
    (folder / "devices.py").write_text(TOOLS)
    (folder / "node.password").write_text("boiler-1's")
    config = folder / "config.toml"
    config.write_text(
        f'[node]\nstate_dir = "{folder / "state"}"\ntools = ["{folder / "devices.py"}"]\n'
        f'[broker]\nurl = "mqtt://127.0.0.1:{doors.nodes}"\nusername = "boiler-1"\n'
        f'password_file = "{folder / "node.password"}"\n'
        '[access]\nidentity = "broker"\n[gate.ring]\nconfirm = "always"\napprovers = ["bob"]\n'
    )
    words = [sys.executable, "-m", "rea_edge", "run", "--config", str(config)]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(words, cwd=ROOT, stderr=log, stdin=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def typing(doors: Doors, folder: Path, who: str, *words: str) -> "subprocess.Popen[str]":
    file = folder / f"{who}.password"
    file.write_text(f"{who}'s")
    keys = {
        "BROKER": f"mqtt://127.0.0.1:{doors.people}",
        "NODE": "boiler-1",
        "USERNAME": who,
        "PASSWORD_FILE": str(file),
    }
    return subprocess.Popen(
        [sys.executable, "-m", "rea_edge", *words],
        cwd=ROOT,
        env={**os.environ, **{f"REA_EDGE_{key}": value for key, value in keys.items()}},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def typed(doors: Doors, folder: Path, who: str, *words: str) -> tuple[int, str]:
    process = typing(doors, folder, who, *words)
    said, complained = process.communicate(timeout=60)
    return process.returncode, said + complained


@pytest.mark.parametrize("protocol", ["5"])  # once: the broker knows a node with another state from then on
def test_only_an_approver_sees_what_waits_and_only_his_yes_lets_it_run(
    doors: Doors, join: Join, tmp_path: Path, protocol: str
) -> None:
    with node(doors, tmp_path):
        wait_until(lambda: typed(doors, tmp_path, "ann", "status")[0] == 0, "the node is there", 20)
        calling = typing(doors, tmp_path, "ann", "call", "ring")
        try:
            shown: list[dict[str, str]] = []
            wait_until(
                lambda: bool(shown.extend(json.loads(typed(doors, tmp_path, "bob", "asks", "--json")[1])) or shown),
                "bob sees it",
                20,
            )
            one = shown[0]
            assert (one["who"], one["tool"]) == ("ann", "ring")
            assert "nothing waits" in typed(doors, tmp_path, "mallory", "asks")[1]
            assert typed(doors, tmp_path, "mallory", "approve", one["request"])[0] == 1
            # Who has come to know the hash is none the better off for it: in bob's name the broker drops it.
            mallory = join("mallory").subscribe("rea/v1/+/out/mallory/#")
            forged = {"id": "f1", "request": one["request"], "answer": "yes", "ask_hash": one["ask_hash"]}
            for name in ("bob", "mallory"):
                mallory.publish(f"rea/v1/boiler-1/in/{name}/say", msgspec.json.encode(forged).decode())
            topic, payload = mallory.seen.get(timeout=10)
            assert topic.endswith("/mallory/reply/f1") and json.loads(payload)["error"]["code"] == "policy_denied"
            assert calling.poll() is None
            code, said = typed(doors, tmp_path, "bob", "approve", one["request"])
            assert code == 0 and one["ask_hash"] in said and "it counts as yes" in said
            assert calling.communicate(timeout=30)[0].strip() == '"rang"'
        finally:
            calling.kill()
            calling.wait()
