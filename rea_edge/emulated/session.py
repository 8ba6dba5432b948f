"""What a broker keeps for one client id: subscriptions, queue, what is in flight, the will. Pure but for its link.

Also topic filters and how they match. Holds no routing and no limits: see `exchange`.
"""

from collections import deque
from math import inf
from typing import NamedTuple

from rea_edge.emulated.link import Link, Peer
from rea_edge.emulated.packets import MESSAGE_EXPIRY, PASSED_ON, Properties, Publish, number

# Bookkeeping of a kept message besides its topic and payload, roughly.
MESSAGE_BYTES = 300


class Message(NamedTuple):
    """A publish on its way. `expires_s` is on the monotonic clock; `properties` are those that are passed on."""

    topic: str
    payload: bytes
    qos: int
    retain: bool
    properties: Properties = ()
    expires_s: float = inf

    @classmethod
    def of(cls, packet: Publish, now_s: float) -> "Message":
        expiry_s = number(packet.properties, MESSAGE_EXPIRY)
        return cls(
            packet.topic,
            packet.payload,
            packet.qos,
            packet.retain,
            tuple(pair for pair in packet.properties if pair[0] in PASSED_ON),
            inf if expiry_s is None else now_s + expiry_s,
        )

    def packet(self, packet_id: int, now_s: float, *, dup: bool = False) -> Publish:
        properties = self.properties
        if self.expires_s != inf:
            # A receiver gets what is left of the life of a message, in whole seconds.
            left_s = max(0, round(self.expires_s - now_s))
            properties += ((MESSAGE_EXPIRY, left_s.to_bytes(4, "big")),)
        return Publish(self.topic, self.payload, self.qos, self.retain, dup, packet_id, properties)

    def size_bytes(self) -> int:
        return len(self.topic) + len(self.payload) + sum(len(value) for _, value in self.properties) + MESSAGE_BYTES


class Subscription(NamedTuple):
    levels: tuple[str, ...]
    qos: int
    no_local: bool
    retain_as_published: bool


class Will(NamedTuple):
    peer: Peer
    packet: Publish
    delay_s: float


class Session:
    """One client id's state. `link` is None while the client is away."""

    def __init__(self, client_id: str) -> None:
        self.client_id = client_id
        self.link: Link | None = None
        self.expiry_s = 0.0  # how long it outlives its connection; inf: for ever
        self.ends_s = inf
        self.will: Will | None = None
        self.will_due_s = inf
        self.subscriptions: dict[str, Subscription] = {}
        self.queue: deque[Message] = deque()
        self.inflight: dict[int, Message] = {}  # sent and not acknowledged, in order
        self.unsent: deque[int] = deque()  # of those, the ones not sent yet on this connection
        self._packet_id = 0

    def best(self, levels: list[str], *, local: bool) -> Subscription | None:
        """The matching subscription with the highest QoS, or None; overlapping ones give one copy.

        `local`: the message came from this very client.
        """
        found: Subscription | None = None
        as_published = False
        for subscription in self.subscriptions.values():
            if (local and subscription.no_local) or not matches(subscription.levels, levels):
                continue
            as_published = as_published or subscription.retain_as_published
            if found is None or subscription.qos > found.qos:
                found = subscription
        if found is not None and as_published and not found.retain_as_published:
            found = found._replace(retain_as_published=True)
        return found

    def window_used(self) -> int:
        return len(self.inflight) - len(self.unsent)

    def next_packet_id(self) -> int:
        """An id that is not in flight. The window is far smaller than the number of ids, so there is one."""
        while True:
            self._packet_id = self._packet_id % 65_535 + 1
            if self._packet_id not in self.inflight:
                return self._packet_id


def valid_filter(topic_filter: str) -> bool:
    """Whether `+` and `#` stand alone in their levels and `#` only at the end."""
    *before, last = topic_filter.split("/")
    return bool(topic_filter) and _plain(last, ("+", "#")) and all(_plain(level, ("+",)) for level in before)


def matches(levels: tuple[str, ...], topic: list[str]) -> bool:
    """Whether a topic, split at its slashes, is covered by a filter, split likewise."""
    if topic[0].startswith("$") and levels[0] in ("+", "#"):
        return False
    for place, level in enumerate(levels):
        if level == "#":
            return True
        if place >= len(topic) or level not in ("+", topic[place]):
            return False
    return len(levels) == len(topic)


def _plain(level: str, wildcards: tuple[str, ...]) -> bool:
    return level in wildcards or not ("+" in level or "#" in level)
