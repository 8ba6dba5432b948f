"""Controls of a task: who may give one, and what it writes down. In the transaction that is acknowledged.

Holds no transport: `mailbox` answers. What a lane has to do about it is told by `cancelled`.
"""

from collections.abc import Callable
from typing import Literal

from rea_edge import early, unsettled
from rea_edge.errors import RequestRefused
from rea_edge.journal import Journal, run_from
from rea_edge.records import Args, CancelAsked, Done, Run, Settled
from rea_edge.report import Report
from rea_edge.store import RunKind, RunRow, Store, Transaction
from rea_edge.wire import CtlRequest

TEXT_MAX = 500  # characters of what a sender says about his control


class Controls:
    """`operates(who)`: whether he may control other people's tasks.

    `cancelled(row)`: a cancel of this run is in the journal, end what is under way. `published(row,
    run)`, inside the transaction: the newest state of this task goes out with it.
    """

    def __init__(
        self,
        *,
        store: Store,
        journal: Journal,
        report: Report,
        clock: Callable[[], float | None],
        operates: Callable[[str], bool],
        cancelled: Callable[[RunRow], None],
        published: Callable[[RunRow, Run], None],
    ) -> None:
        self._store = store
        self._journal = journal
        self._report = report
        self._clock = clock
        self._operates = operates
        self._cancelled = cancelled
        self._published = published

    def take(self, who: str, request: CtlRequest) -> Args:
        """Do what is asked for and give the data of the answer. Raises `RequestRefused`.

        The same control again does nothing more and is answered as the first one was.
        """
        owner = request.who or who
        if owner != who and not self._operates(who):
            raise RequestRefused("policy_denied", "only an operator may control another sender's task")
        match request.do:
            case "cancel":
                return self._cancel(owner, who, request)
            case "settle":
                return self._settle(owner, who, request)
            case _:
                raise RequestRefused("bad_request", f"{request.do} is not supported by this version")

    # --- cancel

    def _cancel(self, owner: str, who: str, request: CtlRequest) -> Args:
        text = request.text[:TEXT_MAX]
        with self._store.transaction() as tx:
            # Looked up in here: a task that is accepted in between must not miss its cancel.
            row = tx.run_of("task", owner, request.task)
            if row is None:
                mark = early.Mark(who=owner, task=request.task, by=who, text=text, at=self._clock())
                early.note(tx, mark)
            news = row is not None and self._write_cancel(tx, row, CancelAsked(by=who, text=text))
        if row is None:
            raise RequestRefused(
                "unknown_task", f"{owner} has no task {request.task} here; if it still comes, it ends as cancelled"
            )
        if news:
            self._cancelled(row)
        return {"task": row.id}

    def _write_cancel(self, tx: Transaction, row: RunRow, event: CancelAsked) -> bool:
        """False if the task was cancelled before: a control that is sent again is answered again."""
        if row.outcome == "cancelled":
            return False
        if row.state == "ended":
            raise RequestRefused("unknown_task", f"{row.id} has ended already")
        if run_from(tx, row).cancel is None:  # the first one says it all: a flood of them must not fill the journal
            self._journal.add(tx, row, event)
        return True

    # --- settle

    def _settle(self, owner: str, who: str, request: CtlRequest) -> Args:
        n, outcome = request.n, request.outcome
        if n is None or outcome is None:
            raise RequestRefused("bad_request", "settle needs n, the number of the call, and outcome: done or not_done")
        with self._store.transaction() as tx:
            row, run, call = _called(tx, owner, request.task, n)
            if call.settled:
                _need_same(call, outcome)
            elif call.result != "unknown":
                raise RequestRefused("bad_request", f"call {n} of {row.id} is no riddle: its result is {call.result}")
            else:
                self._journal.add(tx, row, Settled(n=n, outcome=outcome, by=who))
                unsettled.settled(tx, row, n)
                run = run_from(tx, row)
                if row.kind == "task":
                    self._report.publish_again(tx, row, run)
                    self._published(row, run)
        return {"task": row.id, "n": n, "outcome": outcome}


def _called(tx: Transaction, owner: str, task: str, n: int) -> tuple[RunRow, Run, Done]:
    """The call that is meant: of a task, or a direct call of that id. Raises `RequestRefused`."""
    kinds: tuple[RunKind, ...] = ("task", "call")
    rows = [row for kind in kinds if (row := tx.run_of(kind, owner, task)) is not None]
    if not rows:
        raise RequestRefused("unknown_task", f"{owner} has no task {task} here")
    ended = [(row, run, done) for row in rows for run in (run_from(tx, row),) for done in run.done if done.n == n]
    if not ended:
        raise RequestRefused("bad_request", f"{task} has no call {n} that has ended")
    doubtful = (found for found in ended if found[2].result == "unknown" or found[2].settled)
    return next(doubtful, ended[0])


def _need_same(call: Done, outcome: Literal["done", "not_done"]) -> None:
    said = "done" if call.result == "ok" else "not_done"
    if said != outcome:
        raise RequestRefused("id_conflict", f"{call.settled} has settled call {call.n} as {said}")
