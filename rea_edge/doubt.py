"""A call that was started and whose end nobody saw: what a probe says of it, and what is made of that. Pure.

The intent of a call carries its probe, filled in: a read and what it must return if the call took effect. So a run
that is taken up asks what was meant at the start, whatever the tool declares by then.
"""

from collections.abc import Collection, Mapping

import msgspec
from msgspec import UNSET, Raw, structs

from rea_edge import budget, condition
from rea_edge.changes import changed
from rea_edge.condition import Incomparable
from rea_edge.parameters import PLACE, given
from rea_edge.records import (
    Args,
    Call,
    Criterion,
    CutOff,
    Doubted,
    Fault,
    Intended,
    Ok,
    OpenCall,
    Recall,
    Record,
    Refused,
    Result,
    Returned,
    Run,
    Verified,
    Verify,
)

_LOOK = "do not repeat it; read the device's state or ask a person"


def filled(declared: Criterion, args: Args, parameters: Args) -> Criterion | None:
    """The probe of a call with these arguments: `{name}` stands for an argument or its default; None if there is none."""
    known = given(parameters, args)
    try:
        probed = {key: _put_in(value, known) for key, value in declared.args.items()}
        return structs.replace(declared, args=probed, value=_put_in(declared.value, known))
    except KeyError:
        return None


def intended(run: Run, event: Intended) -> Run:
    """The call is about to start, for what the shell took it for, and is paid for."""
    head = run.open[0]
    run = changed(run, used=budget.pay(run.used, event.cost))
    meant = structs.replace(head, intended=True, effect=event.effect, verify=event.verify, recall=event.recall)
    return _with_head(run, meant)


def doubted(run: Run, event: Doubted) -> Run:
    head = run.open[0]
    return _with_head(run, structs.replace(head, fault=event.fault, spent_s=head.spent_s + event.seconds))


def verified(run: Run, event: Verified) -> Run:
    """What the probe found. A call that was cut off by a crash and that it finds undone is as if never started."""
    head = structs.replace(run.open[0], spent_s=run.open[0].spent_s + event.seconds)
    took = _took_effect(head.verify, event.result)
    may_run_again = took is False or (took is None and head.effect != "once")
    if may_run_again and head.fault is None and run.cancel is None:
        return _with_head(run, structs.replace(head, intended=False, verify=None, begun=took is None))
    return _with_head(run, structs.replace(head, checked=event.result))


def begun(run: Run) -> Run:
    """A run that a crash cut off while its first open call may have been under way, without a row that says so."""
    head = run.open[0]
    # A call that was allowed by a person, like any that acts once, does not start without its intent.
    leaves_a_row = head.intended or head.effect != "idempotent" or run.said is not None
    return run if leaves_a_row or run.job.dry_run else _with_head(run, structs.replace(head, begun=True))


def cut_off(run: Run, event: CutOff) -> Run:
    head = run.open[0]
    run = changed(run, used=budget.spend_seconds(run.used, event.seconds), strikes=0)
    return _with_head(run, structs.replace(head, begun=True))


def refused(event: Refused) -> Refused:
    """A no to a call that may have run before: it ends without anybody knowing whether it did."""
    why = f"it may have taken effect before the restart, and may not run again: {event.reason}"
    return structs.replace(event, reason=why)


def unknown(said: Fault) -> Fault:
    return structs.replace(said, fault="unknown", suggestion=_LOOK)


def next_effect(run: Run, *, probing: bool) -> Verify | Recall | Record:
    """What is to be done about the call that is open and was started. `probing`: its probe may still be asked."""
    head = run.open[0]
    if head.recall and head.verify is None and probing:
        return Recall(n=head.n, call=head.call, seconds=run.job.limits.tool_s)
    if head.checked is not None or head.verify is None or not probing:
        return Record(event=_concluded(head))
    read = Call(name=head.verify.tool, args=head.verify.args)
    return Verify(n=head.n, call=read, seconds=run.job.limits.tool_s)


def recalled(head: OpenCall, result: Result | None, seconds: float, open_ends: Collection[str]) -> Returned:
    """The end of a call by the word of who carried it out; None: he could not say, and so nobody knows."""
    result = _cut_off(head) if result is None else result
    unknown = isinstance(result, Fault) and result.fault in open_ends and head.effect == "once"
    return Returned(n=head.n, result=result, seconds=seconds, unknown=unknown)


def _concluded(head: OpenCall) -> Returned:
    took = None if head.checked is None else _took_effect(head.verify, head.checked)
    if took is True and head.verify is not None and isinstance(head.checked, Ok):
        data = {"done": True, "verified_by": head.verify.tool, "found": head.checked.data}
        return Returned(n=head.n, result=Ok(data=Raw(msgspec.json.encode(data))), seconds=head.spent_s)
    fault = head.fault or _cut_off(head)
    if took is False and head.verify is not None:
        fault = structs.replace(fault, message=f"{fault.message}; {head.verify.tool} says that it did not take effect")
        return Returned(n=head.n, result=fault, seconds=head.spent_s)
    if head.verify is not None:
        fault = structs.replace(fault, message=f"{fault.message}; {head.verify.tool} could not tell")
    return Returned(n=head.n, result=fault, seconds=head.spent_s, unknown=head.effect == "once")


def _cut_off(head: OpenCall) -> Fault:
    again = "it may be called again, which is charged again"  # only what costs is not started anew by itself
    return Fault(
        fault="unknown",
        message=f"the device restarted during this call of {head.call.name}: its outcome is unknown",
        suggestion=_LOOK if head.effect == "once" else again,
    )


def _took_effect(probe: Criterion | None, result: Result) -> bool | None:
    """None: it cannot be told. A value of another kind than what is compared with says nothing."""
    if probe is None or isinstance(result, Fault):
        return None
    data: object = msgspec.json.decode(result.data)
    value = condition.lookup(data, probe.path) if probe.path else data
    if value is UNSET:
        return None
    compared = condition.compare(value, probe.op, probe.value)
    if not isinstance(compared, Incomparable):
        return compared
    if probe.op in ("==", "!=") and type(value) is type(probe.value):
        return condition.same(value, probe.value) == (probe.op == "==")
    return None


def _put_in(value: object, known: Mapping[str, object]) -> object:
    """Raises KeyError for a parameter that has no value."""
    place = PLACE.fullmatch(value) if isinstance(value, str) else None
    return known[place[1]] if place else value


def _with_head(run: Run, head: OpenCall) -> Run:
    return changed(run, open=(head, *run.open[1:]))
