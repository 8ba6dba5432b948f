"""A tool host with the tools of a few source texts, and a way to see what processes it left. Tests only."""

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import json

from rea_edge.records import Fault, Ok, Result, Tool
from rea_edge.toolhost.client import ToolHost
from rea_edge.toolhost.launch import Loaded

HEAD = """import os, signal, subprocess, sys, time
from rea_edge.tool import request_id, tool
HERE = os.environ["REA_STATE_DIR"]
"""


class Rig:
    """A started host. Every process below it has the folder `state_dir` in its environment."""

    def __init__(self, state_dir: Path, host: ToolHost, loaded: Loaded) -> None:
        self.state_dir = state_dir
        self.host = host
        self.loaded = loaded
        self.tools: dict[str, Tool] = {tool.name: tool for tool in loaded.tools}
        self.calls = 0

    def call(self, name: str, seconds: float = 10.0, **args: object) -> Result:
        self.calls += 1
        return self.host.call(self.tools[name], args, f"r-{self.calls}", seconds)

    def left(self) -> list[int]:
        """What is alive of the host's tree, the host itself not counted."""
        return [pid for pid in marked(self.state_dir) if pid not in self.host.pids()[:1]]

    def tools_left(self) -> list[int]:
        """Those of them that a tool started: host and keepers share a session, tools have their own."""
        return [pid for pid in self.left() if session(pid) not in (-1, *self.host.pids()[:1])]


@contextmanager
def started(
    state_dir: Path,
    files: dict[str, str],
    user: str = "",
    secrets: Mapping[str, str] | None = None,
    **settings: float,
) -> Iterator[Rig]:
    """A rig with these files; Python sources get the usual imports in front."""
    paths = written(state_dir, files)
    reader = -1
    if settings.get("full_log"):
        with standard_error_full() as reader:
            rig = begun(state_dir, paths, settings, user, secrets)
    else:
        rig = begun(state_dir, paths, settings, user, secrets)
    try:
        yield rig
    finally:
        rig.host.stop(0.0)
        if reader >= 0:
            os.close(reader)
        gone = comes_true(lambda: not marked(state_dir))
        for pid in marked(state_dir):
            os.kill(pid, signal.SIGKILL)
        assert gone, "a process outlived its host"


def begun(
    state_dir: Path, paths: list[Path], settings: dict[str, float], user: str, secrets: Mapping[str, str] | None = None
) -> Rig:
    host = ToolHost(
        state_dir,
        paths,
        memory_mib=int(settings.get("memory_mib", 64)),
        cpu_s=int(settings.get("cpu_s", 10)),
        load_s=settings.get("load_s", 10.0),
        lock_s=settings.get("lock_s", 10.0),
        user=user,
        secrets=secrets,
    )
    return Rig(state_dir, host, host.start())


@contextmanager
def standard_error_full() -> Iterator[int]:
    """What is started meanwhile has a standard error that takes nothing. Gives the end nobody reads, to be closed."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    kept = os.dup(2)
    try:
        with suppress(BlockingIOError):
            while True:
                os.write(writer, bytes(4096))
        os.set_blocking(writer, True)
        os.dup2(writer, 2)
        yield reader
    finally:
        os.dup2(kept, 2)
        for descriptor in (kept, writer):
            os.close(descriptor)


def written(folder: Path, files: dict[str, str]) -> list[Path]:
    for name, text in files.items():
        (folder / name).write_text(HEAD + text if name.endswith(".py") else text)
    return [folder / name for name in files]


def marked(state_dir: Path) -> list[int]:
    """Living processes of a host with this folder. One that ended but was not reaped has no environment any more."""
    mark = f"REA_STATE_DIR={state_dir}\0".encode()
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if mark in Path(f"/proc/{pid}/environ").read_bytes():
                found.append(int(pid))
        except OSError:
            continue
    return found


def session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return -1


def comes_true(question: Callable[[], object], seconds: float = 30.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if question():
            return True
        time.sleep(0.005)
    return bool(question())


def value(result: Result) -> object:
    assert isinstance(result, Ok), result
    return json.decode(result.data)


def name_of(result: Result) -> str:
    assert isinstance(result, Fault), result
    return result.fault
