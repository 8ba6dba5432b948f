"""The README's page for authors, done as it stands there: its files written, its commands run, on a real broker."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.authors.test_plugin import author_runs_pytest
from tests.brokers import AnyBroker, wait_until

ROOT = Path(__file__).resolve().parent.parent.parent
HEADING = "## From an empty file to a called tool"


def page() -> str:
    text = (ROOT / "README.md").read_text()
    return text.partition(HEADING)[2].partition("\n## ")[0]


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", page(), re.S)


def rea_edge(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rea_edge", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "REA_EDGE_WHO": "ann"},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_the_page_leads_from_an_empty_file_to_a_called_tool(tmp_path: Path, broker: AnyBroker) -> None:
    (config,) = blocks("toml")
    (commands,) = blocks("sh")
    for name, text in zip(("lamp.py", "test_lamp.py"), blocks("python"), strict=True):
        (tmp_path / name).write_text(text)
    (tmp_path / "config.toml").write_text(config.replace("mqtt://127.0.0.1:1883", broker.url))
    tested, *lines, killed = commands.splitlines()
    assert (tested, killed) == ("pytest -q", "kill %1")
    ran = author_runs_pytest(tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    daemon: subprocess.Popen[bytes] | None = None
    said: dict[str, str] = {}
    try:
        for line in lines:
            words = line.split()
            assert words[0] == "rea-edge", line
            if words[-1] == "&":
                command = [sys.executable, "-m", "rea_edge", *words[1:-1]]
                environment = {**os.environ, "PYTHONPATH": str(ROOT)}
                with (tmp_path / "log").open("wb") as log:
                    daemon = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=log)
                wait_until(lambda: b"event=ready" in (tmp_path / "log").read_bytes(), "the node is ready", 30)
            else:
                told = rea_edge(tmp_path, *words[1:])
                assert told.returncode == 0, (line, told)
                said[" ".join(words[1:-2])] = told.stdout
    finally:
        if daemon is not None:
            daemon.kill()
            daemon.wait()
    assert "set_lamp" in said["tools"]
    assert "true" in said["call read_lamp"].lower()
    assert (tmp_path / "state" / "lamp").exists()
