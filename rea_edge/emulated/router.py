"""Who gets a message: sessions' queues and windows, retained messages, access. No sockets, threads or clock of its own.

Everything kept is bounded by `Caps`; what goes over is dropped and counted. What packets ask for is in `exchange`.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

from rea_edge.emulated.link import Link, Peer
from rea_edge.emulated.packets import Wanted
from rea_edge.emulated.session import Message, Session, matches

Action = Literal["subscribe", "read", "write"]
Access = Callable[[Peer, Action, str], bool]

NO_SUBSCRIBERS, QUOTA_EXCEEDED = 0x10, 0x97


class Caps(NamedTuple):
    """The most a broker keeps. `window` is how many QoS 1 messages a client may leave unacknowledged."""

    window: int = 20
    packet_bytes: int = 2_097_152
    connections: int = 500
    sessions: int = 1_000
    subscriptions: int = 1_000  # of one session
    queued: int = 10_000  # messages of one session
    retained: int = 10_000
    kept_bytes: int = 67_108_864  # queued, in flight and retained, of all sessions together


DEFAULT_CAPS = Caps()


class Router:
    """All sessions and retained messages of a broker. `now_s` is monotonic and given with every call."""

    def __init__(self, caps: Caps, access: Access | None) -> None:
        self.caps = caps
        self.dropped = 0
        self.sessions: dict[str, Session] = {}
        self.retained: dict[str, Message] = {}
        self._access = access
        self._kept_bytes = 0

    def clear(self) -> None:
        self.sessions.clear()
        self.retained.clear()
        self._kept_bytes = 0

    def remove(self, session: Session) -> None:
        """Forget a session with all that waits in it."""
        self.sessions.pop(session.client_id, None)
        self._kept_bytes -= sum(message.size_bytes() for message in (*session.queue, *session.inflight.values()))

    def route(self, message: Message, source: str, now_s: float) -> int:
        """Keep it where it is retained and give it to everyone who wants it; the reason code for its sender."""
        if message.retain and not self._retain(message):
            return QUOTA_EXCEEDED
        levels = message.topic.split("/")
        wanted = 0
        for session in list(self.sessions.values()):
            subscription = session.best(levels, local=session.client_id == source)
            if subscription is not None:
                wanted += 1
                retain = message.retain and subscription.retain_as_published
                self._deliver(session, _copy(message, subscription.qos, retain=retain), now_s)
        return 0 if wanted else NO_SUBSCRIBERS

    def send_retained(self, session: Session, wanted: Wanted, now_s: float) -> None:
        levels = tuple(wanted.topic_filter.split("/"))
        for message in list(self.retained.values()):
            if message.expires_s <= now_s:
                self._retain(message._replace(payload=b""))
            elif matches(levels, message.topic.split("/")):
                self._deliver(session, _copy(message, min(wanted.qos, 1), retain=True), now_s)

    def pump(self, session: Session, link: Link, now_s: float) -> None:
        """Send what is unacknowledged from an earlier connection, then what is queued, as far as the window goes."""
        peer = link.peer
        assert peer is not None
        window = min(self.caps.window, peer.receive_maximum)
        while (session.unsent or session.queue) and session.window_used() < window and link.has_room():
            again = bool(session.unsent)
            if again:
                packet_id = session.unsent.popleft()
                message = session.inflight[packet_id]
            else:
                packet_id, message = session.next_packet_id(), session.queue.popleft()
                session.inflight[packet_id] = message
            wanted = message.expires_s > now_s and self.allowed(peer, "read", message.topic)
            if not wanted or not link.send(message.packet(packet_id, now_s, dup=again)):
                self._forget(session, packet_id)

    def acknowledged(self, session: Session, packet_id: int, now_s: float) -> None:
        self._forget(session, packet_id)
        if session.link is not None:
            self.pump(session, session.link, now_s)

    def allowed(self, peer: Peer | None, action: Action, topic: str) -> bool:
        return self._access is None or (peer is not None and self._access(peer, action, topic))

    def _retain(self, message: Message) -> bool:
        before = self.retained.pop(message.topic, None)
        if before is not None:
            self._kept_bytes -= before.size_bytes()
        if not message.payload:
            return True
        if len(self.retained) >= self.caps.retained or not self._has_room(message):
            self.dropped += 1
            return False
        self.retained[message.topic] = message
        self._kept_bytes += message.size_bytes()
        return True

    def _deliver(self, session: Session, message: Message, now_s: float) -> None:
        link = session.link
        if message.qos == 0:
            if link is not None and self.allowed(link.peer, "read", message.topic):
                if link.has_room():
                    link.send(message.packet(0, now_s))
                else:
                    self.dropped += 1
        elif len(session.queue) >= self.caps.queued or not self._has_room(message):
            self.dropped += 1
        else:
            session.queue.append(message)
            self._kept_bytes += message.size_bytes()
            if link is not None:
                self.pump(session, link, now_s)

    def _forget(self, session: Session, packet_id: int) -> None:
        message = session.inflight.pop(packet_id, None)
        if message is None:
            return
        self._kept_bytes -= message.size_bytes()
        if packet_id in session.unsent:
            session.unsent.remove(packet_id)

    def _has_room(self, message: Message) -> bool:
        return self._kept_bytes + message.size_bytes() <= self.caps.kept_bytes


def _copy(message: Message, qos: int, *, retain: bool) -> Message:
    qos = min(qos, message.qos)
    if qos == message.qos and retain == message.retain:
        return message
    return message._replace(qos=qos, retain=retain)
