"""A connection of MQTT 3.1.1 as a small device has it: one socket, blocking writes, no thread and no meaning.

Independent of the client library that the daemon uses, so that both sides of a test do not share their mistakes.
"""

import socket
from collections.abc import Iterator
from typing import Self
from urllib.parse import urlsplit

from rea_edge.emulated.packets import (
    Connack,
    Connect,
    Disconnect,
    Malformed,
    Pingreq,
    Pingresp,
    Puback,
    Publish,
    Suback,
    Subscribe,
)
from rea_edge.emulated.wire import decode, encode, frame_end, text

VERSION = 4  # 3.1.1, which all of these devices speak
LARGEST_PACKET_BYTES = 1_048_576
PATIENCE_S = 10.0
READ_BYTES = 65_536

Sent = Connect | Subscribe | Publish | Puback | Pingreq | Disconnect
Heard = Connack | Suback | Publish | Puback | Pingresp


class Line:
    """Open a line with `Line.to(url, connect)`. What is broken raises OSError; the caller then makes a new one."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._inbox = bytearray()

    @classmethod
    def to(cls, url: str, connect: Connect) -> Self:
        """Connect to `mqtt://host:port` and send CONNECT; its answer is for the caller to wait for."""
        place = urlsplit(url)
        if place.scheme != "mqtt" or place.hostname is None:
            raise ValueError(f"expected mqtt://host:port, got {url!r}")
        sock = socket.create_connection((place.hostname, place.port or 1883), PATIENCE_S)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        line = cls(sock)
        line.send(connect)
        return line

    def send(self, packet: Sent) -> None:
        self.sock.sendall(written(packet))

    def receive(self) -> list[Heard]:
        """Wait for bytes and give the packets that are whole; none is an answer too. Raises OSError, never Malformed."""
        try:
            read = self.sock.recv(READ_BYTES)
        except TimeoutError:
            return []
        if not read:
            raise ConnectionError("the broker closed the connection")
        self._inbox += read
        try:
            return list(self._whole())
        except Malformed as exc:
            raise ConnectionError(f"the broker sent what is no packet: {exc}") from exc

    def close(self) -> None:
        self.sock.close()

    def _whole(self) -> Iterator[Heard]:
        while (frame := frame_end(self._inbox, LARGEST_PACKET_BYTES)) is not None:
            start, end = frame
            packet = understood(self._inbox[0], bytes(self._inbox[start:end]))
            del self._inbox[:end]
            yield packet


def written(packet: Sent) -> bytes:
    """The bytes of a packet that a client sends."""
    match packet:
        case Connect():
            return framed(0x10, connect_body(packet))
        case Subscribe():
            wanted = b"".join(text(one.topic_filter) + bytes([one.qos]) for one in packet.wanted)
            return framed(0x82, packet.packet_id.to_bytes(2, "big") + wanted)
        case Pingreq():
            return b"\xc0\0"
        case _:
            return encode(packet, VERSION)


def connect_body(packet: Connect) -> bytes:
    will = packet.will
    flags = 2 if packet.clean else 0
    tail = text(packet.client_id)
    if will is not None:
        flags |= 4 | will.qos << 3 | will.retain << 5
        tail += text(will.topic) + len(will.payload).to_bytes(2, "big") + will.payload
    if packet.username is not None:
        flags |= 0x80
        tail += text(packet.username)
    if packet.password is not None:
        flags |= 0x40
        tail += len(packet.password).to_bytes(2, "big") + packet.password
    return text("MQTT") + bytes([VERSION, flags]) + packet.keepalive_s.to_bytes(2, "big") + tail


def framed(head: int, body: bytes) -> bytes:
    size, left = bytearray(), len(body)
    while left > 0x7F:
        size.append(left & 0x7F | 0x80)
        left >>= 7
    size.append(left)
    return bytes([head]) + bytes(size) + body


def understood(head: int, body: bytes) -> Heard:
    """What a broker sent. Raises Malformed."""
    match head >> 4:
        case 2 if len(body) == 2:
            return Connack(body[1], bool(body[0] & 1))
        case 9 if len(body) > 2:
            return Suback(int.from_bytes(body[:2], "big"), body[2:])
        case 13 if not body:
            return Pingresp()
        case 3 | 4:  # the same in both directions
            packet = decode(head, body, VERSION)
            if isinstance(packet, Publish | Puback):
                return packet
    raise Malformed(f"packet {head:#x} of {len(body)} bytes")
