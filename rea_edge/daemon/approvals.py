"""Which calls need a person's yes on this node, and what he is asked. Asks nobody: that is in the journal and `asks`."""

import os
from collections.abc import Callable, Mapping

import msgspec
from msgspec import Raw

from rea_edge import approval, gate, taint
from rea_edge.approval import Terms
from rea_edge.config import Settings
from rea_edge.records import Act, Args, AskedApproval, EffectClass, Run, Tool
from rea_edge.store import Store

SHOWN_MAX = 8192  # bytes, as JSON, of arguments: what cannot be shown whole cannot be said yes to
MOST = 50  # calls that wait for a person at once
MOST_OF_ONE = 10  # of one sender


class Approvals:
    """`node` is this node's name, `lived_s` the time that its state has lived, `newer` gives the terms that a reload has
    brought since for a tool, if there was any, `newer_trusts` whether it too lets a task of a type act on free text."""

    def __init__(
        self,
        settings: Settings,
        node: str,
        store: Store,
        lived_s: Callable[[], float],
        newer: Callable[[str], Terms | None] = lambda name: None,
        newer_trusts: Callable[[str], bool] = lambda task_type: True,
    ) -> None:
        self._settings = settings
        self._newer = newer
        self._newer_trusts = newer_trusts
        self._node = node
        self._store = store
        self._lived_s = lived_s

    def terms(self, name: str, tools: Mapping[str, Tool]) -> Terms:
        declared = tools[name].rule if name in tools else None
        begun = approval.terms(declared, self._settings.gates.get(name), self._settings.access.approvers)
        newest = self._newer(name)
        return begun if newest is None else approval.stricter(begun, newest)

    def approvers(self, name: str) -> tuple[str, ...]:
        """Who may say yes to this tool by today's settings."""
        return self.terms(name, {}).approvers if self._settings.access.identity != "none" else ()

    def refusal(self, run: Run, act: Act, effect: EffectClass, tools: Mapping[str, Tool]) -> str | None:
        """Why nobody could say yes to this call, where it needs that; or None."""
        name, needed = act.call.name, self.terms(act.call.name, tools)
        tainted_by = self._tainted_by(run, act, effect, tools)
        if not tainted_by and not needed.hold_for(run.job):
            return None
        why = approval.nobody(needed, name, self._settings.access.identity)
        if why is None and not approval.eligible(needed, run.job):
            why = "it needs the yes of somebody else than who asks for it, and there is no other approver"
        if why is None:
            return None
        if tainted_by:
            return taint.refusal(name, tainted_by, run.job.type, why)
        return approval.hindrance(needed, name, self._settings.access.identity) or f"{name}: {why}"

    def asked(self, run: Run, act: Act, effect: EffectClass, tools: Mapping[str, Tool]) -> AskedApproval | str | None:
        """What a person is to be asked before this call may start; why it may not, in words; or None: it may."""
        needed = self.terms(act.call.name, tools)
        if run.ask is not None and run.said is not None:
            known = self._hash(run, act, run.ask.nonce)
            return approval.lapsed(run, known or "", needed, self._lived_s())
        tainted_by = self._tainted_by(run, act, effect, tools)
        if not tainted_by and not needed.hold_for(run.job):
            return None
        if why := self._no_room(run.job.who):
            return why
        nonce = os.urandom(16).hex()
        named = self._hash(run, act, nonce)
        if named is None:
            return f"{act.call.name}: its arguments have a number that cannot be put to a person exactly"
        shown = self._shown(act.call.args, tools[act.call.name])
        if shown is None:
            return f"{act.call.name}: its arguments are too large to be shown to a person whole"
        return AskedApproval(
            n=act.n,
            ask_hash=named,
            nonce=nonce,
            approvers=approval.eligible(needed, run.job),
            seconds=needed.seconds,
            until_s=round(self._lived_s() + needed.seconds, 3),
            shown=shown,
            risk=approval.RISK[effect] + (f"; it costs {cost:g}" if (cost := self.cost(act.call.name, tools)) else ""),
            tainted_by=tainted_by,
            hidden=shown != act.call.args,
        )

    def trusts(self, task_type: str) -> bool:
        """Whether a task of this type may act on free text without a person's yes."""
        kind = self._settings.task_type(task_type)
        return kind is not None and kind.untrusted == "allow"

    def cost(self, name: str, tools: Mapping[str, Tool]) -> float:
        """What a call of this tool costs on this node."""
        return gate.cost_of(rule for rule in (tools[name].rule, self._settings.gates.get(name)) if rule is not None)

    def faults(self, tools: Mapping[str, Tool]) -> list[str]:
        """Tools that wait for a yes which nobody can give."""
        return [why for name in sorted(tools) if (why := self.hindrance(name, tools)) is not None]

    def hindrance(self, name: str, tools: Mapping[str, Tool]) -> str | None:
        return approval.hindrance(self.terms(name, tools), name, self._settings.access.identity)

    def _tainted_by(self, run: Run, act: Act, effect: EffectClass, tools: Mapping[str, Tool]) -> str:
        """Where the free text came from for which this call needs a yes; empty where it needs none for that."""
        if not act.tainted:
            return ""
        if self.trusts(run.job.type) and self._newer_trusts(run.job.type):
            return ""
        now = tools.get(act.call.name)
        outward = taint.is_outward_in(run, act.call) or (now is not None and taint.is_outward(now))
        return run.tainted_by if taint.is_held(effect, outward) else ""

    def _no_room(self, who: str) -> str | None:
        if self._store.count_asking(who) >= MOST_OF_ONE or self._store.count_asking() >= MOST:
            return "too many calls wait for a person already"
        return None

    def _hash(self, run: Run, act: Act, nonce: str) -> str | None:
        try:
            return approval.ask_hash(self._node, f"{run.id}-{act.n}", act.call, run.job, nonce)
        except ValueError:
            return None

    def _shown(self, args: Args, tool: Tool) -> Args | None:
        """The arguments as people may see them."""
        from rea_edge.redact import redacted, without_credentials  # when there is something to hide

        told = Raw(msgspec.json.encode(without_credentials(args, tool.redact)))
        told = redacted(told, self._settings.secrets)
        return msgspec.json.decode(told, type=dict[str, object]) if len(told) <= SHOWN_MAX else None
