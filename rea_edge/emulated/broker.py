"""An MQTT broker in this process, for tests, the demo and users' own tests: its thread, its port, its faults.

It listens on loopback only and uses nothing outside the standard library. It speaks MQTT 5 and 3.1.1 at QoS 0 and 1
(a QoS 2 subscription is granted 1, a QoS 2 publish is refused), with retained messages, wills, persistent sessions,
expiry, and access rules. It does not offer shared subscriptions, subscription identifiers, topic aliases or TLS, and
says so to MQTT 5 clients. State lives in memory and outlives `stop()`, not the process.

What packets mean is in `exchange`; this file must not know.
"""

import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from math import inf
from types import TracebackType
from typing import Self

from rea_edge.emulated.exchange import KEEPALIVE_TIMEOUT, Exchange, Login
from rea_edge.emulated.link import Hook, Link, Peer, SendHook, Verdict
from rea_edge.emulated.packets import Connect, Incoming, Malformed, Outgoing, Packet, UnknownVersion
from rea_edge.emulated.router import DEFAULT_CAPS, Access, Action, Caps, Router
from rea_edge.emulated.wire import decode

__all__ = ["Access", "Action", "Broker", "Caps", "Hook", "Login", "Packet", "Peer", "Verdict"]

# Clients' own ports begin at 32768 on Linux: a port from below is still free when the broker starts again.
FIRST_PORT, LAST_PORT = 20_000, 32_767
# While packets come in, timers are looked at no more often than this.
TICK_S = 0.02


class Broker:
    """A broker on `127.0.0.1`, started with `start()` or as a context manager.

        with Broker() as broker:
            client.connect("127.0.0.1", broker.port)

    port        0 chooses a free one below 32768, which then stays the same over stop and start
    v5          False answers MQTT 5 clients "unsupported protocol version", as an old broker does
    connect_s   how long a connection may take to send its CONNECT
    login_is_id True makes the login of a client its id, so that each login has one session and one connection
    login       called with client id, user name and password (None where absent); False refuses the connection
    access      called with the peer, "write" (publish and will), "subscribe" (filter) or "read" (each delivery), and
                the topic; False refuses. As with other brokers a refused 3.1.1 publish is acknowledged all the same.

    Faults: `on_recv` and `on_send` are called with the client id and the packet (a value of `emulated.packets`) before
    it is acted on or sent. They answer None to let it pass, "drop" to lose it, "cut" to break the connection there,
    or a number of seconds to hold it, and everything behind it in that direction; `on_send` also another packet, to be
    sent in its place. Set them to None to end it.

        broker.on_send = lambda client_id, packet: "drop" if isinstance(packet, Puback) else None

    Hooks, `login` and `access` run in the broker's thread and must be quick. They may call `kick`, not `stop`. An
    exception in one of them ends the broker: all connections close and `stop()` raises it.
    """

    def __init__(
        self,
        port: int = 0,
        *,
        v5: bool = True,
        connect_s: float = 10.0,
        login_is_id: bool = False,
        login: Login | None = None,
        access: Access | None = None,
        caps: Caps = DEFAULT_CAPS,
    ) -> None:
        self.port = port
        self.on_send: SendHook | None = None
        self.on_recv: Hook | None = None
        self._caps = caps
        self._connect_s = connect_s
        self._router = Router(caps, access)
        self._exchange = Exchange(self._router, v5=v5, login=login, login_is_id=login_is_id)
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None
        self._asked: deque[Callable[[], None]] = deque()
        self._links: set[Link] = set()
        self._dirty: set[Link] = set()
        self._running = False
        self._now_s = 0.0
        self._due_s = 0.0
        self._swept_s = 0.0

    @property
    def url(self) -> str:
        return f"mqtt://127.0.0.1:{self.port}"

    @property
    def dropped(self) -> int:
        """How many messages were lost to `caps` so far."""
        return self._router.dropped

    def start(self) -> Self:
        """Listen; clients can connect when this returns. Raises OSError where the port is taken."""
        if self._thread is not None:
            raise RuntimeError("the broker is already started")
        self._listener = _listen(self.port)
        self.port = self._listener.getsockname()[1]
        self._wake, self._woken = socket.socketpair()
        self._wake.setblocking(False)
        self._woken.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._selector.register(self._woken, selectors.EVENT_READ, self._obey)
        self._asked.clear()
        self._due_s = 0.0
        self._running = True
        self._thread = threading.Thread(target=self._run, name="emulated-broker", daemon=True)
        self._thread.start()
        return self

    def stop(self, *, lose: bool = False) -> None:
        """Close the port and all connections, as a broker that is ended in order: wills are published.

        Sessions, their queues and retained messages are there again after the next `start()`, unless `lose`.
        Does nothing where the broker is stopped, except to `lose` the state. Not to be called from a hook.
        """
        if self._thread is not None:
            self._ask(self._end)
            self._thread.join()
            self._thread = None
        failure, self._failure = self._failure, None
        if lose or failure is not None:
            self._router.clear()
        if failure is not None:
            raise failure

    def kick(self, client_id: str) -> None:
        """Break the connection of a client as a failing network would, soon; does nothing where it has none."""

        def cut() -> None:
            for link in self._links:
                if link.client_id == client_id:
                    link.cut()

        if self._running:
            self._ask(cut)

    def clients(self) -> tuple[str, ...]:
        """The ids of the clients that are connected now."""
        sessions = list(self._router.sessions.values())
        return tuple(session.client_id for session in sessions if session.link is not None)

    def retained(self) -> dict[str, bytes]:
        """The payloads of the retained messages by topic."""
        return {message.topic: message.payload for message in list(self._router.retained.values())}

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # --- the thread

    def _ask(self, act: Callable[[], None]) -> None:
        """Have something done in the broker's thread, soon."""
        self._asked.append(act)
        try:
            self._wake.send(b"\0")
        except OSError:
            # Full: it will wake anyway. Closed: it has ended, and there is nothing to do it to.
            return

    def _end(self) -> None:
        self._running = False

    def _run(self) -> None:
        try:
            while self._running:
                self._turn()
        except Exception as exc:
            # Of a hook or an access rule, or a bug of ours: `stop()` raises it in the thread that owns the broker.
            self._failure = exc
        finally:
            self._running = False
            self._close_all()

    def _turn(self) -> None:
        events = self._selector.select(None if self._due_s == inf else max(0.0, self._due_s - time.monotonic()))
        self._now_s = time.monotonic()
        for key, mask in events:
            if isinstance(key.data, Link):
                self._serve(key.data, mask)
            else:
                key.data()
        self._settle_links()
        self._due_s = min(self._due_s, self._swept_s + TICK_S)
        if self._now_s >= self._due_s:
            self._sweep()

    def _accept(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except OSError:
            # Gone again, or this process is out of descriptors; the short rest keeps the latter from spinning.
            time.sleep(TICK_S)
            return
        if len(self._links) >= self._caps.connections:
            sock.close()
            return
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link = Link(sock, self._dirty, self._sending, self._now_s)
        self._links.add(link)
        self._watch(link)

    def _obey(self) -> None:
        self._woken.recv(4096)
        while self._asked:
            self._asked.popleft()()

    def _serve(self, link: Link, mask: int) -> None:
        if mask & selectors.EVENT_READ and not link.broken:
            link.receive(self._now_s)
            self._take_in(link)
        if mask & selectors.EVENT_WRITE:
            self._dirty.add(link)

    def _take_in(self, link: Link) -> None:
        """Act on every whole packet that has arrived."""
        try:
            while (frame := link.frame(self._caps.packet_bytes)) is not None:
                packet = decode(*frame, link.version)
                self._received(link, packet)
        except UnknownVersion:
            self._exchange.refuse_version(link, self._now_s)
        except Malformed as exc:
            self._exchange.part(link, exc.code, self._now_s)
        # Every change of what is to be watched ends in `_settle_links`.
        self._dirty.add(link)

    def _received(self, link: Link, packet: Incoming) -> None:
        verdict: Verdict = None
        if self.on_recv is not None:
            client_id = packet.client_id if isinstance(packet, Connect) else link.client_id
            verdict = self.on_recv(client_id, packet)
        match verdict:
            case None:
                self._exchange.accept(link, packet, self._now_s)
            case "drop":
                return
            case "cut":
                link.cut()
            case delay_s:
                link.delayed, link.resume_s = packet, self._now_s + delay_s

    def _resume(self, link: Link) -> None:
        """Act on the packet that was held, then on those behind it."""
        packet, link.delayed, link.resume_s = link.delayed, None, inf
        link.heard_s = self._now_s  # the client was not silent, we did not listen
        try:
            if packet is not None and link.open:
                self._exchange.accept(link, packet, self._now_s)
        except Malformed as exc:
            self._exchange.part(link, exc.code, self._now_s)
        self._take_in(link)

    def _sending(self, link: Link, packet: Packet) -> Verdict | Outgoing:
        return None if self.on_send is None else self.on_send(link.client_id, packet)

    def _settle_links(self) -> None:
        """Write what is to be written, until nothing has changed any more."""
        while self._dirty:
            link = self._dirty.pop()
            if link not in self._links:
                continue
            was_full = not link.has_room()
            link.flush(self._now_s)
            if link.broken:
                self._lose(link)
                continue
            if was_full and link.has_room():
                self._exchange.pump(link, self._now_s)
                self._take_in(link)
            self._watch(link)

    def _watch(self, link: Link) -> None:
        reads, writes = link.wants()
        mask = (selectors.EVENT_READ if reads else 0) | (selectors.EVENT_WRITE if writes else 0)
        if mask == link.mask:
            return
        if not mask:
            self._selector.unregister(link.sock)
        elif not link.mask:
            self._selector.register(link.sock, mask, link)
        else:
            self._selector.modify(link.sock, mask, link)
        link.mask = mask

    def _lose(self, link: Link) -> None:
        self._links.discard(link)
        if link.mask:
            self._selector.unregister(link.sock)
        link.sock.close()
        self._exchange.lost(link, self._now_s)

    def _sweep(self) -> None:
        """Do what is due by time, and find out when to look again."""
        self._swept_s = self._now_s
        for link in list(self._links):
            if link.deadline_s(self._connect_s) <= self._now_s:
                if link.closing or link.peer is None:
                    link.cut()
                else:
                    self._exchange.part(link, KEEPALIVE_TIMEOUT, self._now_s)
            elif link.resume_s <= self._now_s:
                self._resume(link)
            if link.release_s <= self._now_s:
                self._dirty.add(link)
        self._exchange.sweep(self._now_s)
        self._settle_links()
        self._due_s = min([self._exchange.due_s(), *(link.due_s(self._connect_s) for link in self._links)])

    def _close_all(self) -> None:
        self._selector.close()
        self._listener.close()
        for link in self._links:
            link.broken = True
            link.sock.close()
        links, self._links = self._links, set()
        if self._failure is None:
            for link in links:
                self._exchange.lost(link, self._now_s)
        self._dirty.clear()
        self._woken.close()
        self._wake.close()


def _listen(port: int) -> socket.socket:
    """A listening socket on loopback; for port 0 on a free port below those the system gives to clients."""
    if port:
        return _bound(port)
    span = LAST_PORT - FIRST_PORT + 1
    start = time.monotonic_ns() % span
    for step in range(200):
        try:
            return _bound(FIRST_PORT + (start + step * 7) % span)
        except OSError:
            continue
    raise OSError("no free port on loopback")


def _bound(port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("127.0.0.1", port))
        sock.listen(128)
        sock.setblocking(False)
    except OSError:
        sock.close()
        raise
    return sock
