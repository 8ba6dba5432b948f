"""Which message it is that the connection does not survive. Pure: it is told what was on the way when one ended."""

from collections.abc import Sequence

from rea_edge.mqtt.messages import Outgoing

TRIES = 3
BAD_MOST = 100


class Suspects:
    """What was on the way when a connection ended is suspect until it is acknowledged. While there are suspects the
    owner sends one message at a time, so that after the first end each further one has a single cause."""

    def __init__(self) -> None:
        self._ends: dict[int | str, int] = {}
        self._bad: dict[str, None] = {}  # topics of messages that were given up

    def __bool__(self) -> bool:
        return bool(self._ends)

    def ended(self, flying: Sequence[Outgoing]) -> Outgoing | None:
        """A connection ended; the message that has now ended `TRIES` of them, the last ones by itself, if any."""
        for key in {_key(out) for out in flying}:
            self._ends[key] = self._ends.get(key, 0) + 1
        if len(flying) == 1 and self._ends[_key(flying[0])] >= TRIES:
            self.clear(flying[0])
            self._bad[flying[0].topic] = None
            if len(self._bad) > BAD_MOST:
                del self._bad[next(iter(self._bad))]
            return flying[0]
        return None

    def bad(self, topic: str) -> bool:
        """A message to this topic was given up."""
        return topic in self._bad

    def expect(self, out: Outgoing) -> None:
        """The next to a bad topic: it goes alone, and one end is enough."""
        self._ends[_key(out)] = TRIES - 1

    def clear(self, out: Outgoing) -> None:
        self._ends.pop(_key(out), None)

    def clear_all(self) -> None:
        """Nothing is left to be sent: those that are still suspect were given up by their owners, or replaced."""
        self._ends.clear()


def _key(out: Outgoing) -> int | str:
    # What is only told, and births, which are made anew each time, have no other name than their topic.
    return out.topic if out.row is None else out.row
