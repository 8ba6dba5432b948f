"""A link with a memory, for tests: what it accepted, an outbox in memory, what it was told. Holds no assertions."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rea_edge.mqtt import Controls, Incoming, Link, LinkSettings, Outgoing, Session, Will
from tests.brokers import wait_until


class Station:
    """Accepts everything unless `answer` says otherwise. Rows of the outbox leave it when they are published."""

    def __init__(
        self,
        settings: LinkSettings,
        *subscriptions: str,
        will: Will | None = None,
        births: tuple[Outgoing, ...] = (),
        fence: Callable[[], str] | None = None,
        controls: Controls | None = None,
        shorter: Callable[[bytes, int], bytes | None] = lambda _payload, _most: None,
    ) -> None:
        self.accepted: list[Incoming] = []
        self.offered: list[Incoming] = []
        self.answer: Callable[[Incoming], bool] = lambda _incoming: True
        self.greet: Callable[[Session], tuple[Outgoing, ...]] = lambda _session: births
        self.published: list[tuple[Outgoing, int | None]] = []
        self.refused: list[tuple[Outgoing, int]] = []
        self.ups: list[Session] = []
        self.downs: list[str] = []
        self.connects = 0
        self.old: list[bool] = []  # whether the broker had a session that is not ours, at each connection
        self._will = will
        self._lock = threading.Lock()
        self._outbox: dict[int, Outgoing] = {}
        self._rows = 0
        self.link = Link(
            settings,
            subscriptions=subscriptions,
            accept=self._accept,
            pull=self._pull,
            published=self._take_published,
            before_connect=self._before_connect,
            on_up=self._on_up,
            on_down=self.downs.append,
            on_connected=self.old.append,
            fence=fence,
            controls=controls,
            shorter=shorter,
            refused=lambda out, reason: self.refused.append((out, reason)),
        )

    def post(
        self, topic: str, payload: bytes, *, retain: bool = False, qos: int = 1, expires_in_s: int | None = None
    ) -> None:
        """Put a row into the outbox and wake the link."""
        with self._lock:
            self._rows += 1
            out = Outgoing(
                row=self._rows, topic=topic, payload=payload, retain=retain, qos=qos, expires_in_s=expires_in_s
            )
            self._outbox[self._rows] = out
        self.link.wake()

    def drop(self, row: int) -> None:
        with self._lock:
            del self._outbox[row]

    @property
    def payloads(self) -> list[bytes]:
        return [incoming.payload for incoming in self.accepted]

    def wait_up(self, times: int = 1) -> None:
        wait_until(lambda: len(self.ups) >= times, f"up {times} times: {self.link.state}", 10.0)

    def wait_empty(self) -> None:
        wait_until(lambda: not self._outbox, f"an empty outbox: {self.link.state}", 15.0)

    def wait_payloads(self, *payloads: bytes) -> None:
        wait_until(lambda: set(payloads) <= set(self.payloads), f"{payloads!r:.200}: {self.link.state}", 15.0)

    def _accept(self, incoming: Incoming) -> bool:
        self.offered.append(incoming)
        good = self.answer(incoming)
        if good:
            self.accepted.append(incoming)
        return good

    def _pull(self, limit: int) -> list[Outgoing]:
        with self._lock:
            return list(self._outbox.values())[:limit]

    def _take_published(self, out: Outgoing, reason: int | None) -> None:
        self.published.append((out, reason))
        if out.row is not None:
            with self._lock:
                del self._outbox[out.row]

    def _before_connect(self) -> Will | None:
        self.connects += 1
        return self._will

    def _on_up(self, session: Session) -> tuple[Outgoing, ...]:
        self.ups.append(session)
        return self.greet(session)


@contextmanager
def running(*stations: Station) -> Iterator[None]:
    """Started and up; stopped at the end, whatever happens."""
    try:
        for station in stations:
            station.link.start()
        for station in stations:
            station.wait_up()
        yield
    finally:
        for station in stations:
            station.link.stop(None, 2.0)
