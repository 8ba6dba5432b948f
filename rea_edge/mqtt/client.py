"""paho, adapted: its client on our socket, its properties as our messages. All else here speaks our words."""

import socket
from collections.abc import Callable

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from rea_edge.mqtt.limits import Limits
from rea_edge.mqtt.messages import Incoming, Outgoing, Protocol, Will
from rea_edge.mqtt.packets import PacketSocket, Stream
from rea_edge.mqtt.settings import Address, LinkSettings, tls_context

WINDOW = 10  # QoS 1 messages on the way, in each direction
CONNECT_S = 5.0  # for TCP (each address), TLS and WebSocket, each
OPTION_MOST = 0xFFFFFFFF


class Client(paho.Client):
    """paho's client on a `PacketSocket`, without Nagle's delay, and with nothing left open when it fails.

    The method overridden is private to paho, which has no public way to be given a socket; the tests of the packet
    limit fail if a later paho no longer calls it.
    """

    def __init__(
        self, settings: LinkSettings, address: Address, protocol: Protocol, prepare: Callable[[PacketSocket], None]
    ) -> None:
        """`prepare` is called when the broker is reached and CONNECT is not written yet."""
        five = protocol == "5"
        super().__init__(
            CallbackAPIVersion.VERSION2,
            client_id=settings.client_id,
            clean_session=None if five else settings.session_expiry_s == 0,
            protocol=MQTTProtocolVersion.MQTTv5 if five else MQTTProtocolVersion.MQTTv311,
            transport=address.transport,
            reconnect_on_failure=False,
            manual_ack=True,
        )
        self.max_inflight_messages_set(0)  # no limit of paho's: it would queue, and the window is kept by us
        if settings.username:
            self.username_pw_set(settings.username, settings.password or None)
        self._address = address
        self._context = tls_context(settings)
        self._prepare = prepare
        self._limit = settings.packet_max
        self._cut_tail = b"\0" if five else b""

    def _create_socket(self) -> PacketSocket:
        stream = _reach(self._address)
        try:
            if self._context is not None:
                stream = self._context.wrap_socket(
                    stream, server_hostname=self._address.host, do_handshake_on_connect=False
                )
                stream.do_handshake()
            packets = PacketSocket(_framed(stream, self._address), self._limit, self._cut_tail)
            self._prepare(packets)
        except BaseException:
            stream.close()
            raise
        return packets


def _reach(address: Address) -> socket.socket:
    if address.transport == "unix":
        stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            stream.settimeout(CONNECT_S)
            stream.connect(address.host)
        except BaseException:
            stream.close()
            raise
        return stream
    stream = socket.create_connection((address.host, address.port), CONNECT_S)
    # Nagle's algorithm costs a QoS 1 request and its reply 90 ms on loopback.
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return stream


def _framed(stream: socket.socket, address: Address) -> Stream:
    if address.transport != "websockets":
        return stream
    # Also private to paho, and the only piece of its WebSocket transport.
    return paho._WebsocketWrapper(
        socket=stream,
        host=address.host,
        port=address.port,
        is_ssl=address.encrypted,
        path=address.path,
        extra_headers=None,
    )


def connect_properties(settings: LinkSettings) -> Properties:
    properties = _properties(PacketTypes.CONNECT)
    properties.SessionExpiryInterval = settings.session_expiry_s
    properties.ReceiveMaximum = WINDOW
    properties.MaximumPacketSize = settings.packet_max
    return properties


def publish_properties(out: Outgoing) -> Properties | None:
    if out.expires_in_s is None and out.response_topic is None and out.correlation is None:
        return None  # most have none, and paho's are dear
    properties = _properties(PacketTypes.PUBLISH)
    if out.expires_in_s is not None:
        properties.MessageExpiryInterval = max(0, min(out.expires_in_s, OPTION_MOST))
    if out.response_topic is not None:
        properties.ResponseTopic = out.response_topic
    if out.correlation is not None:
        properties.CorrelationData = out.correlation
    return properties


def will_properties(will: Will) -> Properties | None:
    if will.expires_in_s is None:
        return None
    properties = _properties(PacketTypes.WILLMESSAGE)
    properties.MessageExpiryInterval = max(0, min(will.expires_in_s, OPTION_MOST))
    return properties


def readable_topic(message: paho.MQTTMessage) -> str | None:
    try:
        return message.topic
    except UnicodeDecodeError:
        return None


def incoming_from(topic: str, message: paho.MQTTMessage, *, waited: bool, controls: bool) -> Incoming:
    options = message.properties
    expiry = getattr(options, "MessageExpiryInterval", None)
    response = getattr(options, "ResponseTopic", None)
    correlation = getattr(options, "CorrelationData", None)
    return Incoming(
        topic=topic,
        payload=bytes(message.payload),
        retained=bool(message.retain),
        qos=message.qos,
        expires_in_s=expiry if isinstance(expiry, int) else None,
        response_topic=response if isinstance(response, str) else None,
        correlation=correlation if isinstance(correlation, bytes) else None,
        waited=waited,
        controls=controls,
    )


def limits_in(properties: Properties | None) -> Limits:
    """What a CONNACK says of the broker. The keepalive it may set is paho's matter."""
    plain = Limits()
    return Limits(
        packet_bytes=number_in(properties, "MaximumPacketSize", plain.packet_bytes),
        retain=getattr(properties, "RetainAvailable", 1) != 0,
        qos=min(plain.qos, getattr(properties, "MaximumQoS", plain.qos)),
        wildcards=getattr(properties, "WildcardSubscriptionAvailable", 1) != 0,
        session_s=getattr(properties, "SessionExpiryInterval", None),
    )


def number_in(properties: Properties | None, name: str, default: int) -> int:
    value = getattr(properties, name, None)
    return value if isinstance(value, int) and value > 0 else default


def _properties(packet: int) -> Properties:
    return Properties(packet)  # type: ignore[no-untyped-call]  # paho leaves this one without annotations
