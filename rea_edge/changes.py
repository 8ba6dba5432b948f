"""What rules of more than one file change in a run: open calls, tell the model, close. Pure; decides nothing."""

from msgspec import structs

from rea_edge import aliases, circles, outcome
from rea_edge.errors import Code
from rea_edge.markup import plain
from rea_edge.records import Call, EffectClass, Ended, OpenCall, Run, Told


def changed(run: Run, **changes: object) -> Run:
    return structs.replace(run, **changes)


def opened(run: Run, calls: tuple[Call, ...], *, tainted: bool) -> Run:
    """The calls get the next numbers and are to be made in this order. `tainted`: see `OpenCall`."""
    added = tuple(
        OpenCall(n=run.calls + place, call=call, effect=_effect_of(run, call.name), tainted=tainted)
        for place, call in enumerate(calls, 1)
    )
    return changed(run, phase="acting", open=(*run.open, *added), calls=run.calls + len(added))


def told(run: Run, text: str, head: OpenCall | None = None) -> Run:
    """The model is told this with the next question, as the result of a call where there is one."""
    said = Told(text=text) if head is None else Told(n=head.n, tool=head.call.name, text=text)
    return changed(run, told=(*run.told, said))


def as_known(run: Run, text: str) -> str:
    """What we say of tools, by the names that the model of this run knows."""
    return aliases.in_their_names(text, run.begun.aliases) if run.begun else text


def told_result(run: Run, head: OpenCall, text: str) -> Run:
    """As `told`, with what is to be said about repetition, and on to the next call or question."""
    text, remark = plain(text), circles.remark(run, head.call)
    return gone_on(told(run, f"{text}\n{remark}" if remark else text, head))


def gone_on(run: Run) -> Run:
    return changed(run, phase="acting" if run.open else "ready")


def closed(run: Run, ended: Ended) -> Run:
    """Nothing more is done: what is left is to write this end down."""
    return changed(run, phase="closing", ended=ended, open=(), guard=None, told=())


def failed(run: Run, error: Code, reason: str) -> Ended:
    return Ended(outcome="failed", answer=outcome.fallback(run), reason=reason, error=error)


def _effect_of(run: Run, name: str) -> EffectClass:
    assert run.begun is not None
    # A call is only ever made of an offered tool; if our own bug breaks that, the strictest class holds.
    return next((offer.effect for offer in run.begun.offers if offer.name == name), "once")
