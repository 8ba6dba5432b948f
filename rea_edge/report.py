"""What people are told about a run: state, reply, newest answer (kept in the outbox) and live events (not kept).

Everything is made from the journal. Holds no connection: rows go into the outbox of the same transaction, live
events to `tell`.
"""

import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import assert_never

import msgspec

from rea_edge import taint
from rea_edge.approval import refusal
from rea_edge.errors import Code
from rea_edge.journal import readable
from rea_edge.mqtt import Outgoing
from rea_edge.records import (
    Answered,
    Asked,
    AskedApproval,
    Begun,
    CancelAsked,
    CutOff,
    Decided,
    Done,
    Doubted,
    Ended,
    Event,
    Fault,
    Finish,
    Guard,
    Intended,
    Malformed,
    Moved,
    Ok,
    Refused,
    Resumed,
    Returned,
    Run,
    Settled,
    State,
    Switched,
    Unanswered,
    Verified,
)
from rea_edge.store import Reading, RunRow, Transaction
from rea_edge.topics import Topics
from rea_edge.wire import PUBLISH_MAX, ErrorBody, EventKind, Reply, TaskEvent, TaskState

STATE_KEEP_S = 86_400.0  # what is retained is to be believed for so long; longer, and it was brought back by somebody
TEXT_MAX = 6144  # bytes, as JSON, of one text in a state or live event
LINE_MAX = PUBLISH_MAX - 2048  # bytes of one line of a listing: a reply always holds at least one
_ROOM = 1024  # bytes left for the envelope when a body is cut to `PUBLISH_MAX`
_DRY = "a dry run: nothing that acts was run"
_JOURNAL = "query journal"
STATE_FILE = "the state file: rea-edge show --state"


class Report:
    """The reports of one node. `clock` is wall seconds or None while it is not trusted, `up` the start (monotonic)."""

    def __init__(self, topics: Topics, clock: Callable[[], float | None], up_since_s: float) -> None:
        self._topics = topics
        self._clock = clock
        self._up_since_s = up_since_s

    def at(self) -> str | None:
        """Now in RFC 3339, or None while the clock is not trusted."""
        return rfc3339(self._clock())

    def until(self, seconds: float = STATE_KEEP_S) -> str | None:
        """When what is said now is to be believed no more, or None while the clock is not trusted."""
        now = self._clock()
        return None if now is None else rfc3339(now + seconds)

    def up_ms(self) -> int:
        return int((time.monotonic() - self._up_since_s) * 1000)

    def publish(self, tx: Transaction, row: RunRow, run: Run) -> None:
        """Put what is new about this run into the outbox: a task's state (and newest answer), or a call's reply."""
        self.publish_again(tx, row, run)
        if row.kind == "task" and run.phase == "ended" and run.ended is not None:
            said = run.ended.answer or run.ended.reason or run.ended.outcome
            tx.put("state", self._topics.last(row.who), cut(said, TEXT_MAX).encode(), retain=True)

    def state_message(self, row: RunRow, run: Run) -> Outgoing:
        """The state of a running task, to be told from memory."""
        topic = self._topics.state(row.who, row.id)
        return Outgoing(
            topic=topic,
            payload=msgspec.json.encode(self.state_of(row, run)),
            retain=True,
            expires_in_s=int(STATE_KEEP_S),
        )

    def publish_again(self, tx: Transaction, row: RunRow, run: Run) -> None:
        """As `publish`, for what was told before: somebody may have ended a newer task in between."""
        if row.kind == "task":
            topic, state = self._topics.state(row.who, row.id), msgspec.json.encode(self.state_of(row, run))
            # Of a pruned one nobody would take the state off the broker again: it is for those who listen now.
            kept = row.shown != "pruned"
            tx.put("state", topic, state, retain=kept, run=row.row if kept else None)
        elif run.phase == "ended":
            self._put_reply(tx, row, run, self.reply_of_call(tx, row, run))

    def told_again(self, reading: Reading, row: RunRow, run: Run) -> Outgoing | None:
        """As `publish_again`, from memory; None where there is nothing to say yet."""
        if row.kind == "task":
            state = self.state_message(row, run)
            return state if row.shown != "cleared" else msgspec.structs.replace(state, retain=False)
        if run.phase != "ended":
            return None
        topic = run.job.response_topic or self._topics.reply(row.who, row.id)
        payload = msgspec.json.encode(self.reply_of_call(reading, row, run))
        return Outgoing(topic=topic, payload=payload, correlation=run.job.correlation or None)

    def clear(self, tx: Transaction, row: RunRow, *, pruned: bool = False) -> None:
        """Take the state of an ended task off the broker; `pruned`: its run is pruned in the same transaction."""
        topic = self._topics.state(row.who, row.id)
        tx.put("state", topic, b"", retain=True, run=None if pruned else row.row)

    def state_of(self, row: RunRow, run: Run) -> TaskState:
        """A task as it stands, cut so that it fits into one message or reply: `done_total` counts all its calls."""
        ended = run.ended if run.phase == "ended" else None
        state = TaskState(
            id=row.id,
            who=row.who,
            run=run.id,
            state=state_word(run),
            accepted=True,
            body=row.body,
            seq=run.seq,
            step=run.used.steps,
            outcome=ended.outcome if ended else None,
            answer=cut(ended.answer, TEXT_MAX) if ended else None,
            reason=cut(ended.reason or _DRY * run.job.dry_run, TEXT_MAX) or None if ended else None,
            limit=ended.limit if ended else None,
            error=ended.error if ended else None,
            done=list(run.done),
            done_total=len(run.done),
            usage=run.used,
            limits=run.job.limits,
            dry_run=run.job.dry_run,
            tainted_by=run.tainted_by or None,
            trace=run.job.trace,
            at=self.at(),
            until=self.until(),
            up_ms=self.up_ms(),
        )
        return _without_oldest_calls(state)

    def reply_of_call(self, tx: Reading, row: RunRow, run: Run) -> Reply:
        """The result of a direct call, read back from the journal, so that a repeated id gets the first result."""
        assert run.ended is not None
        returned = [event for event in readable(tx.events(row.row)) if isinstance(event, Returned)]
        ms = int(returned[-1].seconds * 1000) if returned else None
        if row.shown == "pruned" and run.ended.outcome == "achieved":
            return Reply(for_="call", id=row.id, ok=True, data={"pruned": True}, at=self.at())
        if run.ended.outcome == "achieved" and isinstance(result := returned[-1].result, Ok):
            data: object = result.data
            if len(result.data) > PUBLISH_MAX - _ROOM:
                data = {"cut": True, "bytes": len(result.data), "query": "journal", "task": row.id}
            return Reply(for_="call", id=row.id, ok=True, data=data, ms=ms, at=self.at())
        if settled := next((done for done in run.done if done.settled), None):
            return self._settled(row, settled, ms)
        code = run.ended.error or "internal"
        message = cut(run.ended.reason, TEXT_MAX) or run.ended.outcome
        error = ErrorBody(code=code, message=message, retryable=code == "busy", fault=_fault_of(returned))
        return Reply(for_="call", id=row.id, error=error, ms=ms, at=self.at())

    def _settled(self, row: RunRow, done: Done, ms: int | None) -> Reply:
        """The result of a direct call whose outcome was unknown, by the word of a person."""
        if done.result == "ok":
            data = {"settled": "done", "by": done.settled}
            return Reply(for_="call", id=row.id, ok=True, data=data, ms=ms, at=self.at())
        error = ErrorBody(code="tool_failed", message=f"{done.settled} says that it did not take effect")
        return Reply(for_="call", id=row.id, error=error, ms=ms, at=self.at())

    def refused(self, kind: str, request_id: str | None, code: Code, message: str, retryable: bool) -> Reply:
        error = ErrorBody(code=code, message=cut(message, TEXT_MAX), retryable=retryable)
        return Reply(for_=kind, id=request_id, error=error, at=self.at())

    def live(self, row: RunRow, run: Run, event: Event) -> list[Outgoing]:
        """An event as it is shown while its task runs; `run` is the run right after it. Empty if of no interest."""
        if row.kind == "call":
            return []
        topic, at = self._topics.event(row.who, row.id), self.at()
        said = [msgspec.structs.replace(fitted(word), at=at) for word in words(run, event)]
        return [Outgoing(topic=topic, payload=msgspec.json.encode(word), qos=0) for word in said]

    def _put_reply(self, tx: Transaction, row: RunRow, run: Run, reply: Reply) -> None:
        topic = run.job.response_topic or self._topics.reply(row.who, row.id)
        tx.put("reply", topic, msgspec.json.encode(reply), correlation=run.job.correlation or None)


def _fault_of(returned: Sequence[Returned]) -> str | None:
    match returned[-1].result if returned else None:
        case Fault(fault=name):
            return name
        case _:
            return None


def state_word(run: Run) -> State:
    if run.phase == "ended":
        return "ended"
    if run.phase == "waiting":
        return "waiting"
    return "accepted" if run.begun is None and run.job.call is None else "running"


def rfc3339(at: float | None) -> str | None:
    """Seconds since the epoch as `2026-01-31T12:00:00.123Z`."""
    if at is None:
        return None
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(at))}.{int(at % 1 * 1000):03d}Z"


def cut(text: str, most: int, where: str = _JOURNAL) -> str:
    """`text` if it has at most `most` bytes as JSON, else its beginning with a word on where the whole is."""
    if _size(text) <= most:
        return text
    note = f"... (cut; the whole is in {where})"
    room = most - len(note)
    return text[: bisect_right(range(len(text)), room, key=lambda end: _size(text[:end])) - 1] + note


def fitted(said: TaskEvent) -> TaskEvent:
    """A live event, cut where it must be."""
    return _fitted(said, TEXT_MAX, _JOURNAL)


def line(said: TaskEvent) -> TaskEvent:
    """An event as a line of `query journal`, cut where it must be."""
    return _fitted(said, LINE_MAX - _ROOM, STATE_FILE)


def _fitted(said: TaskEvent, most: int, where: str) -> TaskEvent:
    said = msgspec.structs.replace(said, text=cut(said.text, most, where))
    if _size(said.args) + _size(said.text) <= LINE_MAX - _ROOM:
        return said
    return msgspec.structs.replace(said, args=None, text=said.text or f"(args are cut; the whole is in {where})")


def _without_oldest_calls(state: TaskState) -> TaskState:
    while _size(state) > PUBLISH_MAX - _ROOM and state.done:
        state = msgspec.structs.replace(state, done=state.done[len(state.done) // 2 + 1 :])
    return state


def _size(value: object) -> int:
    return len(msgspec.json.encode(value))


def words(run: Run, event: Event) -> list[TaskEvent]:
    """One row of the journal as it is told to people, whole. `run` is the run right after it."""

    def said(kind: EventKind, text: str, n: int | None = None, seconds: float | None = None) -> TaskEvent:
        ms = None if seconds is None else int(seconds * 1000)
        return TaskEvent(seq=run.seq, step=run.used.steps, kind=kind, text=text, n=n, ms=ms)

    match event:
        case Answered():
            return _answer_words(run, event, said)
        case Returned(n=n, result=result, seconds=seconds, unknown=unknown):
            text = _result_text(result) + "; its outcome is unknown" * unknown
            told = [_about(run, said("result", text, n, seconds))]
            told += [said("note", taint.NOTE, n)] if run.tainted_by == taint.source(n, str(told[0].tool)) else []
            return [*told, *_opened(run, said)] if run.because else told
        case Refused(n=n, reason=reason):
            return [_about(run, said("result", _refusal_words(run, n, reason), n))]
        case CutOff(n=n, seconds=seconds):
            return [said("note", f"call {n} was cut off by the stop of the node; it may have taken effect", n, seconds)]
        case Unanswered(fault=fault, message=message, seconds=seconds):
            return [said("note", f"{fault}: {message}", seconds=seconds)]
        case Moved(endpoint=endpoint, why=why):
            return [said("note", f"endpoint {endpoint} is asked from now on: {why}")]
        case AskedApproval(n=n, approvers=approvers, seconds=seconds, ask_hash=named):
            who, why = " or ".join(approvers), f" (it has read text of {event.tainted_by})" if event.tainted_by else ""
            return [said("note", f"call {n} waits {seconds:g} s at most for a yes of {who}{why}: {named}", n)]
        case Decided(n=n, answer="yes", by=by):
            return [said("note", f"{by} says yes to call {n}", n)]
        case Decided(n=n):
            return [_about(run, said("result", _refusal_words(run, n, refusal(event)), n))]
        case CancelAsked(by=by):
            return [said("note", f"cancel asked by {by}")]
        case Settled(n=n, outcome=word, by=by):
            took = "took effect" if word == "done" else "did not take effect"
            return [_about(run, said("note", f"{by} says that call {n} {took}", n))]
        case Resumed(clean=clean):
            return [said("note", "taken up after a clean stop" if clean else "taken up after a crash")]
        case Ended(outcome=outcome, answer=answer):
            return [said("end", f"{outcome}: {answer}")]
        case Switched(protocol=protocol):
            return [said("note", f"no readable decision; asked again in protocol {protocol}")]
        case Doubted(fault=fault):
            return [said("note", f"{fault.fault}: {fault.message}; whether it took effect is looked for")]
        case Verified(result=result, n=n, seconds=seconds):
            return [said("note", f"asked whether it took effect: {_result_text(result)}", n, seconds)]
        case Intended(n=n, cost=cost) if cost:
            return [said("note", f"call {n} costs {cost:g}; {run.used.cost:g} so far", n)]
        case Begun() | Asked() | Intended():
            return []
        case _:
            assert_never(event)


def _answer_words(run: Run, event: Answered, said: Callable[..., TaskEvent]) -> list[TaskEvent]:
    """An answer as thought (where there is one), guard and calls; the first of them carries its cost."""
    told: list[TaskEvent] = []
    if isinstance(event.decision, Malformed):
        told.append(said("check", event.decision.message))
        told.append(said("note", f"the model wrote: {bytes(event.received).decode()}"))
    else:
        thought = getattr(event.decision, "thought", "")
        told += [said("thought", thought)] if thought or not run.open else []
    if isinstance(event.decision, Guard):
        guard = event.decision
        told.append(said("note", f"{guard.then.name} runs only if {guard.path} {guard.op} {guard.value}"))
    if isinstance(event.decision, Finish) and run.phase == "ready":
        told.append(said("check", f"{run.told[-1].text} The answer was: {event.decision.answer}"))
    first, *rest = [*told, *_opened(run, said)]
    cost: dict[str, int | bool] = {"in": event.prompt_tokens, "out": event.completion_tokens}
    if event.estimated:
        cost["estimated"] = True
    return [msgspec.structs.replace(first, tokens=cost, ms=int(event.seconds * 1000)), *rest]


def _opened(run: Run, said: Callable[..., TaskEvent]) -> list[TaskEvent]:
    """The calls that are about to be made."""
    return [
        msgspec.structs.replace(said("call", ""), n=item.n, tool=item.call.name, args=item.call.args)
        for item in run.open
    ]


def _about(run: Run, said: TaskEvent) -> TaskEvent:
    done = next(item for item in run.done if item.n == said.n)
    return msgspec.structs.replace(said, tool=done.tool, args=done.args)


def _refusal_words(run: Run, n: int, reason: str) -> str:
    """A no to call n, in the words of what became of it: before a restart it may have run."""
    doubtful = any(one.n == n and (one.result == "unknown" or one.settled) for one in run.done)
    return f"denied, and its outcome is unknown: it may have run before: {reason}" if doubtful else f"denied: {reason}"


def _result_text(result: Ok | Fault) -> str:
    match result:
        case Ok(data=data):
            return bytes(data).decode()
        case Fault(fault=fault, message=message):
            return f"{fault}: {message}"
