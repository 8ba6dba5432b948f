"""The node while its store cannot be used: degraded, and every request is answered `store_failed`. Keeps nothing."""

import msgspec

from rea_edge import __version__
from rea_edge.config import Settings
from rea_edge.dial import link_settings, node_client_id
from rea_edge.errors import RequestRefused
from rea_edge.intake import opened
from rea_edge.mqtt import Incoming, Link, Outgoing, Session
from rea_edge.topics import Topics
from rea_edge.wire import ErrorBody, NodeStatus, Reply


class Refuser:
    """A link that says why; `start` and `stop` are the main thread's."""

    def __init__(self, settings: Settings, why: str) -> None:
        self._topics = Topics(settings.broker.root, settings.node.id)
        self._why = why
        self._link = Link(
            link_settings(settings.broker, node_client_id(settings.broker, settings.node.id)),
            subscriptions=(self._topics.requests,),
            accept=self._accept,
            pull=lambda limit: (),
            published=lambda out, reason: None,
            before_connect=lambda: None,
            on_up=self._on_up,
            on_down=lambda reason: None,
        )

    def start(self) -> None:
        self._link.start()

    def stop(self) -> None:
        self._link.stop(None, 1.0)

    def _on_up(self, session: Session) -> list[Outgoing]:
        status = NodeStatus(
            state="degraded", session=0, boot="", epoch="", version=__version__, faults=[f"store: {self._why}"[:300]]
        )
        return [Outgoing(topic=self._topics.all("status"), payload=msgspec.json.encode(status), retain=True)]

    def _accept(self, incoming: Incoming) -> bool:
        inbound = self._topics.inbound(incoming.topic)
        if inbound is None or incoming.retained:
            return True
        request_id = _readable_id(incoming.payload)
        error = ErrorBody(code="store_failed", message=self._why[:500], retryable=True)
        reply = Reply(for_=inbound.what, id=request_id, error=error)
        topic = self._topics.reply(inbound.who, request_id)
        self._link.tell(Outgoing(topic=topic, payload=msgspec.json.encode(reply)))
        return True


def _readable_id(payload: bytes) -> str | None:
    try:
        return opened(payload, plain_mode="query").id
    except RequestRefused:
        return None
