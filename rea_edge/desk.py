"""What the mailbox asks of the node, as one question each. Holds no code that runs."""

from collections.abc import Callable
from typing import Literal, Protocol, TypeAlias

from rea_edge.errors import RequestRefused
from rea_edge.records import Args, Job, Run
from rea_edge.store import RunRow
from rea_edge.wire import CallRequest, NodeRequest, QueryRequest, TaskRequest

Told: TypeAlias = Callable[[Args | RequestRefused], None]  # hears the data of an answer, or why it is none


class Desk(Protocol):
    """What the mailbox asks of the node. Nothing here may block."""

    def refuse_new(self) -> RequestRefused | None:
        """Why nothing new is taken now (memory, stopping), or None."""
        ...

    def job_of_task(self, who: str, request: TaskRequest, plain: bool) -> Job:
        """What would be run: mode, clamped limits. Raises `RequestRefused`."""
        ...

    def job_of_call(self, who: str, tool: str, request: CallRequest) -> Job:
        """The call with checked arguments. Raises `RequestRefused`."""
        ...

    def room(self, kind: Literal["task", "call"]) -> int:
        """How many runs of this kind may wait."""
        ...

    def woken(self, row: RunRow) -> None:
        """A run was accepted."""
        ...

    def cancelled(self, row: RunRow) -> None:
        """A cancel of this run is in the journal: end what is under way."""
        ...

    def published(self, row: RunRow, run: Run) -> None:
        """The newest state of this task is in the outbox with the transaction under way: none older may follow it."""
        ...

    def ordered(self, who: str, request: NodeRequest, told: Told) -> None:
        """Do what an operator orders, and tell what came of it: now, or from another thread. Raises `RequestRefused`."""
        ...

    def query(self, who: str, what: str, request: QueryRequest) -> tuple[object, int | None]:
        """The data of a query, and where the next page begins. Raises `RequestRefused`."""
        ...
