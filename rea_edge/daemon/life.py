"""How long the state has lived and how long the node was away, kept over restarts. Owns the row `life` of the store.

The rules are in `timeline`; here are the clocks and what is kept. Thread-safe.
"""

import threading
from collections.abc import Callable

import msgspec

from rea_edge import timeline
from rea_edge.clock import boot_id, boot_s
from rea_edge.records import Frozen
from rea_edge.store import Reading, Store, Transaction
from rea_edge.timeline import Moment, Timeline

_KEY = "life"


class Kept(Frozen, frozen=True, kw_only=True):
    """`newest` is the newest wall time ever trusted, `up` the moment at which the connection was last known to be up,
    `controls_up` that of the session for controls."""

    line: Timeline
    newest: float | None = None
    up: Moment | None = None
    controls_up: Moment | None = None


class Life:
    """`clock` gives wall seconds or None while it is not trusted, `uptime` boot-time seconds of the boot named `boot`."""

    def __init__(
        self,
        store: Store,
        clock: Callable[[], float | None],
        uptime: Callable[[], float] = boot_s,
        boot: str | None = None,
    ) -> None:
        self._clock = clock
        self._uptime = uptime
        self._boot = boot or boot_id()
        self._lock = threading.Lock()
        kept = _kept(store)
        self._newest = kept.newest if kept else None
        self._up = kept.up if kept else None
        self._controls_up = kept.controls_up if kept else None
        self._connected = self._controls = False
        self.news = False  # the connection has begun or ended since this was last written down
        self._line = timeline.onward(kept.line if kept else None, self._now())

    def lived_s(self) -> float:
        """Seconds this state has lived: what every stamp that is kept is made of. Never goes back."""
        with self._lock:
            return self._onward().lived_s

    def today(self) -> float | None:
        """Wall seconds for what depends on the calendar, steady within a boot; None while no time was trusted."""
        with self._lock:
            return timeline.today(self._onward())

    def away_s(self, *, controls: bool) -> float:
        """How long the broker may have kept messages for this session before this connection."""
        with self._lock:
            return timeline.away_s(self._controls_up if controls else self._up, self._now())

    def began(self, *, controls: bool) -> None:
        """The connection is up; `controls`: that of the session for controls, too."""
        with self._lock:
            self._connected, self._controls, self.news = True, controls, True

    def ended(self, silent_s: float = 0.0) -> None:
        """The connection has ended, in this moment or (nobody knows) up to `silent_s` ago."""
        with self._lock:
            self._up, self._controls_up = self._last_up(timeline.before(self._now(), silent_s))
            self._connected = self._controls = False
            self.news = True

    def keep(self, tx: Transaction) -> None:
        """Write down that the node was up at this time."""
        with self._lock:
            line, now = self._onward(), self._now()
            self._newest = now.wall if now.wall is not None else self._newest
            self.news = False
            up, controls_up = self._last_up(now)
            kept = Kept(line=line, newest=self._newest, up=up, controls_up=controls_up)
        tx.meta_set(_KEY, msgspec.json.encode(kept).decode())

    def _last_up(self, now: Moment) -> tuple[Moment | None, Moment | None]:
        return now if self._connected else self._up, now if self._controls else self._controls_up

    def _now(self) -> Moment:
        return Moment(boot=self._boot, boot_s=round(self._uptime(), 3), wall=self._clock())

    def _onward(self) -> Timeline:
        self._line = timeline.onward(self._line, self._now())
        return self._line


def newest_trusted(store: Reading) -> float | None:
    """The newest wall time that a node with this state has trusted."""
    kept = _kept(store)
    return kept.newest if kept else None


def _kept(store: Reading) -> Kept | None:
    text = store.meta_get(_KEY)
    return msgspec.json.decode(text, type=Kept) if text else None
