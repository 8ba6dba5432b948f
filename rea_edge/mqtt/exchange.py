"""Exchanges with devices: a connection of its own beside the node's link, made at the first one and kept.

Its session ends with the connection, so that nothing waits in a queue for an exchange that is over, and nothing of it
passes through an outbox. One thread owns the connection; callers wait with deadlines of their own.
"""

import logging
import random
import select
import threading
import time
from collections.abc import Callable

from rea_edge.errors import OperatorError
from rea_edge.mqtt.backoff import Backoff
from rea_edge.mqtt.bell import Bell
from rea_edge.mqtt.beside import Beside
from rea_edge.mqtt.channel import Channel
from rea_edge.mqtt.connection import CONNACK_S, FIRST_CONNACK_S
from rea_edge.mqtt.life import GOODBYE_S, TURN_S
from rea_edge.mqtt.line import Ears, Line
from rea_edge.mqtt.messages import Incoming, LinkState, Outgoing
from rea_edge.mqtt.settings import LinkSettings
from rea_edge.mqtt.talk import Ask, Heard, Missed, Talk
from rea_edge.mqtt.versions import Versions

EARLY_S = 0.2  # how often it is looked whether the node's own link is up, while a caller waits for that
LOOK_S = 0.05  # how often a waiting caller's Event is looked at

log = logging.getLogger("rea_edge.mqtt")


class Exchange:
    """`ask` is for any thread. `settings` are those of a session that ends with its connection; nothing is connected
    before the first `ask`, nor again, after a connection ended, before the next one. `link` tells of the node's own
    connection, which this one must not cost it; None: there is none."""

    def __init__(self, settings: LinkSettings, link: Callable[[], LinkState] | None = None) -> None:
        assert settings.session_expiry_s == 0, "what comes late must find nobody"
        self._settings = settings
        self._bell = Bell()
        self._changed = threading.Condition()  # guards the talks, what is in them, and the thread's start
        self._talks: list[Talk] = []
        self._beside = Beside(link)
        self._versions = Versions(settings.protocol)
        self._backoff = Backoff(settings.reconnect_min_s, settings.reconnect_max_s)
        self._trouble = ""
        self._hearers: dict[str, int] = {}  # by topic: talks that are subscribed to it
        self._thread: threading.Thread | None = None

    def ask(self, ask: Ask, seconds: float, cancel: threading.Event) -> Heard | Missed:
        """Carry it out within `seconds`; `cancel`, once set, ends it. Whatever comes after that finds nobody."""
        talk, deadline = Talk(ask), time.monotonic() + seconds
        with self._changed:
            self._talks.append(talk)
            self._start()
            self._bell.ring()
            while talk.end is None:
                left = deadline - time.monotonic()
                if left <= 0 or cancel.is_set() or self._bell.stop_by_s is not None:
                    talk.give_up(cancelled=cancel.is_set(), trouble=self._trouble)
                    break
                self._changed.wait(min(left, LOOK_S))
            self._bell.ring()
        assert talk.end is not None
        return talk.end

    @property
    def forbidden(self) -> str:
        """Why the broker lets nothing be asked of devices; empty: it may."""
        return self._beside.forbidden(time.monotonic())

    def stop(self) -> None:
        """End the connection, and with it what is under way. Blocks for a moment at most."""
        with self._changed:
            thread = self._thread
            self._bell.stop(None, GOODBYE_S)
        if thread is not None:
            thread.join(2 * GOODBYE_S)

    def _start(self) -> None:
        if self._thread is None and self._bell.stop_by_s is None:
            self._bell.open()
            self._thread = threading.Thread(target=self._run, name="mqtt-devices", daemon=True)
            self._thread.start()

    # --- the thread

    def _run(self) -> None:
        while self._bell.stop_by_s is None:
            if self._wanted():
                self._rest(self._kept_waiting() or self._live(), until_asked=False)
            else:
                self._rest(TURN_S, until_asked=True)
        self._bell.close()

    def _wanted(self) -> bool:
        with self._changed:
            self._talks = [talk for talk in self._talks if talk.end is None]
            return bool(self._talks)

    def _kept_waiting(self) -> float:
        """The seconds until another look, where no connection may be made now; 0.0: it may."""
        why, early = self.forbidden, self._beside.early()
        with self._changed:
            for talk in self._talks if why else ():
                talk.forbid(why)
            self._trouble = early or self._trouble
            self._changed.notify_all()
        return EARLY_S if why or early else 0.0

    def _live(self) -> float:
        """One connection, from the attempt to its end; gives the seconds to rest after it."""
        reason = "it was stopped"
        known = self._versions.known or self._versions.current != "5"
        channel: Channel | None = None
        try:
            channel = self._new_channel()
            self._beside.began(time.monotonic())
            channel.open(CONNACK_S if known else FIRST_CONNACK_S)
            while not channel.ended and self._bell.stop_by_s is None:
                self._turn(channel)
            self._leave(channel)
        except (OperatorError, OSError) as exc:  # the former: a certificate file that was there at the start
            reason = str(exc) or type(exc).__name__
        except Exception as exc:
            # The thread must outlive any fault in it or in paho: the next exchange needs it.
            log.exception("event=fault")
            reason = f"fault: {exc!r}"
        return self._after(channel, reason)

    def _new_channel(self) -> Channel:
        ears = Ears(
            accept=self._hear,
            acknowledged=self._taken,
            before_connect=lambda: None,
            connected=lambda _present: None,
            shorter=lambda _payload, _most: None,
            found=lambda _incoming: None,
            fence=None,
        )
        line = Line(settings=self._settings, subscriptions=())
        return Channel(line, self._versions.current, ears, granted=self._granted, cut=self._too_large)

    def _turn(self, channel: Channel) -> None:
        """Bring each talk as far as it can come, then wait for the broker or a caller."""
        if channel.stage == "up":
            self._versions.worked()
            self._trouble = ""
            with self._changed:
                self._advance(channel, time.monotonic())
                self._changed.notify_all()
            if self._beside.look(time.monotonic()):
                channel.close(self.forbidden)
        if not channel.ended:
            self._wait(channel, min(self._due_in_s(), self._beside.next_look_s))

    def _wait(self, channel: Channel, seconds: float) -> None:
        poll = select.poll()
        poll.register(self._bell.descriptor, select.POLLIN)
        poll.register(channel.descriptor, channel.interest)
        ready = dict(poll.poll(max(0.0, min(channel.next_due_s(), seconds)) * 1000))
        self._bell.hear()
        channel.turn(ready.get(channel.descriptor, 0))

    def _advance(self, channel: Channel, now_s: float) -> None:
        for talk in tuple(self._talks):
            if talk.end is not None:
                self._forget(talk, channel)
                continue
            if talk.stage == "waiting":
                talk.begin()
                for topic in talk.topics:
                    self._hearers[topic] = self._hearers.get(topic, 0) + 1
                    channel.subscribe(topic)
            talk.look(now_s)
            out = talk.ask.out
            if talk.stage == "ready" and out is not None and channel.ready_for(out.qos):
                # Marked first: a caller that gives up right now must know that it may have been heard.
                talk.put()
                channel.send(out)

    def _forget(self, talk: Talk, channel: Channel) -> None:
        self._talks.remove(talk)
        for topic in talk.topics if talk.subscribed else ():
            self._hearers[topic] -= 1
            if not self._hearers[topic]:
                del self._hearers[topic]
                channel.unsubscribe(topic)

    def _due_in_s(self) -> float:
        with self._changed:
            dues = [talk.due_s for talk in self._talks if talk.due_s is not None]
        return max(0.0, min(dues) - time.monotonic()) if dues else TURN_S

    def _leave(self, channel: Channel) -> None:
        if not channel.ended:
            channel.disconnect()
        until_s = time.monotonic() + GOODBYE_S
        while not channel.ended and (left_s := until_s - time.monotonic()) > 0:
            self._wait(channel, left_s)

    def _after(self, channel: Channel | None, reason: str) -> float:
        if channel is not None and channel.reason:
            reason = channel.reason
        if channel is not None:
            channel.close(reason)
        self._beside.ended(time.monotonic())
        with self._changed:
            self._trouble = reason
            self._hearers.clear()
            for talk in self._talks:
                talk.cut_off(reason)
            self._changed.notify_all()
        if channel is None or self._bell.stop_by_s is not None:
            return self._settings.reconnect_min_s
        unanswered = channel.reached and (channel.unsupported or not channel.answered)
        if unanswered and self._versions.unanswered(unsupported=channel.unsupported):
            return 0.0
        up_s = time.monotonic() - channel.up_since_s if channel.up_since_s else 0.0
        rest_s = self._backoff.rest_s(up_s=up_s, ended_by_peer=channel.taken_over, chance=random.random())
        log.warning("event=devices_down reason=%r up_s=%.1f rest_s=%.1f", reason, up_s, rest_s)
        return rest_s

    def _rest(self, seconds: float, *, until_asked: bool) -> None:
        until_s = time.monotonic() + seconds
        poll = select.poll()
        poll.register(self._bell.descriptor, select.POLLIN)
        while self._bell.stop_by_s is None and (left_s := until_s - time.monotonic()) > 0:
            poll.poll(left_s * 1000)
            self._bell.hear()
            if until_asked:
                return

    # --- what the connection tells

    def _hear(self, incoming: Incoming) -> bool:
        self._tell(lambda talk: talk.hear(incoming, time.monotonic()))
        return True

    def _granted(self, topic: str, yes: bool) -> None:
        self._tell(lambda talk: talk.granted(topic, yes, time.monotonic()))

    def _too_large(self, topic: str) -> None:
        self._tell(lambda talk: talk.hear_too_large(topic))

    def _taken(self, out: Outgoing, refusal: int | None) -> None:
        self._tell(lambda talk: talk.taken(refusal) if talk.ask.out is out else None)

    def _tell(self, say: Callable[[Talk], None]) -> None:
        """Of what ended already nothing is told: what comes late finds nobody."""
        with self._changed:
            for talk in self._talks:
                if talk.end is None:
                    say(talk)
            self._changed.notify_all()
