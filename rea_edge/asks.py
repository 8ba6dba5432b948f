"""Calls that wait for a person: what approvers are told of them, what they say, and what came of it.

A say is written down in the transaction that is acknowledged, like a control. Who may say what, and what counts as a
yes, is `approval`'s to judge; which runs wait stands in their rows, and here only until when.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec

from rea_edge import approval
from rea_edge.errors import Code, RequestRefused, RunUnreadable
from rea_edge.journal import Journal, applied, decode_event, run_from
from rea_edge.mqtt import Outgoing
from rea_edge.records import Args, AskedApproval, Decided, Event, Frozen, Run
from rea_edge.report import Report, cut
from rea_edge.store import Reading, RunRow, Store, Transaction
from rea_edge.topics import Topics
from rea_edge.wire import AskShown, DecidedShown, SayRequest

log = logging.getLogger("rea_edge.asks")

GOAL_MAX = 1024  # bytes, as JSON, of the goal that is shown with a call


class Heard(Frozen, frozen=True, kw_only=True):
    """What came of a say: the data of its answer, or its refusal."""

    data: Args = {}
    code: Code | None = None
    words: str = ""


class Asks:
    """`approvers(tool)` are those of today's settings. `woken(row)`: a lane is to go on with this run. `told(row, news)`:
    these events are on disk. `published(row, run)`, inside the transaction: this state goes out with it."""

    def __init__(
        self,
        *,
        store: Store,
        journal: Journal,
        topics: Topics,
        report: Report,
        lived_s: Callable[[], float],
        approvers: Callable[[str], Sequence[str]],
        woken: Callable[[RunRow], None],
        told: Callable[[RunRow, Sequence[tuple[Run, Event]]], None],
        published: Callable[[RunRow, Run], None],
    ) -> None:
        self._store = store
        self._journal = journal
        self._topics = topics
        self._report = report
        self._lived_s = lived_s
        self._approvers = approvers
        self._woken = woken
        self._told = told
        self._published = published
        self._until_s: dict[int, float] = {}  # by row; set by lanes, so that no look at them may fail while they change

    # --- which runs wait

    def take_up(self, row: RunRow) -> bool:
        """At a start: whether this run waits for a person and for nothing else; it is watched from then on."""
        try:
            run = run_from(self._store, row)
        except RunUnreadable:
            return False
        if run.phase != "waiting" or run.cancel is not None or run.ask is None:
            return False
        self._until_s[row.row] = run.ask.until_s
        return True

    def note(self, row: RunRow, ask: AskedApproval) -> None:
        """It is on disk that a run waits."""
        self._until_s[row.row] = ask.until_s

    def left_s(self) -> float | None:
        """Seconds until the next of them has waited too long; None: none waits."""
        until_s = list(self._until_s.values())
        return max(0.0, min(until_s) - self._lived_s()) if until_s else None

    def standing(self) -> list[Outgoing]:
        """All that waits, to be said again to a broker that may have lost it."""
        said: list[Outgoing] = []
        for number in list(self._until_s):
            with suppress(RunUnreadable):  # a lane ends it, once it is not waited for any more
                if (waiting := _waiting(self._store, number)) is not None:
                    said.append(self._message(*waiting))
        return said

    def turn(self) -> bool:
        """Close those that have waited too long; True if there were any."""
        now_s = self._lived_s()
        due = [row for row, until_s in list(self._until_s.items()) if until_s <= now_s]
        for number in due:
            self._close_late(number)
        return bool(due)

    def _close_late(self, number: int) -> None:
        with self._store.transaction() as tx:
            waiting = _waiting(tx, number)
            if waiting is None:
                self._until_s.pop(number, None)
                return
            row, run, ask = waiting
            if ask.until_s > self._lived_s():  # another one than was noted
                self._until_s[number] = ask.until_s
                return
            event = _late(ask, self._lived_s())
            row, run = self._decide(tx, row, run, event)
        self._until_s.pop(number, None)
        self._go_on(row, run, event)

    # --- what a person says

    def say(self, who: str, request: SayRequest) -> Args:
        """Write down what is said and give the data of the answer. Raises `RequestRefused`, after which an ask is as it
        was, or has ended before. The same say again is answered as it was the first time."""
        event = None
        with self._store.transaction() as tx:
            row = _row_of(tx, request.request)
            if row is None:
                raise RequestRefused("unknown_task", f"nothing waits here under {request.request[:80]}")
            run = run_from(tx, row)
            ask = run.ask if run.phase == "waiting" and run.cancel is None else None
            if ask is None or f"{run.id}-{ask.n}" != request.request:
                heard = self._closed(tx, row, run, who, request)
            elif why := self._stranger(ask, run, who):
                heard = Heard(code="policy_denied", words=why)
            else:
                event, heard = self._judged(ask, who, request)
                row, run = self._decide(tx, row, run, event)
        if event is not None:
            self._until_s.pop(row.row, None)
            self._go_on(row, run, event)
        if heard.code is not None:
            raise RequestRefused(heard.code, heard.words)
        return heard.data

    def _stranger(self, ask: AskedApproval, run: Run, who: str) -> str | None:
        """Why this person's word does not count for this call, or None."""
        if who == run.job.who or who in run.job.via:
            return "nobody says yes or no to a call of his own, or to one made on his behalf"
        if who not in ask.approvers or who not in self._approvers(run.open[0].call.name):
            return f"{who} is no approver of this call"
        return None

    def _judged(self, ask: AskedApproval, who: str, request: SayRequest) -> tuple[Decided, Heard]:
        now_s = self._lived_s()
        if ask.until_s <= now_s:
            return _late(ask, now_s), Heard(code="approval_timeout", words=_LATE)
        answer, why = approval.heard(ask, request.answer, request.ask_hash)
        event = Decided(n=ask.n, ask_hash=ask.ask_hash, answer=answer, at_s=now_s, by=who, say=request.id, why=why)
        return event, Heard(data=_data(request.request, event))

    def _closed(self, tx: Transaction, row: RunRow, run: Run, who: str, request: SayRequest) -> Heard:
        """What is said to somebody whose ask has ended, or never was."""
        n = int(request.request.rpartition("-")[2])
        events = [decode_event(body) for body in tx.events(row.row)]
        asked = [event for event in events if isinstance(event, AskedApproval) and event.n == n]
        if not asked or who not in asked[-1].approvers:
            return Heard(
                code="policy_denied" if asked else "unknown_task", words="nothing of yours to decide waits here"
            )
        said = [event for event in events if isinstance(event, Decided) and event.ask_hash == asked[-1].ask_hash]
        if not said:
            return Heard(
                code="unknown_task", words=f"the task has ended before it was decided: {run.cancel or 'it failed'}"
            )
        if said[-1].answer == "expired":
            return Heard(code="approval_timeout", words=_LATE)
        if (said[-1].by, said[-1].say) == (who, request.id):
            return Heard(data=_data(request.request, said[-1]))
        return Heard(code="bad_request", words=f"it is decided already: {said[-1].by} has said {said[-1].answer}")

    # --- what is written down and told

    def _decide(self, tx: Transaction, row: RunRow, run: Run, event: Decided) -> tuple[RunRow, Run]:
        """In one transaction: the word, that the run may go on, and that nobody is asked any more."""
        ask = run.ask
        assert ask is not None
        call = run.open[0].call.name
        self._journal.add(tx, row, event)
        row = tx.set_state(row.row, "running")
        run = applied(run, event)
        self._take_off(tx, row, run, ask, call, event)
        if row.kind == "task":
            self._report.publish_again(tx, row, run)
            self._published(row, run)
        return row, run

    def _go_on(self, row: RunRow, run: Run, event: Decided) -> None:
        log.info("event=decided run=%s n=%d answer=%s by=%s", run.id, event.n, event.answer, event.by or "-")
        self._told(row, [(run, event)])
        self._woken(row)

    def publish(self, tx: Transaction, row: RunRow, run: Run) -> None:
        """Inside the transaction that makes it true: a call waits, or its run has ended while it did."""
        if run.ask is None or run.said is not None:
            return
        if run.phase == "waiting":
            said = self._message(row, run, run.ask)
            tx.put("state", said.topic, said.payload, retain=True)
        elif run.phase == "ended":
            self._until_s.pop(row.row, None)
            self._take_off(tx, row, run, run.ask, "", None)

    def _take_off(
        self, tx: Transaction, row: RunRow, run: Run, ask: AskedApproval, tool: str, event: Decided | None
    ) -> None:
        request = self._request(run, ask)
        tx.put("state", self._topics.ask(request), b"", retain=True)
        shown = DecidedShown(
            request=request,
            who=row.who,
            task=row.id,
            tool=tool or None,
            ask_hash=ask.ask_hash,
            answer="cancelled" if event is None else event.answer,
            by=event.by or None if event else None,
            why=event.why if event else "",
            at=self._report.at(),
        )
        tx.put("reply", self._topics.decided(request), msgspec.json.encode(shown))

    def _message(self, row: RunRow, run: Run, ask: AskedApproval) -> Outgoing:
        shown = self._shown(row, run, ask)
        topic, keep_s = self._topics.ask(shown.request), int(shown.expires_s) + 1
        return Outgoing(topic=topic, payload=msgspec.json.encode(shown), retain=True, expires_in_s=keep_s)

    def _shown(self, row: RunRow, run: Run, ask: AskedApproval) -> AskShown:
        left_s = max(0.0, ask.until_s - self._lived_s())
        return AskShown(
            request=self._request(run, ask),
            who=row.who,
            via=list(run.job.via),
            task=row.id,
            goal=cut(run.job.goal, GOAL_MAX),
            tool=run.open[0].call.name,
            args=ask.shown,
            ask_hash=ask.ask_hash,
            risk=ask.risk,
            tainted_by=ask.tainted_by or None,
            hidden=ask.hidden,
            until=self._report.until(left_s),
            expires_s=round(left_s, 1),
            at=self._report.at(),
        )

    def _request(self, run: Run, ask: AskedApproval) -> str:
        return f"{run.id}-{ask.n}"


_LATE = "nobody has said yes to it in time, which means no"


def _late(ask: AskedApproval, now_s: float) -> Decided:
    return Decided(n=ask.n, ask_hash=ask.ask_hash, answer="expired", at_s=now_s)


def _data(request: str, event: Decided) -> Args:
    return {"request": request, "answer": event.answer, "why": event.why}


def _waiting(tx: Reading, number: int) -> tuple[RunRow, Run, AskedApproval] | None:
    """A run that waits for a person, and whose end is not decided."""
    row = tx.run(number)
    if row is None or row.state != "waiting":
        return None
    run = run_from(tx, row)
    return None if run.ask is None or run.phase != "waiting" or run.cancel is not None else (row, run, run.ask)


def waits(reading: Reading, request: str) -> bool:
    """Whether this request waits for a person."""
    row = _row_of(reading, request)
    if row is None or row.state != "waiting":
        return False
    run = run_from(reading, row)
    return run.phase == "waiting" and run.ask is not None and request == f"{run.id}-{run.ask.n}"


def _row_of(reading: Reading, request: str) -> RunRow | None:
    """The run that a request id names, if it is one of this state."""
    name, _, n = request.rpartition("-")
    number = name.rpartition("-")[2]
    if not (number.isdecimal() and n.isdecimal() and len(number) < 16 and len(n) < 16):
        return None
    return reading.run(int(number)) if reading.run_name(int(number)) == name else None
