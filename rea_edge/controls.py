"""Controls of a task: who may give one, and what it writes down. In the transaction that is acknowledged.

Holds no transport: `mailbox` answers. What a lane has to do about it is told by `cancelled`.
"""

from collections.abc import Callable

from rea_edge import early
from rea_edge.errors import RequestRefused
from rea_edge.journal import Journal, run_from
from rea_edge.records import Args, CancelAsked
from rea_edge.store import RunRow, Store, Transaction
from rea_edge.wire import CtlRequest

TEXT_MAX = 500  # characters of what a sender says about his control


class Controls:
    """`operates(who)`: whether he may control other people's tasks.

    `cancelled(row)`: a cancel of this run is in the journal, end what is under way.
    """

    def __init__(
        self,
        *,
        store: Store,
        journal: Journal,
        clock: Callable[[], float | None],
        operates: Callable[[str], bool],
        cancelled: Callable[[RunRow], None],
    ) -> None:
        self._store = store
        self._journal = journal
        self._clock = clock
        self._operates = operates
        self._cancelled = cancelled

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
