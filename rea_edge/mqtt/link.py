"""The MQTT thread: connects, serves, rests, for as long as the process lives. Knows no topic and no payload of ours.

Nothing that goes wrong inside ends the thread: the connection is closed, the broker delivers again what was not
acknowledged, and the owner of the outbox is asked again for what was not published.
"""

import logging
import random
import select
import threading
import time
from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import structs

from rea_edge.errors import OperatorError
from rea_edge.mqtt.backoff import Backoff
from rea_edge.mqtt.bell import Bell
from rea_edge.mqtt.connection import WILL_QOS_REFUSED, WILL_RETAIN_REFUSED, Connection
from rea_edge.mqtt.feed import Feed
from rea_edge.mqtt.life import GOODBYE_S, TURN_S, Calls, Life
from rea_edge.mqtt.line import Line, NotAccepted
from rea_edge.mqtt.messages import Controls, Incoming, LinkState, Outgoing, Phase, Presence, Session, Will
from rea_edge.mqtt.settings import LinkSettings, check_settings
from rea_edge.mqtt.sharing import Sharing
from rea_edge.mqtt.versions import Versions
from rea_edge.mqtt.waiting import size_of

STANDBY_REST_S = 30.0  # a watcher that is cut off may be cutting off whom it watches

log = logging.getLogger("rea_edge.mqtt")


class Link:
    """A broker connection that keeps itself alive.

    All callbacks run in the link's thread and should be short: what takes longer than the keepalive loses the link.
    What waited at the broker is accepted as soon as it comes, also before `on_up`.

    `accept(incoming)`: True once it is stored; it is acknowledged in the same breath. False or an exception: not
    acknowledged, and the connection is closed so that the broker delivers it again after a rest. For QoS 0 the
    answer is ignored. `pull(limit)`: the first `limit` messages of the outbox that `published` was not told of yet,
    in order; those in flight may be among them and are skipped by `row`, so rows must never be used again.
    `published(out, reason)`: the broker has it (reason None), or will never take it (an MQTT 5 reason code, or `BROKE`:
    three connections ended while it was on the way); after a connection ends without it the message is pulled again.
    What is told with QoS 1 is reported here too, with no row. `refused(out, reason)`: a row was refused for now, by
    access rules or in passing, and rests. `shorter(payload, most)`: what to send in place of a payload that the broker
    does not take, of at most `most` bytes; None: nothing, and it is reported as refused.
    `before_connect()`: before each CONNECT, once the broker is reached; gives the will. `on_up(session)`: subscribed;
    gives the birth messages, sent before all else. `on_down(reason)`: after each `on_up`, when that session ended.
    `on_connected(old)`: before anything is accepted; whether the broker kept a session that this link has not made.
    `fence()`: the topic of this connection's fence (asked after `before_connect`), to be covered by `subscriptions`
    and unique on its last level; without it `Incoming.waited` is a guess.
    `look`: a filter; once on each connection, behind the fence, what is retained below it is given to `found(incoming)`.
    `presence`: see there; while it says no, nothing is connected but a watcher.
    `controls`: a second session for what must not wait, over which also goes what is told as `urgent`. Where the broker
    allows no second one all of it goes over one session, see `LinkState.controls`.
    """

    def __init__(
        self,
        settings: LinkSettings,
        *,
        subscriptions: tuple[str, ...],
        accept: Callable[[Incoming], bool],
        pull: Callable[[int], Sequence[Outgoing]],
        published: Callable[[Outgoing, int | None], None],
        before_connect: Callable[[], Will | None],
        on_up: Callable[[Session], Sequence[Outgoing]],
        on_down: Callable[[str], None],
        on_connected: Callable[[bool], None] = lambda old: None,
        fence: Callable[[], str] | None = None,
        controls: Controls | None = None,
        refused: Callable[[Outgoing, int], None] = lambda _out, _reason: None,
        shorter: Callable[[bytes, int], bytes | None] = lambda _payload, _most: None,
        presence: Presence | None = None,
        look: str = "",
        found: Callable[[Incoming], None] = lambda _incoming: None,
    ) -> None:
        """Raises `ConfigInvalid` for settings that cannot work."""
        check_settings(settings)
        self._settings = settings
        self._subscriptions = subscriptions
        self._controls = controls
        self._feed = Feed(pull, published, refused)
        self._urgent = Feed(lambda _limit: (), published)
        self._accept = accept
        self._before_connect = before_connect
        self._on_up = on_up
        self._on_connected = on_connected
        self._on_down = on_down
        self._fence = fence
        self._shorter = shorter
        self._presence = presence
        self._look = look
        self._found = found
        self._admitted = presence.admitted if presence is not None else _always
        self._will_retain, self._will_qos = True, 1
        self._sharing = Sharing(wanted=controls is not None)
        self._bell = Bell()
        self._versions = Versions(settings.protocol)
        self._backoff = Backoff(settings.reconnect_min_s, settings.reconnect_max_s)
        self._life: Life | None = None
        self._phase: Phase = "new"
        self._beat_s = time.monotonic()
        self._sessions = 0
        self._session_made = False  # by us, or perhaps by us
        self._controls_made = False  # likewise the session of the controls
        self._controls_met = False  # one that was there before; where a login has one session, it is that of all
        self._last_error = ""
        self._too_large = 0
        self._unreadable = 0
        self._thread = threading.Thread(target=self._run, name="mqtt", daemon=True)

    def start(self) -> None:
        self._bell.open()
        self._thread.start()

    def wake(self) -> None:
        """Say that the outbox has new rows. From any thread, also from the callbacks."""
        self._bell.ring(rows=True)

    def tell(self, *outs: Outgoing, rows: bool = False) -> None:
        """Send `outs` from memory, before the outbox. QoS 0 is dropped where there is no connection, and both kinds
        above a cap, the oldest first; drops are counted. `rows`: the outbox has new ones too, as `wake` says. From any
        thread; never blocks."""
        for out in outs:
            feed = self._urgent if out.urgent else self._feed
            feed.tell(out, connected=self._phase == "up")
        if outs or rows:
            self._bell.ring(rows=rows)

    def stop(self, farewell: Outgoing | None, seconds: float) -> None:
        """End within `seconds`: no more intake; what waits is sent, then `farewell`, then DISCONNECT. Where the
        broker does not acknowledge in time there is no DISCONNECT, so that the will speaks for us. Blocks until the
        thread has ended, or `seconds` and a little are over (a name look-up cannot be interrupted)."""
        self._bell.stop(farewell, seconds)
        if self._thread.ident is None:
            return
        self._thread.join(seconds + 2 * GOODBYE_S)

    @property
    def alive(self) -> bool:
        """Whether the thread runs: nothing is known that ends it before `stop`, and a watchdog can make sure."""
        return self._thread.is_alive()

    @property
    def state(self) -> LinkState:
        life = self._life
        lines = tuple(life.lines) if life is not None else ()
        main = life.main if life is not None else None
        flying = [out for one in lines for out in one.in_flight]
        queues = (self._feed.told, self._urgent.told)
        return LinkState(
            phase=self._phase,
            beat=max(self._beat_s, life.beat_s if life is not None else 0.0),
            connected=self._phase == "up",
            protocol=main.protocol if main is not None and self._phase == "up" else None,
            sessions=self._sessions,
            fenced=main is not None and all(one.fenced for one in lines),
            refused=_refused(life) if life is not None else (),
            limits=main.limits if main is not None and self._phase == "up" else None,
            unheard=any(one.unheard for one in lines),
            last_error=self._last_error,
            alone=self._sharing.alone,
            controls=self._how_controls_go(life) if life is not None else "",
            in_flight=len(flying),
            waiting=sum(map(len, queues)),
            waiting_bytes=sum(told.size_bytes for told in queues) + sum(map(size_of, flying)),
            dropped_qos0=sum(told.dropped_qos0 for told in queues),
            dropped_qos1=sum(told.dropped_qos1 for told in queues),
            too_large=self._too_large + sum(one.too_large for one in lines),
            unreadable=self._unreadable + sum(one.unreadable for one in lines),
        )

    # --- the thread

    def _run(self) -> None:
        while self._bell.stop_by_s is None:
            self._rest(self._live())
        self._phase = "stopped"
        self._bell.close()

    def _live(self) -> float:
        """One life, from the attempt to its end; gives the seconds to rest after it."""
        self._phase = "connecting"
        calls = Calls(
            accept=self._accept,
            before_connect=self._before_connect,
            connected=self._connected,
            controls_connected=self._controls_connected,
            first_up=self._presence.first_up if self._presence is not None else lambda: None,
            admitted=self._admitted,
            came_up=self._came_up,
            shorter=self._shorter,
            found=self._found,
            fence=self._fence,
            controls_fence=self._controls.fence if self._controls is not None else None,
        )
        self._life = life = Life(calls, feed=self._feed, urgent=self._urgent, versions=self._versions, bell=self._bell)
        reason = "stopped"
        try:
            life.run(self._next_lines())
        except NotAccepted:
            reason = "a message could not be stored"
        except OperatorError as exc:  # a certificate file that was there at the start
            log.error("event=not_connected reason=%r", str(exc))
            reason = str(exc)
        except OSError as exc:
            reason = str(exc) or type(exc).__name__
        except Exception as exc:
            # The thread must outlive any fault in a callback or in paho: a dead thread looks like a quiet broker.
            log.exception("event=fault")
            reason = f"fault: {exc!r}"
        return self._after(life, reason)

    def _next_lines(self) -> list[Line]:
        """The controls first: what of them waited at the broker is then served before all else that did."""
        presence = self._presence.topics if self._presence is not None else ()
        if self._presence is not None and self._admitted() == "no":
            watching = structs.replace(self._settings, client_id=self._presence.standby_id)
            return [Line(settings=watching, subscriptions=(), presence=presence, standby=True)]
        main = Line(
            settings=self._settings,
            subscriptions=self._subscriptions,
            will_retain=self._will_retain,
            will_qos=self._will_qos,
            look=self._look,
        )
        if self._controls is None:
            return [structs.replace(main, presence=presence)]
        heard = self._controls.subscriptions
        if not self._sharing.own(time.monotonic()):
            return [structs.replace(main, subscriptions=(*self._subscriptions, *heard), presence=presence)]
        settings = structs.replace(self._settings, client_id=self._controls.client_id)
        controls = Line(settings=settings, subscriptions=heard, controls=True, presence=presence)
        return [controls, structs.replace(main, dropped=(*presence, *heard))]

    def _connected(self, present: bool) -> None:
        old = present and (not self._session_made or (self._controls_met and bool(self._sharing.alone)))
        self._session_made, self._controls_met = True, self._controls_met and not old
        self._on_connected(old)

    def _controls_connected(self, present: bool) -> None:
        # Where a login has one session this one has just made it, and the other connection is about to meet it.
        self._session_made |= not present
        self._controls_met |= present and not self._controls_made
        self._controls_made = True

    def _came_up(self) -> Sequence[Outgoing]:
        life = self._life
        assert life is not None and life.main is not None
        self._sharing.worked(own=life.controls is not None)
        self._controls_met = False  # nothing more is to be learnt from it
        self._sessions += 1
        self._phase = "up"
        session = Session(
            count=self._sessions,
            protocol=life.main.protocol,
            present=life.main.present,
            refused=_refused(life),
            controls=life.controls is not None,
        )
        log.info(
            "event=up protocol=%s session=%d present=%s refused=%d controls=%r",
            session.protocol, session.count, session.present, len(session.refused), self._how_controls_go(life),
        )  # fmt: skip
        return self._on_up(session)

    def _how_controls_go(self, life: Life) -> str:
        if self._controls is None or not life.up:
            return ""
        return "own" if life.controls is not None else f"shared: {self._sharing.why}"

    def _after(self, life: Life, reason: str) -> float:
        was_up = self._phase == "up"
        self._phase = "resting"
        self._life = None
        first = life.ended
        if first is not None:
            reason = first.reason
        life.close(reason)
        self._last_error = reason
        for one in life.lines:
            self._too_large += one.too_large
            self._unreadable += one.unreadable
            (self._urgent if one.line.controls else self._feed).end(one, blamed=one is first and _may_be_blamed(one))
        if was_up:
            self._tell_down(reason)
        self._session_made |= _perhaps_made(life.main)
        self._controls_made |= _perhaps_made(life.controls)
        last = first or (life.lines[-1] if life.lines else None)
        if last is None:
            return self._rest_after(life, taken_over=False)
        if self._will_lowered(last.refusal):
            return 0.0
        stand_by, stood_by = self._admitted() == "no", life.lines[0].line.standby
        if first is None and stand_by != stood_by:
            log.warning("event=%s", "stands_by" if stand_by else "takes_over")
            return 0.0
        if stood_by:
            return max(STANDBY_REST_S, self._rest_after(life, taken_over=last.taken_over))
        if self._controls is not None and not was_up:
            self._learn_of_controls(life, last)
        unanswered = last.reached and (last.unsupported or not last.answered)
        if unanswered and self._versions.unanswered(unsupported=last.unsupported):
            log.info("event=other_protocol next=%s reason=%r", self._versions.current, reason)
            return 0.0
        return self._rest_after(life, taken_over=last.taken_over and was_up and not last.in_flight)

    def _will_lowered(self, refusal: int) -> bool:
        """The broker takes no will like ours; what it takes it says only here, where it is too late for this one."""
        before = self._will_retain, self._will_qos
        self._will_retain = self._will_retain and refusal != WILL_RETAIN_REFUSED
        self._will_qos = 0 if refusal == WILL_QOS_REFUSED else self._will_qos
        return before != (self._will_retain, self._will_qos)

    def _learn_of_controls(self, life: Life, ended: Connection) -> None:
        """What the end of a life that did not come up says of a second session."""
        now_s = time.monotonic()
        if life.controls is not None and life.main is not None and life.main.reached:
            self._sharing.clashed(ended.reason, now_s)
        elif ended.line.controls and ended.refusal and not ended.unsupported:
            self._sharing.refused(ended.reason, now_s)
        elif ended.refusal:
            self._sharing.forget()

    def _rest_after(self, life: Life, *, taken_over: bool) -> float:
        up_since_s = life.main.up_since_s if life.main is not None else 0.0
        up_s = time.monotonic() - up_since_s if up_since_s else 0.0
        rest_s = self._backoff.rest_s(up_s=up_s, ended_by_peer=taken_over, chance=random.random())
        if self._backoff.contested:
            self._last_error = f"another client seems to use the id {self._settings.client_id!r}: {self._last_error}"
        if self._bell.stop_by_s is None:
            log.warning("event=down reason=%r up_s=%.1f rest_s=%.1f", self._last_error, up_s, rest_s)
        return rest_s

    def _tell_down(self, reason: str) -> None:
        try:
            self._on_down(reason)
        except Exception:
            log.exception("event=fault")

    def _rest(self, seconds: float) -> None:
        until_s = time.monotonic() + seconds
        poll = select.poll()
        poll.register(self._bell.descriptor, select.POLLIN)
        while self._bell.stop_by_s is None and (left_s := until_s - time.monotonic()) > 0:
            self._beat_s = time.monotonic()
            poll.poll(min(left_s, TURN_S) * 1000)
            self._bell.hear()


def _always() -> Literal["yes"]:
    return "yes"


def _perhaps_made(one: Connection | None) -> bool:
    """Whether this connection may have made a session at the broker without our hearing of it."""
    return one is not None and one.reached and not one.answered


def _may_be_blamed(ended: Connection) -> bool:
    """Whether the end may come of what was on the way."""
    return ended.by_peer or ended.unacknowledged


def _refused(life: Life) -> tuple[str, ...]:
    return tuple(name for one in life.lines for name in one.refused)
