"""Requests in: commit, then acknowledge; replies out. Rules 1 to 4 of the wire contract.

`accept` runs inside the MQTT thread for each message: check, one transaction, True to acknowledge. Holds no
transport and no policy of its own: what the node allows comes from the `Desk`, what is said from `Report`.
"""

import logging
import os
import time
from collections.abc import Callable
from typing import Literal

import msgspec

from rea_edge import early, intake
from rea_edge.answers import Answers, Sender
from rea_edge.asks import Asks
from rea_edge.config import Access
from rea_edge.controls import Controls
from rea_edge.desk import Desk
from rea_edge.errors import RequestRefused, StoreBroken, StoreFull, StoreUnusable
from rea_edge.fairness import Fairness, Kind, no_place
from rea_edge.journal import Journal, encode, run_from
from rea_edge.mqtt import Incoming, Outgoing
from rea_edge.records import Args, CancelAsked, Job
from rea_edge.report import Report
from rea_edge.signers import Signers
from rea_edge.store import RunRow, Store
from rea_edge.taint import BY_REQUEST
from rea_edge.topics import Inbound, Topics
from rea_edge.wire import (
    CallRequest,
    CtlRequest,
    NodeRequest,
    QueryRequest,
    Reply,
    Request,
    SayRequest,
    TaskRequest,
)

CORRELATION_MAX = 1024  # bytes; it is stored with the request and sent back with the answer

log = logging.getLogger("rea_edge.mailbox")


class Mailbox:
    """`away_s` says how long a message that waited may have done so."""

    def __init__(
        self,
        *,
        store: Store,
        journal: Journal,
        topics: Topics,
        report: Report,
        desk: Desk,
        tell: Callable[[Outgoing], None],
        wake: Callable[[], None],
        clock: Callable[[], float | None],
        away_s: Callable[[Incoming], float],
        access: Callable[[], Access],
        fairness: Fairness,
        asks: Asks,
        signers: Signers,
    ) -> None:
        self._store = store
        self._journal = journal
        self._topics = topics
        self._report = report
        self._desk = desk
        self._tell = tell
        self._wake = wake
        self._clock = clock
        self._away_s = away_s
        self._access_now = access
        self._fairness = fairness
        self._asks = asks
        self._signers = signers
        self._answers = Answers(topics=topics, report=report, fairness=fairness, signers=signers, tell=tell)
        self._controls = Controls(
            store=store,
            journal=journal,
            report=report,
            clock=clock,
            operates=lambda who: self._access.operates(who),
            cancelled=desk.cancelled,
            published=desk.published,
        )

    @property
    def _access(self) -> Access:
        return self._access_now()

    def accept(self, incoming: Incoming) -> bool:
        """Take one message; True: acknowledge it. `StoreBroken` passes through and ends the process."""
        inbound = self._topics.inbound(incoming.topic)
        if inbound is None or (incoming.retained and not incoming.payload):
            return True
        sender = Sender(who=inbound.who, what=inbound.what, id=None)
        try:
            letter = intake.opened(
                incoming.payload, plain_mode=self._access.plain_text if inbound.what == "task" else None
            )
            sender = self._sender(inbound, incoming, letter.id)
            sender = self._signed(sender, inbound, incoming, letter)
            self._take(inbound, incoming, letter, sender)
        except RequestRefused as refused:
            self._answers.refuse(sender, refused)
        except StoreFull as full:
            # Acknowledged all the same: the sender has not seen it accepted and sends it again.
            self._answers.refuse(sender, RequestRefused("store_failed", f"the disk is full: {full}", retryable=True))
        except StoreBroken:
            raise
        except StoreUnusable as damaged:
            # What was asked for has ended and is damaged: not acknowledged, it would come again for ever.
            self._answers.refuse(sender, RequestRefused("store_failed", str(damaged)))
        except Exception:
            # A bug of ours. Not acknowledged, the broker would deliver it again at every connection, for ever.
            log.exception("event=fault what=%s who=%s id=%s", sender.what, sender.who, sender.id)
            self._answers.refuse(
                sender, RequestRefused("internal", "this request met a fault of the node; its log says more")
            )
        return True

    def _sender(self, inbound: Inbound, incoming: Incoming, request_id: str | None) -> Sender:
        if len(incoming.correlation or b"") > CORRELATION_MAX:
            raise RequestRefused("too_large", f"correlation data has at most {CORRELATION_MAX} bytes")
        wanted = incoming.response_topic or ""
        return Sender(
            who=inbound.who,
            what=inbound.what,
            id=request_id,
            response_topic=wanted if self._topics.may_answer_at(inbound.who, wanted) else "",
            correlation=incoming.correlation or b"",
        )

    def _signed(self, sender: Sender, inbound: Inbound, incoming: Incoming, letter: intake.Letter) -> Sender:
        """Before anything else is looked at: what he has not signed is not his, whatever it asks."""
        self._signers.check(incoming.topic, inbound, letter)
        if not self._signers.signs(inbound.who):
            return sender
        return msgspec.structs.replace(sender, sig=str(letter.keys["sig"]))

    def _take(self, inbound: Inbound, incoming: Incoming, letter: intake.Letter, sender: Sender) -> None:
        # Whose word counts for a call is asked of that call.
        if inbound.what != "say" and not self._access.admits(inbound.who):
            raise RequestRefused("policy_denied", f"{inbound.who} is not among this node's [access] senders")
        match inbound.what:
            case "task":
                self._take_task(inbound.who, incoming, letter, sender)
            case "call":
                self._take_call(inbound, incoming, letter, sender)
            case "ctl":
                self._take_ctl(inbound.who, incoming, letter, sender)
            case "query":
                self._pace("query", inbound.who)
                query = intake.as_request(letter.keys, QueryRequest)
                self._check(inbound.who, incoming, query, "query")
                data, next_ = self._desk.query(inbound.who, inbound.leaf, query)
                reply = Reply(for_="query", id=query.id, ok=True, data=data, next=next_, at=self._report.at())
                self._answers.answer(sender, reply)
            case "node":
                self._take_node(inbound.who, incoming, letter, sender)
            case "say":
                self._take_say(inbound.who, incoming, letter, sender)

    def _check(self, who: str, incoming: Incoming, request: Request, what: intake.AgedAs) -> None:
        self._check_kept(incoming, request)
        self._check_age(who, incoming, request, what)

    def _check_kept(self, incoming: Incoming, request: Request) -> None:
        if incoming.retained:
            raise RequestRefused("retained_refused", "a request must not be retained: it would come again for ever")
        intake.check_epoch(request, self._store.epoch)
        intake.check_way(request, self._topics.node)

    def _check_age(self, who: str, incoming: Incoming, request: Request, what: intake.AgedAs) -> None:
        if self._signers.signs(who):
            self._signers.check_age(who, request, what, self._clock())
            return
        waited_s = self._away_s(incoming) if incoming.waited else None
        expires = incoming.expires_in_s is not None
        intake.check_age(request, what, waited_s=waited_s, expires=expires, now=self._clock())

    # --- tasks and calls: accepted runs

    def _take_task(self, who: str, incoming: Incoming, letter: intake.Letter, sender: Sender) -> None:
        request = intake.as_request(letter.keys, TaskRequest)
        task_id = request.id or f"n-{os.urandom(6).hex()}"
        body = letter.body_hash

        def job() -> Job:
            self._check_kept(incoming, request)
            intake.check_task(request)
            made = self._desk.job_of_task(who, request, letter.plain)
            self._check_age(who, incoming, request, "query" if made.mode == "query" else "task")
            return self._sent(made, request, tainted=request.tainted)

        self._accept_run("task", who, task_id, body, job, request.sent_at)

    def _take_call(self, inbound: Inbound, incoming: Incoming, letter: intake.Letter, sender: Sender) -> None:
        request = intake.as_request(letter.keys, CallRequest)
        body = intake.call_hash(inbound.leaf, request.args, dry_run=request.dry_run)

        def job() -> Job:
            self._check(inbound.who, incoming, request, "call")
            made = self._desk.job_of_call(inbound.who, inbound.leaf, request)
            made = self._sent(made, request, tainted=request.tainted)
            return msgspec.structs.replace(made, response_topic=sender.response_topic, correlation=sender.correlation)

        self._accept_run("call", inbound.who, request.id, body, job, request.sent_at)

    def _sent(self, made: Job, request: Request, *, tainted: bool) -> Job:
        """The job with what its request says of where it comes from."""
        return msgspec.structs.replace(
            made,
            trace=request.trace or "",
            via=tuple(request.via or ()),
            tainted_by=BY_REQUEST if tainted else "",
        )

    def _accept_run(
        self,
        kind: Literal["task", "call"],
        who: str,
        request_id: str,
        body: str,
        job: Callable[[], Job],
        sent_at: str | None,
    ) -> None:
        """One transaction: the row and what it publishes. The same body again is answered by what is known of it."""
        known = self._store.run_of(kind, who, request_id)
        if known is None:
            self._pace("run", who)
            made = job()
            if refused := self._desk.refuse_new():
                raise refused
            own, total = self._store.count_waiting(kind, who), self._store.count_waiting(kind)
            if why := no_place(self._desk.room(kind), own, total):
                raise RequestRefused("busy", why, retryable=True)
            cancel: CancelAsked | None = None
            with self._store.transaction() as tx:
                known, created = tx.add_run(kind, who, request_id, body, encode(made), self._clock())
                self._signers.note(tx, who, sent_at)
                if created and kind == "task":
                    cancel = early.take(tx, who, request_id, self._clock())
                    if cancel is not None:
                        self._journal.add(tx, known, cancel)
                    self._report.publish(tx, known, run_from(tx, known))
            if created:
                log.info(
                    "event=accepted kind=%s who=%s task_id=%s trace_id=%s", kind, who, request_id, made.trace or "-"
                )
                self._desk.woken(known)
                if cancel is not None:
                    self._desk.cancelled(known)
                self._wake()
                return
        if known.body != body:
            raise RequestRefused("id_conflict", f"{request_id} is taken by another {kind} of this sender")
        self._tell_again(known)

    def _tell_again(self, row: RunRow) -> None:
        """What is known of a run, for a request that was sent again: never refused, but a flood of them writes nothing
        and is answered as seldom as one of refusals."""
        if self._fairness.wait_s("again", row.who, time.monotonic()) == 0:
            with self._store.transaction() as tx:
                self._report.publish_again(tx, row, run_from(tx, row))
            self._wake()
        elif self._fairness.is_told(row.who, time.monotonic()) and (
            said := self._report.told_again(self._store, row, run_from(self._store, row))
        ):
            self._tell(said)

    def _pace(self, kind: Kind, who: str) -> None:
        if wait_s := self._fairness.wait_s(kind, who, time.monotonic()):
            raise RequestRefused("busy", f"too many requests of {who}: send again in {wait_s:.1f} s", retryable=True)

    # --- controls

    def _take_ctl(self, who: str, incoming: Incoming, letter: intake.Letter, sender: Sender) -> None:
        self._pace("control", who)
        request = intake.as_request(letter.keys, CtlRequest)
        self._check(who, incoming, request, "ctl")
        if (said := self._signers.said_before(who, request)) is not None:
            self._answers.answer(sender, said)
            return
        data = self._controls.take(who, request)
        self._wake()
        self._answers.answer(sender, Reply(for_="ctl", id=request.id, ok=True, data=data, at=self._report.at()))

    def _take_say(self, who: str, incoming: Incoming, letter: intake.Letter, sender: Sender) -> None:
        if self._access.identity == "none":
            named = 'set identity = "broker" and name approvers in [gate.NAME]'
            raise RequestRefused("policy_denied", f"say: without [access] identity nobody's word counts; {named}")
        self._pace("control", who)
        request = intake.as_request(letter.keys, SayRequest)
        self._check(who, incoming, request, "ctl")
        data = self._asks.say(who, request)
        self._wake()
        self._answers.answer(sender, Reply(for_="say", id=request.id, ok=True, data=data, at=self._report.at()))

    def _take_node(self, who: str, incoming: Incoming, letter: intake.Letter, sender: Sender) -> None:
        if not self._access.operates(who):
            named = "set identity and name some" if self._access.identity == "none" else f"{who} is none"
            raise RequestRefused("policy_denied", f"node: only for an operator of [access]; {named}")
        request = intake.as_request(letter.keys, NodeRequest)
        self._check(who, incoming, request, "ctl")
        if (answer := self._signers.said_before(who, request)) is not None:
            self._answers.answer(sender, answer)
            return
        log.info("event=ordered who=%s id=%s do=%s", who, request.id, request.do)
        self._desk.ordered(who, request, lambda said: self._told_order(sender, request.id, said))

    def _told_order(self, sender: Sender, request_id: str, said: Args | RequestRefused) -> None:
        if isinstance(said, RequestRefused):
            reply = self._report.refused("node", request_id, said.code, said.message, said.retryable)
        else:
            reply = Reply(for_="node", id=request_id, ok=True, data=said, at=self._report.at())
        self._answers.answer(sender, reply)
