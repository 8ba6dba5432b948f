"""One look at what a broker keeps of ours, on a connection that is up: subscribe, take what is retained, unsubscribe.

Pure: time is given as a number, and the connection does what is due.
"""

LOOK_S = 10.0
MOST = 2000  # messages


class Look:
    """`filter` empty: there is none. It has ended when its own echo has come back behind all that is retained (QoS 0, so
    that no queue delays it), or is due to end after `LOOK_S` or `MOST` messages."""

    def __init__(self, filter_: str) -> None:
        self.filter = filter_
        self.stage = "before" if filter_ else "over"
        self.echo = filter_.replace("#", "_self/look")
        self._prefix = filter_.removesuffix("#")
        self._until_s = 0.0
        self._found = 0

    def begin(self, now_s: float) -> None:
        self.stage = "looking"
        self._until_s = now_s + LOOK_S

    def end(self) -> None:
        self.stage = "over"

    def over_due(self, now_s: float) -> bool:
        return self.stage == "looking" and (now_s >= self._until_s or self._found >= MOST)

    def hears(self, topic: str) -> bool:
        """Whether a message is of this look, the echo included."""
        return self.stage == "looking" and topic.startswith(self._prefix)

    def found(self) -> None:
        self._found += 1
