"""Starts a host process and hears what it found. Daemon side; holds no calls and keeps nothing.

The host is started by exec (never a bare fork: the daemon has threads and sockets), in a session of its own, with an
environment that holds no credentials of the daemon.
"""

import itertools
import os
import select
import socket
import subprocess
import time
from collections.abc import Collection
from pathlib import Path

from msgspec import MsgspecError, Struct, json, structs

import rea_edge
from rea_edge.errors import EffectFailed
from rea_edge.records import Tool
from rea_edge.toolhost.frames import Found, Loading, Ready, Report, Setup, Unable, pair, received
from rea_edge.toolhost.needs import without_unmet_needs
from rea_edge.toolhost.probes import without_wrong_probes

PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "PYTHONDONTWRITEBYTECODE", "LD_LIBRARY_PATH")
SEND_S = 1.0  # the host takes calls at once; one that does not is stuck
SPARE_S = 5.0  # for starting Python, and for ending what a trial left


class Hosts:
    """The hosts of one daemon, one for each set of tools. Thread-safe."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self.alone = False  # no host of an earlier daemon is left

    def next_number(self) -> int:
        return next(self._numbers)


class Loaded(Struct, frozen=True):
    """What the files declare. Each fault names a file (with line, tool or key) whose tools are absent."""

    tools: tuple[Tool, ...] = ()
    faults: tuple[str, ...] = ()


class Running(Struct):
    """A host that takes calls."""

    process: subprocess.Popen[bytes]
    control: socket.socket
    loaded: Loaded


class Cut(Exception):
    """The host ended or was ended before it was ready, because of `file` where that is known."""

    def __init__(self, file: str | None) -> None:
        super().__init__(file)
        self.file = file


def launched(setup: Setup, python: str, seconds: float) -> Running:
    """A host with as many of the files as load. Raises EffectFailed where none can be had in `seconds`.

    A file that ends or holds the host itself, though it passed its trial, is left out and named.
    """
    deadline = time.monotonic() + seconds
    faults: list[str] = []
    files = setup.files
    while True:
        process, control = started(python, setup.state_dir)
        try:
            control.send(json.encode(structs.replace(setup, files=files)))
            loaded = heard(control, deadline, setup.secrets)
        except Cut as cut:
            ended(process, control)
            if cut.file is None or time.monotonic() >= deadline:
                raise EffectFailed("no_host", "the tool host did not start; the log says why") from cut
            faults.append(f"{cut.file}: ends the tool host when it is loaded there")
            files = tuple(file for file in files if file != cut.file)
        except BaseException:
            ended(process, control)
            raise
        else:
            return Running(process, control, Loaded(loaded.tools, (*faults, *loaded.faults)))


def allowance(setup: Setup) -> float:
    """The most seconds a start may take: each file is loaded twice, one after the other."""
    return setup.lock_s + 2 * (setup.load_s + 2.0) * len(setup.files) + SPARE_S


def started(python: str, state_dir: str) -> tuple[subprocess.Popen[bytes], socket.socket]:
    ours, theirs = pair()
    with theirs:
        try:
            # -P: the folder we happen to be in is no place to import from.
            process = subprocess.Popen(
                [python, "-P", "-m", "rea_edge.toolhost"],
                stdin=theirs.fileno(),
                stdout=2,
                env=environment(state_dir),
                cwd="/",
                close_fds=True,
                start_new_session=True,
            )
        except OSError:
            ours.close()
            raise
    ours.settimeout(SEND_S)
    return process, ours


def environment(state_dir: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in PASSED_ON or name.startswith("REA_TOOL_")}
    home = str(Path(rea_edge.__file__).resolve().parent.parent)
    others = [str(Path(part).resolve()) for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    return {**kept, "PYTHONPATH": os.pathsep.join([home, *others]), "REA_STATE_DIR": state_dir}


def heard(control: socket.socket, deadline: float, secrets: Collection[str]) -> Loaded:
    """Everything the host says until it is ready. Raises Cut, or EffectFailed with the host's own reason."""
    tools: list[Tool] = []
    faults: list[str] = []
    loading: str | None = None
    poll = select.poll()
    poll.register(control, select.POLLIN)
    while True:
        if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            raise Cut(loading)
        match report(received(control), loading):
            case Loading(file=file):
                loading = file
            case Found() as found:
                loading = None
                tools += found.tools
                faults += found.faults
            case Ready():
                met, lacking = without_unmet_needs(tools, secrets)
                good, wrong = without_wrong_probes(met)
                return Loaded(good, (*faults, *lacking, *wrong))
            case Unable(message=message):
                raise EffectFailed("no_host", message)


def report(body: bytes, loading: str | None) -> Report:
    try:
        return json.decode(body, type=Report)
    except MsgspecError as exc:
        raise Cut(loading) from exc


def ended(process: subprocess.Popen[bytes], control: socket.socket) -> None:
    """End a host at once; its keepers end with it."""
    control.close()
    process.kill()
    process.wait()
