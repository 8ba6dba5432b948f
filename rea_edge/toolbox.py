"""Which tools exist and how a call of one runs: its device, its attempts, its time. Runs nothing itself.

Holds what lies between a gate's yes and the tool host. Validation, policy and the journal are the caller's.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Protocol as Port
from weakref import WeakValueDictionary

from msgspec import Struct, json, structs

from rea_edge.config import Settings, tool_files
from rea_edge.latency import Latencies
from rea_edge.records import Args, Fault, Ok, Result, Tool, ToolKind
from rea_edge.toolhost.client import ToolHost
from rea_edge.toolhost.faults import fault
from rea_edge.toolhost.launch import Hosts

AGAIN = frozenset({"tool_error", "timeout", "crashed", "no_broker", "broker_gone"})  # what another attempt may mend
PAUSE_S = 0.2  # before the second attempt, twice that before the third
LOOK_S = 0.05  # how often a waiting call looks at its caller's Event


class Asker(Struct, frozen=True, kw_only=True):
    """For whom a call is made: the names it came by, the newest first, and the trace it belongs to."""

    via: tuple[str, ...] = ()
    trace: str = ""
    tainted: bool = False  # a request that goes out for it says so too: see `taint`


class Attempt(Struct, frozen=True, kw_only=True):
    """One attempt at a call: `args` are valid, `cancel` ends it early, `seconds` is all it may take."""

    tool: Tool
    args: Args
    request_id: str
    seconds: float
    cancel: threading.Event
    asker: Asker


class Carrier(Port):
    """What carries out the calls of one kind of tool. Never raises: what goes wrong is a fault."""

    def attempt(self, attempt: Attempt) -> Result: ...


class Elsewhere(Port):
    """Tools that are not loaded here, and come and go while the node runs."""

    @property
    def tools(self) -> Mapping[str, Tool]:
        """Those that may be called now."""
        ...

    @property
    def withheld(self) -> Mapping[str, str]:
        """The others, each with the reason."""
        ...

    def recall(self, tool_name: str, request_id: str, seconds: float) -> Result | None:
        """How an earlier call ended, by the word of who carries it out; None where he does not know. Starts nothing."""
        ...


class Hosted:
    """Tools that are code: their calls run in the tool host."""

    def __init__(self, host: ToolHost) -> None:
        self._host = host

    def attempt(self, attempt: Attempt) -> Result:
        return self._host.call(attempt.tool, attempt.args, attempt.request_id, attempt.seconds, attempt.cancel)


class Toolbox:
    """The tools of a node by name. `carriers` are there for the kind of each of them, `devices` for all sets of tools
    that are in use; `elsewhere` has the tools of others."""

    def __init__(
        self,
        carriers: Mapping[ToolKind, Carrier],
        tools: Sequence[Tool],
        devices: "Devices | None" = None,
        elsewhere: Elsewhere | None = None,
    ) -> None:
        self._loaded: dict[str, Tool] = {tool.name: tool for tool in tools}
        self._elsewhere = elsewhere
        self.latencies = Latencies()
        self._carriers = carriers
        self._devices = devices or Devices()
        self._queues: dict[str, Queue] = {name: self._devices.queue(name) for name in map(device_of, tools)}

    @property
    def tools(self) -> dict[str, Tool]:
        """Those that may be called now."""
        return self._loaded if self._elsewhere is None else {**self._loaded, **self._elsewhere.tools}

    @property
    def withheld(self) -> Mapping[str, str]:
        """Tools that are configured and may not be called now, each with the reason."""
        return {} if self._elsewhere is None else self._elsewhere.withheld

    @property
    def tools_hash(self) -> str:
        """Changes when any declaration does; the place of the file does not count."""
        return hash_of(list(self.tools.values()))

    def run(
        self,
        tool_name: str,
        args: Args,
        request_id: str,
        seconds: float,
        cancel: threading.Event | None = None,
        starting: Callable[[], bool] | None = None,
        *,
        once: bool = False,
        asker: Asker = Asker(),  # noqa: B008 - a frozen value
    ) -> Result:
        """Run a tool, waiting for its device, within `seconds` for all of it and `timeout_s` for each attempt.

        `args` are valid already. `read` and `idempotent` tools are tried again as often as they declare, with the
        same request id, unless this call may run `once` only. `starting` is asked once, when the device is ours and
        nothing has started: no means `cancelled`. `busy` means that the device was not free in time. Raises only what
        `starting` raises.
        """
        tool = self.tools.get(tool_name)
        if tool is None:
            return fault("unknown_tool", f"there is no tool {tool_name!r}")
        deadline = time.monotonic() + seconds
        stop = cancel or threading.Event()
        queue = self._queues.setdefault(device_of(tool), self._devices.queue(device_of(tool)))
        with queue.turn(tool.effect == "read", deadline, stop) as ours:
            if ours and starting is not None and not starting():
                return fault("cancelled", "it was cancelled before it started")
            if ours:
                retries = 0 if once or tool.effect == "once" else tool.retries
                attempt = Attempt(tool=tool, args=args, request_id=request_id, seconds=0, cancel=stop, asker=asker)
                return self._attempts(attempt, deadline, retries)
        if stop.is_set():
            return fault("cancelled", "it was cancelled while it waited for its device")
        return fault("busy", f"the device of {tool_name} was not free within {seconds:g} s", "try again later")

    def recall(self, tool_name: str, request_id: str, seconds: float) -> Result | None:
        """How a call ended that somebody else carries out, whether or not the tool may be called now."""
        return None if self._elsewhere is None else self._elsewhere.recall(tool_name, request_id, seconds)

    def _attempts(self, attempt: Attempt, deadline: float, retries: int) -> Result:
        tool, carrier = attempt.tool, self._carriers[attempt.tool.kind]
        for number in range(retries + 1):
            left = max(0.0, deadline - time.monotonic())
            began_s = time.monotonic()
            result = carrier.attempt(structs.replace(attempt, seconds=min(tool.timeout_s, left)))
            ended_s = time.monotonic()
            self.latencies.note(tool.name, result, ended_s - began_s, ended_s)
            pause = PAUSE_S * (number + 1)
            if number == retries or not mendable(result) or time.monotonic() + pause >= deadline:
                break
            if attempt.cancel.wait(pause):
                break
        return result


def carriers_of(host: ToolHost) -> dict[ToolKind, Carrier]:
    """What carries out the tools that a host has loaded."""
    hosted = Hosted(host)
    return {"python": hosted, "command": hosted}


def host_of(settings: Settings, folder: Path, hosts: Hosts | None = None) -> ToolHost:
    """A host, not started yet, for the tools of these settings; `folder` is its lock's and the tools' own."""
    return ToolHost(
        folder,
        tool_files(settings),
        memory_mib=settings.memory.tool_mib,
        user=settings.tools.user,
        sandbox_required=settings.tools.sandbox == "required",
        secrets={name: secret.reveal() for name, secret in settings.tool_secrets.items()},
        hosts=hosts,
    )


def hash_of(tools: Sequence[Tool]) -> str:
    """The hash of a set of declarations, in whatever order."""
    told = [structs.replace(tool, source="") for tool in sorted(tools, key=lambda tool: tool.name)]
    return "sha256:" + sha256(json.encode(told, order="deterministic")).hexdigest()


class Queue:
    """Who may use one device: any number of readers, or one other, in the order they came.

    Order is what keeps a writer from waiting for ever behind readers that overlap, and readers behind writers.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._line: list[Turn] = []  # those in front use the device, the rest wait

    @contextmanager
    def turn(self, shares: bool, deadline: float, cancel: threading.Event) -> Iterator[bool]:
        """Whether the device is ours; it is until the block ends."""
        turn = Turn(shares)
        with self._changed:
            self._line.append(turn)
        try:
            yield self._wait(turn, deadline, cancel)
        finally:
            with self._changed:
                self._line.remove(turn)
                self._changed.notify_all()

    def _wait(self, turn: "Turn", deadline: float, cancel: threading.Event) -> bool:
        with self._changed:
            while not self._free_for(turn):
                left = deadline - time.monotonic()
                if left <= 0 or cancel.is_set():
                    return False
                self._changed.wait(min(left, LOOK_S))
            return not cancel.is_set()

    def _free_for(self, turn: "Turn") -> bool:
        ahead = self._line[: self._line.index(turn)]
        return not ahead or (turn.shares and all(one.shares for one in ahead))


class Devices:
    """The queue of each device that any set of tools uses: two of them may want the same one while a reload goes on."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queues: WeakValueDictionary[str, Queue] = WeakValueDictionary()

    def queue(self, device: str) -> Queue:
        with self._lock:
            return self._queues.setdefault(device, Queue())


class Turn:
    """One call's place in the line of a device."""

    def __init__(self, shares: bool) -> None:
        self.shares = shares


def device_of(tool: Tool) -> str:
    """Calls on one device exclude each other; by default that is the file of a Python tool, else the tool itself."""
    return tool.device or (tool.source if tool.kind == "python" else f"{tool.kind} {tool.name}")


def mendable(result: Result) -> bool:
    match result:
        case Ok():
            return False
        case Fault(fault=name):
            return name in AGAIN
