"""What the mailbox asks of the node: what may be accepted now, and as what job. Checks; runs nothing."""

from collections.abc import Callable, Mapping
from typing import Literal

import msgspec

from rea_edge import budget
from rea_edge.config import Settings
from rea_edge.daemon.life import Life
from rea_edge.daemon.queue import Waiting
from rea_edge.daemon.spending import Spending
from rea_edge.daemon.view import View
from rea_edge.desk import Told
from rea_edge.errors import DecisionRejected, RequestRefused
from rea_edge.records import Args, Call, Job, Limits, Mode, Run, Tool
from rea_edge.store import RunRow
from rea_edge.wire import CallRequest, NodeRequest, QueryRequest, TaskRequest

CALLS_WAITING = 50  # direct calls that may wait; each is short


class NodeDesk:
    """`settings` are those in force; `refusing` says why nothing new is taken now; `end_waiting` ends a cancelled run that
    no lane holds; `ordered` does what an operator orders."""

    def __init__(
        self,
        *,
        settings: Callable[[], Settings],
        tools: Callable[[], Mapping[str, Tool]],
        withheld: Callable[[], Mapping[str, str]],
        waiting: Waiting,
        life: Life,
        spending: Spending,
        view: View,
        refusing: Callable[[], str | None],
        end_waiting: Callable[[RunRow], None],
        ordered: Callable[[str, NodeRequest, Told], None],
        published: Callable[[RunRow, Run], None],
    ) -> None:
        self._in_force = settings
        self._tools = tools
        self._withheld = withheld
        self._waiting = waiting
        self._life = life
        self._spending = spending
        self._view = view
        self._refusing = refusing
        self._end_waiting = end_waiting
        self.ordered, self.published = ordered, published

    @property
    def _settings(self) -> Settings:
        return self._in_force()

    def refuse_new(self) -> RequestRefused | None:
        why = self._refusing()
        return None if why is None else RequestRefused("busy", why, retryable=True)

    def job_of_task(self, who: str, request: TaskRequest, plain: bool) -> Job:
        if not self._settings.endpoints:
            raise RequestRefused("endpoint_unavailable", "this node has no endpoint: it runs direct calls only")
        name = request.type or "default"
        kind = self._settings.task_type(name)
        if kind is None:
            known = ", ".join(sorted({"default", *self._settings.task_types}))
            raise RequestRefused("bad_request", f"type: no task type {name!r}; there are {known}")
        mode: Mode = request.mode or kind.mode or "act"
        if plain:
            mode = self._settings.access.plain_text
        if kind.mode == "query":
            mode = "query"  # a request may only tighten what its type allows
        self._spending.check()
        asked = msgspec.to_builtins(request.limits)
        return Job(
            goal=request.goal,
            who=who,
            type=name,
            mode=mode,
            limits=budget.clamp(asked, self._settings.limits_of(kind)),
            context=request.context,
            dry_run=request.dry_run,
            accepted_s=self._life.lived_s(),
        )

    def job_of_call(self, who: str, tool: str, request: CallRequest) -> Job:
        # Compiled at the first call: a node that only waits has not paid for it.
        from rea_edge import schema

        if (why := self._withheld().get(tool)) is not None:
            raise RequestRefused("policy_denied", why)
        found = self._tools().get(tool)
        if found is None:
            known = ", ".join(sorted(self._tools())[:40]) or "none"
            raise RequestRefused("bad_request", f"no tool {tool!r}; there are {known}")
        try:
            args = schema.compile(found.parameters, place=tool).check(request.args)
        except DecisionRejected as exc:
            raise RequestRefused("bad_request", exc.message) from exc
        # A direct call brings its own patience: the tool's, for all its attempts.
        seconds = found.timeout_s * (found.retries + 1) + 5.0
        cost = self._settings.limits.cost
        limits = Limits(steps=1, tokens=1, answer_tokens=1, tool_s=seconds, task_s=seconds, cost=cost)
        return Job(
            limits=limits,
            call=Call(name=tool, args=_as_args(args)),
            effect=found.effect,
            who=who,
            dry_run=request.dry_run,
            accepted_s=self._life.lived_s(),
        )

    def room(self, kind: Literal["task", "call"]) -> int:
        return self._settings.queue.size if kind == "task" else CALLS_WAITING

    def woken(self, row: RunRow) -> None:
        self._waiting.put(row)

    def cancelled(self, row: RunRow) -> None:
        if not self._waiting.cancel(row.row):
            self._end_waiting(row)

    def query(self, who: str, what: str, request: QueryRequest) -> tuple[object, int | None]:
        return self._view.query(who, what, request)


def _as_args(value: object) -> Args:
    assert isinstance(value, dict)
    return value
