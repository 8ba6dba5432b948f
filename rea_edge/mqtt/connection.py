"""One MQTT connection, from CONNECT to its end; then it is thrown away, and paho's memory with it.

paho's own queues are never used: what is not acknowledged when a connection ends is sent again by its owner. All of
this runs in the link's thread. Exceptions of the callbacks given here pass through, and the link ends the connection.
"""

import logging
import select
import time
from typing import Literal

import paho.mqtt.client as paho
from paho.mqtt import MQTTException
from paho.mqtt.enums import MQTTErrorCode
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from rea_edge.mqtt.client import (
    WINDOW,
    Client,
    connect_properties,
    incoming_from,
    limits_in,
    number_in,
    publish_properties,
    readable_topic,
    will_properties,
)
from rea_edge.mqtt.fence import Fence
from rea_edge.mqtt.limits import TOPIC_MOST, Limits
from rea_edge.mqtt.line import Ears, Line, NotAccepted
from rea_edge.mqtt.look import Look
from rea_edge.mqtt.messages import Outgoing, Protocol
from rea_edge.mqtt.packets import PacketSocket
from rea_edge.mqtt.settings import address_of
from rea_edge.mqtt.window import Window

CONNACK_S = 10.0
FIRST_CONNACK_S = 3.0  # some 3.1.1 brokers simply do not answer MQTT 5
SUBACK_S = 10.0
HELD_MOST = 100  # messages; an MQTT 5 broker sends no more than the window
HEAD_BYTES = 64  # of a PUBLISH besides topics, correlation data and payload
NORMAL = 0x00
UNSUPPORTED = 0x84
TAKEN_OVER = 0x8E
SILENT = 0x8D  # keep alive timeout
TOPIC_INVALID = 0x90
TOO_LARGE = 0x95
WILL_RETAIN_REFUSED, WILL_QOS_REFUSED = 0x9A, 0x9B

log = logging.getLogger("rea_edge.mqtt")

Stage = Literal["connecting", "subscribing", "up", "ended"]


class Connection:
    """Blocking `open`, then `turn` again and again until `stage` is `ended`; `reason` says how it ended."""

    def __init__(self, line: Line, protocol: Protocol, ears: Ears, *, nonce: bytes) -> None:
        self.stage: Stage = "connecting"
        self.reason = ""
        self.reached = False  # CONNECT went out
        self.answered = False  # CONNACK came
        self.unsupported = False  # the broker said that it does not know the protocol
        self.by_peer = False  # the other side ended it
        self.taken_over = False  # it said, or did not say otherwise, that another client came with the same id
        self.unacknowledged = False  # we ended it, because something sent was not acknowledged
        self.up_since_s = 0.0
        self.present = False
        self.refused: tuple[str, ...] = ()
        self._heard: tuple[str, ...] = ()
        self.too_large = 0
        self.unreadable = 0
        self.protocol = protocol
        self.line = line
        self._settings = line.settings
        self._ears = ears
        self._fence = Fence(ears.fence, nonce)
        self._intake = True
        self._look = Look(line.look)
        self._held: list[paho.MQTTMessage] | None = None
        self.window = WINDOW
        self.limits = Limits()
        self.refusal = 0  # the code of a CONNACK that said no
        self._in_flight = Window()
        self._due_s = 0.0
        self._packets: PacketSocket
        self._client = self._new_client()

    def open(self, connack_s: float) -> None:
        """Reach the broker and send CONNECT. Blocks for the name look-up and some `CONNECT_S`; raises OSError."""
        address = address_of(self._settings.url)
        if self.protocol == "5":
            clean = self._settings.session_expiry_s == 0
            properties = connect_properties(self._settings)
            self._client.connect(
                address.host, address.port, self._settings.keepalive_s, clean_start=clean, properties=properties
            )
        else:
            self._client.connect(address.host, address.port, self._settings.keepalive_s)
        self.reached = True
        if not self.ended:
            self._due_s = time.monotonic() + connack_s

    @property
    def descriptor(self) -> int:
        return self._packets.fileno()

    @property
    def interest(self) -> int:
        """What to wait for at the descriptor, as poll's flags."""
        return select.POLLIN | (select.POLLOUT if self._client.want_write() else 0)

    def next_due_s(self) -> float:
        """Seconds until `turn` is due even if nothing happens at the descriptor."""
        return 0.0 if self._packets.pending() else max(0.0, self._next_timer_s())

    def turn(self, ready: int) -> None:
        """Read, write, keep the timers. `ready`: what poll said of the descriptor."""
        client = self._client
        if self._packets.pending() or ready & ~select.POLLOUT:
            client.loop_read()
        if client.want_write():
            client.loop_write()
        client.loop_misc()
        if not self.ended:
            self._keep_timers(time.monotonic())

    @property
    def ended(self) -> bool:
        return self.stage == "ended"

    @property
    def unheard(self) -> bool:
        """What is published here does not come back, and nothing else is coming that it could be behind."""
        return self.stage == "up" and self._fence.unheard(self.up_since_s, time.monotonic())

    @property
    def fenced(self) -> bool:
        return self._fence.seen

    @property
    def writable(self) -> bool:
        """Nothing waits in paho: only then is more handed over, so its unbounded queue stays empty."""
        return self.stage == "up" and not self._client.want_write()

    @property
    def room(self) -> int:
        return max(0, self.window - len(self._in_flight))

    def ready_for(self, qos: int) -> bool:
        return self.writable and (qos == 0 or self.room > 0)

    @property
    def in_flight(self) -> tuple[Outgoing, ...]:
        return tuple(out for out in self._in_flight.all if out.topic != self._fence.topic)

    @property
    def kept(self) -> list[Outgoing]:
        """Of what is in flight, what nobody else has: to be sent again if this connection ends."""
        return self._in_flight.kept

    def send(self, out: Outgoing, *, keep: bool = False) -> None:
        """Hand one message over. The caller looks at `writable` first, and for QoS 1 at `room`."""
        limits = self.limits
        payload = self._fitting(out)
        if payload is None:
            return self._give_up(out, TOO_LARGE, "larger than the broker takes")
        if out.retain and not limits.retain and not payload:
            return self._ears.acknowledged(out, None)  # nothing stands there that could be cleared
        qos = min(out.qos, limits.qos)
        try:
            # Sent as they are, these would make the broker end the connection, again and again.
            if not out.topic or "\0" in out.topic or len(out.topic.encode()) > TOPIC_MOST:
                raise ValueError(f"no topic, or of more than {TOPIC_MOST} bytes")
            properties = publish_properties(out) if self.protocol == "5" else None
            info = self._client.publish(out.topic, payload, qos, out.retain and limits.retain, properties)
        except (ValueError, MQTTException) as exc:
            return self._give_up(out, TOPIC_INVALID, str(exc))
        if qos:
            self._in_flight.put(info.mid, out, time.monotonic(), keep=keep)
        elif info.rc == MQTTErrorCode.MQTT_ERR_SUCCESS:
            self._ears.acknowledged(out, None)
        return None

    def _fitting(self, out: Outgoing) -> bytes | None:
        names = out.topic + (out.response_topic or "")
        room = self.limits.packet_bytes - 3 * len(names) - len(out.correlation or b"") - HEAD_BYTES
        return out.payload if len(out.payload) <= room else self._ears.shorter(out.payload, room)

    def hold(self) -> None:
        """Keep what comes, but neither accept nor acknowledge it, until `release`."""
        self._held = []

    def release(self) -> None:
        held, self._held = self._held, None
        for message in held or ():
            self._on_message(self._client, None, message)

    def stop_intake(self) -> None:
        """From now on nothing is accepted or acknowledged; the broker keeps it for the next connection."""
        self._intake = False

    def disconnect(self) -> None:
        """End in order: the broker drops the will. Some turns may be needed until `stage` is `ended`."""
        self._client.disconnect()

    def close(self, reason: str) -> None:
        """End at once, without DISCONNECT: the broker publishes the will."""
        self._end(reason, by_peer=False)
        stream = self._client.socket()
        if stream is not None:
            stream.close()

    # --- paho's callbacks

    def _on_connect(
        self,
        _client: paho.Client,
        _user: object,
        flags: paho.ConnectFlags,
        code: ReasonCode,
        properties: Properties | None,
    ) -> None:
        self.answered = True
        if code.is_failure:
            self.unsupported = code.value == UNSUPPORTED
            self.refusal = code.value
            return self._end(f"refused: {code}", by_peer=False)
        self.present = flags.session_present
        self._ears.connected(self.present)
        self.window = min(WINDOW, number_in(properties, "ReceiveMaximum", WINDOW))
        self.limits = limits_in(properties)
        self.up_since_s = time.monotonic()
        self._due_s = self.up_since_s + SUBACK_S
        asked = (*self.line.presence, *self.line.subscriptions)
        self._heard = self.limits.heard(asked)
        self.refused = tuple(one for one in asked if one not in self._heard)
        self.stage = "subscribing" if self._heard else "up"
        if self.present and self.line.dropped:
            self._client.unsubscribe(list(self.line.dropped))
        if self._heard:
            self._subscribe(self._heard)
        return None

    def _subscribe(self, names: tuple[str, ...]) -> None:
        plain = [(name, 0 if name in self.line.presence else 1) for name in names]
        if self.protocol == "5":
            # A retained status must be told from a fresh one, and a retained request from one that was not.
            options = [(name, SubscribeOptions(qos=qos, retainAsPublished=qos > 0)) for name, qos in plain]
            self._client.subscribe(options)
        else:
            self._client.subscribe(plain)

    def _on_subscribe(
        self, _client: paho.Client, _user: object, _mid: int, codes: list[ReasonCode], _properties: Properties | None
    ) -> None:
        if self.stage == "up":  # of the look
            return self.send(Outgoing(topic=self._look.echo, payload=self._fence.nonce, qos=0))
        pairs = zip(self._heard, codes, strict=False)
        self.refused += tuple(name for name, code in pairs if code.is_failure)
        for name in self.refused:
            log.error("event=subscription_refused filter=%r", name)
        self.stage = "up"
        return None

    def _on_message(self, client: paho.Client, _user: object, message: paho.MQTTMessage) -> None:
        if not self._intake:
            return
        self._fence.heard(time.monotonic())
        if self._packets.cut:
            self.too_large += 1
            log.warning("event=too_large_discarded limit=%d", self._settings.packet_max)
        elif self._must_hold(message):
            return
        elif (topic := readable_topic(message)) is None:
            self.unreadable += 1
            log.warning("event=topic_not_utf8")
        elif self._look.hears(topic):
            self._looked_at(topic, message)
        elif not self._fence.hear(topic, bytes(message.payload)):
            incoming = incoming_from(topic, message, waited=self._may_have_waited(), controls=self.line.controls)
            if not self._ears.accept(incoming) and message.qos:
                raise NotAccepted
        if message.qos:
            client.ack(message.mid, message.qos)

    def _looked_at(self, topic: str, message: paho.MQTTMessage) -> None:
        if topic == self._look.echo:
            self._end_look()
        elif message.retain:
            self._look.found()
            self._ears.found(incoming_from(topic, message, waited=True, controls=False))

    def _end_look(self) -> None:
        self._look.end()
        self._client.unsubscribe(self._look.filter)

    def _must_hold(self, message: paho.MQTTMessage) -> bool:
        if self._held is None or readable_topic(message) in self.line.presence:
            return False
        if len(self._held) >= HELD_MOST:
            raise ConnectionError("too much came before it was clear who is to take it")
        self._held.append(message)
        return True

    def _on_publish(
        self, _client: paho.Client, _user: object, mid: int, code: ReasonCode, _properties: Properties | None
    ) -> None:
        out = self._in_flight.acknowledged(mid, time.monotonic())
        if out is not None:  # None: QoS 0, which paho reports too
            if code.is_failure:
                log.error("event=publish_refused topic=%r reason=%r", out.topic, str(code))
            if out.topic == self._fence.topic:
                self._fence.refused = code.is_failure
            else:
                self._ears.acknowledged(out, code.value if code.is_failure else None)

    def _on_disconnect(
        self,
        _client: paho.Client,
        _user: object,
        flags: paho.DisconnectFlags,
        code: ReasonCode,
        _properties: Properties | None,
    ) -> None:
        told = flags.is_disconnect_packet_from_server
        if code.value == NORMAL and not told:
            return self._end("stopped", by_peer=False)
        reason = f"ended by the broker: {code}" if told else self._packets.trouble or f"ended: {code}"
        self.taken_over = code.value == TAKEN_OVER if told else code.value != SILENT
        return self._end(reason, by_peer=code.value != SILENT)

    # --- the rest

    def _new_client(self) -> Client:
        settings = self._settings
        address = address_of(settings.url)
        client = Client(settings, address, self.protocol, self._prepare)
        client.on_connect = self._on_connect
        client.on_subscribe = self._on_subscribe
        client.on_message = self._on_message
        client.on_publish = self._on_publish
        client.on_disconnect = self._on_disconnect
        return client

    def _prepare(self, packets: PacketSocket) -> None:
        """Called by the client between reaching the broker and CONNECT."""
        self._packets = packets
        will = self._ears.before_connect()
        if will is not None:
            qos, retain = min(will.qos, self.line.will_qos), will.retain and self.line.will_retain
            properties = will_properties(will) if self.protocol == "5" else None
            self._client.will_set(will.topic, will.payload, qos, retain, properties)
        self._fence.prepare()

    def _may_have_waited(self) -> bool:
        return not self._fence.seen if self._fence.wanted else self.present and self.stage != "up"

    def _next_timer_s(self) -> float:
        now = time.monotonic()
        next_s = now + self._client.keepalive / 4  # the broker may have set a shorter one
        if self.stage != "up":
            next_s = min(next_s, self._due_s)
        elif (due_s := self._fence.due_s(now)) is not None:
            next_s = min(next_s, now + due_s)
        return next_s - now

    def _keep_timers(self, now: float) -> None:
        if self.stage != "up":
            if now >= self._due_s:
                self.close(f"no answer while {self.stage}")
            return
        if self._in_flight.lost_one(self._settings.keepalive_s, now):
            self.unacknowledged = True
            self.close("a publication was not acknowledged")  # MQTT sends it again only on a new connection
        elif self._fence.due_s(now) == 0.0:
            if self.ready_for(1):
                self._fence.is_sent(now)
                self.send(Outgoing(topic=self._fence.topic, payload=self._fence.nonce))
            else:
                self._fence.has_no_room(now)
        elif self._look.stage == "before" and self._fence.seen and self.writable and self.limits.wildcards:
            self._look.begin(now)
            # QoS 0: no queue holds it up. Retained only where it was kept: what is said meanwhile is not looked at.
            options = SubscribeOptions(qos=0)
            self._client.subscribe(self._look.filter, options=options if self.protocol == "5" else None)
        elif self._look.over_due(now):
            self._end_look()

    def _give_up(self, out: Outgoing, reason: int, why: str) -> None:
        log.error("event=publish_refused topic=%r reason=%r", out.topic, why)
        self._ears.acknowledged(out, reason)

    def _end(self, reason: str, *, by_peer: bool) -> None:
        if self.stage != "ended":
            self.stage = "ended"
            self.reason = reason
            self.by_peer = by_peer
