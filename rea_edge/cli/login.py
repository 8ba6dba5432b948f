"""A connection to the broker under one login, that sends and hears what a check wants to know. Judges nothing."""

import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from msgspec import structs

from rea_edge.config import Broker
from rea_edge.dial import link_settings
from rea_edge.errors import NodeSilent
from rea_edge.mqtt import Incoming, Link, LinkState, Outgoing

UP_S = 8.0
ANSWER_S = 10.0  # that a broker takes to acknowledge; one that ends connections for what it denies does so three times
EXPIRES_S = 30  # whoever was away needs to know nothing of a check


class Login:
    """Use as a context manager; raises `NodeSilent` where the broker does not let it in, `ConfigInvalid` for settings
    that cannot work. `told` gets each message as it comes."""

    def __init__(
        self,
        broker: Broker,
        client_id: str,
        *subscriptions: str,
        told: Callable[[Incoming], None] = lambda incoming: None,
    ) -> None:
        self._told = told
        self.client_id = client_id
        self.downs = 0  # how often the connection has ended
        self._heard: set[bytes] = set()
        self._settled: dict[bytes, int | None] = {}
        self._ups = 0
        self._news = threading.Condition()
        self._url = broker.url
        self._link = Link(
            link_settings(structs.replace(broker, reconnect_min_s=0.1), client_id, session_expiry_s=0),
            subscriptions=subscriptions,
            accept=self._accept,
            pull=lambda limit: (),
            published=self._published,
            before_connect=lambda: None,
            on_up=self._on_up,
            on_down=self._on_down,
        )

    def __enter__(self) -> Self:
        self._link.start()
        if not self._within(UP_S, lambda: self._ups > 0):
            error = self._link.state.last_error or "silence"
            self._link.stop(None, 0.2)
            raise NodeSilent(f"{self._url} does not answer: {error}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._link.stop(None, 1.0)

    @property
    def state(self) -> LinkState:
        return self._link.state

    def send(self, topic: str, payload: bytes) -> int | None:
        """Publish, and give the reason why the broker does not take it; None: it does, or (3.1.1) does not say."""
        self.tell(topic, payload)
        if not self._within(ANSWER_S, lambda: payload in self._settled):
            raise NodeSilent(f"the broker does not acknowledge what was published to {topic}")
        return self._settled[payload]

    def tell(self, topic: str, payload: bytes) -> None:
        """Publish, and do not wait for what the broker says to it."""
        self._link.tell(Outgoing(topic=topic, payload=payload, expires_in_s=EXPIRES_S))

    def hears(self, payload: bytes, seconds: float = 0.0) -> bool:
        """Whether this has arrived, or does so in time."""
        return self._within(seconds, lambda: payload in self._heard)

    def hears_unbroken(self, payload: bytes, seconds: float, downs: int) -> bool:
        """Whether this arrives in time and before the connection has ended more than `downs` times."""
        self._within(seconds, lambda: payload in self._heard or self.downs > downs)
        return payload in self._heard and self.downs == downs

    def waits(self, seconds: float, so: Callable[[], bool]) -> bool:
        """Whether what was told comes to be so in time."""
        return self._within(seconds, so)

    def _within(self, seconds: float, so: Callable[[], bool]) -> bool:
        with self._news:
            return self._news.wait_for(so, seconds)

    def _accept(self, incoming: Incoming) -> bool:
        with self._news:
            self._told(incoming)
            self._heard.add(incoming.payload)
            self._news.notify_all()
        return True

    def _published(self, out: Outgoing, reason: int | None) -> None:
        with self._news:
            self._settled[out.payload] = reason
            self._news.notify_all()

    def _on_up(self, session: object) -> Sequence[Outgoing]:
        with self._news:
            self._ups += 1
            self._news.notify_all()
        return ()

    def _on_down(self, reason: str) -> None:
        with self._news:
            self.downs += 1
            self._news.notify_all()
