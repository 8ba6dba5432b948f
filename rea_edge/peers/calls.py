"""Calls under way: each waits for its reply, and where that is slow, asks for it. Owns no connection.

What may run again is sent again: its peer answers the same id with what it has recorded, and starts nothing twice. Of what
acts once the outcome alone is asked for, by a query, which starts nothing wherever it gets to.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rea_edge.mqtt import Outgoing
from rea_edge.peers.answers import recalled, result_of, written
from rea_edge.peers.watched import Watched
from rea_edge.records import Fault, Result
from rea_edge.report import rfc3339
from rea_edge.toolhost.faults import fault
from rea_edge.wire import QueryRequest

LOOK_S = 0.05  # how often a waiting caller's Event is looked at
AGAIN_S = 3.0  # of silence, before it is asked for
FAILED = 0x80  # reason codes of MQTT 5 from here on say that nothing was sent on


class Call:
    """One call, and what has come of it so far. `out` is what was sent for it, None where that was in an earlier life."""

    def __init__(self, callee: Watched, me: str, request_id: str, out: Outgoing | None) -> None:
        topics = callee.topics
        self.node = callee.node
        self.out = out
        self._callee = callee
        self.request_id = request_id
        self.query_id = f"q{os.urandom(8).hex()}"
        self.reply = topics.reply(me, request_id)
        self.answer = topics.reply(me, self.query_id)
        self.asking = topics.send(me, "query", "call")
        self.result: Result | None = None
        self.refused: int | None = None
        self.forgotten = False  # the peer knows of no such call

    def query(self, until_s: float) -> Outgoing:
        """Asks for its outcome."""
        seconds = max(0.001, until_s - time.monotonic())
        request = QueryRequest(
            id=self.query_id,
            task=self.request_id,
            ttl_ms=max(1, int(seconds * 1000)),
            sent_at=rfc3339(time.time()) if self._callee.key is not None else None,
        )
        payload = written(request, self.asking, self._callee.key)
        return Outgoing(topic=self.asking, payload=payload, until_s=until_s)

    def hear(self, topic: str, payload: bytes) -> None:
        if self.result is not None:
            return
        if topic == self.reply:
            self.result = result_of(self.node, self.request_id, payload)
        elif topic == self.answer:
            self.result, self.forgotten = recalled(self.node, self.query_id, self.request_id, payload)


class Calls:
    """`changed` guards all of it, and is told when something comes. `tell` sends, which is of use while `connected`."""

    def __init__(
        self, changed: threading.Condition, tell: Callable[[Outgoing], None], connected: Callable[[], bool]
    ) -> None:
        self._changed = changed
        self._tell = tell
        self._connected = connected
        self._open: dict[str, Call] = {}  # by the topic of each answer

    @property
    def idle(self) -> bool:
        return not self._open

    @contextmanager
    def waiting(self, call: Call) -> Iterator[Call]:
        """Its answers are heard until the block ends."""
        topics = (call.reply, call.answer)
        with self._changed:
            self._open.update(dict.fromkeys(topics, call))
        try:
            yield call
        finally:
            with self._changed:
                for topic in topics:
                    self._open.pop(topic, None)

    def hear(self, topic: str, payload: bytes) -> None:
        """In the link's thread, with `changed` held."""
        if (call := self._open.get(topic)) is not None:
            call.hear(topic, payload)

    def refused(self, out: Outgoing, reason: int | None) -> None:
        """What became of a message, by the broker's word."""
        if reason is None or reason < FAILED:
            return
        with self._changed:
            for call in self._open.values():
                if call.out is not None and (call.out.topic, call.out.payload) == (out.topic, out.payload):
                    call.refused = reason
            self._changed.notify_all()

    def ended(self, call: Call, until_s: float, cancel: threading.Event, *, once: bool) -> Result:
        """How a call that was sent ended, or why that is not known."""
        due_s, began_s = time.monotonic() + AGAIN_S, time.monotonic()
        with self._changed:
            while call.result is None:
                now_s = time.monotonic()
                if (cut := self._cut(call, until_s, cancel, now_s - began_s)) is not None:
                    return cut
                if now_s >= due_s and self._connected():
                    self._tell(call.query(until_s) if once or call.out is None else call.out)
                    due_s = now_s + AGAIN_S
                self._changed.wait(min(until_s - now_s, LOOK_S))
            return call.result

    def asked_for(self, call: Call, until_s: float) -> Result | None:
        """How a call of an earlier life ended, by the peer's word; None where it does not know, or does not say in time."""
        due_s = time.monotonic()
        with self._changed:
            while call.result is None and not call.forgotten and (now_s := time.monotonic()) < until_s:
                if now_s >= due_s and self._connected():
                    self._tell(call.query(until_s))
                    due_s = now_s + AGAIN_S
                self._changed.wait(min(until_s - now_s, LOOK_S))
            return call.result

    def _cut(self, call: Call, until_s: float, cancel: threading.Event, spent_s: float) -> Fault | None:
        if call.refused is not None:
            words = f"the broker does not let this node call {call.node} (MQTT reason code {call.refused})"
            return fault("denied_by_broker", words, "an operator must add it to the broker's access rules")
        if cancel.is_set():
            return fault("cancelled", f"it was cancelled while {call.node} worked on it")
        if time.monotonic() >= until_s:
            return fault("timeout", f"{call.node} has not answered within {spent_s:.1f} s")
        return None
