"""The packets of MQTT 3.1.1 and 5 as values, with the names of properties. Holds no bytes on the wire: see `wire`.

Property values stay as bytes, so that what is only passed on is passed on unchanged.
"""

from typing import NamedTuple

Properties = tuple[tuple[int, bytes], ...]

PAYLOAD_FORMAT, MESSAGE_EXPIRY, CONTENT_TYPE, RESPONSE_TOPIC, CORRELATION_DATA = 0x01, 0x02, 0x03, 0x08, 0x09
SUBSCRIPTION_ID, SESSION_EXPIRY, ASSIGNED_CLIENT_ID, AUTH_METHOD, AUTH_DATA = 0x0B, 0x11, 0x12, 0x15, 0x16
REQUEST_PROBLEM, WILL_DELAY, REQUEST_RESPONSE, REASON, RECEIVE_MAXIMUM = 0x17, 0x18, 0x19, 0x1F, 0x21
ALIAS_MAXIMUM, ALIAS, MAXIMUM_QOS, USER, MAXIMUM_PACKET = 0x22, 0x23, 0x24, 0x26, 0x27
SUBSCRIPTION_IDS_AVAILABLE, SHARED_AVAILABLE = 0x29, 0x2A

# What a publish takes along to its subscribers; the rest is between one client and the broker.
PASSED_ON = frozenset({PAYLOAD_FORMAT, CONTENT_TYPE, RESPONSE_TOPIC, CORRELATION_DATA, USER})

MALFORMED, PROTOCOL_ERROR, TOPIC_INVALID, PACKET_TOO_LARGE, ALIAS_INVALID = 0x81, 0x82, 0x90, 0x95, 0x94
SUBSCRIPTION_IDS_UNSUPPORTED = 0xA1


class Malformed(Exception):
    """Bytes that are no acceptable packet. `code` is the reason code for the DISCONNECT of an MQTT 5 client."""

    def __init__(self, message: str, code: int = MALFORMED) -> None:
        super().__init__(message)
        self.code = code


class UnknownVersion(Malformed):
    """A CONNECT of a protocol version other than 3.1.1 and 5."""


class Publish(NamedTuple):
    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    dup: bool = False
    packet_id: int = 0
    properties: Properties = ()


class Puback(NamedTuple):
    packet_id: int
    code: int = 0


class Connect(NamedTuple):
    """`version` is 4 (3.1.1) or 5. The will is the message to be published; its delay is in its properties."""

    client_id: str
    version: int
    clean: bool
    keepalive_s: int
    will: Publish | None
    username: str | None
    password: bytes | None
    properties: Properties = ()


class Connack(NamedTuple):
    code: int
    session_present: bool = False
    properties: Properties = ()


class Wanted(NamedTuple):
    """One line of a SUBSCRIBE. `retain_handling`: 0 send retained, 1 only where the filter is new, 2 never."""

    topic_filter: str
    qos: int
    no_local: bool = False
    retain_as_published: bool = False
    retain_handling: int = 0


class Subscribe(NamedTuple):
    packet_id: int
    wanted: tuple[Wanted, ...]


class Suback(NamedTuple):
    packet_id: int
    codes: bytes


class Unsubscribe(NamedTuple):
    packet_id: int
    filters: tuple[str, ...]


class Unsuback(NamedTuple):
    packet_id: int
    codes: bytes


class Pingreq(NamedTuple):
    """A sign of life."""


class Pingresp(NamedTuple):
    """Its answer."""


class Disconnect(NamedTuple):
    code: int = 0
    properties: Properties = ()


Incoming = Connect | Publish | Puback | Subscribe | Unsubscribe | Pingreq | Disconnect
Outgoing = Connack | Publish | Puback | Suback | Unsuback | Pingresp | Disconnect
Packet = Incoming | Outgoing


def number(properties: Properties, name: int) -> int | None:
    """The value of a property that is a number, or None where it is absent."""
    for key, value in properties:
        if key == name:
            return int.from_bytes(value, "big")
    return None
