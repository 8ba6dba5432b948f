"""What a question changes in a run: how it is put, that it is out, that nothing came of it. Pure.

Ends no run and reads no answer: see `loop`, whose table says when these may come.
"""

from msgspec import structs

from rea_edge import budget, context
from rea_edge.records import Asked, Moved, Run, Switched, Unanswered
from rea_edge.retold import retold


def switched(run: Run, event: Switched) -> Run:
    """In another protocol, which is not changed again."""
    assert run.begun is not None
    begun = structs.replace(
        run.begun,
        protocol=event.protocol,
        opening=event.opening,
        ask=event.ask,
        answer_tokens=event.answer_tokens,
        next_protocol=None,
    )
    # Without the unreadable answers: they cost tokens, and a model writes again what it sees itself write.
    left_out = retold(run.history[: run.first], run.begun, event.protocol)
    history = left_out + retold(run.history[run.first : -run.malformed], run.begun, event.protocol)
    first = min(len(left_out), max(len(history) - 1, 0))
    notes = (*run.unheard, *run.notes)
    return structs.replace(
        run, begun=begun, history=history, first=first, malformed=0, sent="", notes=notes, unheard=()
    )


def moved(run: Run, event: Moved) -> Run:
    """To another endpoint, or put in another way; what was said stays as it is."""
    assert run.begun is not None
    begun = structs.replace(
        run.begun,
        endpoint=event.endpoint,
        model=event.model,
        ask=event.ask,
        context_tokens=event.context_tokens,
        without=event.without,
    )
    return structs.replace(run, begun=begun, used=budget.spend_seconds(run.used, event.seconds), sent="")


def asked(run: Run, event: Asked) -> Run:
    """It goes out: what it tells is part of the history from now on, and the most it may cost is charged."""
    history = run.history
    if event.turns:
        history = (*history[:-1], (*history[-1], *event.turns))
    return structs.replace(
        run,
        phase="asked",
        history=history,
        told=(),
        notes=run.notes[event.notes :],
        # Told behind an answer that could not be read, which a switch leaves out.
        unheard=(*run.unheard, *run.notes[: event.notes]) if run.malformed else (),
        first=event.first,
        used=budget.reserve(run.used, event.reserved),
        reserved=event.reserved,
        sent=event.prefix,
        recheck=False,
    )


def unanswered(run: Run, event: Unanswered) -> Run:
    """Nothing came of it. Where the prompt was too long, the context is reckoned smaller from now on."""
    begun = context.shrunk(run, event) if event.fault == "context_overflow" else run.begun
    used = budget.write_off(run.used, run.reserved, charged=event.charged)
    return structs.replace(
        run,
        phase="ready",
        begun=begun,
        used=budget.spend_seconds(used, event.seconds),
        reserved=0,
        strikes=0,
        unanswered=run.unanswered + 1,
        trouble=f"{event.fault}: {event.message}",
    )
