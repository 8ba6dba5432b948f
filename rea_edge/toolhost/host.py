"""The host: loads the tools once, then forks a keeper for each call. Single-threaded; it waits for no call.

Holds the host's start and its loop. It runs no tool itself; loading a tool file is the one thing of an author that
happens in it, after the same file passed a trial in a short-lived child. When the daemon's end of the control socket
closes, it ends everything below it and itself.
"""

import errno
import fcntl
import gc
import os
import resource
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from typing import NoReturn

from msgspec import MsgspecError, json

from rea_edge.errors import ToolInvalid
from rea_edge.records import Args, Ok, Tool
from rea_edge.toolhost import tree
from rea_edge.toolhost.confine import Confinement
from rea_edge.toolhost.faults import fault
from rea_edge.toolhost.frames import (
    FRAME_BYTES,
    Found,
    Loading,
    Order,
    Ready,
    Report,
    Setup,
    Unable,
    pair,
    read_result,
    received,
)
from rea_edge.toolhost.keepers import GRACE_S, Keepers, answer
from rea_edge.toolhost.limits import TOP_DESCRIPTOR, Limits
from rea_edge.toolhost.load import functions
from rea_edge.toolhost.work import Job, function_call, program_call, trial

LOAD_MEMORY_MIB = 256
LOAD_BYTES = 200 * 1024


class Host:
    def __init__(self, control: socket.socket, setup: Setup) -> None:
        self.control = control
        self.setup = setup
        self.tools: dict[str, Tool] = {}
        self.functions: dict[str, Callable[..., object]] = {}
        self.lock_path = os.path.join(setup.state_dir, "host.lock")
        self.lock_fd = os.open(self.lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self.keepers = Keepers(self.lock_fd)

    # --- start

    def start(self) -> bool:
        """Take the lock, load the files, say what was found. False: the last packet says why not."""
        if not locked(self.lock_fd, self.setup):
            seconds = f"{self.setup.lock_s:g} s"
            self.say(Unable(f"the tool host before this one still runs after {seconds} ({self.lock_path} is locked)"))
            return False
        for found in without_doubles([self.tried(file) for file in self.setup.files]):
            self.say(self.loaded(found))
        self.keepers.end_all()  # programs that a file started while it was loaded
        sys.stdout.flush()
        gc.collect()
        gc.freeze()  # children then share these pages instead of copying them at their first collection
        self.say(Ready())
        return True

    def say(self, report: Report) -> None:
        try:
            self.control.send(json.encode(report))
        except OSError:
            return  # the daemon is gone, which the loop sees next

    def tried(self, file: str) -> Found:
        """The declarations of one file, from a child that ends with them."""
        seconds = self.setup.load_s
        ours, theirs = pair()
        limits = Limits(LOAD_MEMORY_MIB, max(1, round(seconds) + 1), LOAD_BYTES)
        deadline = time.monotonic() + seconds + 0.5  # the alarm in the child is first and knows the line
        self.keepers.start(Job("", file, trial(file, seconds), deadline, limits), theirs)
        with ours:
            while self.keepers.busy and time.monotonic() < deadline + 2 * GRACE_S:
                if self.control.fileno() in self.ready():
                    self.end()
            ours.setblocking(False)
            result = read_result(received(ours))
        self.keepers.end_all()
        if isinstance(result, Ok):
            return json.decode(result.data, type=Found)
        return Found(faults=(f"{file}: does not load: {result.fault}: {result.message}",))

    def loaded(self, found: Found) -> Found:
        """Load a file that passed its trial into this process."""
        if not found.tools or found.tools[0].kind != "python":
            self.tools.update({tool.name: tool for tool in found.tools})
            return found
        file = found.tools[0].source
        self.say(Loading(file))
        try:
            known = functions(file, self.setup.load_s)
        except ToolInvalid as exc:
            return Found(faults=(*found.faults, str(exc)))
        tools = tuple(tool for tool in found.tools if tool.name in known)
        self.functions.update({tool.name: known[tool.name] for tool in tools})
        self.tools.update({tool.name: tool for tool in tools})
        return Found(tools=tools, faults=found.faults)

    # --- calls

    def serve(self) -> NoReturn:
        """Take calls until the daemon's end closes."""
        while True:
            if self.control.fileno() in self.ready():
                self.take()

    def ready(self) -> set[int]:
        """Wait until something happens, and do what keepers ask for; gives the descriptors.

        New calls come after that: they may be given the descriptor numbers of those that ended.
        """
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        wait_s = self.keepers.register(poll)
        ready = {descriptor for descriptor, _ in poll.poll(None if wait_s is None else wait_s * 1000 + 1)}
        self.keepers.settle(ready)
        return ready

    def take(self) -> None:
        """Start the next call, or end everything if there will be none."""
        body, descriptors, _, _ = socket.recv_fds(self.control, FRAME_BYTES, 1)
        if not descriptors:
            self.end()
        call = socket.socket(fileno=descriptors[0])
        try:
            order = json.decode(body, type=Order)
            args = json.decode(order.args, type=Args)
        except (MsgspecError, RecursionError) as exc:
            answer(call, fault("bad_args", f"the call cannot be read: {exc}"))
            return
        tool = self.tools.get(order.tool)
        if tool is None:
            answer(call, fault("unknown_tool", f"there is no tool {order.tool!r}"))
            return
        program = tool.kind == "command"
        work = program_call(tool, args) if program else function_call(self.functions[tool.name], args)
        limits = Limits(self.setup.memory_mib, self.setup.cpu_s)
        confinement = Confinement(tool.sandbox, tool.source, self.setup.user, self.setup.sandbox_required)
        self.keepers.start(
            Job(order.request_id, tool.name, work, order.deadline, limits, program, confinement, bool(tool.needs)), call
        )

    def end(self) -> NoReturn:
        self.keepers.end_all()
        os._exit(0)


def locked(lock_fd: int, setup: Setup) -> bool:
    """Hold the lock, which proves that the host before and all its keepers are gone; False: they are not.

    Two locks on one file. All of it, shared by the hosts of every set of tools and had alone once by a daemon's first:
    so a start after a crash waits for all of them. And the byte of this set's number, for its next host.
    Keepers inherit both; tools do not.
    """
    end = time.monotonic() + setup.lock_s
    while not (byte_locked(lock_fd, setup.number) and file_locked(lock_fd, setup.alone)):
        set_byte(lock_fd, setup.number, fcntl.F_UNLCK)
        if time.monotonic() >= end:
            return False
        time.sleep(0.02)
    return True


def file_locked(lock_fd: int, alone: bool) -> bool:  # noqa: FBT001  # as the daemon's packet says it
    try:
        fcntl.flock(lock_fd, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    fcntl.flock(lock_fd, fcntl.LOCK_SH)
    return True


def byte_locked(lock_fd: int, number: int) -> bool:
    try:
        set_byte(lock_fd, number, fcntl.F_WRLCK)
    except OSError as exc:
        if exc.errno not in (errno.EAGAIN, errno.EACCES):
            raise
        return False
    return True


def set_byte(lock_fd: int, number: int, lock: int) -> None:
    """A lock of the open file, which children share, and not of this process, which they would not."""
    fcntl.fcntl(lock_fd, fcntl.F_OFD_SETLK, struct.pack("hhqqi", lock, os.SEEK_SET, number, 1, 0))


def without_doubles(found: list[Found]) -> list[Found]:
    """The same, without any tool that two files declare: which of them was meant is not ours to guess."""
    owners: dict[str, list[str]] = {}
    for tool in (tool for one in found for tool in one.tools):
        owners.setdefault(tool.name, []).append(tool.source)
    doubled = {name: files for name, files in owners.items() if len(files) > 1}
    faults = tuple(
        f"{files[0]}: {name} is declared in {files[1]} too: rename one of them, or take a file out of [node] tools"
        for name, files in doubled.items()
    )
    single = [Found(tuple(tool for tool in one.tools if tool.name not in doubled), one.faults) for one in found]
    return [*single, Found(faults=faults)] if faults else single


def main() -> None:
    """Be the host of the daemon at the other end of standard input."""
    control = socket.socket(fileno=os.dup(0))
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, 0)
    os.close(null)
    os.set_inheritable(control.fileno(), False)
    # The daemon decides when to end; what reaches its whole group must not end a running tool.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    ceiling = TOP_DESCRIPTOR if hard == resource.RLIM_INFINITY else min(hard, TOP_DESCRIPTOR)
    resource.setrlimit(resource.RLIMIT_NOFILE, (ceiling, hard))
    sys.stdout.reconfigure(line_buffering=True, errors="backslashreplace")  # type: ignore[union-attr]  # a text file
    tree.adopt_orphans()
    host = Host(control, json.decode(received(control), type=Setup))
    if host.start():
        host.serve()
