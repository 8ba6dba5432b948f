"""What the broker keeps in our name, compared with what is true: older states, tasks that are gone, another's card,
asks that are decided.

A broker that crashed brings back what it had saved last, a bridge what it had heard once. Says what to do about it;
never acts on what it reads, and looks at no more than the link lets it.
"""

import logging
from collections.abc import Callable, Sequence

import msgspec

from rea_edge import asks
from rea_edge.journal import run_from
from rea_edge.mqtt import Incoming, Outgoing
from rea_edge.report import Report
from rea_edge.store import RunRow, Store
from rea_edge.topics import Topics
from rea_edge.wire import TaskState

REPAIRS_MOST = 100  # of one look; the next connection goes on with the rest

log = logging.getLogger("rea_edge.ghosts")


class Ghosts:
    """`begin` at each connection, `found` for each retained message of ours; `tell` sends from memory, `wake` says that
    the outbox has news, `births()` is what the node says of itself."""

    def __init__(
        self,
        *,
        store: Store,
        topics: Topics,
        report: Report,
        tell: Callable[[Outgoing], None],
        wake: Callable[[], None],
        births: Callable[[], Sequence[Outgoing]],
    ) -> None:
        self._store = store
        self._topics = topics
        self._report = report
        self._tell = tell
        self._wake = wake
        self._births = births
        self._repairs = 0
        self._said: dict[str, bytes] = {}
        self.repaired = 0  # since the start

    def begin(self, births: Sequence[Outgoing]) -> None:
        self._repairs = 0
        self._said = {out.topic: out.payload for out in births}

    def found(self, incoming: Incoming) -> None:
        if self._repairs >= REPAIRS_MOST or not incoming.payload:
            return
        if self._repair(incoming):
            self._repairs += 1
            self.repaired += 1
            log.warning("event=ghost topic=%s", incoming.topic)

    def _repair(self, incoming: Incoming) -> bool:
        topic = incoming.topic
        if (said := self._said.get(topic)) is not None:
            if said == incoming.payload:
                return False
            for out in self._births():
                if out.topic == topic:
                    self._tell(out)
            return True
        if (request := self._topics.ask_of(topic)) is not None and not asks.waits(self._store, request):
            self._tell(Outgoing(topic=topic, payload=b"", retain=True))
            return True
        named = self._topics.state_of(topic)
        if named is None:
            return False  # not ours to judge
        row = self._store.run_of("task", *named)
        if row is None or row.shown in ("cleared", "pruned"):
            self._tell(Outgoing(topic=topic, payload=b"", retain=True))
            return True
        return self._repair_state(row, incoming.payload)

    def _repair_state(self, row: RunRow, payload: bytes) -> bool:
        try:
            shown = msgspec.json.decode(payload, type=TaskState)
        except msgspec.DecodeError:
            shown = None
        ours = shown is not None and shown.run == self._store.run_name(row.row)
        if ours and shown is not None:
            ended = row.state == "ended"
            # How a running task gets on is said anew on each connection; only its end is kept by the outbox alone.
            if (shown.state == "ended") == ended and (not ended or shown.seq >= row.seq):
                return False
        with self._store.transaction() as tx:
            self._report.publish_again(tx, row, run_from(tx, row))
        self._wake()
        return True
