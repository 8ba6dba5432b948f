"""One node put together over an open store: link, mailbox, lanes, tools. Owned and turned by the main thread."""

import logging
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from rea_edge.asks import Asks
from rea_edge.clock import Clock, boot_id
from rea_edge.config import Settings
from rea_edge.daemon.crew import Lanes, leased_runner
from rea_edge.daemon.denials import Denials
from rea_edge.daemon.desk import NodeDesk
from rea_edge.daemon.halts import Halt
from rea_edge.daemon.health import Health
from rea_edge.daemon.inforce import InForce
from rea_edge.daemon.life import Life
from rea_edge.daemon.misnamed import misnamed
from rea_edge.daemon.naming import kept_name
from rea_edge.daemon.news import News
from rea_edge.daemon.orders import Orders
from rea_edge.daemon.post import Post
from rea_edge.daemon.queue import Waiting
from rea_edge.daemon.reloads import Reloads
from rea_edge.daemon.running import RunningStates
from rea_edge.daemon.spending import Spending
from rea_edge.daemon.unfinished import Unfinished
from rea_edge.daemon.upkeep import RESEND_S, Keep, Upkeep
from rea_edge.daemon.view import View
from rea_edge.errors import StoreFull
from rea_edge.fairness import Fairness
from rea_edge.journal import Journal
from rea_edge.mailbox import Mailbox
from rea_edge.mqtt import Incoming, Outgoing
from rea_edge.records import Asked, AskedApproval, Ended, Event, Resumed, Run
from rea_edge.report import Report
from rea_edge.signers import Signers
from rea_edge.store import RunRow, Store, Transaction
from rea_edge.systemd import Notifier, Progress
from rea_edge.timeline import OFF_MAX_S
from rea_edge.topics import Topics

log = logging.getLogger("rea_edge.node")

LINK_LATE_S = 60.0  # the link's turns are 10 s apart at most
OUTBOX_DRAIN_S = 2.0
RELOAD_DRAIN_S = 2.0


class Node:
    """`load()` reads the configuration anew. `fatal(exc)` is told of what must end the process; it may be called from any
    thread. `known_before`: see `Post`. `nudge()`: the next turn is due sooner than `rest_s` said."""

    def __init__(
        self,
        settings: Settings,
        load: Callable[[], Settings],
        store: Store,
        clock: Clock,
        *,
        fatal: Callable[[BaseException], None],
        nudge: Callable[[], None],
        notifier: Notifier,
        known_before: bool | None = None,
    ) -> None:
        self._started_with = settings
        self._store = store
        self._clock = clock
        self._fatal = fatal
        self._nudge = nudge
        self._known_before = known_before
        self._up_since_s = time.monotonic()
        self._instance = os.urandom(4).hex()
        self.name = kept_name(settings, store)
        self._topics = Topics(settings.broker.root, self.name)
        self.progress = Progress()
        self._report = Report(self._topics, clock.now, self._up_since_s)
        self._life = Life(store, clock.now)
        self._spending = Spending(settings.allowance, store, self._life)
        self._journal = Journal(store, self._publish, clock.now, self._spending)
        self._upkeep = Upkeep(store, self._report, self._life, _keep(settings))
        self._halt = Halt(store, clock.now)
        self._in_force = InForce(
            settings,
            name=self.name,
            store=store,
            clock=clock,
            halt=self._halt,
            lived_s=self._life.lived_s,
            link=lambda: self._post.state,
            unused=nudge,
        )
        if store.lost:
            log.error("event=state_lost detail=%r kept_in=%s", store.lost, settings.node.state_dir / "broken-N")
        for fault in misnamed(settings, self._in_force.effects.toolbox.tools):
            log.warning("event=misnamed detail=%r", fault)
        self._reloads = Reloads(
            in_force=self._in_force, load=load, taken=self._taken, changed=self._renewed, notifier=notifier, fatal=fatal
        )
        self._waiting = Waiting()
        self._fairness = Fairness(settings.paces)
        self._progress_of = RunningStates()
        self._denials = Denials()
        self._asks = self._new_asks()
        self._signers = Signers(lambda: self._in_force.settings.access, store, self._life.lived_s)
        self._unfinished = self._taken_up()
        self._refusing: str | None = None
        self._stopping = False
        self._health = self._new_health()
        self._view = self._new_view()
        self._news = News(
            topics=self._topics,
            view=self._view,
            health=self._health,
            state_dir=settings.node.state_dir,
            post=lambda: self._post,
        )
        self._orders = Orders(
            store=store, halt=self._halt, reloads=self._reloads, changed=lambda: self._news.tell_status_if_changed()
        )
        self._mailbox = self._new_mailbox()
        self._post = self._new_post()
        self._lanes = Lanes(
            in_force=self._in_force,
            waiting=self._waiting,
            journal=self._journal,
            unfinished=self._unfinished,
            live=self._live,
            progress=self.progress,
            fatal=fatal,
        )

    # --- life

    def start(self) -> None:
        self._post.start()
        self._lanes.start()

    def turn(self) -> None:
        """What is due in the main thread: status, health, upkeep of the store. At most every few seconds."""
        self._write_halt()
        if self._upkeep.turn() | self._late_asks():
            self._post.wake()
        self._in_force.turn()
        self._news.turn()

    def reload(self) -> None:
        """Read the configuration anew, for somebody who is told by log and status how it went."""
        self._reloads.ask("", lambda said: None)

    @property
    def short_of_room(self) -> bool:
        """The disk is full: turns are to be short."""
        return self._store.full is not None

    @property
    def rest_s(self) -> float:
        """How long no turn is due because of what waits for a person."""
        left_s = self._asks.left_s()
        return float("inf") if left_s is None or self.short_of_room else left_s + 0.01

    def refuse_new(self, why: str | None) -> None:
        """From now on (or no longer) refuse new requests, saying why."""
        self._refusing = why

    def stuck(self) -> str | None:
        """The name of what has made no progress within its own time; None while all is well."""
        now_s = time.monotonic()
        link = self._post.state
        # A name look-up in phase connecting cannot be bounded from outside; everything else turns within 10 s.
        late = link.phase not in {"new", "connecting", "stopped"} and now_s - link.beat > LINK_LATE_S
        if late or not self._post.alive:
            return "mqtt"
        return self.progress.overdue(now_s)

    def stop(self) -> None:
        """Drain: no intake, questions end at once, tools get some time, then `offline`."""
        self._stopping = True
        self.refuse_new("the node is stopping")
        self._waiting.close()
        self._lanes.stop()
        self._in_force.stop()
        self._reloads.stop(RELOAD_DRAIN_S)
        self._post.stop(OUTBOX_DRAIN_S)
        self._upkeep.stop()

    # --- parts

    def _new_health(self) -> Health:
        return Health(
            in_force=self._in_force,
            store=self._store,
            waiting=self._waiting,
            spending=self._spending,
            fairness=self._fairness,
            signers=self._signers,
            halt=self._halt,
            denials=self._denials,
            reloads=self._reloads,
            refusing=lambda: None if self._stopping else self._refusing,
            post=lambda: self._post,
            view=lambda: self._view,
            lanes=lambda: self._lanes.all,
        )

    def _new_view(self) -> View:
        return View(
            settings=lambda: self._in_force.settings,
            store=self._store,
            report=self._report,
            tools=lambda: self._in_force.effects.toolbox.tools,
            tools_hash=lambda: self._in_force.effects.toolbox.tools_hash,
            boot=boot_id(),
            instance=self._instance,
            session=lambda: self._post.kept_session,
            state=self._health.state,
            faults=self._health.faults,
            health=self._health.figures,
            budgets=self._spending.shown,
            exams=lambda one: self._in_force.effects.marks(one),
            approvals=lambda: self._in_force.effects.approvals,
        )

    def _new_mailbox(self) -> Mailbox:
        desk = NodeDesk(
            settings=lambda: self._in_force.settings,
            tools=lambda: self._in_force.effects.toolbox.tools,
            withheld=lambda: self._in_force.effects.toolbox.withheld,
            waiting=self._waiting,
            life=self._life,
            spending=self._spending,
            view=self._view,
            refusing=lambda: self._refusing,
            end_waiting=self._unfinished.end,
            ordered=self._orders.take,
            published=self._progress_of.published,
        )
        return Mailbox(
            store=self._store,
            journal=self._journal,
            topics=self._topics,
            report=self._report,
            desk=desk,
            tell=lambda out: self._post.tell(out),
            wake=lambda: self._post.wake(),
            clock=self._clock.now,
            away_s=lambda incoming: self._life.away_s(controls=incoming.controls),
            access=lambda: self._in_force.settings.access,
            fairness=self._fairness,
            asks=self._asks,
            signers=self._signers,
        )

    def _new_asks(self) -> Asks:
        return Asks(
            store=self._store,
            journal=self._journal,
            topics=self._topics,
            report=self._report,
            lived_s=self._life.lived_s,
            approvers=lambda tool: self._in_force.effects.approvals.approvers(tool),
            woken=self._waiting.put,
            told=self._live,
            published=self._progress_of.published,
        )

    def _new_post(self) -> Post:
        return Post(
            broker=self._started_with.broker,
            node=self.name,
            store=self._store,
            topics=self._topics,
            report=self._report,
            running=self._progress_of,
            life=self._life,
            accept=self._accept,
            births=self._news.births,
            standing=self._asks.standing,
            farewell=self._news.farewell,
            fatal=self._fatal,
            known_before=self._known_before,
            instance=self._instance,
            up_since_s=self._up_since_s,
            admitted=self._waiting.admit,
        )

    def _taken_up(self) -> Unfinished:
        return Unfinished(
            store=self._store,
            journal=self._journal,
            waiting=self._waiting,
            asks=self._asks,
            lived_s=self._life.lived_s,
            longest_s=lambda: self._in_force.settings.queue.longest_s,
            runner=lambda: leased_runner(self._in_force, self._live, lambda seconds: None),
            wake=lambda: self._post.wake(),
        )

    def _accept(self, incoming: Incoming) -> bool:
        taken = self._mailbox.accept(incoming)
        if self.short_of_room:
            self._news.tell_status_if_changed()  # at once: this request was refused for it
        return taken

    # --- runs

    def _publish(self, tx: Transaction, row: RunRow, run: Run) -> None:
        """Inside the transaction: once an end can be pulled, no older state may be taken and follow it."""
        if run.phase == "ended":
            self._progress_of.forget(row)
        elif run.phase == "waiting" and row.kind == "task":
            self._progress_of.published(row, run)
        self._report.publish(tx, row, run)
        self._asks.publish(tx, row, run)

    def _live(self, row: RunRow, news: Sequence[tuple[Run, Event]]) -> None:
        """In one word to the link: each wakes its thread."""
        outs: list[Outgoing] = []
        for run, event in news:
            outs += self._report.live(row, run, event)
            self._denials.note(run, event)
            if isinstance(event, Asked):
                self._progress_of.note(row, run)
            if isinstance(event, AskedApproval):
                self._asks.note(row, event)
                self._nudge()
        kept = any(isinstance(event, Asked | AskedApproval | Ended | Resumed) for _, event in news)
        self._post.tell(*outs, rows=kept)

    def _write_halt(self) -> None:
        with suppress(StoreFull):
            self._halt.turn()

    def _late_asks(self) -> bool:
        try:
            return self._asks.turn()
        except StoreFull as full:
            log.error("event=disk_full detail=%r", str(full))
            return False

    # --- what a reload changes

    def _taken(self, settings: Settings) -> None:
        self._spending.limit(settings.allowance)
        logging.getLogger().setLevel(settings.log.level.upper())
        for fault in misnamed(settings, self._in_force.effects.toolbox.tools):
            log.warning("event=misnamed detail=%r", fault)

    def _renewed(self) -> None:
        self._news.tell_births()


def _keep(settings: Settings) -> Keep:
    room = settings.store
    # The broker brings what waited for us for as long as it keeps our session, and a sender may send it again till then.
    # A clock that is wrong at a start may make a state older than it is.
    name_s = settings.broker.session_expiry_s + RESEND_S + OFF_MAX_S
    return Keep(journal_s=room.keep_days * 86_400.0, journals=room.keep_runs, name_s=name_s)
