"""What a runner needs done on this node: begin, ask, pass the gate, act. Joins settings, endpoint, prompts, tools."""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from rea_edge import gate
from rea_edge.aliases import aliases, renamed_tools
from rea_edge.cancel import Cancel
from rea_edge.config import Endpoint as EndpointSettings
from rea_edge.config import Settings, TaskType
from rea_edge.config.prompts import fits_every_protocol
from rea_edge.daemon import putting
from rea_edge.daemon.approvals import Approvals
from rea_edge.daemon.calls import Calls
from rea_edge.daemon.gates import Gates
from rea_edge.daemon.halts import Halt
from rea_edge.endpoints import Endpoints, Needs
from rea_edge.errors import DecisionRejected, EndpointFailed, RequestRefused, StoreFull
from rea_edge.gate import Policy
from rea_edge.records import (
    Act,
    Answer,
    AskedApproval,
    Begun,
    Call,
    Criterion,
    EffectClass,
    Fault,
    Job,
    Moved,
    Protocol,
    Recall,
    Result,
    Run,
    Switched,
    Tool,
    Verify,
)
from rea_edge.rules import criterion_of
from rea_edge.store import Store
from rea_edge.toolbox import Toolbox

if TYPE_CHECKING:
    from rea_edge.marks import Marks, Score
    from rea_edge.probe import Depth, Profile

CONTEXT_TOKENS = 4096  # where neither settings nor server say: the least that servers of today are started with
# After three unreadable answers, where nobody fixed the protocol. Not command: its first line would end the task.
NEXT: dict[Protocol, Protocol] = {"native": "json", "json": "react", "react": "json", "command": "json"}
STRICTNESS: tuple[EffectClass, ...] = ("read", "idempotent", "once")


class NodeEffects:
    """The effects of the lanes of one node under one configuration. Thread-safe: settings do not change, the rest guards
    itself. `newest()` gives those of the configuration that a reload has put in its place, None until then: a run goes on
    with what it began with, within what is allowed by both.

    What only a task needs (the client, openings, the probe) is imported at the first one.
    """

    def __init__(
        self,
        *,
        settings: Settings,
        toolbox: Toolbox,
        store: Store,
        approvals: Approvals,
        gates: Gates,
        endpoints: Endpoints,
        halt: Halt,
        newest: "Callable[[], NodeEffects | None]" = lambda: None,
    ) -> None:
        self._settings = settings
        self._store = store
        self._halt = halt
        self._newest = newest
        self.toolbox = toolbox
        self.approvals = approvals
        self.gates = gates
        self.endpoints = endpoints
        self._secrets = settings.secrets

    def move_on(self) -> None:
        """From the next call on use the newest tools, as after a restart."""
        newest = self._newest()
        assert newest is not None
        self.toolbox = newest.toolbox

    def begin(self, job: Job, cancel: Cancel) -> Begun:
        if not self._settings.endpoints:
            raise EndpointFailed("no_endpoint", "this node has no endpoint: it is a tool node")
        kind = self._settings.task_type(job.type)
        if kind is None:
            raise RequestRefused("policy_denied", _gone(job))
        chosen = self.endpoints.choose(self._for_any(kind), job.limits.task_s, cancel)
        one = chosen.settings
        wanted = kind.protocol or one.protocol
        best = self._best(one) if wanted == "auto" else None
        protocol: Protocol = wanted if wanted != "auto" else best.protocol if best else _chosen(chosen.profile)
        policy = self._policy(job, kind)
        offers = gate.offered(policy, list(self.toolbox.tools.values()))
        tools = [self.toolbox.tools[offer.name] for offer in offers]
        kept, bounds = putting.narrowed(protocol, job.goal, tools, kind.commands)
        table = aliases([offer.name for offer in offers], one.names)
        asked = putting.asked_in(protocol, kind, chosen, job, renamed_tools(tools, table))
        return Begun(
            endpoint=one.name,
            model=one.model,
            protocol=protocol,
            offers=gate.offered(policy, kept),
            opening=asked.opening,
            ask=asked.ask,
            context_tokens=chosen.context_tokens(CONTEXT_TOKENS),
            min_observations=_least(kind, offers),
            answer_tokens=asked.answer_tokens,
            commands=kind.commands,
            aliases=table,
            repeats=kind.repeats,
            done_when=tuple(criterion_of(wanted) for wanted in kind.done_when),
            next_protocol=NEXT[protocol] if wanted == "auto" and fits_every_protocol(kind.prompt) else None,
            seconds=round(chosen.seconds, 3),
            bounds=bounds,
            only_if=putting.premise(protocol, job.goal, tools),
            without=chosen.profile.without,
        )

    def switch(self, job: Job, begun: Begun, protocol: Protocol) -> Switched:
        kind = self._settings.task_type(job.type) or TaskType()
        tools = self._tools_of(begun)
        switched = putting.asked_in(protocol, kind, self.endpoints.known(begun.endpoint), job, tools)
        self.endpoints.doubt(begun.endpoint)  # another model may have come to be behind it
        return switched

    def moved(self, run: Run, seconds: float, cancel: Cancel) -> Moved | None:
        begun = run.begun
        assert begun is not None
        chosen = self.endpoints.elsewhere(begun.endpoint, self._for_run(run.job, begun), seconds, cancel)
        if chosen is None:
            return self._spared(run, begun)
        return Moved(
            endpoint=chosen.settings.name,
            model=chosen.settings.model,
            ask=putting.constraint(begun.protocol, chosen, self._tools_of(begun), begun.commands, run.job.goal),
            context_tokens=chosen.context_tokens(CONTEXT_TOKENS),
            why=self.endpoints.fault_of(begun.endpoint),
            seconds=round(chosen.seconds, 3),
            without=chosen.profile.without,
        )

    def _spared(self, run: Run, begun: Begun) -> Moved | None:
        """The same endpoint, asked without what it has refused by name meanwhile."""
        known = self.endpoints.known(begun.endpoint)
        refused = () if known is None else known.profile.without
        if known is None or not (learned := [name for name in refused if name not in begun.without]):
            return None
        return Moved(
            endpoint=begun.endpoint,
            model=begun.model,
            ask=putting.constraint(begun.protocol, known, self._tools_of(begun), begun.commands, run.job.goal),
            context_tokens=begun.context_tokens,
            why=f"without {', '.join(learned)}, which it refuses",
            without=refused,
        )

    def ask(self, run: Run, body: bytes, seconds: float, cancel: Cancel) -> Answer:
        from rea_edge.redact import redacted

        begun = run.begun
        assert begun is not None
        answer = self.endpoints.ask(begun.endpoint, body, self._for_run(run.job, begun), seconds, cancel)
        return msgspec.structs.replace(answer, message=redacted(answer.message, self._secrets))

    def refusal(self, run: Run, act: Act, cancel: Cancel) -> str | None:
        job, call, tools = run.job, act.call, self.toolbox.tools
        if (why := self.toolbox.withheld.get(call.name)) is not None:
            return why
        for effects in self._both():
            if (why := effects.forbidden(job, call, self.effect(call, act.effect), tools)) is not None:
                return why
        if (why := _unfit(run, call, tools)) is not None:
            return why
        if (why := self.approvals.refusal(run, act, self.effect(call, act.effect), tools)) is not None:
            return why
        if why := gate.too_dear(call.name, self.cost(call), job.limits, run.used):
            return why
        done = None if job.call is not None else gate.done_in(run)
        request_id, until_s = f"{run.id}-{act.n}-if", time.monotonic() + act.seconds

        def read(asked: Call) -> Result:
            return self._calls.read(run, asked, request_id, max(0.0, until_s - time.monotonic()), cancel)

        return self.gates.refusal(call, tools, done, read)

    def approval(self, run: Run, act: Act) -> AskedApproval | str | None:
        return self.approvals.asked(run, act, self.effect(act.call, act.effect), self.toolbox.tools)

    def effect(self, call: Call, recorded: EffectClass) -> EffectClass:
        """The stricter of what the run recorded and what the tool is now."""
        now = (one.toolbox.tools[call.name].effect for one in self._both() if call.name in one.toolbox.tools)
        return max(recorded, *now, key=STRICTNESS.index)

    def forbidden(self, job: Job, call: Call, effect: EffectClass, tools: Mapping[str, Tool]) -> str | None:
        """Why this configuration does not let the job make this call of `tools`, or None."""
        kind = self._settings.task_type(job.type)
        return _gone(job) if kind is None else gate.refusal(self._policy(job, kind), call, effect, tools)

    @property
    def _calls(self) -> Calls:
        return Calls(self.toolbox, self.gates, self._halt, self._secrets)

    def _both(self) -> "tuple[NodeEffects, ...]":
        """Where a call has to be allowed: by what its run began with, and by what holds today."""
        newest = self._newest()
        return (self,) if newest is None else (self, newest)

    def verify(self, call: Call) -> Criterion | None:
        tool = self.toolbox.tools.get(call.name)
        if tool is None or tool.verify is None:
            return None
        from rea_edge import doubt

        return doubt.filled(tool.verify, call.args, tool.parameters)

    def cost(self, call: Call) -> float:
        return self.gates.cost(call.name, self.toolbox.tools)

    def probe(self, run: Run, asked: Verify) -> Result:
        from rea_edge import schema

        call, tools = asked.call, self.toolbox.tools
        effect = self.effect(call, "read")
        # Asked for by the tool's author, not by the sender: whose tools and mode say nothing about it.
        if (why := gate.refusal(Policy(mode="query"), call, effect, tools)) is not None:
            return Fault(fault="denied", message=why)
        if self.cost(call):
            return Fault(fault="denied", message=f"{call.name} costs, and what is asked after a call must be free")
        try:
            schema.compile(tools[call.name].parameters, place=call.name).check(call.args)
        except DecisionRejected as exc:
            return Fault(fault="bad_args", message=exc.message)
        request_id, cancel = f"{run.id}-{asked.n}-verify", Cancel()

        def read(interlock: Call) -> Result:
            return self._calls.read(run, interlock, f"{request_id}-if", asked.seconds, cancel)

        if (why := self.gates.refusal(call, tools, None, read)) is not None:
            return Fault(fault="denied", message=why)
        return self._calls.probe(run, call, request_id, asked.seconds, cancel)

    def recalls(self, call: Call) -> bool:
        tool = self.toolbox.tools.get(call.name)
        return tool is not None and tool.kind == "node"

    def recall(self, run: Run, asked: Recall) -> Result | None:
        from rea_edge.visible import visible

        call = asked.call
        result = self.toolbox.recall(call.name, f"{run.id}-{asked.n}", asked.seconds)
        tool = self.toolbox.tools.get(call.name)
        return result if result is None or tool is None else visible(result, tool, self._secrets)

    def act(
        self, run: Run, call: Call, request_id: str, seconds: float, cancel: Cancel, starting: Callable[[], bool]
    ) -> Result:
        effect = self.effect(call, run.open[0].effect)
        # A yes, and what was charged, hold for one start; what has become `once`, and what must rest between two starts,
        # is not tried again either.
        once = effect == "once" or run.said is not None or self.cost(call) > 0
        once = once or self.gates.counts(call.name, self.toolbox.tools)

        def overtaken() -> str | None:
            return self._overtaken(run, call, effect)

        return self._calls.act(run, call, effect, request_id, seconds, cancel, starting, once=once, overtaken=overtaken)

    def _overtaken(self, run: Run, call: Call, effect: EffectClass) -> str | None:
        """Why a call that the gate let through may not start, for what came while it waited for its device: a reload,
        the end of its hours or of a yes. Interlocks are not read again."""
        head, tools = run.open[0], self.toolbox.tools
        act = Act(n=head.n, call=call, effect=head.effect, seconds=0.0, tainted=head.tainted)
        for effects in self._both():
            if (why := effects.forbidden(run.job, call, self.effect(call, head.effect), tools)) is not None:
                return why
        if self.effect(call, head.effect) != effect:
            return f"{call.name} has become one that acts otherwise while it waited for its device"
        done = None if run.job.call is not None else gate.done_in(run)
        if (why := self.gates.breach(call, tools, done)) is not None:
            return why
        match self.approvals.asked(run, act, effect, tools):
            case AskedApproval():
                return f"{call.name} needs a person's yes since the configuration was reloaded"
            case why:
                return why

    def _policy(self, job: Job, kind: TaskType) -> Policy:
        closed = self._settings.access.closed_to(job.who)
        if job.call is not None:
            return Policy(mode="act", closed=closed, lost=self._store.lost, halted=self._halt.why)
        return Policy(mode=job.mode, tools=kind.tools, closed=closed, lost=self._store.lost, halted=self._halt.why)

    def _tools_of(self, begun: Begun) -> list[Tool]:
        """Those on offer, by the run's names for them. Of one that is gone nothing is said; a call would be refused."""
        tools = [self.toolbox.tools[offer.name] for offer in begun.offers if offer.name in self.toolbox.tools]
        return renamed_tools(tools, begun.aliases)

    def marks(self, one: EndpointSettings) -> "Marks | None":
        """What the newest exam of an endpoint with these tools found, None where there was none."""
        from rea_edge.marks import marks_of

        return marks_of(self._settings.node.state_dir, one.url, one.model, self.toolbox.tools_hash)

    def _best(self, one: EndpointSettings) -> "Score | None":
        marks = self.marks(one)
        return marks.best if marks is not None else None

    def _for_any(self, kind: TaskType) -> Needs:
        """A run that is about to begin takes the endpoint as it is; `auto` without an exam needs more than its pages."""

        def needs(one: EndpointSettings, _: "Profile | None") -> "Depth":
            return "brief" if (kind.protocol or one.protocol) == "auto" and self._best(one) is None else "pages"

        return needs

    def _for_run(self, job: Job, begun: Begun) -> Needs:
        """What suits a run that has begun: protocol and names stay, for history and opening are written in them."""
        kind = self._settings.task_type(job.type) or TaskType()
        offered = {offer.name for offer in begun.offers}

        def needs(one: EndpointSettings, profile: "Profile | None") -> "Depth | None":
            if one.name == begun.endpoint:
                return "pages"
            if any(begun.aliases.get(tool) != name for tool, name in one.names.items() if tool in offered):
                return None
            if begun.protocol in (kind.protocol, one.protocol):
                return "pages"
            if one.protocol != "auto":
                return None
            if begun.protocol != "native":
                return "pages"
            return "brief" if profile is None or profile.native or profile.depth == "pages" else None

        return needs


class Profiles:
    """Profiles in the store. One that finds no room is found out again."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, key: str) -> str | None:
        return self._store.meta_get(key)

    def put(self, key: str, value: str) -> None:
        with suppress(StoreFull), self._store.transaction() as tx:
            tx.meta_set(key, value)


def _gone(job: Job) -> str:
    # Never the default type in its place: that may allow more.
    return f"the task type {job.type!r} does not exist on this node any more"


def _unfit(run: Run, call: Call, tools: Mapping[str, Tool]) -> str | None:
    """Why these arguments, which were checked when they came, are none of the tool as it is declared now; or None."""
    tool = tools[call.name]
    offers = run.begun.offers if run.begun is not None else ()
    if any(offer.name == call.name and offer.parameters == tool.parameters for offer in offers):
        return None
    from rea_edge import schema

    try:
        schema.compile(tool.parameters, place=call.name).check(call.args)
    except DecisionRejected as exc:
        return f"{call.name} is declared otherwise than when this was asked for: {exc.message}"
    return None


def _least(kind: TaskType, offers: tuple[object, ...]) -> int:
    if kind.min_observations is not None:
        return kind.min_observations
    return 1 if offers else 0


def _chosen(profile: "Profile") -> Protocol:
    """What `auto` takes without an exam: native calls only where they really came back, else the JSON object."""
    return "native" if profile.native else "json"
