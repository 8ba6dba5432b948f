"""How long to rest between connections. Pure: the clock and chance are given as numbers."""

SETTLED_S = 10.0  # a connection that lived this long has nothing to do with the failures before it
TAKEOVERS = 3  # quick ends by the other side in a row that may still be a broker in trouble


class Backoff:
    """Doubles from `min_s` to `max_s`, starts again after a settled connection, and notices a quarrel over the id."""

    def __init__(self, min_s: float, max_s: float) -> None:
        self._min_s = min_s
        self._max_s = max(min_s, max_s)
        self._failures = 0
        self._takeovers = 0

    @property
    def contested(self) -> bool:
        """True when connections keep being ended by the broker soon after they came up: most likely a second
        client uses the same id, and each takes the session from the other."""
        return self._takeovers > TAKEOVERS

    def rest_s(self, *, up_s: float, ended_by_peer: bool, chance: float) -> float:
        """Seconds to rest after a connection that was up for `up_s` (0: never). `chance` in 0..1 is the jitter:
        half of the rest is fixed, so that many nodes after a power cut do not come back in step."""
        if up_s >= SETTLED_S:
            self._failures = 0
        if up_s > 0 and ended_by_peer and up_s < SETTLED_S:
            self._takeovers += 1
        elif up_s >= self._max_s:
            self._takeovers = 0
        ceiling_s = self._max_s if self.contested else min(self._max_s, self._min_s * 2**self._failures)
        self._failures = min(self._failures + 1, 16)
        return ceiling_s * (0.5 + chance / 2)
