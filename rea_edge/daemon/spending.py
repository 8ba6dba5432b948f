"""What all tasks together have spent and may still spend. Owns the row `spent` of the store; the rules are in `allowance`.

The row is written in the commit that charges or settles a question, never in one of its own, and only where a limit
is set: each costs a page of flash.
"""

from contextlib import suppress

import msgspec

from rea_edge import allowance
from rea_edge.allowance import Allowance, Left, Spent
from rea_edge.budget import LEAST_ANSWER
from rea_edge.daemon.life import Life
from rea_edge.errors import RequestRefused, StoreUnusable
from rea_edge.store import Reading, Store, Transaction
from rea_edge.wire import BudgetLeft

_KEY = "spent"


class Spending:
    """The books of one node: what the journal charges to, in its own transaction."""

    def __init__(self, limits: Allowance, store: Store, life: Life) -> None:
        self._limits = limits
        self._store = store
        self._life = life
        self._limited = limits != Allowance()
        self._stale = not self._limited and store.meta_get(_KEY) is not None

    def lived_s(self) -> float:
        return self._life.lived_s()

    def charge(self, tx: Transaction, tokens: int, reserved: int) -> None:
        """Add tokens (of which `reserved` are open) to the counts, or give some back."""
        if self._limited:
            spent = allowance.charged(_spent(tx), *self._when(), tokens, reserved)
            tx.meta_set(_KEY, msgspec.json.encode(spent).decode())
        elif self._stale:
            tx.meta_set(_KEY, None)  # a limit that is set again later counts from then on
            self._stale = False

    def left(self) -> Left | None:
        """What is left by the limit that leaves least; None where there is no limit."""
        return min(self._lefts(), key=lambda one: one.tokens, default=None)

    def check(self) -> None:
        """Refuse a task that could not ask one question."""
        least = self.left()
        if least is not None and least.tokens < LEAST_ANSWER:
            used = f"{least.of - least.tokens} of {least.of} {least.limit} are spent"
            raise RequestRefused("budget_exceeded", f"{used}; renewed in {least.renewed_in_s:.0f} s", retryable=True)

    def shown(self) -> dict[str, BudgetLeft]:
        """What is left, by limit; nothing of a store that has broken, for the last words are said even then."""
        found: dict[str, BudgetLeft] = {}
        with suppress(StoreUnusable):
            for one in self._lefts():
                found[one.limit] = BudgetLeft(left=one.tokens, of=one.of, renewed_in_s=one.renewed_in_s)
        return found

    def faults(self) -> list[str]:
        return [f"{limit}: all {one.of} are spent" for limit, one in self.shown().items() if one.left < LEAST_ANSWER]

    def _lefts(self) -> list[Left]:
        return allowance.left(self._limits, _spent(self._store), *self._when()) if self._limited else []

    def _when(self) -> tuple[float, float | None]:
        return self._life.lived_s(), self._life.today()


def _spent(store: Reading) -> Spent:
    text = store.meta_get(_KEY)
    return msgspec.json.decode(text, type=Spent) if text else Spent()
