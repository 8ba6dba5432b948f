"""What a node says to all: status, card and health, at each connection and whenever they have changed."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from rea_edge import marks
from rea_edge.daemon.health import Health
from rea_edge.daemon.post import Post
from rea_edge.daemon.view import HEALTH_KEEP_S, HEALTH_S, StateWord, View
from rea_edge.mqtt import Outgoing
from rea_edge.report import STATE_KEEP_S
from rea_edge.topics import Topics

OFFLINE_KEEP_S = 30 * 86_400  # for as long it is worth knowing that there was such a node


class News:
    """`births` and `farewell` are the link's to ask for, `turn` the main thread's."""

    def __init__(
        self, *, topics: Topics, view: View, health: Health, state_dir: Path, post: Callable[[], Post]
    ) -> None:
        self._topics = topics
        self._view = view
        self._health = health
        self._state_dir = state_dir
        self._post = post
        self._health_due_s = 0.0
        self._refresh_due_s = float("inf")
        self._told_status: tuple[StateWord, tuple[str, ...]] | None = None
        self._told_exam: int | None = None
        self._told_tools = ""

    def births(self) -> list[Outgoing]:
        self._told_status = (self._health.state(), tuple(self._health.faults()))
        self._refresh_due_s = time.monotonic() + STATE_KEEP_S / 2
        return [self._status(self._health.state()), self._card()]

    def farewell(self) -> Outgoing:
        return msgspec.structs.replace(self._status("offline"), expires_in_s=OFFLINE_KEEP_S)

    def turn(self) -> None:
        """Say what is due: health once a minute, status and card where they changed."""
        self.tell_status_if_changed()
        # An exam runs in a process of its own: what it leaves in the state folder is all that we hear of it.
        news = (marks.stamp(self._state_dir), self._view.tools_hash) != (self._told_exam, self._told_tools)
        if self._post().state.connected and news:
            self._post().tell(self._card())
        now_s = time.monotonic()
        if now_s >= self._refresh_due_s and self._post().state.connected:
            self.tell_births()
            self._post().refresh()
        if now_s >= self._health_due_s and self._post().state.connected:  # it is dropped where nobody can hear it
            self._health_due_s = now_s + HEALTH_S
            self._post().tell(self._retained("health", self._view.health(), HEALTH_KEEP_S, qos=0))

    def tell_status_if_changed(self) -> None:
        now = (self._health.state(), tuple(self._health.faults()))
        if self._post().state.connected and now != self._told_status:
            self._post().tell(self._status(now[0]))
            self._told_status = now

    def tell_births(self) -> None:
        """Say status and card: what they are made of has changed."""
        if self._post().state.connected:
            for out in self.births():
                self._post().tell(out)

    def _card(self) -> Outgoing:
        self._told_exam, self._told_tools = marks.stamp(self._state_dir), self._view.tools_hash
        return self._retained("card", self._view.card(), STATE_KEEP_S)

    def _status(self, state: StateWord) -> Outgoing:
        return self._retained("status", msgspec.json.encode(self._view.status(state)), STATE_KEEP_S)

    def _retained(
        self, what: Literal["status", "card", "health"], payload: bytes, keep_s: float, qos: int = 1
    ) -> Outgoing:
        topic = self._topics.all(what)
        return Outgoing(topic=topic, payload=payload, qos=qos, retain=True, expires_in_s=int(keep_s))
