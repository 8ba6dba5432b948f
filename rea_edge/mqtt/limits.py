"""What a broker allows, as its CONNACK says, and what that takes away from us. Pure; knows no properties of paho.

Topic aliases, subscription identifiers and shared subscriptions are never used, whatever it allows of them.
"""

from msgspec import Struct

PACKET_MOST = 268_435_460  # MQTT's own limit: 256 MiB and a fixed header
TOPIC_MOST = 256  # bytes; some brokers of clouds close the connection above it
QUEUE_SHORT_S = 3600  # a session that is kept for less than this is worth a word


class Limits(Struct, frozen=True, kw_only=True):
    """The defaults are what 3.1.1 has: nothing is said, so nothing is taken away. `session_s`: how long it keeps our
    session while we are away."""

    packet_bytes: int = PACKET_MOST
    retain: bool = True
    qos: int = 1
    wildcards: bool = True
    session_s: int | None = None

    def words(self, payload_bytes: int) -> tuple[str, ...]:
        """What the operator should know; `payload_bytes` is the largest message that will be sent."""
        found = []
        if not self.retain:
            found.append("broker allows no retained messages: status, card and states of tasks cannot be kept")
        if self.qos < 1:
            found.append("broker allows QoS 0 only: what gets lost on the way stays lost")
        if not self.wildcards:
            found.append("broker allows no wildcard subscriptions: requests cannot be heard")
        if self.packet_bytes < payload_bytes:
            found.append(f"broker takes packets of at most {self.packet_bytes} bytes: larger messages are cut")
        if self.session_s is not None and self.session_s < QUEUE_SHORT_S:
            found.append(f"broker keeps the queue of an absent node for {self.session_s} s only")
        return tuple(found)

    def heard(self, filters: tuple[str, ...]) -> tuple[str, ...]:
        """Those that may be subscribed to: one it does not allow would end the connection."""
        return filters if self.wildcards else tuple(one for one in filters if not set(one) & set("+#"))
