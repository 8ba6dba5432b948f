"""What all tasks together may spend in a day and in a month, over restarts and clocks that jump. Pure.

Tokens and what calls cost are counted alike, in counts of their own.

A period is a day or month of the calendar in UTC, told by `timeline.today`: the first trusted time of a boot, counted
on by boot time. Why so:
- A clock that jumps within a boot, either way and however often, neither renews a count nor charges it twice.
- Over a reboot nothing but the wall clock knows how long the board was off, so a later period is believed and begins a
  new count, once: the count then has that period, and only a still later one renews it again.
- An earlier period than the count has (the clock was ahead before, or is behind now) renews nothing, and neither does
  a clock that is not trusted. Then a count lasts 24 hours, or 30 days, of the time lived. A reboot alone renews nothing.
- A count that began without a clock takes the period in which the clock came to be trusted; it is not renewed by that.
Reservations that are open when a count is renewed go over into the new one, where they will be settled.
"""

import datetime
from typing import Literal

import msgspec
from msgspec import field

from rea_edge.records import Frozen

Allowed = Literal["day_tokens", "month_tokens", "day_cost", "month_cost"]
Amount = int | float
DECIMALS = 6  # of a cost
DAY_S = 86_400.0
MONTH_S = 30 * DAY_S
_LATEST = 253_000_000_000.0  # in the year 9987; calendars end with 9999


class Allowance(Frozen, frozen=True, kw_only=True, omit_defaults=False):
    """Tokens, and what calls cost, of all tasks and direct calls together; 0 is no limit."""

    day_tokens: int = 0
    month_tokens: int = 0
    day_cost: float = 0.0
    month_cost: float = 0.0

    @property
    def of_tokens(self) -> "Limited":
        return (("day_tokens", self.day_tokens), ("month_tokens", self.month_tokens))

    @property
    def of_cost(self) -> "Limited":
        return (("day_cost", self.day_cost), ("month_cost", self.month_cost))


Limited = tuple[tuple[Allowed, Amount], tuple[Allowed, Amount]]  # of a day, and of a month


class Count(Frozen, frozen=True, kw_only=True):
    """What was spent since `since_s` of the time lived. `period` numbers the day or month, None if it is not known."""

    amount: Amount = field(default=0, name="tokens")
    since_s: float = 0.0
    period: int | None = None


class Spent(Frozen, frozen=True, kw_only=True):
    """Both counts, open reservations included; `reserved` is the sum of those."""

    day: Count = Count()
    month: Count = Count()
    reserved: int = 0


class Left(Frozen, frozen=True, kw_only=True):
    """What one limit leaves, and in how many seconds its count is renewed at the latest."""

    limit: Allowed
    amount: Amount
    of: Amount
    renewed_in_s: float


def charged(spent: Spent, now_s: float, today: float | None, amount: Amount, reserved: int = 0) -> Spent:
    """The counts after so much more (or less, when a reservation is settled), of which `reserved` are open."""
    spent = current(spent, now_s, today)
    return Spent(
        day=_plus(spent.day, amount), month=_plus(spent.month, amount), reserved=max(0, spent.reserved + reserved)
    )


def current(spent: Spent, now_s: float, today: float | None) -> Spent:
    """The counts as they stand now: those whose period is over begin anew."""
    day, month = (None, None) if today is None else (_day(today), _month(today))
    return Spent(
        day=_renewed(spent.day, now_s, day, DAY_S, spent.reserved),
        month=_renewed(spent.month, now_s, month, MONTH_S, spent.reserved),
        reserved=spent.reserved,
    )


def left(limited: Limited, spent: Spent, now_s: float, today: float | None) -> list[Left]:
    """What each limit that is set leaves, the day's first."""
    spent = current(spent, now_s, today)
    found: list[Left] = []
    (of_day, most_of_day), (of_month, most_of_month) = limited
    if most := most_of_day:
        ends_s = None if today is None else DAY_S - today % DAY_S
        steady = today is not None and spent.day.period == _day(today)
        found.append(_left(of_day, most, spent.day, now_s, DAY_S, ends_s if steady else None))
    if most := most_of_month:
        ends_s = None if today is None else _next_month(today) - today
        steady = today is not None and spent.month.period == _month(today)
        found.append(_left(of_month, most, spent.month, now_s, MONTH_S, ends_s if steady else None))
    return found


def _left(limit: Allowed, most: Amount, count: Count, now_s: float, length_s: float, ends_s: float | None) -> Left:
    in_s = max(0.0, count.since_s + length_s - now_s) if ends_s is None else ends_s
    return Left(limit=limit, amount=max(0, _rounded(most - count.amount)), of=most, renewed_in_s=round(in_s, 1))


def _renewed(count: Count, now_s: float, period: int | None, length_s: float, reserved: int) -> Count:
    known = count.period
    if period is not None and known is not None and period > known:
        return Count(amount=reserved, since_s=now_s, period=period)
    if (period is None or known is None or period < known) and now_s - count.since_s >= length_s:
        return Count(amount=reserved, since_s=now_s, period=period if period is None or known is None else known)
    return msgspec.structs.replace(count, period=period) if known is None and period is not None else count


def _plus(count: Count, amount: Amount) -> Count:
    return msgspec.structs.replace(count, amount=max(0, _rounded(count.amount + amount)))


def _rounded(amount: Amount) -> Amount:
    return amount if isinstance(amount, int) else round(amount, DECIMALS)


def _day(today: float) -> int:
    return int(today // DAY_S)


def _month(today: float) -> int:
    at = datetime.datetime.fromtimestamp(min(today, _LATEST), datetime.UTC)
    return at.year * 12 + at.month - 1


def _next_month(today: float) -> float:
    year, month = divmod(_month(today) + 1, 12)
    return datetime.datetime(year, month + 1, 1, tzinfo=datetime.UTC).timestamp()
