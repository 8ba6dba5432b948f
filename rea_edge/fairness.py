"""How much one sender may take of what all share: requests by a pace, places in the queue by a share. Pure.

A pace is a bucket of `burst` tokens that fills at `per_s`: each request takes one. It is counted for each sender
alone, so that nobody's flood slows down another. What a sender is told of his refusals has a pace as well: beyond it
he hears nothing and nothing is logged, or his refusals would push the answers of others out of the memory for them.
"""

from typing import Literal

from msgspec import Struct

Kind = Literal["run", "again", "query", "control", "refusal"]
SENDERS_MAX = 256  # whose buckets are remembered; more who are not idle share one


class Pace(Struct, frozen=True, kw_only=True):
    per_s: float
    burst: int


class Paces(Struct, frozen=True, kw_only=True):
    """`run`: new tasks and calls; `again`: those that were accepted and are sent again, which has a price on disk too."""

    run: Pace = Pace(per_s=2.0, burst=60)
    again: Pace = Pace(per_s=2.0, burst=60)
    query: Pace = Pace(per_s=30.0, burst=100)
    control: Pace = Pace(per_s=5.0, burst=60)
    refusal: Pace = Pace(per_s=2.0, burst=60)


class _Bucket(Struct):
    tokens: float
    at_s: float


class Fairness:
    """The buckets of all senders. Times are monotonic seconds, given by the caller; not thread-safe."""

    def __init__(self, paces: Paces) -> None:
        self._paces: dict[Kind, Pace] = {
            "run": paces.run,
            "again": paces.again,
            "query": paces.query,
            "control": paces.control,
            "refusal": paces.refusal,
        }
        self._buckets: dict[tuple[Kind, str], _Bucket] = {}
        self.unsaid = 0  # refusals that were not told

    def wait_s(self, kind: Kind, who: str, now_s: float) -> float:
        """Seconds until this sender may send the next of this kind; 0: now, and it is counted."""
        pace = self._paces[kind]
        bucket = self._bucket(kind, who, now_s)
        bucket.tokens = min(pace.burst, bucket.tokens + (now_s - bucket.at_s) * pace.per_s)
        bucket.at_s = now_s
        if bucket.tokens < 1:
            return (1 - bucket.tokens) / pace.per_s
        bucket.tokens -= 1
        return 0.0

    def is_told(self, who: str, now_s: float) -> bool:
        """Whether this sender is told of one more refusal."""
        told = self.wait_s("refusal", who, now_s) == 0
        self.unsaid += not told
        return told

    def _bucket(self, kind: Kind, who: str, now_s: float) -> _Bucket:
        key = (kind, who)
        if key not in self._buckets:
            if len(self._buckets) >= SENDERS_MAX:
                self._forget_idle(now_s)
            if len(self._buckets) >= SENDERS_MAX:
                key = (kind, "")  # no name: whoever makes up names for a flood floods himself
            self._buckets.setdefault(key, _Bucket(self._paces[kind].burst, now_s))
        return self._buckets[key]

    def _forget_idle(self, now_s: float) -> None:
        """A bucket that is full again says nothing."""
        for (kind, who), bucket in list(self._buckets.items()):
            pace = self._paces[kind]
            if bucket.tokens + (now_s - bucket.at_s) * pace.per_s >= pace.burst:
                del self._buckets[kind, who]


def no_place(size: int, own: int, total: int) -> str | None:
    """Why a sender with `own` of `total` places in a queue of `size` gets no more, or None.

    Alone he may fill it. While others wait he may not take more than half of it; and where he has filled it, others
    still get in, up to half as much again.
    """
    share = max(1, size // 2)
    if own >= share and own < total:
        return f"{own} requests of yours wait already: half of the queue, and others wait too"
    if total >= size + (size // 2 if own < share else 0):
        return f"{total} requests wait already"
    return None
