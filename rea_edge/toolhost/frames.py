"""What daemon, host and keepers say to each other: one JSON object a packet, over SOCK_SEQPACKET sockets.

Holds shapes and how one packet is sent or received; no policy. The daemon sends `Setup`, then an `Order` for each
call together with one end of a fresh socket pair. That socket is the call: its keeper answers on it with one
`records.Result`; when the daemon shuts it down for writing, or dies, the keeper ends the tool.
"""

import socket

from msgspec import DecodeError, Raw, Struct, ValidationError, json

from rea_edge.records import Ok, Result, Tool
from rea_edge.toolhost.faults import fault

FRAME_BYTES = 256 * 1024
DEEPEST = 64  # lists and objects inside each other in a result: far below what any reader's stack takes


class Setup(Struct, frozen=True):
    """The daemon's first packet. `lock_s`: how long to wait for the host before this one to be gone.

    `number` tells the sets of tools of one daemon apart: each has a host of its own. `alone`: no host of any set may be
    left, for the daemon does not know yet whether one before it has left some.
    """

    state_dir: str
    files: tuple[str, ...]
    memory_mib: int
    cpu_s: int
    load_s: float
    lock_s: float
    user: str = ""
    sandbox_required: bool = True
    secrets: tuple[str, ...] = ()  # the names of those that a tool may need
    number: int = 0
    alone: bool = True


class Loading(Struct, frozen=True, tag="loading"):
    """The file passed its trial and is now loaded in the host; if the host ends now, this file is why."""

    file: str


class Found(Struct, frozen=True, tag="found"):
    tools: tuple[Tool, ...] = ()
    faults: tuple[str, ...] = ()


class Ready(Struct, frozen=True, tag="ready"):
    """Calls are taken."""


class Unable(Struct, frozen=True, tag="unable"):
    """The host ends without having run anything."""

    message: str


Report = Loading | Found | Ready | Unable


class Order(Struct, frozen=True):
    """One call. `deadline` is monotonic seconds, which all processes of a machine share.

    The secrets that its tool needs are no part of it: they wait on the call's own socket, for its keeper. The host, of
    which every tool's process is a copy, never has them in its memory."""

    request_id: str
    tool: str
    args: Raw
    deadline: float


def pair() -> tuple[socket.socket, socket.socket]:
    """Two connected ends through which a packet of FRAME_BYTES fits."""
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in ends:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, FRAME_BYTES)
    return ends


def received(end: socket.socket) -> bytes:
    """The next packet, or nothing when the other side is gone (or silent, where `end` does not wait)."""
    try:
        return end.recv(FRAME_BYTES)
    except OSError:
        return b""


def given(end: socket.socket) -> dict[str, str]:
    """The secrets that wait on a call's socket; none where the caller is gone, and the call with it."""
    body = received(end)
    return json.decode(body, type=dict[str, str]) if body else {}


def read_result(body: bytes) -> Result:
    """A tool's child wrote this, so it may be anything. What comes out of it can be read by everybody after us."""
    try:
        result = json.decode(body, type=Result)
        if isinstance(result, Ok) and too_deep(json.decode(result.data)):
            return fault("bad_result", f"the result is nested deeper than {DEEPEST} levels")
    except (ValidationError, DecodeError, RecursionError) as exc:
        return fault("bad_result", f"the result cannot be read: {exc}")
    return result


def too_deep(value: object, levels: int = DEEPEST) -> bool:
    match value:
        case list():
            inner = value
        case dict():
            inner = list(value.values())
        case _:
            return False
    return levels == 0 or any(too_deep(item, levels - 1) for item in inner)
