"""Which MQTT version to speak next. Pure: it is told how attempts ended."""

from typing import Literal

from rea_edge.mqtt.messages import Protocol

DOUBTS = 3  # times a broker that had spoken a version may stay silent before the other is tried


class Versions:
    """With `auto`: 5 first, 3.1.1 where the broker does not answer it; then the one that worked."""

    def __init__(self, setting: Literal["auto", "5", "3.1.1"]) -> None:
        self.fixed = setting != "auto"
        self.current: Protocol = "3.1.1" if setting == "3.1.1" else "5"
        self.known = self.fixed
        self._doubts = 0

    def worked(self) -> None:
        self.known = True
        self._doubts = 0

    def unanswered(self, *, unsupported: bool) -> bool:
        """The connection ended before a CONNACK, or with `unsupported` in it. True: try the other at once.

        A restarting broker looks the same as one that does not know the version, so a version that has worked is
        given up only when the broker says so, or after some silent ends in a row.
        """
        if self.fixed:
            return False
        if self.known and not unsupported:
            self._doubts += 1
            self.known = self._doubts < DOUBTS
            return False
        self.known = False
        self._doubts = 0
        was, self.current = self.current, "3.1.1" if self.current == "5" else "5"
        return was == "5" or unsupported
