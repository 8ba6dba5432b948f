"""Cancels that came before their task: marks in the store, so that a late request ends without having started.

Bounded in number, of each sender and of all, and in age. Holds no transport and no policy.
"""

import msgspec

from rea_edge.records import CancelAsked, Frozen
from rea_edge.store import Transaction

KEY = "early_cancels"
KEEP_S = 86_400.0  # a request lies in a queue for its `ttl_ms`, an hour where it does not say; a day is well beyond
MOST_OF_ONE = 20  # of one sender: who floods pushes out his own
MOST = 200


class Mark(Frozen, frozen=True, kw_only=True):
    """Whose task of this id is cancelled, by whom, since when (None: not known yet)."""

    who: str
    task: str
    by: str
    text: str = ""
    at: float | None = None


_MARKS = msgspec.json.Decoder(tuple[Mark, ...])


def note(tx: Transaction, mark: Mark) -> None:
    """Keep this mark, the first one for its task, and the newest of the others as far as there is room."""
    marks = _fresh(tx, mark.at)
    if any(_same(one, mark.who, mark.task) for one in marks):
        return
    of_one = [one for one in marks if one.who == mark.who]
    pushed_out = of_one[0] if len(of_one) >= MOST_OF_ONE else None
    _write(tx, [*(one for one in marks if one is not pushed_out), mark][-MOST:])


def take(tx: Transaction, who: str, task: str, now: float | None) -> CancelAsked | None:
    """The cancel that waits for this task; it is used up."""
    if tx.meta_get(KEY) is None:
        return None
    marks = _fresh(tx, now)
    found = next((one for one in marks if _same(one, who, task)), None)
    if found is None:
        return None
    _write(tx, [one for one in marks if one is not found])
    return CancelAsked(by=found.by, text=found.text)


def _fresh(tx: Transaction, now: float | None) -> list[Mark]:
    """Those that are not too old; of one whose age is not known it is reckoned from now."""
    kept = tx.meta_get(KEY)
    marks = _MARKS.decode(kept) if kept else ()
    if now is None:
        return list(marks)
    aged = (msgspec.structs.replace(one, at=now) if one.at is None else one for one in marks)
    return [one for one in aged if one.at is not None and now - one.at <= KEEP_S]


def _write(tx: Transaction, marks: list[Mark]) -> None:
    tx.meta_set(KEY, msgspec.json.encode(marks).decode() if marks else None)


def _same(mark: Mark, who: str, task: str) -> bool:
    return (mark.who, mark.task) == (who, task)
