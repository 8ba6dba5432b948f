"""`ToolHost`: the daemon's one way to its tools. Owns the host process and the calls under way.

Holds no policy: which tools may run, retries and devices are decided above. It never forks and runs no tool code.
Every method may be called from any thread.
"""

import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path

from msgspec import Raw, json, structs

from rea_edge.errors import EffectFailed
from rea_edge.records import Args, Fault, Result, Tool
from rea_edge.toolhost import tree
from rea_edge.toolhost.faults import fault
from rea_edge.toolhost.frames import FRAME_BYTES, Order, Setup, pair, read_result, received
from rea_edge.toolhost.launch import Hosts, Loaded, Running, allowance, ended, launched

MARGIN_S = 2.0  # a keeper ends the tool at its deadline, the host a stuck keeper 1.5 s later; then the host is stuck
LOOK_S = 0.05  # how often a caller's Event is looked at
END_S = 4.0  # the host needs up to 2 s to end all below it


class ToolHost:
    """A host process with the tools of `files`, and the calls it runs.

    `memory_mib` and `cpu_s` bound one call; `load_s` bounds the loading of one file; `lock_s` how long a start waits
    for the host before this one to be gone. `user` is whom calls run as, where the daemon is root; with
    `sandbox_required` a tool that declares a sandbox does not run where the kernel has none. Of `secrets`, by name, a
    call is given those that its tool needs. `hosts` are all that this daemon has, by default this one alone. A host that
    died is replaced when the next `call` needs one, or by `start`.
    Tools whose declaration changed meanwhile are refused until the daemon takes the new ones.
    """

    def __init__(
        self,
        state_dir: Path,
        files: Sequence[Path],
        *,
        memory_mib: int,
        load_s: float = 10.0,
        python: str = sys.executable,
        cpu_s: int = 10,
        lock_s: float = 10.0,
        user: str = "",
        sandbox_required: bool = True,
        secrets: Mapping[str, str] | None = None,
        hosts: Hosts | None = None,
    ) -> None:
        names = tuple(dict.fromkeys(str(file.absolute()) for file in files))
        self._secrets = dict(secrets or {})
        self._hosts = hosts or Hosts()
        self._setup = Setup(
            state_dir=str(state_dir.absolute()),
            files=names,
            memory_mib=memory_mib,
            cpu_s=cpu_s,
            load_s=load_s,
            lock_s=lock_s,
            user=user,
            sandbox_required=sandbox_required,
            secrets=tuple(self._secrets),
            number=self._hosts.next_number(),
        )
        self._python = python
        self._changed = threading.Condition()  # guards the fields below
        self._running: Running | None = None
        self._start: Future[Running] | None = None
        self._stopping = False
        self._open: dict[str, socket.socket] = {}  # by request id

    def start(self) -> Loaded:
        """Start the host if none is alive, and give what the files declare. Never raises: what is wrong is a fault."""
        seconds = allowance(self._setup)
        try:
            return self._up(time.monotonic() + seconds).loaded
        except EffectFailed as exc:
            return Loaded(faults=(f"tool host: {exc.message}",))

    def call(
        self, tool: Tool, args: Args, request_id: str, seconds: float, cancel: threading.Event | None = None
    ) -> Result:
        """Run a tool and wait for its end, at most `seconds` (and a margin of 2 s if the host itself is stuck).

        Never raises. `cancel`, once set, ends the tool as `cancel(request_id)` does. Faults: see `faults`.
        """
        deadline = time.monotonic() + seconds
        try:
            body = json.encode(Order(request_id, tool.name, Raw(json.encode(args)), deadline))
        except (TypeError, ValueError, RecursionError) as exc:
            return fault("bad_args", f"the arguments are not JSON: {exc}")
        if len(body) > FRAME_BYTES:
            return fault("bad_args", f"the arguments are larger than {FRAME_BYTES // 1024} KiB")
        ours, theirs = pair()
        with ours:
            if not self._enter(request_id, ours):
                theirs.close()
                return fault("busy", f"a call {request_id} is under way")
            try:
                if tool.needs:
                    ours.send(json.encode({name: self._secrets[name] for name in tool.needs if name in self._secrets}))
                if refused := self._send(tool, body, theirs, deadline):
                    return refused
                return self._await(ours, deadline, cancel)
            finally:
                theirs.close()
                self._leave(request_id)

    def cancel(self, request_id: str) -> bool:
        """End a call's tool; its `call` returns `cancelled` once nothing of it is left. False if there is none."""
        with self._changed:
            ours = self._open.get(request_id)
            if ours is not None:
                hang_up(ours)
            return ours is not None

    def halt(self) -> int:
        """End every call under way, as `cancel` does; gives how many there were. Later calls are taken."""
        with self._changed:
            for ours in self._open.values():
                hang_up(ours)
            return len(self._open)

    def stop(self, drain_s: float) -> None:
        """Take no more calls, give those under way up to `drain_s`, then end the host and everything below it."""
        with self._changed:
            self._stopping = True
            self._changed.wait_for(lambda: not self._open, timeout=drain_s)
            running, self._running = self._running, None
        if running is None:
            return
        running.control.close()
        try:
            running.process.wait(END_S)
        except subprocess.TimeoutExpired:
            ended(running.process, running.control)

    def pids(self) -> tuple[int, ...]:
        """The host and all processes below it now."""
        running = self._running
        if running is None or running.process.poll() is not None:
            return ()
        return (running.process.pid, *tree.descendants(running.process.pid))

    @property
    def idle(self) -> bool:
        """No call is under way."""
        return not self._open

    @property
    def alive(self) -> bool:
        running = self._running
        return running is not None and running.process.poll() is None

    # --- inside

    def _up(self, deadline: float) -> Running:
        """The host that is alive, or a new one. Raises EffectFailed where there is none by `deadline`.

        A start goes on when the call that began it has no more time: else a board that needs longer to start a host
        than its calls may take would never have one again.
        """
        with self._changed:
            running = self._running
            if self._stopping:
                raise EffectFailed("no_host", "the tool host is stopping")
            if running is not None and running.process.poll() is None:
                return running
            if self._start is None:
                self._start = Future()
                threading.Thread(target=self._launch, args=(self._start,), name="host-start", daemon=True).start()
            start = self._start
        try:
            return start.result(max(0.0, deadline - time.monotonic()))
        except TimeoutError as exc:
            raise EffectFailed("no_host", "the tool host is still starting") from exc

    def _launch(self, start: "Future[Running]") -> None:
        """Start a host in place of the one that died, for all that wait for it."""
        old, running = self._running, None
        try:
            if old is not None:
                old.control.close()
            setup = structs.replace(self._setup, alone=not self._hosts.alone)
            running = launched(setup, self._python, allowance(setup))
            self._hosts.alone = True
            said = None
        except OSError as exc:
            said = EffectFailed("no_host", f"the tool host cannot be started: {exc}")
        except EffectFailed as exc:
            said = exc
        with self._changed:
            self._start = None
            if running is not None and self._stopping:
                ended(running.process, running.control)
                running, said = None, EffectFailed("no_host", "the tool host is stopping")
            self._running = running
        if running is not None:
            start.set_result(running)
        else:
            start.set_exception(said)

    def _send(self, tool: Tool, body: bytes, theirs: socket.socket, deadline: float) -> Fault | None:
        """Hand the call over; a host that turns out to be dead is replaced once."""
        for _ in range(2):
            try:
                running = self._up(deadline)
            except EffectFailed as exc:
                return fault("no_host", exc.message)
            if tool not in running.loaded.tools:
                return fault("unknown_tool", f"{tool.name} changed or did not load again", "reload the node")
            try:
                socket.send_fds(running.control, [body], [theirs.fileno()])
            except TimeoutError:
                end_stuck(running)
                self._await_end(running)
            except OSError:
                self._await_end(running)
            else:
                theirs.close()  # or we would hold the very socket whose closing tells that the host is gone
                return None
        return fault("no_host", "the tool host takes no calls")

    def _await(self, ours: socket.socket, deadline: float, cancel: threading.Event | None) -> Result:
        poll = select.poll()
        poll.register(ours, select.POLLIN)
        until, cancelled = deadline + MARGIN_S, False
        while (left := until - time.monotonic()) > 0:
            if cancel is not None and cancel.is_set() and not cancelled:
                cancelled, left = True, min(left, MARGIN_S)
                until = time.monotonic() + left
                hang_up(ours)
            if poll.poll((left if cancel is None or cancelled else min(left, LOOK_S)) * 1000 + 1):
                body = received(ours)
                gone = fault("host_gone", "the tool host ended during the call", "check whether it took effect")
                return read_result(body) if body else gone
        # Neither keeper nor host answers: a tool may have stopped both. Whatever is stuck, this ends it.
        running = self._running
        if running is not None:
            end_stuck(running)
        return fault("cancelled" if cancelled else "timeout", "the tool host was stuck and was ended")

    def _await_end(self, running: Running) -> None:
        """Its socket is closed, so it is ending; do not start a second one beside it."""
        try:
            running.process.wait(END_S)
        except subprocess.TimeoutExpired:
            running.process.kill()

    def _enter(self, request_id: str, ours: socket.socket) -> bool:
        with self._changed:
            return self._open.setdefault(request_id, ours) is ours

    def _leave(self, request_id: str) -> None:
        with self._changed:
            del self._open[request_id]
            self._changed.notify_all()


def end_stuck(running: Running) -> None:
    """End a host that was stopped, and what is below it, without its help."""
    for _ in range(3):  # what the first round leaves is what was started during it
        for pid in tree.descendants(running.process.pid):
            tree.kill(pid)
    running.process.kill()


def hang_up(ours: socket.socket) -> None:
    """Tell the keeper to end its tool; it can still answer."""
    try:
        ours.shutdown(socket.SHUT_WR)
    except OSError:
        return  # the other side ended already
