"""What all tasks together have spent and may still spend. Owns two rows of the store; the rules are in `allowance`.

Row `spent` counts tokens, `spent_cost` what calls cost. A row is written in the commit that charges or settles a question
or starts a call, never in one of its own, and only where a limit is set: each costs a page of flash.
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
_COST_KEY = "spent_cost"


class Spending:
    """The books of one node: what the journal charges to, in its own transaction."""

    def __init__(self, limits: Allowance, store: Store, life: Life) -> None:
        self._store = store
        self._life = life
        self.limit(limits)

    def limit(self, limits: Allowance) -> None:
        """What holds from now on."""
        self._limits = limits
        self._limited = any(most for _, most in limits.of_tokens)
        self._cost_limited = any(most for _, most in limits.of_cost)
        self._stale = [
            key
            for key, limited in ((_KEY, self._limited), (_COST_KEY, self._cost_limited))
            if not limited and self._store.meta_get(key) is not None
        ]

    def lived_s(self) -> float:
        return self._life.lived_s()

    def charge(self, tx: Transaction, tokens: int, reserved: int) -> None:
        """Add tokens (of which `reserved` are open) to the counts, or give some back."""
        if self._limited:
            spent = allowance.charged(_spent(tx, _KEY), *self._when(), tokens, reserved)
            tx.meta_set(_KEY, msgspec.json.encode(spent).decode())
        self._forget(tx)

    def pay(self, tx: Transaction, cost: float) -> None:
        """Charge the start of a call. Raises `RequestRefused` where that passes a limit; then nothing was written."""
        if self._cost_limited:
            if (why := self._too_dear(tx, cost)) is not None:
                raise RequestRefused("budget_exceeded", why)
            spent = allowance.charged(_spent(tx, _COST_KEY), *self._when(), cost)
            tx.meta_set(_COST_KEY, msgspec.json.encode(spent).decode())
        self._forget(tx)

    def too_dear(self, cost: float) -> str | None:
        """Why a call that costs so much may not start now, or None."""
        return self._too_dear(self._store, cost) if self._cost_limited and cost else None

    def left(self) -> Left | None:
        """What is left by the limit that leaves least; None where there is no limit."""
        return min(self._tokens_left(), key=lambda one: one.amount, default=None)

    def check(self) -> None:
        """Refuse a task that could not ask one question."""
        least = self.left()
        if least is not None and least.amount < LEAST_ANSWER:
            used = f"{least.of - least.amount} of {least.of} {least.limit} are spent"
            raise RequestRefused("budget_exceeded", f"{used}; renewed in {least.renewed_in_s:.0f} s", retryable=True)

    def shown(self) -> dict[str, BudgetLeft]:
        """What is left, by limit; nothing of a store that has broken, for the last words are said even then."""
        found: dict[str, BudgetLeft] = {}
        with suppress(StoreUnusable):
            for one in (*self._tokens_left(), *self._cost_left(self._store)):
                found[one.limit] = BudgetLeft(left=one.amount, of=one.of, renewed_in_s=one.renewed_in_s)
        return found

    def faults(self) -> list[str]:
        tokens = {limit for limit, _ in self._limits.of_tokens}
        return [
            f"{limit}: all {one.of:g} are spent"
            for limit, one in self.shown().items()
            if one.left < (LEAST_ANSWER if limit in tokens else 1e-6)
        ]

    def _tokens_left(self) -> list[Left]:
        if not self._limited:
            return []
        return allowance.left(self._limits.of_tokens, _spent(self._store, _KEY), *self._when())

    def _cost_left(self, reading: Reading) -> list[Left]:
        if not self._cost_limited:
            return []
        return allowance.left(self._limits.of_cost, _spent(reading, _COST_KEY), *self._when())

    def _too_dear(self, reading: Reading, cost: float) -> str | None:
        for one in self._cost_left(reading):
            if cost > one.amount:
                renewed = f"renewed in {one.renewed_in_s:.0f} s"
                return f"it costs {cost:g}, and {one.amount:g} of {one.of:g} ({one.limit}) are left; {renewed}"
        return None

    def _forget(self, tx: Transaction) -> None:
        """A limit that is set again later counts from then on."""
        while self._stale:
            tx.meta_set(self._stale.pop(), None)

    def _when(self) -> tuple[float, float | None]:
        return self._life.lived_s(), self._life.today()


def _spent(store: Reading, key: str) -> Spent:
    text = store.meta_get(key)
    return msgspec.json.decode(text, type=Spent) if text else Spent()
