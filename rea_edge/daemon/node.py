"""One node put together over an open store: link, mailbox, lanes, tools. Owned and turned by the main thread."""

import logging
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from rea_edge import memory
from rea_edge.clock import Clock, boot_id
from rea_edge.config import Settings, default_id, tool_files
from rea_edge.daemon.desk import NodeDesk
from rea_edge.daemon.effects import NodeEffects
from rea_edge.daemon.lanes import Lane
from rea_edge.daemon.queue import Kind, Waiting
from rea_edge.daemon.running import RunningStates
from rea_edge.daemon.upkeep import Upkeep
from rea_edge.daemon.view import StateWord, View
from rea_edge.dial import link_settings, node_client_id
from rea_edge.errors import StoreBroken, StoreFull
from rea_edge.journal import Journal
from rea_edge.mailbox import Mailbox
from rea_edge.mqtt import Incoming, Link, Outgoing, Session, Will
from rea_edge.records import Asked, Ended, Event, Resumed, Run
from rea_edge.report import Report
from rea_edge.store import RunRow, Store, Transaction
from rea_edge.systemd import Progress
from rea_edge.toolbox import Toolbox
from rea_edge.toolhost.client import ToolHost
from rea_edge.topics import Topics

if TYPE_CHECKING:
    from rea_edge.runner import Runner

log = logging.getLogger("rea_edge.node")

STEP_MARGIN_S = 15.0  # beyond an effect's own limit before the watchdog calls its lane stuck
LINK_LATE_S = 60.0  # the link's turns are 10 s apart at most
TOOL_LANES = 2  # a slow direct call does not hold the next one up
TOOL_DRAIN_S = 20.0
OUTBOX_DRAIN_S = 2.0
ASK_DRAIN_S = 2.0
HEALTH_S = 60.0


class Node:
    """`fatal(exc)` is told of what must end the process; it may be called from any thread."""

    def __init__(self, settings: Settings, store: Store, clock: Clock, fatal: Callable[[BaseException], None]) -> None:
        self._settings = settings
        self._store = store
        self._clock = clock
        self._fatal = fatal
        self._up_since_s = time.monotonic()
        self.name = _kept_name(settings, store)
        self._topics = Topics(settings.broker.root, self.name)
        self.progress = Progress()
        self._report = Report(self._topics, clock.now, self._up_since_s)
        self._journal = Journal(store, self._publish, clock.now)
        self._upkeep = Upkeep(store, self._report, clock.now)
        self._host = ToolHost(settings.node.state_dir, tool_files(settings), memory_mib=settings.memory.tool_mib)
        loaded = self._host.start()
        for fault in loaded.faults:
            log.error("event=tool_fault detail=%r", fault)
        if store.lost:
            log.error("event=state_lost detail=%r kept_in=%s", store.lost, settings.node.state_dir / "broken-N")
        self._tool_faults = loaded.faults
        self._effects = NodeEffects(settings, Toolbox(self._host, loaded.tools), store)
        self._waiting = Waiting()
        self._progress_of = RunningStates()
        self._old = self._rows_to_take_up()
        self._session = int(store.meta_get("session") or 0)
        self._down_since_s: float | None = self._up_since_s
        self._away_before_s = _away_before(store, clock.now())
        self._store_note = ""
        self._refusing: str | None = None
        self._stopping = False
        self._health_due_s = 0.0
        self._told_status: tuple[StateWord, tuple[str, ...]] | None = None
        self._view = self._new_view()
        self._mailbox = self._new_mailbox()
        self._link = self._new_link()
        self._lanes = [self._lane("agent", "task"), *(self._lane(f"tool-{n}", "call") for n in range(TOOL_LANES))]

    # --- life

    def start(self) -> None:
        self._link.start()
        for lane in self._lanes:
            lane.start()

    def turn(self) -> None:
        """What is due in the main thread: status, health, upkeep of the store. At most every few seconds."""
        now_s = time.monotonic()
        self._tell_status_if_changed()
        if now_s >= self._health_due_s:
            self._health_due_s = now_s + HEALTH_S
            self._tell("health", self._view.health(), qos=0)
        if self._upkeep.turn():
            self._link.wake()

    def refuse_new(self, why: str | None) -> None:
        """From now on (or no longer) refuse new requests, saying why."""
        self._refusing = why

    def stuck(self) -> str | None:
        """The name of what has made no progress within its own time; None while all is well."""
        now_s = time.monotonic()
        link = self._link.state
        # A name look-up in phase connecting cannot be bounded from outside; everything else turns within 10 s.
        late = link.phase not in {"new", "connecting", "stopped"} and now_s - link.beat > LINK_LATE_S
        if late or not self._link.alive:
            return "mqtt"
        return self.progress.overdue(now_s)

    def stop(self) -> None:
        """Drain: no intake, questions end at once, tools get `TOOL_DRAIN_S`, then `offline`."""
        self._stopping = True
        self.refuse_new("the node is stopping")
        self._waiting.close()
        for lane in self._lanes:
            lane.stop()
        end_s = time.monotonic() + TOOL_DRAIN_S
        late = [lane for lane in self._lanes if not lane.join(end_s - time.monotonic())]
        for lane in late:
            log.warning("event=cut_at_stop lane=%s", lane.name)
            lane.cut()
        for lane in late:
            lane.join(ASK_DRAIN_S)
        self._host.stop(0.0)
        farewell = Outgoing(topic=self._topics.all("status"), payload=self._status("offline"), retain=True)
        self._link.stop(farewell, OUTBOX_DRAIN_S)
        self._effects.close()

    # --- parts

    def _new_view(self) -> View:
        return View(
            settings=self._settings,
            store=self._store,
            report=self._report,
            tools=lambda: self._effects.toolbox.tools,
            tools_hash=lambda: self._effects.toolbox.tools_hash,
            boot=boot_id(),
            session=lambda: self._session,
            state=lambda: self.state,
            faults=self.faults,
            health=self._figures,
            exams=self._effects.marks,
        )

    def _new_mailbox(self) -> Mailbox:
        desk = NodeDesk(
            settings=self._settings,
            tools=lambda: self._effects.toolbox.tools,
            waiting=self._waiting,
            view=self._view,
            refusing=lambda: self._refusing,
            end_waiting=self._end_waiting,
        )
        return Mailbox(
            store=self._store,
            journal=self._journal,
            topics=self._topics,
            report=self._report,
            desk=desk,
            tell=lambda out: self._link.tell(out),
            wake=lambda: self._link.wake(),
            clock=self._clock.now,
            away_s=self._away_s,
            plain_mode=self._settings.access.plain_text,
        )

    def _new_link(self) -> Link:
        return Link(
            link_settings(self._settings.broker, node_client_id(self._settings.broker, self.name)),
            subscriptions=(self._topics.fences, self._topics.requests),
            accept=self._accept,
            pull=self._pull,
            published=self._published,
            before_connect=self._before_connect,
            on_up=self._on_up,
            on_down=self._on_down,
            fence=lambda: self._topics.fence(self._session),
        )

    def _lane(self, name: str, kind: Kind) -> Lane:
        sign = self.progress.lane(name)
        return Lane(
            name,
            kind,
            waiting=self._waiting,
            journal=self._journal,
            new_runner=lambda: self._new_runner(lambda seconds: sign.beat(seconds + STEP_MARGIN_S)),
            sign=sign,
            resumed=self._resumed,
            expired=self._expired,
            fatal=self._fatal,
        )

    def _new_runner(self, beat: Callable[[float], None]) -> "Runner":
        from rea_edge.runner import Runner

        return Runner(self._effects, self._live, beat)

    # --- runs

    def _rows_to_take_up(self) -> dict[int, bool]:
        """Unfinished runs go into the queue; what is known of the last stop goes with them: row to clean or not."""
        clean = self._store.was_clean
        rows = self._store.queue()
        for row in rows:
            self._waiting.put(row)
        if rows:
            log.info("event=taken_up runs=%d clean=%s", len(rows), clean)
        return dict.fromkeys((row.row for row in rows), clean)

    def _resumed(self, row: RunRow) -> bool | None:
        return self._old.pop(row.row, None)

    def _expired(self, row: RunRow) -> bool:
        now, longest_s = self._clock.now(), self._settings.queue.longest_s
        if now is not None and row.at is not None:
            return now - row.at > longest_s
        return self._waiting.waited_s(row.row) > longest_s  # without a clock only this process's own time is known

    def _end_waiting(self, row: RunRow) -> None:
        """End a cancelled run that waits in the queue, here in the thread that took the cancel."""
        claimed = self._waiting.claim(row.row, row.kind)
        if claimed is None:
            return  # a lane took it in this moment, and meets the cancel at its first commit
        try:
            held = self._journal.load(claimed[0])
            runner = self._new_runner(lambda seconds: None)
            if (clean := self._resumed(row)) is not None:
                runner.resume(held, clean=clean)
            runner.finish(held, claimed[1], lambda: False)
        except StoreFull:
            self._waiting.put_back(row)  # the cancel is on disk: the lane that takes the run ends it
        else:
            self._waiting.drop(row.row)
        self._link.wake()

    def _publish(self, tx: Transaction, row: RunRow, run: Run) -> None:
        """Inside the transaction: once an end can be pulled, no older state may be taken and follow it."""
        if run.phase == "ended":
            self._progress_of.forget(row)
        self._report.publish(tx, row, run)

    def _live(self, row: RunRow, run: Run, event: Event) -> None:
        for live in self._report.live(row, run, event):
            self._link.tell(live)
        if isinstance(event, Asked):
            self._progress_of.note(row, run)
        if isinstance(event, Asked | Ended | Resumed):
            self._link.wake()

    # --- link callbacks (its thread)

    def _accept(self, incoming: Incoming) -> bool:
        try:
            return self._mailbox.accept(incoming)
        except StoreBroken as exc:
            self._fatal(exc)
            return False

    def _pull(self, limit: int) -> Sequence[Outgoing]:
        # Rows first: a run's acceptance is among them, and how it gets on must not overtake that.
        return [*self._pull_rows(limit), *self._progress_of.take(self._report)]

    def _pull_rows(self, limit: int) -> list[Outgoing]:
        try:
            rows = self._store.pull(limit)
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
            )
            for row in rows
        ]

    def _published(self, out: Outgoing, reason: int | None) -> None:
        if reason is not None:
            self._store_note = f"the broker refused {out.topic} (reason {reason}): check its access rules"
        if out.row is not None:
            self._store.sent([out.row])

    def _before_connect(self) -> Will | None:
        self._session += 1
        try:
            with self._store.transaction() as tx:
                tx.meta_set("session", str(self._session))
        except StoreFull as exc:
            log.error("event=session_not_kept detail=%r", str(exc))
        except StoreBroken as exc:
            self._fatal(exc)
        return Will(topic=self._topics.all("status"), payload=self._status("offline"), qos=1, retain=True)

    def _on_up(self, session: Session) -> Sequence[Outgoing]:
        log.info("event=up protocol=%s session=%d present=%s", session.protocol, self._session, session.present)
        self._told_status = (self.state, tuple(self.faults()))
        self._progress_of.again()
        return [
            Outgoing(topic=self._topics.all("status"), payload=self._status(self.state), retain=True),
            Outgoing(topic=self._topics.all("card"), payload=self._view.card(), retain=True),
        ]

    def _on_down(self, reason: str) -> None:
        self._down_since_s = time.monotonic()
        self._away_before_s = 0.0
        log.warning("event=down reason=%r", reason)

    def _away_s(self) -> float:
        """How long the node may have been away before this connection: at most that old is what waited."""
        since = self._down_since_s or time.monotonic()
        return self._away_before_s + time.monotonic() - since

    # --- what is shown

    @property
    def state(self) -> StateWord:
        return "degraded" if self._store.lost else "online"

    def faults(self) -> list[str]:
        link = self._link.state
        found = [
            *([f"state: {self._store.lost}"] if self._store.lost else []),
            *self._tool_faults,
            *self._effects.endpoints.faults(),
            *(f"broker does not let us read {one}: check its access rules" for one in link.refused),
            *([self._store_note] if self._store_note else []),
        ]
        return [*found, *([self._refusing] if self._refusing and not self._stopping else [])]

    def _figures(self) -> dict[str, object]:
        link, usage = self._link.state, self._store.usage()
        return {
            "queue": self._waiting.counts(),
            "running": [held[0].id for lane in self._lanes if (held := lane.current) is not None],
            "memory": {"rss_mib": round(memory.resident_mib(), 1), "soft_mib": self._settings.memory.soft_mib},
            "endpoints": self._effects.endpoints.figures(),
            "exams": {
                one.name: marks.words()
                for one in self._settings.endpoints
                if (marks := self._effects.marks(one)) is not None
            },
            "store": msgspec.to_builtins(usage),
            "link": {
                "protocol": link.protocol,
                "sessions": link.sessions,
                "waiting": link.waiting,
                "dropped": link.dropped_qos0 + link.dropped_qos1,
                "last_error": link.last_error,
            },
        }

    def _status(self, state: StateWord) -> bytes:
        return msgspec.json.encode(self._view.status(state))

    def _tell_status_if_changed(self) -> None:
        now = (self.state, tuple(self.faults()))
        if self._link.state.connected and now != self._told_status:
            self._tell("status", self._status(self.state), qos=1)
            self._told_status = now

    def _tell(self, what: str, payload: bytes, qos: int) -> None:
        topic = self._topics.all("status" if what == "status" else "health")
        self._link.tell(Outgoing(topic=topic, payload=payload, qos=qos, retain=True))


def _kept_name(settings: Settings, store: Store) -> str:
    """The node's id. One made from host name and machine id is kept, so that a renamed host stays the same node."""
    kept, wanted = store.meta_get("node"), settings.node.id
    if kept is not None and wanted == default_id(None):
        return kept
    if kept != wanted:
        with store.transaction() as tx:
            tx.meta_set("node", wanted)
    return wanted


def _away_before(store: Store, now: float | None) -> float:
    """Seconds since this node was last known to be up; without trusted times it may have been for ever."""
    seen = store.meta_get("seen_at")
    if now is None or seen is None:
        return float("inf")
    return max(0.0, now - float(seen))
