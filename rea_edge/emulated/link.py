"""One connection of a client: its socket, what came in, what waits to go out, and the faults put between.

Holds no sessions and no meaning of packets: see `exchange`. Only the broker's thread touches a link.
"""

import socket
from collections import deque
from collections.abc import Callable
from math import inf
from typing import Literal, NamedTuple

from rea_edge.emulated.packets import Incoming, Outgoing, Packet
from rea_edge.emulated.wire import encode, frame_end

Verdict = Literal["drop", "cut"] | float | None
Hook = Callable[[str, Packet], Verdict]
SendHook = Callable[[str, Packet], Verdict | Outgoing]

READ_BYTES = 65_536
# Beyond this much unsent output a link is not read from, QoS 0 is dropped and QoS 1 waits in its session's queue.
BACKLOG_BYTES = 1_048_576
LINGER_S = 1.0
LARGEST_PACKET_BYTES = 268_435_460


class Peer(NamedTuple):
    """Who is at the other end, from its CONNECT. `version` is 4 (3.1.1) or 5."""

    client_id: str
    username: str | None
    version: int
    keepalive_s: int
    receive_maximum: int
    packet_bytes: int


class Link:
    """A connected socket. It asks for a flush by putting itself into `dirty`."""

    def __init__(
        self,
        sock: socket.socket,
        dirty: set["Link"],
        on_send: Callable[["Link", Packet], Verdict | Outgoing],
        now_s: float,
    ) -> None:
        self.sock = sock
        self.peer: Peer | None = None
        self.broken = False  # to be closed at once, as a network would
        self.closing = False  # to be closed once everything is sent
        self.mask = 0  # the events the selector watches
        self.heard_s = self.since_s = now_s
        self.delayed: Incoming | None = None  # an incoming packet that waits for `resume_s`; nothing behind it is read
        self.resume_s = inf
        self.closes_s = inf
        self._dirty = dirty
        self._on_send = on_send
        self._inbox = bytearray()
        self._outbox = bytearray()
        self._held: deque[tuple[float, bytes]] = deque()  # delayed output, and all behind it: (seconds, bytes)
        self._held_bytes = 0
        self.release_s = inf

    @property
    def client_id(self) -> str:
        return self.peer.client_id if self.peer else ""

    @property
    def version(self) -> int:
        return self.peer.version if self.peer else 4

    @property
    def open(self) -> bool:
        return not (self.broken or self.closing)

    def backlog_bytes(self) -> int:
        return len(self._outbox) + self._held_bytes

    def has_room(self) -> bool:
        return self.open and self.backlog_bytes() < BACKLOG_BYTES

    def wants(self) -> tuple[bool, bool]:
        """Whether to watch the socket for reading, and for writing."""
        reads = self.closing or (self.delayed is None and self.backlog_bytes() < BACKLOG_BYTES)
        return reads and not self.broken, bool(self._outbox) and not self.broken

    def send(self, packet: Outgoing) -> bool:
        """Put a packet behind the others. False: it is larger than the client takes and was left out."""
        if not self.open:
            return True
        raw = encode(packet, self.version)
        if len(raw) > (self.peer.packet_bytes if self.peer else LARGEST_PACKET_BYTES):
            return False
        match self._on_send(self, packet):
            case "drop":
                return True
            case "cut":
                self.cut()
                return True
            case None:
                delay_s = 0.0
            case float() | int() as seconds:
                delay_s = seconds
            case other:
                raw, delay_s = encode(other, self.version), 0.0
        self._dirty.add(self)
        if delay_s or self._held:
            self._held.append((delay_s, raw))
            self._held_bytes += len(raw)
        else:
            self._outbox += raw
        return True

    def cut(self) -> None:
        self.broken = True
        self._dirty.add(self)

    def close(self, now_s: float) -> None:
        """Close in order: what is in the outbox goes out first."""
        self.closing = True
        self.closes_s = now_s + LINGER_S
        self._held.clear()
        self._held_bytes = 0
        self._dirty.add(self)

    def receive(self, now_s: float) -> None:
        """Read what is there; the end of the stream or an error breaks the link."""
        try:
            chunk = self.sock.recv(READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            chunk = b""
        if not chunk:
            self.cut()
        elif not self.closing:
            self.heard_s = now_s
            self._inbox += chunk

    def frame(self, limit_bytes: int) -> tuple[int, bytes] | None:
        """The next whole packet as head and body, or None. Raises `Malformed` for a length over the limit."""
        if not self.open or self.delayed is not None or self.backlog_bytes() >= BACKLOG_BYTES:
            return None
        if (span := frame_end(self._inbox, limit_bytes)) is None:
            return None
        head, body = self._inbox[0], bytes(self._inbox[span[0] : span[1]])
        del self._inbox[: span[1]]
        return head, body

    def flush(self, now_s: float) -> None:
        """Write as much as the socket takes; an orderly close continues when all is out."""
        self._release(now_s)
        if self.broken:
            return
        try:
            while self._outbox:
                sent = self.sock.send(self._outbox)
                del self._outbox[:sent]
            if self.closing:
                # Then read until the client closes: closing a socket with unread input would reset the connection
                # and could destroy the DISCONNECT or CONNACK on its way.
                self.sock.shutdown(socket.SHUT_WR)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.cut()

    def due_s(self, connect_s: float) -> float:
        """When something must happen here without the client's doing."""
        return min(self.release_s, self.resume_s, self.deadline_s(connect_s))

    def deadline_s(self, connect_s: float) -> float:
        """When the client has been silent for too long, or an orderly close has taken too long."""
        if self.closing:
            return self.closes_s
        if self.peer is None:
            return self.since_s + connect_s
        if self.delayed is not None or not self.peer.keepalive_s:
            return inf
        return self.heard_s + 1.5 * self.peer.keepalive_s

    def _release(self, now_s: float) -> None:
        """Move what was held long enough to the outbox; the delay of a packet starts when it is the first."""
        while self._held:
            delay_s, raw = self._held[0]
            if self.release_s == inf:
                self.release_s = now_s + delay_s
            if self.release_s > now_s:
                return
            self.release_s = inf
            self._held.popleft()
            self._held_bytes -= len(raw)
            self._outbox += raw
        self.release_s = inf
