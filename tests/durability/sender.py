"""A sender with many tasks at once that trusts nothing but the states it sees: it sends again until it has seen them.

Holds no assertions.
"""

import queue
import time
from collections.abc import Callable, Iterable
from typing import Self

import msgspec

from rea_edge.errors import Code
from rea_edge.mqtt import Incoming, Link, LinkSettings, Outgoing
from rea_edge.topics import Topics
from rea_edge.wire import Reply, TaskState

RESEND_S = 2.0


class Sender:
    def __init__(self, settings: LinkSettings, topics: Topics, who: str) -> None:
        self.ended: dict[str, TaskState] = {}
        self.refused: list[Code] = []
        self._topics = topics
        self._who = who
        self._inbox = queue.SimpleQueue[Incoming]()
        self._due_s: dict[str, float] = {}  # of those under way: when to send it again
        self._link = Link(
            settings,
            subscriptions=(topics.person(who),),
            accept=self._accept,
            pull=lambda limit: (),
            published=lambda out, reason: None,
            before_connect=lambda: None,
            on_up=lambda session: (),
            on_down=lambda reason: None,
        )

    def __enter__(self) -> Self:
        self._link.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._link.stop(None, 1.0)

    def bring_to_end(
        self, goals: dict[str, str], at_once: int, seconds: float, after_each: Callable[[int], None]
    ) -> Iterable[str]:
        """Have `at_once` tasks under way until all have ended; gives those that have not after `seconds` of silence.

        `after_each` hears how many have ended.
        """
        waiting = iter(goals)
        silent_s = time.monotonic() + seconds
        while len(self.ended) < len(goals) and time.monotonic() < silent_s:
            while len(self._due_s) < at_once and (task_id := next(waiting, None)) is not None:
                self._due_s[task_id] = 0.0
            self._send_due(goals)
            try:
                incoming = self._inbox.get(timeout=0.05)
            except queue.Empty:
                continue
            silent_s = time.monotonic() + seconds
            if self._heard(incoming):
                after_each(len(self.ended))
        return goals.keys() - self.ended.keys()

    def _send_due(self, goals: dict[str, str]) -> None:
        now_s = time.monotonic()
        for task_id, due_s in self._due_s.items():
            if due_s <= now_s:
                self._due_s[task_id] = now_s + RESEND_S
                payload = msgspec.json.encode({"id": task_id, "goal": goals[task_id], "mode": "act"})
                topic = self._topics.send(self._who, "task")
                self._link.tell(Outgoing(topic=topic, payload=payload, qos=1, expires_in_s=60))

    def _heard(self, incoming: Incoming) -> bool:
        """Whether another task has ended."""
        if not incoming.payload or "/event" in incoming.topic or incoming.topic.endswith("/last"):
            return False
        if "/reply/" in incoming.topic:
            reply = msgspec.json.decode(incoming.payload, type=Reply)
            if reply.error is not None:
                self.refused.append(reply.error.code)
            return False
        state = msgspec.json.decode(incoming.payload, type=TaskState)
        if state.state != "ended" or state.id in self.ended:
            return False
        self._due_s.pop(state.id, None)
        self.ended[state.id] = state
        return True

    def _accept(self, incoming: Incoming) -> bool:
        self._inbox.put(incoming)
        return True
