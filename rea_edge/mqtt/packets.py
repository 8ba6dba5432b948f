"""A socket that gives paho whole MQTT packets and never one above the limit. Must not know what they mean.

MQTT 3.1.1 has no way to tell the broker our packet limit, and paho buffers what comes. So the head of each packet
is read here first; of a PUBLISH that is too large only topic and packet id are passed on, with an empty payload and
`cut` set, and the rest is read and forgotten. The message can then be acknowledged, else it would come for ever.
(On a WebSocket paho still holds one frame of it.)
"""

import ssl
from collections.abc import Callable
from typing import Protocol

PUBLISH = 0x30
PINGRESP = b"\xd0\x00"
CHUNK_BYTES = 65536


class Stream(Protocol):
    """What we need of a socket: plain, TLS, or paho's WebSocket."""

    def recv(self, size: int, /) -> bytes: ...
    def send(self, data: bytes | bytearray, /) -> int: ...
    def close(self) -> None: ...
    def fileno(self) -> int: ...
    def setblocking(self, flag: bool, /) -> None: ...


class Buffered(Stream, Protocol):
    """A stream that may hold bytes its descriptor does not show: TLS, WebSocket."""

    def pending(self) -> int: ...


class PacketSocket:
    """Wraps a connected stream. `recv` raises what the stream raises when nothing is there, and loses nothing by it."""

    def __init__(self, stream: Stream | Buffered, limit_bytes: int, cut_tail: bytes) -> None:
        """`cut_tail` stands between packet id and payload of a cut packet: MQTT 5's empty properties, else nothing."""
        self._stream = stream
        # Looked up once: this is asked in every turn of the link.
        self._hidden: Callable[[], int] | None = getattr(stream, "pending", None)
        self._limit = limit_bytes
        self._cut_tail = cut_tail
        self._head = bytearray()  # of the packet that is beginning, until it is complete
        self._ready = bytearray()  # to be given next
        self._body = 0  # bytes of the current packet to pass on as they come
        self._skip = 0  # bytes of a packet that was cut, to be forgotten
        self.cut = False  # the packet given last was cut
        self.trouble = ""  # what the stream said when it failed; paho does not keep it

    def recv(self, size: int) -> bytes:
        while not self._ready:
            if self._body:
                got = self._receive(min(size, self._body))
                self._body -= len(got)
                return got
            if not (self._forget() if self._skip else self._begin()):
                return b""
        given = bytes(self._ready[:size])
        del self._ready[:size]
        return given

    def send(self, data: bytes | bytearray) -> int:
        try:
            return self._stream.send(data)
        except OSError as exc:
            self._note(exc)
            raise

    def pending(self) -> int:
        """Bytes that are here although the descriptor does not show it."""
        return len(self._ready) + (self._hidden() if self._hidden is not None else 0)

    def close(self) -> None:
        self._stream.close()

    def fileno(self) -> int:
        return self._stream.fileno()

    def setblocking(self, flag: bool) -> None:
        self._stream.setblocking(flag)

    def _forget(self) -> bool:
        got = self._receive(min(self._skip, CHUNK_BYTES))
        self._skip -= len(got)
        if got:
            # Bytes that arrive are a sign of life, but paho sees none of these and would count the link as dead.
            self._ready += PINGRESP
            self.cut = False
        return bool(got)

    def _begin(self) -> bool:
        """Read the head of the next packet; False at end of file. Two bytes are the shortest packet there is."""
        self.cut = False
        while not (end := _end_of_fixed_header(self._head)):
            if not self._more(max(2 - len(self._head), 1)):
                return False
        length = _remaining_length(self._head[1:end])
        if self._head[0] & 0xF0 != PUBLISH or length <= self._limit:
            self._give(self._head, length)
            return True
        while (missing := _end_of_packet_id(self._head, end) - len(self._head)) > 0:
            if not self._more(missing):
                return False
        self._give_cut(end, length)
        return True

    def _more(self, size: int) -> bool:
        got = self._receive(size)
        self._head += got
        return bool(got)

    def _receive(self, size: int) -> bytes:
        try:
            got = self._stream.recv(size)
        except OSError as exc:
            self._note(exc)
            raise
        if not got:
            self.trouble = "closed by the broker"
        return got

    def _note(self, exc: OSError) -> None:
        if not isinstance(exc, (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)):
            self.trouble = str(exc)

    def _give_cut(self, end: int, length: int) -> None:
        kept = self._head[end:]
        if len(kept) > length:
            raise ConnectionError("a packet ends within its topic")
        self._skip = length - len(kept)
        kept += self._cut_tail
        self._give(self._head[:1] + _varint(len(kept)) + kept, 0)
        self.cut = True

    def _give(self, packet: bytearray, body: int) -> None:
        self._ready += packet
        self._body = body
        self._head = bytearray()


def _end_of_fixed_header(head: bytearray) -> int:
    """Where the remaining length ends, 0 while that has not come."""
    for at in range(1, min(len(head), 5)):
        if head[at] < 0x80:
            return at + 1
    if len(head) >= 5:
        raise ConnectionError("a packet length of more than four bytes")
    return 0


def _end_of_packet_id(head: bytearray, end: int) -> int:
    """Where topic and (QoS 1 and 2) packet id end, as far as what is there tells."""
    if len(head) < end + 2:
        return end + 2
    return end + 2 + int.from_bytes(head[end : end + 2]) + (2 if head[0] & 0x06 else 0)


def _remaining_length(digits: bytearray) -> int:
    return sum((digit & 0x7F) << (7 * at) for at, digit in enumerate(digits))


def _varint(number: int) -> bytes:
    digits = bytearray()
    while True:
        digits.append(number & 0x7F | (0x80 if number > 0x7F else 0))
        number >>= 7
        if not number:
            return bytes(digits)
