"""The node while its store cannot be used: degraded, and every request is answered `store_failed`. Keeps nothing."""

import time
from collections.abc import Callable

import msgspec

from rea_edge import __version__
from rea_edge.clock import boot_id
from rea_edge.config import Settings
from rea_edge.daemon.view import StateWord
from rea_edge.dial import controls_client_id, link_settings, node_client_id
from rea_edge.errors import RequestRefused
from rea_edge.intake import opened
from rea_edge.mqtt import Controls, Incoming, Link, Outgoing, Session, Will
from rea_edge.report import rfc3339
from rea_edge.topics import Topics
from rea_edge.wire import ErrorBody, NodeStatus, Reply


class Refuser:
    """A link that says why; `start` and `stop` are the main thread's. `clock`: trusted wall seconds, or None."""

    def __init__(self, settings: Settings, why: str, clock: Callable[[], float | None]) -> None:
        self._topics = Topics(settings.broker.root, settings.node.id)
        self._why = why
        self._clock = clock
        self._up_since_s = time.monotonic()
        self.known_before: bool | None = None  # whether the broker had a session of this node; None: not connected yet
        client_id = node_client_id(settings.broker, settings.node.id)
        self._link = Link(
            link_settings(settings.broker, client_id),
            subscriptions=self._topics.requests,
            controls=Controls(client_id=controls_client_id(client_id), subscriptions=self._topics.controls),
            accept=self._accept,
            pull=lambda limit: (),
            published=lambda out, reason: None,
            before_connect=lambda: Will(topic=self._topics.all("status"), payload=self._status("offline")),
            on_connected=self._on_connected,
            on_up=self._on_up,
            on_down=lambda reason: None,
        )

    def start(self) -> None:
        self._link.start()

    def stop(self) -> None:
        farewell = Outgoing(topic=self._topics.all("status"), payload=self._status("offline"), retain=True)
        self._link.stop(farewell, 1.0)

    def _on_connected(self, old: bool) -> None:
        if self.known_before is None:
            self.known_before = old

    def _on_up(self, session: Session) -> list[Outgoing]:
        return [Outgoing(topic=self._topics.all("status"), payload=self._status("degraded"), retain=True)]

    def _status(self, state: StateWord) -> bytes:
        status = NodeStatus(
            state=state,
            session=0,
            boot=boot_id(),
            epoch="",
            version=__version__,
            faults=[f"store: {self._why}"[:300]],
            at=rfc3339(self._clock()),
            up_ms=int((time.monotonic() - self._up_since_s) * 1000),
        )
        return msgspec.json.encode(status)

    def _accept(self, incoming: Incoming) -> bool:
        inbound = self._topics.inbound(incoming.topic)
        if inbound is None or incoming.retained:
            return True
        request_id = _readable_id(incoming.payload)
        error = ErrorBody(code="store_failed", message=self._why[:500], retryable=True)
        reply = Reply(for_=inbound.what, id=request_id, error=error, at=rfc3339(self._clock()))
        topic = self._topics.reply(inbound.who, request_id)
        if self._topics.may_answer_at(inbound.who, incoming.response_topic or ""):
            topic = incoming.response_topic or topic
        payload = msgspec.json.encode(reply)
        urgent = incoming.controls
        self._link.tell(Outgoing(topic=topic, payload=payload, correlation=incoming.correlation, urgent=urgent))
        return True


def _readable_id(payload: bytes) -> str | None:
    try:
        return opened(payload, plain_mode="query").id
    except RequestRefused:
        return None
