"""MQTT 3.1.1 and 5 packets: bytes to values and back. Pure: no sockets, no clock, no state, no meaning.

What is no acceptable packet raises `Malformed`, and nothing else is ever raised on bytes of a client.
"""

from typing import Literal, assert_never

from rea_edge.emulated.packets import (
    ALIAS,
    ALIAS_INVALID,
    ALIAS_MAXIMUM,
    AUTH_DATA,
    AUTH_METHOD,
    CONTENT_TYPE,
    CORRELATION_DATA,
    MAXIMUM_PACKET,
    MESSAGE_EXPIRY,
    PACKET_TOO_LARGE,
    PASSED_ON,
    PAYLOAD_FORMAT,
    PROTOCOL_ERROR,
    REASON,
    RECEIVE_MAXIMUM,
    REQUEST_PROBLEM,
    REQUEST_RESPONSE,
    RESPONSE_TOPIC,
    SESSION_EXPIRY,
    SUBSCRIPTION_ID,
    SUBSCRIPTION_IDS_UNSUPPORTED,
    TOPIC_INVALID,
    USER,
    WILL_DELAY,
    Connack,
    Connect,
    Disconnect,
    Incoming,
    Malformed,
    Outgoing,
    Pingreq,
    Pingresp,
    Properties,
    Puback,
    Publish,
    Suback,
    Subscribe,
    UnknownVersion,
    Unsuback,
    Unsubscribe,
    Wanted,
    number,
)

_FIXED_BYTES = {
    PAYLOAD_FORMAT: 1, REQUEST_PROBLEM: 1, REQUEST_RESPONSE: 1, RECEIVE_MAXIMUM: 2, ALIAS_MAXIMUM: 2, ALIAS: 2,
    MESSAGE_EXPIRY: 4, SESSION_EXPIRY: 4, WILL_DELAY: 4, MAXIMUM_PACKET: 4,
}  # fmt: skip
_TEXTS = frozenset({CONTENT_TYPE, RESPONSE_TOPIC, AUTH_METHOD, REASON})
_BINARIES = frozenset({CORRELATION_DATA, AUTH_DATA})

_IN_CONNECT = frozenset({
    SESSION_EXPIRY, RECEIVE_MAXIMUM, MAXIMUM_PACKET, ALIAS_MAXIMUM, REQUEST_RESPONSE, REQUEST_PROBLEM, USER,
    AUTH_METHOD, AUTH_DATA,
})  # fmt: skip
_IN_PUBLISH = PASSED_ON | {MESSAGE_EXPIRY, ALIAS}
_IN_WILL = PASSED_ON | {MESSAGE_EXPIRY, WILL_DELAY}
_IN_ACK = frozenset({REASON, USER})
_IN_SUBSCRIBE = frozenset({SUBSCRIPTION_ID, USER})
_IN_UNSUBSCRIBE = frozenset({USER})
_IN_DISCONNECT = frozenset({SESSION_EXPIRY, REASON, USER})


def text(value: str) -> bytes:
    """A string or a string property as it is on the wire."""
    raw = value.encode()
    return len(raw).to_bytes(2, "big") + raw


def frame_end(buffer: bytearray, limit_bytes: int) -> tuple[int, int] | None:
    """Where the body of the first packet in `buffer` starts and ends, or None while it is incomplete."""
    length = 0
    for place in range(1, 5):
        if place >= len(buffer):
            return None
        length |= (buffer[place] & 0x7F) << (7 * (place - 1))
        if not buffer[place] & 0x80:
            if length > limit_bytes:
                raise Malformed(f"packet of {length} bytes", PACKET_TOO_LARGE)
            end = place + 1 + length
            return (place + 1, end) if len(buffer) >= end else None
    raise Malformed("length of more than four bytes")


def decode(head: int, body: bytes, version: int) -> Incoming:
    """What a client sent. `head` is the first byte of the packet, `body` what follows its length."""
    reader = _Reader(body, version)
    kind, flags = head >> 4, head & 0x0F
    if kind == 3:
        return _publish(reader, flags)
    # Of the packets we know, SUBSCRIBE and UNSUBSCRIBE carry the fixed flag bits 0010 and the others 0000.
    if flags != (2 if kind in (8, 10) else 0):
        raise Malformed(f"flags {flags} in packet type {kind}")
    packet = _decode_other(reader, kind)
    if reader.left():
        raise Malformed(f"{reader.left()} bytes too many in packet type {kind}")
    return packet


def encode(packet: Outgoing, version: int) -> bytes:
    """The bytes of a packet for a client of that version; what 3.1.1 cannot say is left out."""
    v5 = version == 5
    match packet:
        case Publish():
            head = 0x30 | packet.dup << 3 | packet.qos << 1 | packet.retain
            packet_id = packet.packet_id.to_bytes(2, "big") if packet.qos else b""
            properties = _properties(packet.properties) if v5 else b""
            return _frame(head, text(packet.topic) + packet_id + properties + packet.payload)
        case Puback():
            return _frame(
                0x40, packet.packet_id.to_bytes(2, "big") + (bytes([packet.code]) if v5 and packet.code else b"")
            )
        case Connack():
            properties = _properties(packet.properties) if v5 else b""
            return _frame(0x20, bytes([packet.session_present, packet.code]) + properties)
        case Suback():
            return _frame(0x90, packet.packet_id.to_bytes(2, "big") + (b"\0" if v5 else b"") + packet.codes)
        case Unsuback():
            return _frame(0xB0, packet.packet_id.to_bytes(2, "big") + (b"\0" + packet.codes if v5 else b""))
        case Pingresp():
            return b"\xd0\0"
        case Disconnect():
            return _frame(0xE0, bytes([packet.code, 0]) if v5 else b"")
        case _:
            assert_never(packet)


def _publish(reader: "_Reader", flags: int) -> Publish:
    qos = flags >> 1 & 3
    if qos == 3 or (flags & 8 and not qos):
        raise Malformed(f"flags {flags} in a PUBLISH")
    topic = reader.text()
    packet_id = reader.packet_id() if qos else 0
    properties = reader.properties(_IN_PUBLISH)
    # We offer no topic aliases (Topic Alias Maximum is absent from our CONNACK), so every topic is spelled out.
    if any(key == ALIAS for key, _ in properties):
        raise Malformed("topic alias", ALIAS_INVALID)
    _check_topic(topic)
    return Publish(topic, reader.rest(), qos, bool(flags & 1), bool(flags & 8), packet_id, properties)


def _decode_other(reader: "_Reader", kind: int) -> Incoming:
    match kind:
        case 1:
            return _connect(reader)
        case 4:
            return _puback(reader)
        case 8:
            return _subscribe(reader)
        case 10:
            return _unsubscribe(reader)
        case 12:
            return Pingreq()
        case 14:
            return _disconnect(reader)
        case _:
            raise Malformed(f"packet type {kind}", PROTOCOL_ERROR)


def _connect(reader: "_Reader") -> Connect:
    name, version = reader.text(), reader.number(1)
    if (name, version) not in (("MQTT", 4), ("MQTT", 5)):
        if name in ("MQTT", "MQIsdp"):
            raise UnknownVersion(f"{name} version {version}")
        raise Malformed(f"protocol {name!r}")
    reader.version = version
    flags, keepalive_s = reader.number(1), reader.number(2)
    if flags & 1 or (not flags & 4 and flags & 0x38) or (version == 4 and flags & 0xC0 == 0x40):
        raise Malformed(f"connect flags {flags:#x}")
    properties = reader.properties(_IN_CONNECT)
    if number(properties, RECEIVE_MAXIMUM) == 0 or number(properties, MAXIMUM_PACKET) == 0:
        raise Malformed("receive maximum or maximum packet size of 0", PROTOCOL_ERROR)
    client_id = reader.text()
    will = _will(reader, flags) if flags & 4 else None
    username = reader.text() if flags & 0x80 else None
    password = reader.binary() if flags & 0x40 else None
    return Connect(client_id, version, bool(flags & 2), keepalive_s, will, username, password, properties)


def _will(reader: "_Reader", flags: int) -> Publish:
    qos = flags >> 3 & 3
    if qos == 3:
        raise Malformed("will QoS 3")
    properties = reader.properties(_IN_WILL)
    topic, payload = reader.text(), reader.binary()
    _check_topic(topic)
    return Publish(topic, payload, qos, bool(flags & 0x20), properties=properties)


def _puback(reader: "_Reader") -> Puback:
    packet_id = reader.packet_id()
    code = reader.number(1) if reader.version == 5 and reader.left() else 0
    if reader.left():
        reader.properties(_IN_ACK)
    return Puback(packet_id, code)


def _subscribe(reader: "_Reader") -> Subscribe:
    packet_id = reader.packet_id()
    if any(key == SUBSCRIPTION_ID for key, _ in reader.properties(_IN_SUBSCRIBE)):
        raise Malformed("subscription identifier", SUBSCRIPTION_IDS_UNSUPPORTED)
    wanted = []
    while reader.left():
        topic_filter, options = reader.text(), reader.number(1)
        handling = options >> 4
        if options & 3 == 3 or handling > 2 or (reader.version == 4 and options > 2):
            raise Malformed(f"subscription options {options:#x}")
        wanted.append(Wanted(topic_filter, options & 3, bool(options & 4), bool(options & 8), handling))
    if not wanted:
        raise Malformed("SUBSCRIBE without a filter", PROTOCOL_ERROR)
    return Subscribe(packet_id, tuple(wanted))


def _unsubscribe(reader: "_Reader") -> Unsubscribe:
    packet_id = reader.packet_id()
    reader.properties(_IN_UNSUBSCRIBE)
    filters = []
    while reader.left():
        filters.append(reader.text())
    if not filters:
        raise Malformed("UNSUBSCRIBE without a filter", PROTOCOL_ERROR)
    return Unsubscribe(packet_id, tuple(filters))


def _disconnect(reader: "_Reader") -> Disconnect:
    code = reader.number(1) if reader.version == 5 and reader.left() else 0
    return Disconnect(code, reader.properties(_IN_DISCONNECT) if reader.left() else ())


def _check_topic(topic: str) -> None:
    if not topic or "+" in topic or "#" in topic:
        raise Malformed(f"topic {topic!r}", TOPIC_INVALID)


def _frame(head: int, body: bytes) -> bytes:
    return bytes([head]) + _variable(len(body)) + body


def _properties(properties: Properties) -> bytes:
    if not properties:
        return b"\0"
    raw = b"".join(bytes([key]) + value for key, value in properties)
    return _variable(len(raw)) + raw


def _variable(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


class _Reader:
    """Takes values off a body from the front; running out of bytes is `Malformed`."""

    __slots__ = ("_at", "_raw", "version")

    def __init__(self, raw: bytes, version: int) -> None:
        self._raw = raw
        self._at = 0
        self.version = version

    def left(self) -> int:
        return len(self._raw) - self._at

    def rest(self) -> bytes:
        return self._take(self.left())

    def number(self, size_bytes: Literal[1, 2]) -> int:
        return int.from_bytes(self._take(size_bytes), "big")

    def packet_id(self) -> int:
        packet_id = self.number(2)
        if not packet_id:
            raise Malformed("packet id 0", PROTOCOL_ERROR)
        return packet_id

    def binary(self) -> bytes:
        return self._take(self.number(2))

    def text(self) -> str:
        raw = self.binary()
        try:
            value = raw.decode()
        except UnicodeDecodeError as exc:
            raise Malformed("invalid UTF-8") from exc
        if "\0" in value:
            raise Malformed("a null character in a string")
        return value

    def properties(self, allowed: frozenset[int]) -> Properties:
        """The property block that MQTT 5 has here; always empty for 3.1.1."""
        if self.version != 5:
            return ()
        size = self._variable()
        end = self._at + size
        if size > self.left():
            raise Malformed("property length")
        found: list[tuple[int, bytes]] = []
        while self._at < end:
            key, start = self.number(1), self._at
            if key not in allowed or (key not in (USER, SUBSCRIPTION_ID) and any(key == seen for seen, _ in found)):
                raise Malformed(f"property {key:#x}", PROTOCOL_ERROR)
            self._skip(key)
            found.append((key, self._raw[start : self._at]))
        if self._at != end:
            raise Malformed("property length")
        return tuple(found)

    def _skip(self, key: int) -> None:
        if size := _FIXED_BYTES.get(key):
            self._take(size)
        elif key in _TEXTS:
            self.text()
        elif key in _BINARIES:
            self.binary()
        elif key == USER:
            self.text()
            self.text()
        else:
            self._variable()

    def _variable(self) -> int:
        value = 0
        for place in range(4):
            digit = self.number(1)
            value |= (digit & 0x7F) << (7 * place)
            if not digit & 0x80:
                return value
        raise Malformed("variable length of more than four bytes")

    def _take(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._raw):
            raise Malformed("packet ends too early")
        piece = self._raw[self._at : end]
        self._at = end
        return piece
