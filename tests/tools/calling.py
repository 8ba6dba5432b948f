"""Device tools called as the tool host calls them: each call in a fresh process with a clean environment."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
TOOLS = ROOT / "tools"
RUN = """
import importlib.util, json, sys
from rea_edge.tool import declared
spec = importlib.util.spec_from_file_location("the_tool", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
tools = {one.name: one.function for one in declared}
for name, args in json.loads(sys.argv[2]):
    if name not in tools:
        raise LookupError(f"there is no tool {name}")
    print(json.dumps(tools[name](**args)))
"""


def start(
    file: str, calls: list[tuple[str, dict[str, object]]], err: int | None = None, **environment: str
) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", RUN, str(TOOLS / file), json.dumps(calls)]
    clean = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **environment}
    return subprocess.Popen(command, env=clean, stdout=subprocess.PIPE, stderr=err, text=True)


def results(process: "subprocess.Popen[str]") -> list[object]:
    try:
        out, _ = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0
    return [json.loads(line) for line in out.splitlines()]


def call(file: str, name: str, args: dict[str, object], **environment: str) -> object:
    (result,) = results(start(file, [(name, args)], **environment))
    return result


def refusal(file: str, name: str, args: dict[str, object], **environment: str) -> str:
    """What a call that fails says, as a model would read it: `Kind: words`."""
    process = start(file, [(name, args)], err=subprocess.PIPE, **environment)
    try:
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 1 and not out, (out, err)
    return err.splitlines()[-1].removeprefix("the_tool.")


def until(question: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not question():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.005)
