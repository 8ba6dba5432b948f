"""The MQTT thread: connects, serves, rests, for as long as the process lives. Knows no topic and no payload of ours.

Nothing that goes wrong inside ends the thread: the connection is closed, the broker delivers again what was not
acknowledged, and the owner of the outbox is asked again for what was not published.
"""

import logging
import os
import random
import select
import threading
import time
from collections.abc import Callable, Sequence

from rea_edge.errors import OperatorError
from rea_edge.mqtt.backoff import Backoff
from rea_edge.mqtt.connection import CONNACK_S, FIRST_CONNACK_S, Connection, Ears, NotAccepted
from rea_edge.mqtt.feed import Feed
from rea_edge.mqtt.messages import Incoming, LinkState, Outgoing, Phase, Session, Will
from rea_edge.mqtt.settings import LinkSettings, check_settings
from rea_edge.mqtt.versions import Versions
from rea_edge.mqtt.waiting import size_of

TURN_S = 10.0  # the longest turn; the watchdog counts on it
GOODBYE_S = 1.0  # for the DISCONNECT itself to leave

log = logging.getLogger("rea_edge.mqtt")


class Link:
    """A broker connection that keeps itself alive.

    All callbacks run in the link's thread and should be short: what takes longer than the keepalive loses the link.
    What waited at the broker is accepted as soon as it comes, also before `on_up`.

    `accept(incoming)`: True once it is stored; it is acknowledged in the same breath. False or an exception: not
    acknowledged, and the connection is closed so that the broker delivers it again after a rest. For QoS 0 the
    answer is ignored. `pull(limit)`: the first `limit` messages of the outbox that `published` was not told of yet,
    in order; those in flight may be among them and are skipped by `row`, so rows must never be used again.
    `published(out, reason)`: the broker has it (reason None), or will never take it (an MQTT 5 reason code); after a
    connection ends without it the message is pulled again. What is told with QoS 1 is reported here too, with no row.
    `before_connect()`: before each CONNECT, once the broker is reached; gives the will. `on_up(session)`: subscribed;
    gives the birth messages, sent before all else. `on_down(reason)`: after each `on_up`, when that session ended.
    `fence()`: the topic of this connection's fence (asked after `before_connect`), to be covered by `subscriptions`
    and unique on its last level; without it `Incoming.waited` is a guess.
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
        fence: Callable[[], str] | None = None,
    ) -> None:
        """Raises `ConfigInvalid` for settings that cannot work."""
        check_settings(settings)
        self._settings = settings
        self._subscriptions = subscriptions
        self._feed = Feed(pull, published)
        self._on_up = on_up
        self._on_down = on_down
        self._ears = Ears(
            accept=accept, acknowledged=self._feed.acknowledged, before_connect=before_connect, fence=fence
        )
        self._versions = Versions(settings.protocol)
        self._backoff = Backoff(settings.reconnect_min_s, settings.reconnect_max_s)
        self._lock = threading.Lock()  # over the next four: they are also touched by other threads
        self._woken = False
        self._rows_due = False
        self._wake_in, self._wake_out = -1, -1
        self._stop_by_s: float | None = None
        self._farewell: Outgoing | None = None
        self._connection: Connection | None = None
        self._phase: Phase = "new"
        self._beat_s = time.monotonic()
        self._sessions = 0
        self._last_error = ""
        self._too_large = 0
        self._unreadable = 0
        self._thread = threading.Thread(target=self._run, name="mqtt", daemon=True)

    def start(self) -> None:
        self._wake_in, self._wake_out = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._thread.start()

    def wake(self) -> None:
        """Say that the outbox has new rows. From any thread, also from the callbacks."""
        with self._lock:
            self._rows_due = True
            self._signal()

    def tell(self, out: Outgoing) -> None:
        """Send `out` from memory, before the outbox. QoS 0 is dropped where there is no connection, and both kinds
        above a cap, the oldest first; drops are counted. From any thread; never blocks."""
        self._feed.tell(out, connected=self._phase == "up")
        with self._lock:
            self._signal()

    def stop(self, farewell: Outgoing | None, seconds: float) -> None:
        """End within `seconds`: no more intake; what waits is sent, then `farewell`, then DISCONNECT. Where the
        broker does not acknowledge in time there is no DISCONNECT, so that the will speaks for us. Blocks until the
        thread has ended, or `seconds` and a little are over (a name look-up cannot be interrupted)."""
        with self._lock:
            self._farewell = farewell
            self._stop_by_s = time.monotonic() + seconds
            self._signal()
        if self._thread.ident is None:
            return
        self._thread.join(seconds + 2 * GOODBYE_S)

    @property
    def alive(self) -> bool:
        """Whether the thread runs: nothing is known that ends it before `stop`, and a watchdog can make sure."""
        return self._thread.is_alive()

    @property
    def state(self) -> LinkState:
        connection = self._connection
        told = self._feed.told
        flying = connection.in_flight if connection is not None else ()
        return LinkState(
            phase=self._phase,
            beat=self._beat_s,
            connected=self._phase == "up",
            protocol=connection.protocol if connection is not None and self._phase == "up" else None,
            sessions=self._sessions,
            fenced=connection is not None and connection.fenced,
            refused=connection.refused if connection is not None else (),
            last_error=self._last_error,
            in_flight=len(flying),
            waiting=len(told),
            waiting_bytes=told.size_bytes + sum(map(size_of, flying)),
            dropped_qos0=told.dropped_qos0,
            dropped_qos1=told.dropped_qos1,
            too_large=self._too_large + (connection.too_large if connection is not None else 0),
            unreadable=self._unreadable + (connection.unreadable if connection is not None else 0),
        )

    # --- the thread

    def _run(self) -> None:
        while self._stop_by_s is None:
            self._rest(self._live())
        self._phase = "stopped"
        with self._lock:
            os.close(self._wake_in)
            os.close(self._wake_out)
            self._wake_out = -1

    def _live(self) -> float:
        """One connection, from the attempt to its end; gives the seconds to rest after it."""
        self._phase = "connecting"
        self._beat_s = time.monotonic()
        try:
            self._connection = connection = self._new_connection()
        except OperatorError as exc:  # a certificate file that was there at the start
            log.error("event=not_connected reason=%r", str(exc))
            self._last_error = str(exc)
            self._phase = "resting"
            return self._backoff.rest_s(up_s=0, ended_by_peer=False, chance=random.random())
        try:
            known = self._versions.known or connection.protocol != "5"
            connection.open(self._wake_in, CONNACK_S if known else FIRST_CONNACK_S)
            self._serve(connection)
        except NotAccepted:
            connection.close("a message could not be stored")
        except OSError as exc:
            connection.close(str(exc) or type(exc).__name__)
        except Exception as exc:
            # The thread must outlive any fault in a callback or in paho: a dead thread looks like a quiet broker.
            log.exception("event=fault")
            connection.close(f"fault: {exc!r}")
        return self._after(connection)

    def _new_connection(self) -> Connection:
        return Connection(
            self._settings, self._versions.current, self._subscriptions, self._ears, nonce=os.urandom(8).hex().encode()
        )

    def _serve(self, connection: Connection) -> None:
        while not connection.ended:
            self._beat_s = time.monotonic()
            if self._stop_by_s is not None:
                return self._leave(connection, self._stop_by_s)
            if connection.stage == "up":
                if self._phase != "up":
                    self._came_up(connection)
                self._feed.send(connection)
            if not connection.ended:
                self._turn(connection, 0.0 if self._feed.more_for(connection) else TURN_S)
        return None

    def _turn(self, connection: Connection, wait_s: float) -> None:
        happened = connection.turn(wait_s)
        if self._hear_wake() or not happened:
            self._feed.pull_due = True  # also after a quiet turn, in case a wake was forgotten

    def _came_up(self, connection: Connection) -> None:
        self._versions.worked()
        self._sessions += 1
        self._phase = "up"
        log.info(
            "event=up protocol=%s session=%d present=%s refused=%d",
            connection.protocol, self._sessions, connection.present, len(connection.refused),
        )  # fmt: skip
        session = Session(
            count=self._sessions,
            protocol=connection.protocol,
            present=connection.present,
            refused=connection.refused,
        )
        self._feed.begin(self._on_up(session))

    def _leave(self, connection: Connection, by_s: float) -> None:
        """Send what waits, then the farewell as the last message, then DISCONNECT."""
        connection.stop_intake()
        half_s = (time.monotonic() + by_s) / 2
        self._turn_until(connection, half_s, lambda: self._feed.empty and not connection.in_flight, feeding=True)
        if self._farewell is not None and self._turn_until(connection, by_s, lambda: connection.ready_for(1)):
            connection.send(self._farewell)
        if self._turn_until(connection, by_s, lambda: not connection.in_flight):
            connection.disconnect()
            self._turn_until(connection, time.monotonic() + GOODBYE_S, lambda: False)
        connection.close("stopped")

    def _turn_until(
        self, connection: Connection, by_s: float, done: Callable[[], bool], *, feeding: bool = False
    ) -> bool:
        """False where `by_s` passed or the connection ended first."""
        while connection.stage == "up":
            self._beat_s = time.monotonic()
            if feeding:
                self._feed.send(connection)
            if done():
                return True
            if self._beat_s >= by_s:
                return False
            if not connection.ended:
                self._turn(connection, 0.0 if feeding and self._feed.more_for(connection) else by_s - self._beat_s)
        return False

    def _after(self, connection: Connection) -> float:
        was_up = self._phase == "up"
        self._phase = "resting"
        self._too_large += connection.too_large
        self._unreadable += connection.unreadable
        self._connection = None
        self._last_error = connection.reason
        self._feed.end(connection.kept)
        if was_up:
            self._tell_down(connection.reason)
        unanswered = connection.reached and (connection.unsupported or not connection.answered)
        if unanswered and self._versions.unanswered(unsupported=connection.unsupported):
            log.info("event=other_protocol next=%s reason=%r", self._versions.current, connection.reason)
            return 0.0
        up_s = time.monotonic() - connection.up_since_s if connection.up_since_s else 0.0
        rest_s = self._backoff.rest_s(up_s=up_s, ended_by_peer=connection.by_peer, chance=random.random())
        if self._backoff.contested:
            self._last_error = f"another client seems to use the id {self._settings.client_id!r}: {connection.reason}"
        if self._stop_by_s is None:
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
        poll.register(self._wake_in, select.POLLIN)
        while self._stop_by_s is None and (left_s := until_s - time.monotonic()) > 0:
            self._beat_s = time.monotonic()
            poll.poll(min(left_s, TURN_S) * 1000)
            self._hear_wake()

    def _signal(self) -> None:
        if not self._woken and self._wake_out >= 0:
            self._woken = True
            os.write(self._wake_out, b"\0")

    def _hear_wake(self) -> bool:
        """Whether the outbox was said to have new rows; a wake for what is told does not look there."""
        with self._lock:
            woken, self._woken = self._woken, False
            due, self._rows_due = self._rows_due, False
            if woken:
                os.read(self._wake_in, 1)
        return due
