"""A connection that hears what is asked for while it is up, one topic at a time. Knows not who asks, or why."""

import logging
from collections.abc import Callable

import paho.mqtt.client as paho
from paho.mqtt.enums import MQTTErrorCode
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from rea_edge.mqtt.client import readable_topic
from rea_edge.mqtt.connection import Connection
from rea_edge.mqtt.line import Ears, Line
from rea_edge.mqtt.messages import Protocol

log = logging.getLogger("rea_edge.mqtt")


class Channel(Connection):
    """`granted(topic, yes)` is told of each SUBACK, `cut(topic)` of a message above the packet limit."""

    def __init__(
        self,
        line: Line,
        protocol: Protocol,
        ears: Ears,
        *,
        granted: Callable[[str, bool], None],
        cut: Callable[[str], None],
    ) -> None:
        super().__init__(line, protocol, ears, nonce=b"")
        self._granted = granted
        self._cut = cut
        self._asked: dict[int, str] = {}  # by packet id

    def subscribe(self, topic: str) -> None:
        """Ask for a topic; what is retained there comes too, also where it was asked for before."""
        if self.protocol == "5":
            code, packet_id = self._client.subscribe(topic, options=SubscribeOptions(qos=1))
        else:
            code, packet_id = self._client.subscribe(topic, 1)
        if code == MQTTErrorCode.MQTT_ERR_SUCCESS and packet_id is not None:
            self._asked[packet_id] = topic

    def unsubscribe(self, topic: str) -> None:
        self._client.unsubscribe(topic)

    def _on_subscribe(
        self, _client: paho.Client, _user: object, mid: int, codes: list[ReasonCode], _properties: Properties | None
    ) -> None:
        topic = self._asked.pop(mid, None)
        if topic is not None:
            self._granted(topic, not any(code.is_failure for code in codes))

    def _on_message(self, client: paho.Client, user: object, message: paho.MQTTMessage) -> None:
        if self._packets.cut and (topic := readable_topic(message)) is not None:
            self._cut(topic)
        super()._on_message(client, user, message)
