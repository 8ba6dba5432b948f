"""What the packets of a client ask for: connecting, sessions and their ends, subscribing, publishing.

Holds no clock, thread or socket.
Who gets a message is in `router`; bytes and sockets are in `wire` and `link`.
"""

from collections.abc import Callable
from math import inf
from typing import assert_never

from rea_edge.emulated import packets as p
from rea_edge.emulated.link import LARGEST_PACKET_BYTES, Link, Peer
from rea_edge.emulated.router import QUOTA_EXCEEDED, Router
from rea_edge.emulated.session import Message, Session, Subscription, Will, valid_filter
from rea_edge.emulated.wire import text

Login = Callable[[str, str | None, bytes | None], bool]

TAKEN_OVER, KEEPALIVE_TIMEOUT, WITH_WILL = 0x8E, 0x8D, 0x04
NOT_AUTHORIZED, BAD_LOGIN, BAD_CLIENT_ID, BAD_AUTH_METHOD = 0x87, 0x86, 0x85, 0x8C
NO_SUBSCRIPTION, BAD_FILTER, QOS_UNSUPPORTED, SHARED_UNSUPPORTED = 0x11, 0x8F, 0x9B, 0x9E
NEVER_S = 0xFFFF_FFFF

# What 3.1.1 can say instead in a CONNACK.
_CONNACK_V4 = {BAD_LOGIN: 5, BAD_CLIENT_ID: 2}


class Exchange:
    """The protocol's rules over one `Router`. `now_s` is monotonic and given with every call."""

    def __init__(self, router: Router, *, v5: bool, login: Login | None, login_is_id: bool = False) -> None:
        self._router = router
        self._login_is_id = login_is_id
        self._v5 = v5
        self._login = login
        self._named = 0

    def accept(self, link: Link, packet: p.Incoming, now_s: float) -> None:
        """Act on one packet of a client. Raises `Malformed` where the client broke the protocol."""
        if isinstance(packet, p.Connect):
            if link.peer is not None:
                raise p.Malformed("second CONNECT", p.PROTOCOL_ERROR)
            self._connect(link, packet, now_s)
            return
        if link.peer is None:
            raise p.Malformed("no CONNECT first", p.PROTOCOL_ERROR)
        session = self._router.sessions[link.peer.client_id]
        match packet:
            case p.Publish():
                self._publish(link, link.peer, packet, now_s)
            case p.Puback():
                self._router.acknowledged(session, packet.packet_id, now_s)
            case p.Subscribe():
                self._subscribe(session, link, link.peer, packet, now_s)
            case p.Unsubscribe():
                found = [session.subscriptions.pop(name, None) is not None for name in packet.filters]
                link.send(p.Unsuback(packet.packet_id, bytes(0 if was else NO_SUBSCRIPTION for was in found)))
            case p.Pingreq():
                link.send(p.Pingresp())
            case p.Disconnect():
                self._disconnect(session, link, packet, now_s)
            case _:
                assert_never(packet)

    def refuse_version(self, link: Link, now_s: float) -> None:
        """Answer a CONNECT of a version that is not spoken here, in a way every version can read."""
        link.send(p.Connack(1))
        link.close(now_s)

    def part(self, link: Link, code: int, now_s: float) -> None:
        """Close a connection for a reason (which 3.1.1 cannot be told); the will is published."""
        if link.peer is not None and link.version == 5:
            link.send(p.Disconnect(code))
        link.close(now_s)
        self.lost(link, now_s)

    def lost(self, link: Link, now_s: float) -> None:
        """A connection has ended, whoever ended it. Does nothing where the session has another one."""
        session = self._router.sessions.get(link.client_id)
        if session is None or session.link is not link:
            return
        session.link = None
        session.ends_s = now_s + session.expiry_s
        if session.will is not None:
            session.will_due_s = now_s + session.will.delay_s
        self._settle(session, now_s)

    def pump(self, link: Link, now_s: float) -> None:
        """Send what waits, after the link got room."""
        session = self._router.sessions.get(link.client_id)
        if session is not None and session.link is link:
            self._router.pump(session, link, now_s)

    def sweep(self, now_s: float) -> None:
        """Publish the wills and end the sessions whose time has come."""
        for session in list(self._router.sessions.values()):
            if session.link is None:
                self._settle(session, now_s)

    def due_s(self) -> float:
        """When there is something to sweep next, or infinity."""
        away = (session for session in self._router.sessions.values() if session.link is None)
        return min((min(session.ends_s, session.will_due_s) for session in away), default=inf)

    # --- connecting

    def _connect(self, link: Link, packet: p.Connect, now_s: float) -> None:
        if packet.version == 5 and not self._v5:
            self.refuse_version(link, now_s)
            return
        client_id = packet.username if self._login_is_id and packet.username else packet.client_id
        properties: p.Properties = ()
        if not client_id and (packet.version == 5 or packet.clean):
            client_id = self._new_client_id()
            properties = ((p.ASSIGNED_CLIENT_ID, text(client_id)),)
        link.peer = _peer(packet, client_id)
        if code := self._refusal(packet, client_id):
            link.send(p.Connack(code if packet.version == 5 else _CONNACK_V4.get(code, 3)))
            link.close(now_s)
            return
        session, present = self._session(link.peer, packet, now_s)
        session.link = link
        link.send(p.Connack(0, present, properties + self._abilities()))
        self._router.pump(session, link, now_s)

    def _refusal(self, packet: p.Connect, client_id: str) -> int:
        if not client_id:
            return BAD_CLIENT_ID
        if p.number(packet.properties, p.AUTH_METHOD) is not None:
            return BAD_AUTH_METHOD
        if packet.will is not None and packet.will.qos > 1:
            return QOS_UNSUPPORTED
        if self._login is not None and not self._login(client_id, packet.username, packet.password):
            return BAD_LOGIN
        if client_id not in self._router.sessions and len(self._router.sessions) >= self._router.caps.sessions:
            return QUOTA_EXCEEDED
        return 0

    def _session(self, peer: Peer, packet: p.Connect, now_s: float) -> tuple[Session, bool]:
        """The session of this connection, old or new, and whether it was there before."""
        client_id = peer.client_id
        session = self._router.sessions.get(client_id)
        if session is not None and session.link is not None:
            self.part(session.link, TAKEN_OVER, now_s)
            session = self._router.sessions.get(client_id)
        if session is not None and packet.clean:
            self._end(session, now_s)
            session = None
        present = session is not None
        if session is None:
            session = self._router.sessions[client_id] = Session(client_id)
        session.expiry_s = _expiry_s(packet)
        session.ends_s = session.will_due_s = inf
        session.unsent.clear()
        session.unsent.extend(session.inflight)
        session.will = None
        if packet.will is not None:
            session.will = Will(peer, packet.will, float(p.number(packet.will.properties, p.WILL_DELAY) or 0))
        return session, present

    def _abilities(self) -> p.Properties:
        return (
            (p.RECEIVE_MAXIMUM, self._router.caps.window.to_bytes(2, "big")),
            (p.MAXIMUM_QOS, b"\1"),
            (p.MAXIMUM_PACKET, self._router.caps.packet_bytes.to_bytes(4, "big")),
            (p.SUBSCRIPTION_IDS_AVAILABLE, b"\0"),
            (p.SHARED_AVAILABLE, b"\0"),
        )

    def _new_client_id(self) -> str:
        while True:
            self._named += 1
            if (client_id := f"auto-{self._named}") not in self._router.sessions:
                return client_id

    def _disconnect(self, session: Session, link: Link, packet: p.Disconnect, now_s: float) -> None:
        if (expiry_s := p.number(packet.properties, p.SESSION_EXPIRY)) is not None:
            if expiry_s and not session.expiry_s:
                raise p.Malformed("session expiry after a connect without", p.PROTOCOL_ERROR)
            session.expiry_s = inf if expiry_s == NEVER_S else float(expiry_s)
        if packet.code != WITH_WILL:
            session.will = None
        link.close(now_s)
        self.lost(link, now_s)

    def _settle(self, session: Session, now_s: float) -> None:
        """Publish the will and end the session, each when its time has come."""
        if session.will is not None and now_s >= session.will_due_s:
            self._publish_will(session, now_s)
        if now_s >= session.ends_s:
            self._end(session, now_s)

    def _end(self, session: Session, now_s: float) -> None:
        # A delayed will does not outlive its session: it is published now.
        self._publish_will(session, now_s)
        self._router.remove(session)

    def _publish_will(self, session: Session, now_s: float) -> None:
        will, session.will, session.will_due_s = session.will, None, inf
        if will is not None and self._router.allowed(will.peer, "write", will.packet.topic):
            self._router.route(Message.of(will.packet, now_s), session.client_id, now_s)

    # --- publishing

    def _publish(self, link: Link, peer: Peer, packet: p.Publish, now_s: float) -> None:
        if packet.qos == 2:
            raise p.Malformed("QoS 2", QOS_UNSUPPORTED)
        if not self._router.allowed(peer, "write", packet.topic):
            code = NOT_AUTHORIZED
        else:
            code = self._router.route(Message.of(packet, now_s), peer.client_id, now_s)
        if packet.qos:
            link.send(p.Puback(packet.packet_id, code))

    # --- subscribing

    def _subscribe(self, session: Session, link: Link, peer: Peer, packet: p.Subscribe, now_s: float) -> None:
        codes = bytearray()
        wanted_retained: list[p.Wanted] = []
        for wanted in packet.wanted:
            code = self._subscription_code(session, peer, wanted)
            codes.append(code if code < 0x80 or link.version == 5 else 0x80)
            if code >= 0x80:
                continue
            new = wanted.topic_filter not in session.subscriptions
            session.subscriptions[wanted.topic_filter] = Subscription(
                tuple(wanted.topic_filter.split("/")), code, wanted.no_local, wanted.retain_as_published
            )
            if wanted.retain_handling == 0 or (wanted.retain_handling == 1 and new):
                wanted_retained.append(wanted)
        link.send(p.Suback(packet.packet_id, bytes(codes)))
        for wanted in wanted_retained:
            self._router.send_retained(session, wanted, now_s)

    def _subscription_code(self, session: Session, peer: Peer, wanted: p.Wanted) -> int:
        """The QoS that is granted, or why not."""
        if wanted.topic_filter.startswith("$share/"):
            return SHARED_UNSUPPORTED
        if not valid_filter(wanted.topic_filter):
            return BAD_FILTER
        if not self._router.allowed(peer, "subscribe", wanted.topic_filter):
            return NOT_AUTHORIZED
        full = len(session.subscriptions) >= self._router.caps.subscriptions
        if full and wanted.topic_filter not in session.subscriptions:
            return QUOTA_EXCEEDED
        return min(wanted.qos, 1)


def _peer(packet: p.Connect, client_id: str) -> Peer:
    receive_maximum = p.number(packet.properties, p.RECEIVE_MAXIMUM)
    packet_bytes = p.number(packet.properties, p.MAXIMUM_PACKET)
    return Peer(
        client_id,
        packet.username,
        packet.version,
        packet.keepalive_s,
        65_535 if receive_maximum is None else receive_maximum,
        LARGEST_PACKET_BYTES if packet_bytes is None else packet_bytes,
    )


def _expiry_s(packet: p.Connect) -> float:
    if packet.version == 4:
        return 0.0 if packet.clean else inf
    expiry_s = p.number(packet.properties, p.SESSION_EXPIRY) or 0
    return inf if expiry_s == NEVER_S else float(expiry_s)
