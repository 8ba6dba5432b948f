"""Our own message, sent to ourselves behind all that waited: what comes before it is old, and that it comes back shows
that the broker lets us write and read. Pure: time is given as a number."""

from collections.abc import Callable

OFTEN_S = 5.0
RETRY_S = 0.2
SOON = 6  # fences; then they are sent less often
SELDOM_S = 60.0
UNHEARD_S = 20.0


class Fence:
    """The fence of one connection; `ask` gives its topic, None where it has none. It is sent again until it is seen:
    a broker whose queue is full drops it."""

    def __init__(self, ask: Callable[[], str] | None, nonce: bytes) -> None:
        self.topic = ""
        self.nonce = nonce
        self.wanted = ask is not None
        self.seen = ask is None
        self.refused = False
        self._ask = ask
        self._sent = 0
        self._due_s = 0.0
        self._heard_s = 0.0  # when something came last

    def prepare(self) -> None:
        if self._ask is not None:
            self.topic = self._ask()

    def hear(self, topic: str, payload: bytes) -> bool:
        """True for every fence, also one of an earlier connection, which waited in the queue like the rest."""
        if not self.topic or topic.rpartition("/")[0] != self.topic.rpartition("/")[0]:
            return False
        if topic == self.topic and payload == self.nonce:
            self.seen = True
        return True

    def heard(self, now_s: float) -> None:
        """Something came; the fence may be behind it."""
        self._heard_s = now_s

    def due_s(self, now_s: float) -> float | None:
        """Seconds until it is to be sent, None once it was seen."""
        return None if self.seen else max(0.0, self._due_s - now_s)

    def is_sent(self, now_s: float) -> None:
        self._sent += 1
        self._due_s = now_s + (OFTEN_S if self._sent < SOON else SELDOM_S)

    def has_no_room(self, now_s: float) -> None:
        self._due_s = now_s + RETRY_S

    def unheard(self, up_since_s: float, now_s: float) -> bool:
        """It does not come back, and nothing else is coming that it could be behind."""
        return not self.seen and (self.refused or now_s - max(self._heard_s, up_since_s) > UNHEARD_S)
