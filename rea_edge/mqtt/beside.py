"""Whether a connection for devices may be beside the node's own link, which comes first. Pure: time is given as a number.

Some brokers allow a login one session, or some number of connections, and take an older one away for a new one. What
the link found out for its controls is believed; besides, it is looked at what became of the link.
"""

from collections.abc import Callable

from rea_edge.mqtt.messages import LinkState
from rea_edge.mqtt.sharing import Sharing

CLASH_S = 2.0  # a link that ends so soon after a connection beside it began may have ended because of it
LOOK_S = 0.1


class Beside:
    """`link` tells how the link is; None where there is none."""

    def __init__(self, link: Callable[[], LinkState] | None) -> None:
        self._link = link
        self._sharing = Sharing(wanted=True)
        self._sessions: int | None = None  # of the link when the connection beside it began, while that is looked at
        self._began_s = 0.0

    def forbidden(self, now_s: float) -> str:
        """Why none may be tried: it would cost the link its own. Empty: it may."""
        known = self._link().alone if self._link is not None else ""
        return known or ("" if self._sharing.own(now_s) else self._sharing.why)

    def early(self) -> str:
        """Why it is not known yet whether one may be tried; empty: it is."""
        if self._link is None or (state := self._link()).sessions:
            return ""
        return f"the node's own connection has not come up yet: {state.last_error or 'it waits'}"

    def began(self, now_s: float) -> None:
        """One is being made, right now."""
        state = self._link() if self._link is not None else None
        self._sessions = state.sessions if state is not None and state.connected else None
        self._began_s = now_s

    def look(self, now_s: float) -> bool:
        """Whether the one that was made is to be ended for the sake of the link. Ask now and then while it is there."""
        if self._link is None or self._sessions is None:
            return False
        state = self._link()
        if not state.connected or state.sessions != self._sessions:
            self._sessions = None
            self._sharing.clashed(state.last_error, now_s)
            return bool(self.forbidden(now_s))
        if now_s >= self._began_s + CLASH_S:
            self._sessions = None
            self._sharing.worked(own=True)
        return False

    def ended(self, now_s: float) -> None:
        """It is gone, for whatever reason. A broker that goes takes the link along, which is no clash; but a link that is
        back already went before it."""
        if self._link is not None and self._sessions not in (None, self._link().sessions):
            self.look(now_s)
        self._sessions = None

    @property
    def next_look_s(self) -> float:
        """Seconds until `look` should be asked again."""
        return LOOK_S if self._sessions is not None else float("inf")
