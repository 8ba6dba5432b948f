"""The bounded queue of what is told. Pure: it counts and drops, and knows neither time nor connection."""

from collections import deque

from rea_edge.mqtt.messages import Outgoing

MOST = 200
MOST_BYTES = 512 * 1024


class Waiting:
    """Messages in memory until they can be sent. Over either cap the oldest QoS 0 message goes first, then the
    oldest QoS 1 message; both are counted. A message larger than the cap alone is dropped at once."""

    def __init__(self, most: int = MOST, most_bytes: int = MOST_BYTES) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._queue: deque[Outgoing] = deque()
        self.size_bytes = 0
        self.dropped_qos0 = 0
        self.dropped_qos1 = 0

    def __len__(self) -> int:
        return len(self._queue)

    def put(self, out: Outgoing) -> None:
        self._queue.append(out)
        self._settle(size_of(out))

    def put_back(self, outs: list[Outgoing]) -> None:
        """In front again, in their order: they were sent and not acknowledged when the connection ended."""
        self._queue.extendleft(reversed(outs))
        self._settle(sum(map(size_of, outs)))

    def take(self, room: int) -> Outgoing | None:
        """The oldest that may go: QoS 0 always, QoS 1 only where `room` is left in the window."""
        for at, out in enumerate(self._queue):
            if out.qos == 0 or room > 0:
                del self._queue[at]
                self.size_bytes -= size_of(out)
                return out
        return None

    def drop_qos0(self) -> None:
        """What is only worth something at once is not kept while there is no connection."""
        for out in [out for out in self._queue if out.qos == 0]:
            self._drop(out)

    def _settle(self, added_bytes: int) -> None:
        self.size_bytes += added_bytes
        while len(self._queue) > self._most or self.size_bytes > self._most_bytes:
            self._drop(next((out for out in self._queue if out.qos == 0), self._queue[0]))

    def _drop(self, out: Outgoing) -> None:
        # By identity: two equal messages are two messages, and the older one is the one meant.
        at = next(at for at, other in enumerate(self._queue) if other is out)
        del self._queue[at]
        self.size_bytes -= size_of(out)
        if out.qos == 0:
            self.dropped_qos0 += 1
        else:
            self.dropped_qos1 += 1


def size_of(out: Outgoing) -> int:
    return len(out.topic) + len(out.payload)
