"""One effect of a run: journal the intent, perform it, journal the outcome. Holds no policy and no transport.

Commits of a step: the question with its reservation (and the last results), the answer with its decision, and for a
`once` call its intent right before the start. Everything else is noted and goes with the next of these.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, assert_never

import msgspec
from msgspec import Raw

from rea_edge import budget, context, decision, doubt, loop, outcome, taint, trouble
from rea_edge.cancel import Cancel, Stopped
from rea_edge.effects import Effects
from rea_edge.errors import EndpointFailed, RequestRefused
from rea_edge.journal import Held
from rea_edge.records import (
    AS_SENT_BACK,
    Act,
    Answer,
    Answered,
    Ask,
    Asked,
    AskedApproval,
    Begin,
    Begun,
    CutOff,
    Doubted,
    Effect,
    EffectClass,
    Ended,
    Event,
    Fault,
    Intended,
    Ok,
    Outcome,
    Recall,
    Record,
    Refused,
    Rest,
    Resumed,
    Returned,
    Run,
    Switch,
    Unanswered,
    Verified,
    Verify,
    Wait,
)
from rea_edge.store import RunRow

BEGIN_S = 90.0  # a probe with its retries
BETWEEN_S = 30.0  # commits and reading; a disk that takes longer is broken


Tell = Callable[[RunRow, Sequence[tuple[Run, Event]]], None]


class Runner:
    """Brings runs forward, one at a time. `tell` hears every event once it is on disk, each with the run as it was after
    it; it must not block.

    `beat(seconds)` is called before each effect with the most it may take. `doing` can be read from any thread: what
    a stop has to end at once (`ask`) or may let finish (`act`).
    """

    def __init__(self, effects: Effects, tell: Tell, beat: Callable[[float], None]) -> None:
        self._effects = effects
        self._tell = tell
        self._beat = beat
        self.doing: Literal["ask", "act"] | None = None

    def resume(self, held: Held, *, clean: bool) -> None:
        """Write down that a run is taken up again after a restart, before anything of it is done.

        By the row, not the phase: one that has only waited (a direct call is `acting` all the time) is not taken up.
        """
        if held.row.state != "accepted":
            self._commit(held, Resumed(clean=clean))

    def end(self, held: Held, ended: Ended) -> None:
        """Write down an end that does not follow from the run itself, and tell it."""
        self._commit(held, ended)

    def finish(self, held: Held, cancel: Cancel, stopping: Callable[[], bool]) -> None:
        """Perform effects until the run has ended, or waits for a person.

        Raises `Stopped` once `stopping()`, with all that is known on disk; store errors pass through, and after
        `StoreFull` the same call may simply be made again.
        """
        while True:
            if cancel.cancelled:
                held.sync()
            effect = held.next_effect()
            if isinstance(effect, Rest | Wait):
                return
            if stopping():
                self._commit(held)
                raise Stopped
            self._do(effect, held, cancel, stopping)

    def _do(self, effect: Effect, held: Held, cancel: Cancel, stopping: Callable[[], bool]) -> None:
        if held.room < 0 and isinstance(effect, Ask | Act):
            self._commit(held, outcome.too_long(held.run, held.size))
            return
        match effect:
            case Begin():
                self._begin(held, cancel, stopping)
            case Switch(protocol=protocol):
                assert held.run.begun is not None
                held.note(self._effects.switch(held.run.job, held.run.begun, protocol))
            case Ask(asked=asked, seconds=seconds):
                self._ask(held, asked, seconds, cancel, stopping)
            case Act() as act:
                self._act(held, act, cancel, stopping)
            case Verify() as asked:
                self._verify(held, asked, stopping)
            case Recall() as asked:
                self._recall(held, asked, stopping)
            case Record(event=Ended() as ended):
                self._commit(held, ended)
            case Record(event=event):
                held.note(event)
            case Rest() | Wait():
                pass
            case other:
                assert_never(other)

    def _begin(self, held: Held, cancel: Cancel, stopping: Callable[[], bool]) -> None:
        self._commit(held)  # `running` from now on: a crash while it begins is a crash of this run
        if held.run.cancel is not None:
            return
        try:
            with self._now("ask", BEGIN_S):
                if stopping():  # after `doing` was set, where whoever stops us looks for a question to cut
                    raise Stopped
                held.note(self._effects.begin(held.run.job, cancel))
        except EndpointFailed as exc:
            if cancel.cancelled and stopping():
                raise Stopped from exc
            held.sync()
            if held.run.cancel is None:
                reason = f"{exc.kind}: {exc.message}"
                ended = Ended(outcome="failed", answer="Nothing was done.", reason=reason, error="endpoint_unavailable")
                self._commit(held, ended)
        except RequestRefused as exc:
            word: Outcome = "rejected" if exc.code == "policy_denied" else "failed"
            self._commit(held, Ended(outcome=word, answer="Nothing was done.", reason=exc.message, error=exc.code))

    def _ask(self, held: Held, asked: Asked, seconds: float, cancel: Cancel, stopping: Callable[[], bool]) -> None:
        began = time.monotonic()
        with self._now("ask", seconds):
            moved = self._effects.moved(held.run, seconds, cancel)
        if moved is not None:
            held.note(moved)  # the table makes the question anew, for what is asked now
        if moved is not None or stopping():
            return
        left = held.left()
        within = asked if left is None else budget.within(asked, int(left.amount))
        if left is not None and within is None:
            self._commit(held, outcome.exceeded(held.run, left.limit))
            return
        assert within is not None
        asked, spent_s = within, time.monotonic() - began
        self._commit(held, asked)
        begun = held.run.begun
        assert begun is not None
        started = time.monotonic() - spent_s  # the commit's time is not the run's
        try:
            with self._now("ask", seconds):
                if stopping():
                    raise Stopped
                answer = self._effects.ask(held.run, held.body(asked), seconds - spent_s, cancel)
        except EndpointFailed as exc:
            if cancel.cancelled and stopping():
                raise Stopped from exc
            held.note(_unanswered(asked, exc, time.monotonic() - started))
            return
        held.note(answered(begun, asked, answer, time.monotonic() - started))

    def _act(self, held: Held, act: Act, cancel: Cancel, stopping: Callable[[], bool]) -> None:
        started = time.monotonic()
        with self._now("act", act.seconds):
            refusal = self._effects.refusal(held.run, act, cancel)
        spent_s = time.monotonic() - started
        if refusal is not None:
            if cancel.cancelled and stopping() and held.run.cancel is None:
                raise Stopped  # a read of the gate was cut off by that; the next start asks again
            held.note(Refused(n=act.n, reason=refusal, seconds=round(spent_s, 3)))
            return
        self._commit(held)
        if held.run.cancel is not None:
            return  # it came in with that commit: the table decides, before anything has started
        if (why_not := held.too_dear(self._effects.cost(act.call))) is not None:
            held.note(Refused(n=act.n, reason=why_not))
            return
        effect = self._effects.effect(act.call, act.effect)
        if held.run.job.dry_run and (effect != "read" or self._effects.cost(act.call)):
            held.note(Returned(n=act.n, result=Ok(data=Raw(taint.NOT_RUN)), seconds=0.0))
            return
        match self._effects.approval(held.run, act):
            case AskedApproval() as waiting:
                self._commit(held, waiting)
            case str() as why:
                held.note(Refused(n=act.n, reason=why))
            case None:
                # A yes holds for one start, whatever the tool would bear.
                effect = effect if held.run.said is None else "once"
                self._perform(held, act, effect, spent_s, cancel, stopping)
            case other:
                assert_never(other)

    def _perform(
        self, held: Held, act: Act, effect: EffectClass, spent_s: float, cancel: Cancel, stopping: Callable[[], bool]
    ) -> None:
        """Run a call that passed the gate, and note how it ended; `effect` is what it is taken for, `spent_s` what the
        gate took of its time."""
        began = False
        refused = ""

        def starting() -> bool:
            """The last moment before the start: the intent of a `once` call, or of one that costs, goes to disk, so that
            neither starts again by itself; a cancel may still win.

            A stop wins before the intent only: an intent without a start would be reported as unknown.
            """
            nonlocal began, refused
            if stopping():
                return False
            verify = self._effects.verify(act.call) if effect != "read" else None
            cost = self._effects.cost(act.call)
            if (effect == "once" or verify is not None or cost) and not held.run.open[0].intended:
                recall = self._effects.recalls(act.call)
                try:
                    self._commit(held, Intended(n=act.n, effect=effect, verify=verify, cost=cost, recall=recall))
                except RequestRefused as exc:  # another lane has spent meanwhile what was left
                    refused = exc.message
                    return False
            began = held.run.cancel is None and not cancel.cancelled  # it may have come right behind the intent
            return began

        left_s = max(0.0, act.seconds - spent_s)
        started = time.monotonic() - spent_s
        with self._now("act", left_s):
            result = self._effects.act(held.run, act.call, f"{held.run.id}-{act.n}", left_s, cancel, starting)
        fault = result.fault if isinstance(result, Fault) else None
        if isinstance(result, Fault) and (refused or (fault == "denied" and not began)):
            why = refused or result.message
            held.note(Refused(n=act.n, reason=why, seconds=round(time.monotonic() - started, 3)))
            return
        # What was not sent has an end that is known; where an intent stands, that is better than a doubt.
        cut_off = fault == "cancelled" or (fault == "not_sent" and not held.run.open[0].intended)
        seconds = round(time.monotonic() - started, 3)
        if cut_off and stopping() and held.run.cancel is None:
            if began and fault == "cancelled" and effect != "read" and not held.run.open[0].intended:
                self._commit(held, CutOff(n=act.n, seconds=seconds))  # it has begun: whatever follows, that is told
            raise Stopped
        is_open = began and fault in loop.OPEN_ENDS
        if isinstance(result, Fault) and is_open and held.run.open[0].verify is not None:
            held.note(Doubted(n=act.n, fault=result, seconds=seconds))
        else:
            # One that was cut off before may have taken effect then, whatever comes of it now.
            unknown = fault is not None and ((is_open and effect == "once") or held.run.open[0].begun)
            held.note(Returned(n=act.n, result=result, seconds=seconds, unknown=unknown))

    def _verify(self, held: Held, asked: Verify, stopping: Callable[[], bool]) -> None:
        self._commit(held)
        started = time.monotonic()
        with self._now("act", asked.seconds):
            result = self._effects.probe(held.run, asked)
        if isinstance(result, Fault) and stopping():
            raise Stopped  # it may have been cut off by that; the next start asks again
        held.note(Verified(n=asked.n, result=result, seconds=round(time.monotonic() - started, 3)))

    def _recall(self, held: Held, asked: Recall, stopping: Callable[[], bool]) -> None:
        self._commit(held)
        started = time.monotonic()
        with self._now("act", asked.seconds):
            result = self._effects.recall(held.run, asked)
        if result is None and stopping():
            raise Stopped  # the next start asks again
        seconds = round(time.monotonic() - started, 3)
        held.note(doubt.recalled(held.run.open[0], result, seconds, loop.OPEN_ENDS))

    @contextmanager
    def _now(self, doing: Literal["ask", "act"], seconds: float) -> Iterator[None]:
        self._beat(seconds)
        self.doing = doing
        try:
            yield
        finally:
            self.doing = None
            self._beat(BETWEEN_S)

    def _commit(self, held: Held, *events: Event) -> None:
        self._tell(held.row, held.commit(*events))


def _unanswered(asked: Asked, exc: EndpointFailed, seconds: float) -> Unanswered:
    return Unanswered(
        step=asked.step,
        fault=exc.kind,
        message=exc.message,
        seconds=round(seconds, 3),
        final=not exc.retryable,
        charged=trouble.may_have_cost(exc.kind),
        context_tokens=exc.context_tokens,
        prompt_tokens=exc.prompt_tokens,
    )


def answered(begun: Begun, asked: Asked, answer: Answer, seconds: float) -> Answered:
    """Read the answer: a decision or the precise fault of it, with its true cost where the server counts."""
    message: dict[str, object] = msgspec.json.decode(answer.message, type=dict[str, object])
    read = decision.read_or_fault(
        message, answer.finish_reason, begun.offers, begun.protocol, begun.aliases, begun.bounds
    )
    counted = answer.prompt_tokens is not None and answer.completion_tokens is not None
    turn = context.assistant_turn(answer.message, read, asked.step, begun.aliases)
    same = msgspec.json.decode(turn) == {key: value for key, value in message.items() if value is not None}
    return Answered(
        step=asked.step,
        turn=turn,
        message=AS_SENT_BACK if same else answer.message,
        decision=read,
        prompt_tokens=asked.reserved - asked.cap if answer.prompt_tokens is None else answer.prompt_tokens,
        completion_tokens=budget.tokens_of(len(answer.message))
        if answer.completion_tokens is None
        else answer.completion_tokens,
        seconds=round(seconds, 3),
        estimated=not counted,
        finish_reason=answer.finish_reason,
    )
