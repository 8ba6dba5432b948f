"""A real paho client with what these tests ask of one. Holds no assertions."""

import queue
import socket
from types import TracebackType
from typing import Any, Self

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

PATIENCE_S = 5.0


def properties(kind: int, **values: object) -> Properties:
    """paho's properties of one packet type, such as `properties(PacketTypes.PUBLISH, ContentType="text")`."""
    made = Properties(kind)  # type: ignore[no-untyped-call]  # paho leaves it so
    for name, value in values.items():
        setattr(made, name, value)
    return made


class Client:
    """Connected when made, unless `refused`. `messages` fills as they come; with `manual` nothing is acknowledged."""

    def __init__(
        self,
        port: int,
        client_id: str,
        protocol: str = "5",
        *,
        keep: bool = False,
        clean: bool | None = None,
        expiry_s: int | None = None,
        manual: bool = False,
        keepalive_s: int = 60,
        will: dict[str, Any] | None = None,
        login: tuple[str, str] | None = None,
        wait: bool = True,
        reconnect: bool = False,
        **connect: object,
    ) -> None:
        v5 = protocol == "5"
        self.v5 = v5
        self.messages: queue.Queue[mqtt.MQTTMessage] = queue.Queue()
        self.connects: queue.Queue[tuple[bool, int, Any]] = queue.Queue()
        self.disconnects: queue.Queue[int] = queue.Queue()
        self.subacks: queue.Queue[list[int]] = queue.Queue()
        self.pubacks: queue.Queue[tuple[int, int]] = queue.Queue()
        clean_v4: dict[str, Any] = {} if v5 else {"clean_session": not keep if clean is None else clean}
        self.paho = mqtt.Client(
            CallbackAPIVersion.VERSION2,
            client_id,
            protocol=mqtt.MQTTv5 if v5 else mqtt.MQTTv311,
            manual_ack=manual,
            reconnect_on_failure=reconnect,
            **clean_v4,
        )
        self.paho.reconnect_delay_set(0, 1)
        self.paho.on_message = lambda c, u, message: self.messages.put(message)
        self.paho.on_connect = lambda c, u, flags, code, props: self.connects.put(
            (flags.session_present, code.value, props)
        )
        self.paho.on_disconnect = lambda c, u, flags, code, props: self.disconnects.put(code.value)
        self.paho.on_subscribe = lambda c, u, mid, codes, props: self.subacks.put([code.value for code in codes])
        self.paho.on_publish = lambda c, u, mid, code, props: self.pubacks.put((mid, code.value))
        self.paho.on_socket_open = _no_delay
        if login is not None:
            self.paho.username_pw_set(*login)
        if will is not None:
            self.paho.will_set(**will)
        if v5:
            if keep or expiry_s is not None:
                connect["SessionExpiryInterval"] = 600 if expiry_s is None else expiry_s
            start = not keep if clean is None else clean
            self.paho.connect(
                "127.0.0.1",
                port,
                keepalive_s,
                clean_start=start,
                properties=properties(PacketTypes.CONNECT, **connect),
            )
        else:
            self.paho.connect("127.0.0.1", port, keepalive_s)
        self.paho.loop_start()
        self.present = False
        self.code = -1
        self.connack: Any = None
        if wait:
            self.present, self.code, self.connack = self.connects.get(timeout=PATIENCE_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, t: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """DISCONNECT and wait for the end of paho's thread."""
        self.paho.disconnect()
        self.paho.loop_stop()

    def drop(self) -> None:
        """End the connection as a crash would, without DISCONNECT."""
        sock = self.paho.socket()
        if isinstance(sock, socket.socket):
            sock.shutdown(socket.SHUT_RDWR)
        self.disconnects.get(timeout=PATIENCE_S)
        self.paho.loop_stop()

    def subscribe(self, topic_filter: str, qos: int = 1, **options: Any) -> int:
        """The code of the SUBACK; MQTT 5 options by keyword: noLocal, retainAsPublished, retainHandling."""
        if options:
            self.paho.subscribe(topic_filter, options=SubscribeOptions(qos, **options))
        else:
            self.paho.subscribe(topic_filter, qos)
        return self.subacks.get(timeout=PATIENCE_S)[0]

    def publish(
        self, topic: str, payload: str | bytes = b"", qos: int = 1, retain: bool = False, **props: object
    ) -> int:
        """Publish and wait for the acknowledgement; the code of the PUBACK (0 for 3.1.1 and QoS 0)."""
        made = properties(PacketTypes.PUBLISH, **props) if props else None
        sent = self.paho.publish(topic, payload, qos, retain, properties=made)
        while True:
            mid, code = self.pubacks.get(timeout=PATIENCE_S)
            if mid == sent.mid:
                return code

    def next(self) -> mqtt.MQTTMessage:
        return self.messages.get(timeout=PATIENCE_S)

    def next_properties(self, payload: bytes | None = None) -> Any:
        """The properties of the next message, which must have this payload (where one is given)."""
        message = self.next()
        assert payload in (None, message.payload)
        return message.properties

    def payloads(self, count: int) -> list[str]:
        return [self.next().payload.decode() for _ in range(count)]

    def until(self, payload: str) -> list[str]:
        """The payloads up to and without the given one: what came before a marker, and nothing else."""
        seen = []
        while (one := self.next().payload.decode()) != payload:
            seen.append(one)
        return seen


def _no_delay(client: mqtt.Client, userdata: object, sock: object) -> None:
    if isinstance(sock, socket.socket):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
