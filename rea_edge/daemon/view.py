"""What a node shows of itself: status, card, health, and the answers to queries. Reads; never changes anything."""

import socket
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from rea_edge import __version__, unsettled
from rea_edge.config import Endpoint, Settings, config_hash, public
from rea_edge.daemon import card as cards
from rea_edge.daemon.approvals import Approvals
from rea_edge.errors import RequestRefused
from rea_edge.journal import followed, readable, run_from
from rea_edge.records import Event, Run, Tool
from rea_edge.report import LINE_MAX, STATE_FILE, Report, cut, line, rfc3339, state_word, words
from rea_edge.store import Reading, RunKind, RunRow, Store
from rea_edge.wire import BudgetLeft, NodeStatus, QueryRequest, TaskEvent

if TYPE_CHECKING:
    from rea_edge.marks import Marks

HEALTH_S = 60.0  # between two words on it
HEALTH_KEEP_S = 3 * HEALTH_S
GOAL_MAX = 1024  # bytes, as JSON, of a goal above its journal
StateWord = Literal["online", "degraded", "offline"]


class View:
    """`settings` are those in force, `state` is how the node is, `health` gives the changing figures, `faults` what an
    operator should know now, `budgets` what tasks may still spend, `exams` what the last exam of an endpoint found, if
    there was any."""

    def __init__(
        self,
        *,
        settings: Callable[[], Settings],
        store: Store,
        report: Report,
        tools: Callable[[], Mapping[str, Tool]],
        tools_hash: Callable[[], str],
        boot: str,
        instance: str,
        session: Callable[[], int],
        state: Callable[[], StateWord],
        faults: Callable[[], list[str]],
        health: Callable[[Callable[[str], bool]], dict[str, object]],
        budgets: Callable[[], dict[str, BudgetLeft]],
        exams: Callable[[Endpoint], "Marks | None"],
        approvals: Callable[[], Approvals],
    ) -> None:
        self._in_force = settings
        self._store = store
        self._report = report
        self._tools = tools
        self._tools_hash = tools_hash
        self._boot = boot
        self._instance = instance
        self._session = session
        self._state = state
        self._faults = faults
        self._health = health
        self._budgets = budgets
        self._exams = exams
        self._approvals = approvals
        self._hash_of: tuple[Settings, str] | None = None

    @property
    def tools_hash(self) -> str:
        return self._tools_hash()

    def status(self, state: StateWord) -> NodeStatus:
        return NodeStatus(
            state=state,
            session=self._session(),
            boot=self._boot,
            instance=self._instance,
            host=socket.gethostname(),
            epoch=self._store.epoch,
            version=__version__,
            config_hash=self._config_hash(),
            tools_hash=self._tools_hash(),
            faults=[fault[:300] for fault in self._faults()[:40]],
            budgets=self._budgets(),
            at=self._report.at(),
            until=None if state == "offline" else self._report.until(),
            up_ms=self._report.up_ms(),
        )

    def card(self) -> bytes:
        """What this node can do."""
        card: dict[str, object] = {
            "v": 1,
            "version": __version__,
            "epoch": self._store.epoch,
            "tools_hash": self._tools_hash(),
            "endpoints": [
                {"name": one.name, "model": one.model, "protocol": one.protocol, "exam": self._exams(one)}
                for one in self._settings.endpoints
            ],
            "task_types": sorted({"default", *self._settings.task_types}),
            "limits": self._settings.limits,
            "identity": self._settings.access.identity,
            "at": self._report.at(),
            "until": self._report.until(),
        }
        return cards.fitted(
            card, [cards.told(tool, self._settings, self._approvals()) for tool in self._sorted_tools()]
        )

    def health(self) -> bytes:
        now = {"at": self._report.at(), "until": self._report.until(HEALTH_KEEP_S), "up_ms": self._report.up_ms()}
        return msgspec.json.encode({**now, **self._health(self._seen_by(None))})

    def unknown(self, sees: Callable[[str], bool]) -> dict[str, object]:
        """Calls of which nobody knows whether they took effect: how many, and the newest of those that may be seen."""
        found = unsettled.listed(self._store)
        newest = [one for one in reversed(found) if sees(one.who)][: unsettled.SHOWN]
        calls = [{**msgspec.structs.asdict(one), "at": rfc3339(one.at)} for one in newest]
        for one in calls:
            del one["row"]
        return {"count": len(found), "calls": calls}

    def _seen_by(self, who: str | None) -> Callable[[str], bool]:
        """Whose tasks somebody may see: people their own, operators all; None is everybody who reads what is retained.
        Where a name is anybody's, all are one."""
        access = self._settings.access
        sees_all = access.identity == "none" or (who is not None and access.operates(who))
        return lambda owner: sees_all or owner == who

    def query(self, who: str, what: str, request: QueryRequest) -> tuple[object, int | None]:
        """The answer to a query and where its next page begins (None: that was all). People see their own tasks."""
        owner = request.who or who
        if owner != who and not self._settings.access.operates(who):
            raise RequestRefused("policy_denied", "only an operator may see another sender's tasks")
        match what:
            case "status":
                return {"status": self.status(self._state()), "health": self._health(self._seen_by(who))}, None
            case "metrics":
                return self._health(self._seen_by(who)), None
            case "config":
                return public(self._settings), None
            case "tools":
                return _page(
                    self._sorted_tools(), request, lambda tool: cards.row(tool, self._settings, self._approvals())
                )
            case "tasks":
                before = request.after or None
                rows = self._store.runs(request.limit, before=before, who=owner, kind="task")
                return [self._line(row) for row in rows], rows[-1].row if len(rows) == request.limit else None
            case "task":
                row = self._row(owner, request, "task")
                return self._report.state_of(row, run_from(self._store, row)), None
            case "journal":
                return self._trace(self._row(owner, request, "task", "call"), request)
            case "call":
                row = self._row(owner, request, "call")
                return self._call(row, run_from(self._store, row)), None
            case "answers":
                row = self._row(owner, request, "task")
                events = readable(self._store.events(row.row))
                from rea_edge import replay  # for study only

                return _page(list(replay.answers_of(events)), request, lambda event: event)
            case _:
                known = "status, tasks, task, call, journal, answers, tools, config, metrics"
                raise RequestRefused("bad_request", f"no query {what!r}; there are {known}")

    def _call(self, row: RunRow, run: Run) -> dict[str, object]:
        """A direct call as it stands: the reply that was given, where it has ended. Asking starts nothing."""
        reply = self._report.reply_of_call(self._store, row, run) if run.phase == "ended" else None
        return {"id": row.id, "run": run.id, "state": state_word(run), "reply": reply}

    @property
    def _settings(self) -> Settings:
        return self._in_force()

    def _config_hash(self) -> str:
        """Of what is in force; every status has it, and it changes seldom."""
        known, settings = self._hash_of, self._settings
        if known is None or known[0] is not settings:
            known = self._hash_of = (settings, config_hash(settings))
        return known[1]

    def _sorted_tools(self) -> list[Tool]:
        return [tool for _, tool in sorted(self._tools().items())]

    def _row(self, who: str, request: QueryRequest, *kinds: RunKind) -> RunRow:
        for kind in kinds:
            if request.task and (row := self._store.run_of(kind, who, request.task)):
                return row
        raise RequestRefused("unknown_task", f"{who} has no task {request.task!r} here")

    def _line(self, row: RunRow) -> dict[str, object]:
        return {"id": row.id, "state": row.state, "outcome": row.outcome, "seq": row.seq, "at": rfc3339(row.at)}

    def _trace(self, row: RunRow, request: QueryRequest) -> tuple[object, int | None]:
        run, said = trace(self._store, row)
        lines, next_ = _page(said, request, line)
        goal = cut(run.job.goal, GOAL_MAX, STATE_FILE)
        via = list(run.job.via)
        return {"id": row.id, "run": run.id, "via": via, "goal": goal, "state": state_word(run), "events": lines}, next_


def trace(store: Reading, row: RunRow) -> tuple[Run, list[TaskEvent]]:
    """A run as it stands, and its journal in words, whole, with the time of each row; also from a copy."""
    journal = store.journal(row.row)
    told: list[TaskEvent] = []

    def seen(run: Run, event: Event) -> None:
        told.extend(msgspec.structs.replace(said, at=rfc3339(journal[run.seq - 1].at)) for said in words(run, event))

    run, fault = followed(store.run_name(row.row), row, [entry.body for entry in journal], seen)
    if row.shown == "pruned" and run.ended is not None:
        told.append(TaskEvent(seq=run.seq, step=0, kind="note", text=run.ended.reason))
    if fault is not None:
        told.append(TaskEvent(seq=len(told), step=run.used.steps, kind="note", text=str(fault)))
        if run.ended is not None:
            seen(run, run.ended)
    return run, told


def _page(
    items: Sequence[object], request: QueryRequest, shown: Callable[..., object]
) -> tuple[list[object], int | None]:
    """Items from number `after` on, at most `limit` and as many as fit a reply; and the number of the next."""
    page: list[object] = []
    size = 0
    for place, item in enumerate(items[request.after :], request.after):
        row = shown(item)
        size += len(msgspec.json.encode(row)) + 1
        if len(page) >= request.limit or (page and size > LINE_MAX):
            return page, place
        page.append(row)
    return page, None
