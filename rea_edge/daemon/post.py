"""The node's side of its broker connection: what the link asks for, and whether it is up. Owns the link.

All but `tell`, `wake`, `start` and `stop` runs in the link's thread. What is said comes from elsewhere.
"""

import logging
from collections.abc import Callable, Sequence

from rea_edge.config import Broker
from rea_edge.daemon.complaints import Complaints
from rea_edge.daemon.fitting import shorter
from rea_edge.daemon.ghosts import Ghosts
from rea_edge.daemon.life import Life
from rea_edge.daemon.presence import NodePresence
from rea_edge.daemon.running import RunningStates
from rea_edge.dial import controls_client_id, link_settings, node_client_id, standby_client_id
from rea_edge.errors import StoreBroken, StoreFull
from rea_edge.mqtt import Controls, Incoming, Link, LinkState, Outgoing, Session, Will, verdict
from rea_edge.report import STATE_KEEP_S, Report
from rea_edge.store import Store
from rea_edge.topics import Topics
from rea_edge.wire import PUBLISH_MAX

log = logging.getLogger("rea_edge.post")

GONE = "the broker has a session of this node, which began a new state: the one before is gone"

OLDER = "the broker knows connections of this state that it has no record of: an older copy of it was put back"

SILENT = "Keep alive timeout"  # in the reason of an end that is found out late


class Post:
    """`births()` is said first on each connection, then `standing()`, which the broker may have lost; `farewell()` last,
    also by the broker where we cannot.

    `fatal(exc)` is told of what must end the process. `known_before`: whether the broker had a session of this node
    at this start, where somebody has looked already. `instance` and `up_since_s` are this process's name and start;
    `admitted(bool)`: whether it acts, or another node with its id does.
    """

    def __init__(
        self,
        *,
        broker: Broker,
        node: str,
        store: Store,
        topics: Topics,
        report: Report,
        running: RunningStates,
        life: Life,
        accept: Callable[[Incoming], bool],
        births: Callable[[], Sequence[Outgoing]],
        standing: Callable[[], Sequence[Outgoing]],
        farewell: Callable[[], Outgoing],
        fatal: Callable[[BaseException], None],
        known_before: bool | None,
        instance: str,
        up_since_s: float,
        admitted: Callable[[bool], None],
    ) -> None:
        self._store = store
        self._known_before = known_before
        self._new_to_broker = store.meta_get("session") is None
        self._topics = topics
        self._report = report
        self._running = running
        self._take = accept
        self._births = births
        self._standing = standing
        self._farewell = farewell
        self._fatal = fatal
        # What others see is the one on disk: a number that a full disk forgot would look like another copy's later.
        self.session = self.kept_session = int(store.meta_get("session") or 0)
        self.complaints = Complaints(topics.base)
        self._given_up: set[int] = set()  # rows that could not be set aside on a full disk
        self._life = life
        self._keepalive_s = broker.keepalive_s
        client_id = node_client_id(broker, node)
        self.ghosts = Ghosts(
            store=store,
            topics=topics,
            report=report,
            tell=lambda out: self._link.tell(out),
            wake=lambda: self._link.wake(),
            births=births,
        )
        self.presence = NodePresence(
            topics=topics,
            store=store,
            instance=instance,
            up_since_s=up_since_s,
            tell=lambda out: self._link.tell(out),
            restate=lambda: self._link.tell(self._births()[0]),
            admitted=admitted,
            outrun=self._outrun,
        )
        self._link = Link(
            link_settings(broker, client_id),
            subscriptions=(topics.fences, *topics.requests),
            controls=Controls(
                client_id=controls_client_id(client_id),
                subscriptions=(topics.control_fences, *topics.controls),
                fence=lambda: topics.control_fence(self.session),
            ),
            look=topics.own,
            found=self._look_at,
            presence=self.presence.for_link(standby_client_id(client_id)),
            accept=self._accept,
            pull=self._pull,
            published=self._published,
            shorter=shorter,
            refused=lambda out, reason: self.complaints.refused(out.topic, reason),
            before_connect=self._before_connect,
            on_connected=self._on_connected,
            on_up=self._on_up,
            on_down=self._on_down,
            fence=lambda: topics.fence(self.session),
        )
        self.start, self.wake, self.tell = self._link.start, self._link.wake, self._link.tell

    @property
    def state(self) -> LinkState:
        return self._link.state

    @property
    def alive(self) -> bool:
        return self._link.alive

    def faults(self) -> list[str]:
        """What the operator should know of this connection."""
        state, base = self._link.state, self._topics.base
        rule = f"its access rules must let this node write and read {base}/out/#"
        return [
            *(f"broker does not let us read {one}: check its access rules" for one in state.refused),
            *(state.limits.words(PUBLISH_MAX) if state.limits is not None else ()),
            *([f"broker does not give back what this node publishes: {rule}"] if state.unheard else []),
            *self.complaints.words(),
            *self.presence.words(),
        ]

    def refresh(self) -> None:
        """Say again how running tasks get on, before it expires."""
        self._running.again()
        self._link.wake()

    def figures(self) -> dict[str, object]:
        state = self._link.state
        return {
            "protocol": state.protocol,
            "sessions": state.sessions,
            "waiting": state.waiting,
            "dropped": state.dropped_qos0 + state.dropped_qos1,
            "controls": state.controls,
            "refused": self.complaints.counts,
            "repaired": self.ghosts.repaired,
            "last_error": state.last_error,
        }

    def stop(self, seconds: float) -> None:
        self._link.stop(self._farewell(), seconds)

    # --- the link's questions

    def _accept(self, incoming: Incoming) -> bool:
        try:
            return self.presence.hear(incoming) or self._take(incoming)
        except StoreBroken as exc:
            self._fatal(exc)
            return False

    def _look_at(self, incoming: Incoming) -> None:
        try:
            self.ghosts.found(incoming)
        except StoreFull as exc:
            log.error("event=not_repaired topic=%s detail=%r", incoming.topic, str(exc))
        except StoreBroken as exc:
            self._fatal(exc)

    def _pull(self, limit: int) -> Sequence[Outgoing]:
        # Rows first: a run's acceptance is among them, and how it gets on must not overtake that.
        return [*self._pull_rows(limit), *self._running.take(self._report)]

    def _pull_rows(self, limit: int) -> list[Outgoing]:
        try:
            rows = self._store.pull(limit, self._given_up)
        except StoreBroken as exc:
            self._fatal(exc)
            return []
        return [
            Outgoing(
                row=row.row,
                topic=row.topic,
                payload=row.payload,
                qos=row.qos,
                retain=row.retain,
                correlation=row.correlation,
                expires_in_s=int(STATE_KEEP_S) if row.retain and row.payload else None,
            )
            for row in rows
        ]

    def _published(self, out: Outgoing, reason: int | None) -> None:
        if reason is None:
            self.complaints.taken(out.topic)
            if out.row is not None:
                self._store.sent([out.row])
        elif verdict(reason) != "never":
            self.complaints.refused(out.topic, reason)  # it was told from memory
        else:
            self.complaints.set_aside(out.topic, reason)
            if out.row is not None:
                self._set_aside(out.row)

    def _set_aside(self, row: int) -> None:
        try:
            with self._store.transaction() as tx:
                tx.set_aside(row)
        except StoreFull:
            self._given_up.add(row)
        except StoreBroken as exc:
            self._fatal(exc)

    def _before_connect(self) -> Will | None:
        self.presence.begin()
        self.session += 1
        try:
            with self._store.transaction() as tx:
                tx.meta_set("session", str(self.session))
                self.presence.remember(tx)
            self.kept_session = self.session
        except StoreFull as exc:
            log.error("event=session_not_kept detail=%r", str(exc))
        except StoreBroken as exc:
            self._fatal(exc)
        last = self._farewell()
        return Will(topic=last.topic, payload=last.payload, expires_in_s=last.expires_in_s)

    def _on_connected(self, old: bool) -> None:
        """A state that never connected, and a broker that knows this node: there was another state before."""
        if self._known_before is None:
            self._known_before = old  # kept: the next connection meets a session that this one has made
        if self._new_to_broker and self._known_before:
            self._lose(GONE, self.session)
        self._new_to_broker = False

    def _outrun(self, session: int) -> None:
        """The count goes on from there, so that the same status, brought back by a broker, is not news again."""
        if session >= self.session:
            self._lose(OLDER, session + 1)

    def _lose(self, why: str, session: int) -> None:
        new = self._store.lost is None
        if new:
            log.error("event=state_lost detail=%r", why)
        try:
            with self._store.transaction() as tx:
                if new:
                    tx.lose(why)
                tx.meta_set("session", str(session))
            self.session = self.kept_session = session
        except StoreFull as exc:
            log.error("event=loss_not_kept detail=%r", str(exc))  # nor can an intent be
        except StoreBroken as exc:
            self._fatal(exc)

    def _on_up(self, session: Session) -> Sequence[Outgoing]:
        log.info("event=up protocol=%s session=%d present=%s", session.protocol, self.session, session.present)
        self._life.began(controls=session.controls)
        self._running.again()
        births = self._births()
        self.ghosts.begin(births)
        try:
            return [*births, *self._standing()]
        except StoreBroken as exc:
            self._fatal(exc)
            return births

    def _on_down(self, reason: str) -> None:
        # Of a link that fell silent nobody knows when it broke: the broker may have kept messages for us since then.
        self._life.ended(2 * self._keepalive_s if SILENT in reason else 0.0)
        log.warning("event=down reason=%r", reason)
