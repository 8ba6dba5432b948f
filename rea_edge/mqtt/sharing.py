"""Whether the controls can have a session of their own. Pure: it is told how lives of the link went."""

TRIES = 2  # a life that ends while the second connection is made may be a broker that restarts; two in a row are not
AGAIN_S = 3600.0  # a broker's rules change seldom, and each try may cost the session a moment


class Sharing:
    """Own sessions are tried first. Some brokers allow a login one session (its client id is the login, or they take
    the first connection away for the second), or one connection: there all goes over one, for `AGAIN_S`."""

    def __init__(self, *, wanted: bool) -> None:
        self.why = ""  # the controls share the session of the rest; empty: they do not
        self.alone = ""  # how it showed that the broker allows one connection; stands until two were up
        self._wanted = wanted
        self._clashes = 0
        self._until_s = 0.0

    def own(self, now_s: float) -> bool:
        """Whether the next life begins with a session for the controls."""
        if self.why and now_s >= self._until_s:
            self.forget()
        return self._wanted and not self.why

    def worked(self, *, own: bool) -> None:
        """All is up; `own`: over two connections."""
        self._clashes = 0
        self.alone = "" if own else self.alone

    def refused(self, reason: str, now_s: float) -> None:
        """The broker answered the CONNECT of the controls with a refusal."""
        self.why, self._until_s = reason, now_s + AGAIN_S

    def clashed(self, reason: str, now_s: float) -> None:
        """A life ended while the rest connected beside the controls, which were up."""
        self._clashes += 1
        if self._clashes >= TRIES:
            self.alone = f"the broker allows one connection at a time ({reason})"
            self.refused(self.alone, now_s)

    def forget(self) -> None:
        """Try again: what was taken for a refusal of the second session may have been one of the login."""
        self.why = ""
        self._clashes = 0
