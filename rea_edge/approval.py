"""A person's yes to one call: what must be shown to whom, what counts as a yes, and what it changes in a run. Pure.

A yes holds for one start of exactly the call that was asked about. Whatever else is said, or nothing, is a no.
"""

from typing import Literal

from msgspec import structs

from rea_edge import canonical
from rea_edge.records import AskedApproval, Call, Confirm, Decided, EffectClass, Frozen, Job, Rule, Run

Identity = Literal["none", "broker", "keys"]
STRICTNESS: tuple[Confirm, ...] = ("never", "task", "always")
RISK: dict[EffectClass, str] = {
    "read": "it only reads",
    "idempotent": "it acts; the same once more changes nothing more",
    "once": "it acts, and nothing takes it back",
}


class Terms(Frozen, frozen=True, kw_only=True):
    """Whether a tool's calls need a yes, whose, and how long they are waited for."""

    confirm: Confirm = "never"
    approvers: tuple[str, ...] = ()
    seconds: float = Rule().approve_s

    def hold_for(self, job: Job) -> bool:
        """Whether a call of this job needs a yes for what the tool is."""
        return self.confirm == "always" or (self.confirm == "task" and job.call is None)


def terms(declared: Rule | None, configured: Rule | None, usual: tuple[str, ...] = ()) -> Terms:
    """The stricter of what a tool declares and what the node says; who may say yes is the node's word alone: those it
    names for this tool, else the `usual` ones."""
    said: list[Confirm] = [rule.confirm for rule in (declared, configured) if rule is not None]
    confirm = max(said, default=STRICTNESS[0], key=STRICTNESS.index)
    if configured is None:
        return Terms(confirm=confirm, approvers=usual)
    return Terms(confirm=confirm, approvers=configured.approvers or usual, seconds=configured.approve_s)


def stricter(begun: Terms, newest: Terms) -> Terms:
    """What holds for a run that began under other rules than those of today. Whose yes counts is today's word alone."""
    return structs.replace(newest, confirm=max(begun.confirm, newest.confirm, key=STRICTNESS.index))


def hindrance(needed: Terms, name: str, identity: Identity) -> str | None:
    """Why nobody can say yes to this tool on this node, where all its calls need that; or None."""
    if needed.confirm == "never" or (why := nobody(needed, name, identity)) is None:
        return None
    return f"{name} needs a person's yes, and nobody can give it here: {why}"


def nobody(needed: Terms, name: str, identity: Identity) -> str | None:
    """Why there is nobody on this node who could say yes to this tool, or None."""
    if identity == "none":
        return 'with [access] identity = "none" anyone could take an approver\'s name'
    return None if needed.approvers else f"[gate.{name}] names no approvers, nor does [access]"


def eligible(needed: Terms, job: Job) -> tuple[str, ...]:
    """Who may say yes to a call of this job: nobody to his own, nor to one made on his behalf."""
    return tuple(name for name in needed.approvers if name != job.who and name not in job.via)


def ask_hash(node: str, request: str, call: Call, job: Job, nonce: str) -> str:
    """Names one call with its true arguments, and who asks for it. Raises ValueError where a number has no exact form."""
    return canonical.body_hash(
        {
            "node": node,
            "request": request,
            "tool": call.name,
            "args": call.args,
            "who": job.who,
            "via": list(job.via),
            "nonce": nonce,
        }
    )


def heard(ask: AskedApproval, answer: object, named: object) -> tuple[Literal["yes", "no"], str]:
    """What an approver's words count as, and why not as the yes that they may have been meant for."""
    match answer:
        case "yes" if named == ask.ask_hash:
            return "yes", ""
        case "yes":
            return "no", "its ask_hash is not that of the call that waits"
        case "no":
            return "no", ""
        case _:
            return "no", "its answer is neither yes nor no"


# --- in a run


def asked(run: Run, event: AskedApproval) -> Run:
    return structs.replace(run, phase="waiting", ask=event, strikes=0)


def is_about(run: Run, event: Decided) -> bool:
    """Whether this was said to what the run waits for."""
    return run.ask is not None and (run.ask.n, run.ask.ask_hash) == (event.n, event.ask_hash)


def allowed(run: Run, event: Decided) -> Run:
    return structs.replace(run, phase="acting", said=event, strikes=0)


def used(run: Run) -> Run:
    """The call starts, or has ended: what was said to it holds no longer."""
    return run if run.ask is None else structs.replace(run, ask=None, said=None)


def refusal(event: Decided) -> str:
    """A no, in words for the model and the sender."""
    if event.answer == "expired":
        return "nobody has said yes to it in time, which means no"
    return f"{event.by} has said no to it" + (f": {event.why}" if event.why else "")


def lapsed(run: Run, job_hash: str, needed: Terms, now_s: float) -> str | None:
    """Why the yes that this run has does not let its call start now, or None."""
    ask, said = run.ask, run.said
    assert ask is not None and said is not None
    if job_hash != ask.ask_hash:
        return "it is not the call that a person has said yes to"
    if said.by not in needed.approvers:
        return f"{said.by}, who has said yes to it, is no approver any more"
    if now_s - said.at_s > ask.seconds:
        return f"the yes of {said.by} has lapsed: it was given {now_s - said.at_s:.0f} s ago"
    return None
