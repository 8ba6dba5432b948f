"""The keeper of one call: starts the tool in a child, ends it in time, ends all below it, reports, ends itself.

Runs in a process of its own, forked from the host, and never returns to the host's code. It ends the tool at its
deadline, when the caller asks or dies (the call's socket), when the host dies (the watched pipe), when the output
passes its cap, or when the tree grows too large. Nothing of the tree is left when the result is sent.
"""

import os
import select
import signal
import socket
import sys
import time
from typing import NoReturn

from msgspec import DecodeError, Raw, json

from rea_edge import memory
from rea_edge import tool as authors
from rea_edge.records import Fault, Ok, Result
from rea_edge.toolhost import tree
from rea_edge.toolhost.faults import fault
from rea_edge.toolhost.frames import given, read_result, too_deep
from rea_edge.toolhost.limits import FLOOD_BYTES, LOG_BYTES, close_all_but, stay_alone
from rea_edge.toolhost.work import Job, done

TICK_S = 0.2  # how often the memory of the tree is added up
SWEEP_S = 1.0  # a process that cannot be killed (a wedged driver) holds the report no longer than this
LOG_LINES = 100
LOG_WAIT_MS = 20
WRAPPER_BYTES = 64  # `{"kind":"ok","data":}` around a result
TAIL_BYTES = 400  # of standard error, shown when a program fails


class HostGone(Exception):
    """The host ended: there is nobody to report to."""


class Stream:
    """What a child writes to one pipe: the first `keep` bytes, and whether there were more than `flood`."""

    def __init__(self, keep: int, flood: int) -> None:
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        self.keep = keep
        self.flood = flood
        self.total = 0
        self.kept = bytearray()
        self.tail = b""

    def read(self) -> bool:
        """Take what is there; False at its end."""
        try:
            block = os.read(self.reader, 65536)
        except BlockingIOError:
            return True
        self.total += len(block)
        self.kept += block[: self.keep - len(self.kept)]
        self.tail = (self.tail + block)[-TAIL_BYTES:]
        return bool(block)

    @property
    def flooded(self) -> bool:
        return self.total > self.flood

    def drain(self) -> None:
        """Take the rest of what an ended child wrote; another process may still be writing."""
        before = -1
        while before != self.total and not self.flooded:
            before = self.total
            self.read()


class Keeper:
    """One call under way."""

    def __init__(self, job: Job, call: socket.socket, host_fd: int) -> None:
        self.job = job
        self.call = call
        self.host_fd = host_fd
        cap = job.limits.result_bytes
        self.report = Stream(cap + WRAPPER_BYTES, cap + WRAPPER_BYTES)
        self.out = Stream(cap, cap)
        self.log = Stream(LOG_BYTES, FLOOD_BYTES)
        self.secrets = given(call) if job.in_secret else {}
        self.streams = {stream.reader: stream for stream in (self.report, self.out, self.log)}
        self.child = os.fork()
        if self.child == 0:
            self.run_child()
        if self.secrets:
            memory.shut()
        self.child_fd = os.pidfd_open(self.child)
        for stream in self.streams.values():
            os.close(stream.writer)

    def run_child(self) -> NoReturn:
        """The tool's process: its keeper's descriptors are closed before anything of the tool runs."""
        code = 1
        try:
            null = os.open("/dev/null", os.O_RDONLY)
            os.dup2(null, 0)
            os.dup2(self.out.writer if self.job.program else self.log.writer, 1)
            os.dup2(self.log.writer, 2)
            close_all_but({self.report.writer})
            stay_alone(self.job.limits, self.job.request_id)
            if self.secrets:
                authors.given.update(self.secrets)
                memory.shut()
            write_all(self.report.writer, json.encode(done(self.job)))
            sys.stdout.flush()
            sys.stderr.flush()
            code = 0
        finally:
            os._exit(code)

    def watch(self) -> Fault | None:
        """Wait for the child's end (None), or name why it must be ended. Raises HostGone."""
        poll = select.poll()
        for descriptor in (*self.streams, self.child_fd, self.call.fileno(), self.host_fd):
            poll.register(descriptor, select.POLLIN)
        next_look = time.monotonic() + TICK_S
        while True:
            now = time.monotonic()
            if now >= self.job.deadline:
                return fault("timeout", "it did not end in time and was ended")
            if now >= next_look:
                next_look = now + TICK_S
                if too_large := self.too_large():
                    return too_large
            ready = dict(poll.poll(max(1.0, (min(self.job.deadline, next_look) - now) * 1000)))
            if self.host_fd in ready:
                raise HostGone
            for descriptor in ready.keys() & self.streams.keys():
                if not self.streams[descriptor].read():
                    poll.unregister(descriptor)
            if any(stream.flooded for stream in self.streams.values()):
                return self.flood()
            if self.child_fd in ready:
                return None
            if self.call.fileno() in ready:
                return fault("cancelled", "it was cancelled and ended")

    def too_large(self) -> Fault | None:
        limit = self.job.limits.memory_mib
        if tree.private_mib(tree.descendants(os.getpid())) <= limit:
            return None
        return fault("memory", f"it and what it started used more than {limit} MiB")

    def flood(self) -> Fault:
        return fault("output", f"it wrote more than {self.job.limits.result_bytes // 1024} KiB", "ask for less")

    def verdict(self) -> Result:
        """What an ended child gave."""
        _, status, usage = os.wait4(self.child, 0)
        for stream in self.streams.values():
            stream.drain()
        if any(stream.flooded for stream in self.streams.values()):
            return self.flood()
        code = os.waitstatus_to_exitcode(status)
        if self.report.kept:
            return read_result(bytes(self.report.kept))
        if code < 0:
            # The kernel ends what ignores SIGXCPU by SIGKILL one second later.
            spent = usage.ru_utime + usage.ru_stime >= self.job.limits.cpu_s
            return self.spent() if spent or -code == signal.SIGXCPU else self.killed(-code)
        if not self.job.program:
            return fault("crashed", f"it ended by exit {code} without a result")
        return self.failed(code) if code else self.printed()

    def spent(self) -> Fault:
        return fault("cpu", f"it used more than {self.job.limits.cpu_s} s of processor and was ended")

    def killed(self, number: int) -> Fault:
        why = ": if nobody killed it, the system ran out of memory" if number == signal.SIGKILL else ""
        return fault("crashed", f"it was ended by {signal.Signals(number).name}{why}")

    def failed(self, code: int) -> Fault:
        tail = self.shown(self.log.tail or self.out.tail, front=True)
        said = tail.decode("utf-8", "replace").strip()
        return fault("tool_error", f"exit {code}: {said}" if said else f"exit {code}")

    def printed(self) -> Result:
        """Standard output as the JSON value it is, else as text (also where nobody could read it, nested so deep);
        bytes that are not UTF-8 become U+FFFD."""
        body = bytes(self.out.kept)
        try:
            text = too_deep(json.decode(body))
        except (DecodeError, RecursionError):
            text = True
        if text:
            body = json.encode(body.decode("utf-8", "replace").removesuffix("\n"))
        return self.flood() if len(body) > self.job.limits.result_bytes else Ok(data=Raw(body))

    def write_log(self) -> None:
        """What the tool printed, line by line, under the name of its call."""
        head = f"event=tool_output tool={self.job.tool} request_id={self.job.request_id} text="
        kept = self.shown(bytes(self.log.kept), back=self.log.total > len(self.log.kept))
        lines = kept.decode("utf-8", "replace").splitlines()
        if self.log.total > len(self.log.kept) or len(lines) > LOG_LINES:
            lines[LOG_LINES:] = ["(more was dropped)"]
        write_if_taken(2, "".join(f"{head}{line}\n" for line in lines).encode())

    def shown(self, body: bytes, *, front: bool = False, back: bool = False) -> bytes:
        """What the tool wrote, without the secrets that it was given; `front`, `back`: where it may have been cut."""
        if not self.secrets:
            return body
        from rea_edge import hidden  # for a call that has secrets alone

        return hidden.uncut(body, hidden.forms(self.secrets.values()), front=front, back=back)


def keep(job: Job, call: socket.socket, host_fd: int, lock_fd: int) -> NoReturn:
    """Be the keeper of a job. Exit 0 says that the result was sent (or nobody was left to take it)."""
    code = 1
    try:
        close_all_but({call.fileno(), host_fd, lock_fd})
        tree.adopt_orphans()
        keeper = Keeper(job, call, host_fd)
        try:
            result = keeper.watch() or keeper.verdict()
        finally:
            tree.sweep(SWEEP_S)
        keeper.write_log()
        report(call, result)
        code = 0
    except HostGone:
        code = 0
    except BaseException:  # nothing may climb back into the host's loop, of which this process is a copy
        sys.__excepthook__(*sys.exc_info())
    finally:
        os._exit(code)


def report(call: socket.socket, result: Result) -> None:
    try:
        call.send(json.encode(result))
    except OSError:
        return  # the caller is gone; the tool was ended for it


def write_if_taken(descriptor: int, body: bytes) -> None:
    """Write to the daemon's log, or drop it where nobody reads the other end: a call must not wait for that."""
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    while body and poll.poll(LOG_WAIT_MS):
        try:
            body = body[os.write(descriptor, body[: select.PIPE_BUF]) :]
        except OSError:
            return


def write_all(descriptor: int, body: bytes) -> None:
    try:
        while body:
            body = body[os.write(descriptor, body) :]
    except OSError:
        return
