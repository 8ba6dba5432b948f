"""The rules of tools applied on this node: their starts counted over restarts, their interlocks read. Runs no act.

The judgement itself is `gate`'s, and pure. Thread-safe: two lanes may ask for one tool at once.
"""

import threading
from collections.abc import Callable, Mapping, Sequence

import msgspec

from rea_edge import gate, taint
from rea_edge.clock import Clock, boot_id, boot_s, local_minute
from rea_edge.gate import Facts
from rea_edge.parameters import shapes_of
from rea_edge.records import Call, Criterion, Fault, Ok, Result, Rule, Tool
from rea_edge.rules import MOST_IN_A_RATE
from rea_edge.store import Store
from rea_edge.toolhost.probes import wrong_with

Read = Callable[[Call], Result]


class Start(msgspec.Struct, frozen=True, array_like=True):
    """When a tool was started: boot-time seconds of which boot, and wall seconds where the clock was trusted."""

    boot: str
    boot_s: float
    at: float | None


class Starts:
    """When the tools with a rule were started, on disk. One for all sets of rules that are in use."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._boot = boot_id()
        self._lock = threading.Lock()
        self._starts: dict[str, list[Start]] = {}  # by tool, the newest first; those without a rule are not counted

    def take(self, name: str, rules: Sequence[Rule]) -> str | None:
        """Why the tool may not start now, or None, and then the start is counted."""
        with self._lock:
            starts = self._known(name)
            ago_s = [self._ago_s(start) for start in starts]
            for rule in rules:
                if why := gate.too_soon(rule, name, ago_s):
                    return why
            starts = [Start(self._boot, boot_s(), self._clock.now()), *starts][:MOST_IN_A_RATE]
            with self._store.transaction() as tx:
                tx.meta_set(f"starts:{name}", msgspec.json.encode(starts).decode())
            self._starts[name] = starts
        return None

    def _known(self, name: str) -> list[Start]:
        if name not in self._starts:
            kept = self._store.meta_get(f"starts:{name}")
            self._starts[name] = msgspec.json.decode(kept, type=list[Start]) if kept else []
        return self._starts[name]

    def _ago_s(self, start: Start) -> float:
        """How long ago; where nobody can say, the least that it can be, so that no restart shortens a rest."""
        if start.boot == self._boot:
            return boot_s() - start.boot_s
        now = self._clock.now()
        by_wall_s = 0.0 if now is None or start.at is None else now - start.at
        return max(by_wall_s, boot_s())


class Gates:
    """`configured` are the rules of `[gate.NAME]`; a tool's own declaration holds beside them, and so does what `newer`
    gives: the rules that a reload has brought since."""

    def __init__(
        self,
        configured: Mapping[str, Rule],
        starts: Starts,
        clock: Clock,
        newer: Callable[[str], Sequence[Rule]] = lambda name: (),
    ) -> None:
        self._configured = configured
        self._starts = starts
        self._clock = clock
        self._newer = newer

    def refusal(self, call: Call, tools: Mapping[str, Tool], done: frozenset[str] | None, read: Read) -> str | None:
        """Why the rules do not let this call run now, or None. `read` runs the interlocks' reads, all within one time."""
        facts = self._facts(done)
        for rule in self.rules(call.name, tools):
            if why := gate.breach(rule, call, tools[call.name].parameters, facts):
                return why
            for criterion in rule.only_if:
                if why := self._held_back(call.name, criterion, tools, read):
                    return why
        return None

    def breach(self, call: Call, tools: Mapping[str, Tool], done: frozenset[str] | None) -> str | None:
        """As `refusal`, without what interlocks read."""
        facts, parameters = self._facts(done), tools[call.name].parameters
        found = (gate.breach(rule, call, parameters, facts) for rule in self.rules(call.name, tools))
        return next((why for why in found if why), None)

    def _facts(self, done: frozenset[str] | None) -> Facts:
        now = self._clock.now()
        return Facts(minute=None if now is None else local_minute(now), done=done)

    def counts(self, name: str, tools: Mapping[str, Tool]) -> bool:
        """Whether the starts of this tool are counted, so that each attempt would be one."""
        return bool(self._counted(name, tools))

    def _counted(self, name: str, tools: Mapping[str, Tool]) -> list[Rule]:
        return [rule for rule in self.rules(name, tools) if rule.rate is not None or rule.dwell_s]

    def take(self, name: str, tools: Mapping[str, Tool]) -> str | None:
        """At the moment of a start: why the tool may not start now, or None, and then the start is counted.

        On disk before the start, so that a crash cannot forget it; raises what a transaction of the store raises.
        """
        rules = self._counted(name, tools)
        return self._starts.take(name, rules) if rules else None

    def cost(self, name: str, tools: Mapping[str, Tool]) -> float:
        """What a start of this tool costs: the most of what it declares and the node says."""
        return gate.cost_of(self.rules(name, tools))

    def faults(self, tools: Mapping[str, Tool]) -> list[str]:
        return rule_faults(self._configured, tools)

    def rules(self, name: str, tools: Mapping[str, Tool]) -> list[Rule]:
        """The tool's own and the node's, then newer ones: all hold, so that none can loosen another."""
        own = tools[name].rule if name in tools else None
        found = [rule for rule in (own, self._configured.get(name)) if rule is not None]
        return [*found, *(rule for rule in self._newer(name) if rule not in found)]

    def _held_back(self, name: str, criterion: Criterion, tools: Mapping[str, Tool], read: Read) -> str | None:
        call = Call(name=criterion.tool, args=criterion.args)
        if call.name not in tools or tools[call.name].effect != "read":
            return f"{name} may run only by what {call.name} says, and that is no tool that reads"
        if self.cost(call.name, tools):
            return f"{name} may run only by what {call.name} says, and that costs: what a gate reads must be free"
        result = read(call)
        # What a gate says reaches the model: it must not be the way for free text that no call of the run has read.
        free = taint.is_free(result, call, tools[call.name])
        match result:
            case Ok(data=data):
                return gate.unlocked(criterion, name, msgspec.json.decode(data), shown=not free)
            case Fault(fault=fault, message=message):
                told = f"{fault}; its words are not shown here" if free else message
                return f"{name} may run only by what {call.name} says, and that failed: {told}"


def rule_faults(configured: Mapping[str, Rule], tools: Mapping[str, Tool]) -> list[str]:
    """Rules that name what is not there. Their tools are held back, or nothing is: either way somebody must look."""
    found = [f"gate.{name}: there is no tool of this name" for name in configured if name not in tools]
    rules = [(f"gate.{name}", name, rule) for name, rule in configured.items()]
    rules += [(f"tool {tool.name}", tool.name, tool.rule) for tool in tools.values() if tool.rule is not None]
    found += (fault for place, name, rule in rules for fault in _faults_of(place, name, rule, tools))
    asked = [(f"{place}.only_if", one.tool) for place, _, rule in rules for one in rule.only_if]
    asked += [(f"tool {tool.name}.verify", tool.verify.tool) for tool in tools.values() if tool.verify is not None]
    dear = {name for name, rule in configured.items() if rule.cost}
    return [
        *found,
        *(f"{place}: {name} costs by gate.{name}, and must be free" for place, name in asked if name in dear),
    ]


def _faults_of(place: str, name: str, rule: Rule, tools: Mapping[str, Tool]) -> list[str]:
    known = shapes_of(tools[name].parameters) if name in tools else {**rule.ranges, **rule.values}
    return [
        *(
            f"{place}.{bound}.{key}: {name} has no such parameter; it has {', '.join(known) or 'none'}"
            for bound, keys in (("ranges", rule.ranges), ("values", rule.values))
            for key in keys
            if key not in known
        ),
        *(f"{place}.requires: there is no tool {one!r}" for one in rule.requires if one not in tools),
        *(f"{place}.only_if{wrong}" for one in rule.only_if for wrong in wrong_with(one, tools)),
    ]
