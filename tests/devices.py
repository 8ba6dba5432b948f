"""Devices of somebody else on a broker, as tests need them: plain paho clients that share no code with us.

Holds what they say and when; asserts nothing.
"""

import queue
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion

Answers = Callable[["Device", str, bytes], None]
PATIENCE_S = 15.0


def silent(_device: "Device", _topic: str, _payload: bytes) -> None:
    """A device that hears and says nothing."""


class Device:
    """Hears `topics`; `answers(device, topic, payload)` is called for each message, in paho's thread. `heard` has all
    of them, with their flags. Connected and subscribed once it is entered."""

    def __init__(
        self, port: int, *topics: str, answers: Answers = silent, login: tuple[str, str] | None = None
    ) -> None:
        self.heard: queue.Queue[paho.MQTTMessage] = queue.Queue()
        self.answers = answers
        self._topics = topics
        self._granted: queue.Queue[bool] = queue.Queue()
        self._port = port
        self._client = paho.Client(CallbackAPIVersion.VERSION2, protocol=paho.MQTTv311)
        if login is not None:
            self._client.username_pw_set(*login)
        self._client.on_connect = lambda *_: self._connected()
        self._client.on_subscribe = lambda *_: self._granted.put(True)
        self._client.on_message = lambda _client, _user, message: self._hear(message)

    def __enter__(self) -> Self:
        self._client.connect("127.0.0.1", self._port)
        self._client.loop_start()
        self.wait_subscribed()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, t: TracebackType | None) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def wait_subscribed(self) -> None:
        """Once more after each end of the broker."""
        self._granted.get(timeout=PATIENCE_S)

    def say(self, topic: str, payload: str | bytes, *, retain: bool = False, qos: int = 1) -> None:
        self._client.publish(topic, payload, qos, retain)

    def keep(self, topic: str, payload: str | bytes) -> None:
        """Say it retained, and return when the broker has it. Not for `answers`."""
        self._client.publish(topic, payload, 1, True).wait_for_publish(PATIENCE_S)

    def next(self) -> tuple[str, bytes]:
        message = self.heard.get(timeout=PATIENCE_S)
        return message.topic, message.payload

    def _connected(self) -> None:
        if self._topics:
            self._client.subscribe([(topic, 1) for topic in self._topics])
        else:
            self._granted.put(True)

    def _hear(self, message: paho.MQTTMessage) -> None:
        self.heard.put(message)
        self.answers(self, message.topic, message.payload)


def replying(topic: str, *payloads: str | bytes) -> Answers:
    """Says these on a topic, one after the other, whatever it hears."""

    def answer(device: Device, _topic: str, _payload: bytes) -> None:
        for payload in payloads:
            device.say(topic, payload)

    return answer


@contextmanager
def device(port: int, *topics: str, answers: Answers = silent) -> Iterator[Device]:
    with Device(port, *topics, answers=answers) as one:
        yield one
