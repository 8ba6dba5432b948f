"""What goes out, and in which order: birth messages, what was told, the outbox. Owns no socket and no thread.

`tell` and `told` are for any thread; the rest is for the link's.
"""

import math
import threading
import time
from collections.abc import Callable, Sequence

from msgspec import structs

from rea_edge.mqtt.client import WINDOW
from rea_edge.mqtt.connection import Connection
from rea_edge.mqtt.messages import Outgoing
from rea_edge.mqtt.refusals import BROKE, Resting
from rea_edge.mqtt.suspects import Suspects
from rea_edge.mqtt.waiting import Waiting


class Feed:
    """Keeps a connection supplied as far as it is writable and its window has room."""

    def __init__(
        self,
        pull: Callable[[int], Sequence[Outgoing]],
        published: Callable[[Outgoing, int | None], None],
        refused: Callable[[Outgoing, int], None] = lambda _out, _reason: None,
    ) -> None:
        self._pull = pull
        self._published = published
        self._refused = refused
        self._births: list[Outgoing] = []
        self._suspects = Suspects()
        self._resting = Resting()
        self._lock = threading.Lock()
        self._more = True
        self._left: list[Outgoing] = []  # pulled, without a row to be found by again, and not sent yet
        self.told = Waiting()
        self.pull_due = True

    def tell(self, out: Outgoing, *, connected: bool) -> None:
        with self._lock:
            self.told.put(out)
            if not connected:
                self.told.drop_qos0()

    def begin(self, births: Sequence[Outgoing]) -> None:
        self._births = [out for out in births if not self._suspects.bad(out.topic)]
        self._resting = Resting()  # the rules of the broker may be others now
        self.pull_due = True

    def end(self, connection: Connection, *, blamed: bool) -> None:
        """The connection ended: births are made anew, rows pulled again, what was told is sent again. `blamed`: what
        was on the way may be why it ended."""
        kept = connection.kept
        broke = self._suspects.ended(connection.in_flight) if blamed else None
        if broke is not None:
            kept = [out for out in kept if out is not broke]
            self._published(broke, BROKE)
        self._births, self._left = [], []
        with self._lock:
            self.told.put_back(kept)
            self.told.drop_qos0()

    def acknowledged(self, out: Outgoing, reason: int | None) -> None:
        self.pull_due = self.pull_due or self._more or bool(self._suspects)
        self._suspects.clear(out)
        if out.row is not None:
            if reason is not None and self._resting.refused(out.row, reason, time.monotonic()):
                return self._refused(out, reason)
            self._resting.forget(out.row)
        return self._published(out, reason)

    @property
    def empty(self) -> bool:
        return not self._births and not self.told and not self.pull_due

    @property
    def resting(self) -> int:
        """Rows that were refused and are tried again later."""
        return len(self._resting)

    def more_for(self, connection: Connection) -> bool:
        """The outbox should be looked at once more before waiting."""
        return self.pull_due and connection.ready_for(1)

    def send_births(self, connection: Connection) -> None:
        while self._births and connection.ready_for(self._births[0].qos) and not self._alone(connection):
            connection.send(self._births.pop(0))

    def send(self, connection: Connection) -> None:
        """What was told and the rows of the outbox; nothing while births are left."""
        if self._births or self._alone(connection):
            return
        if not self._suspects:
            self._send_told(connection)
            self._send_rows(connection)
        if self._suspects and not connection.in_flight:
            self._send_one(connection)

    def _alone(self, connection: Connection) -> bool:
        """Something is on the way that must be so by itself."""
        return bool(self._suspects) and bool(connection.in_flight)

    def _send_one(self, connection: Connection) -> None:
        if not connection.ready_for(1):
            return
        rows = self._rows()
        self._left = [one for one in rows[1:] if one.row is None]
        with self._lock:
            out = rows[0] if rows else self.told.take(1)
        if out is None:
            self._suspects.clear_all()
            return
        if (out := _still_of_use(out, time.monotonic())) is None:
            return
        self.pull_due = out.qos == 0
        connection.send(out, keep=not rows and out.qos > 0)

    def _send_told(self, connection: Connection) -> None:
        """At most half of the window, so that many answers to queries cannot hold the outbox back."""
        share = max(1, connection.window // 2)
        while connection.writable:
            room = min(connection.room, share - len(connection.kept))
            with self._lock:
                out = self.told.take(room)
            if out is None:
                return
            if (fresh := _still_of_use(out, time.monotonic())) is not None:
                connection.send(fresh, keep=out.qos > 0)

    def _send_rows(self, connection: Connection) -> None:
        if not self.more_for(connection):
            return
        flying = {out.row for out in connection.in_flight if out.row is not None}
        self.pull_due = False
        rows = [out for out in self._rows() if out.row not in flying]
        for place, out in enumerate(rows):
            if self._suspects.bad(out.topic):
                self._suspects.expect(out)
            if self._suspects or not connection.ready_for(out.qos):
                self._more = self.pull_due = True
                self._left = [one for one in rows[place:] if one.row is None]
                return
            connection.send(out)
            self.pull_due = self._more

    def _rows(self) -> list[Outgoing]:
        """The next of the outbox without those that rest, behind what is left of the last look."""
        most = WINDOW + len(self._resting)
        rows, self._left = [*self._left, *self._pull(most)], []
        numbers = [out.row for out in rows if out.row is not None]
        # A page that was not full is all there is: nothing more to look for until something new is said.
        self._more = len(numbers) >= most
        self._resting.keep(set(numbers), max(numbers, default=0))
        now_s = time.monotonic()
        rows = [out for out in rows if not self._resting.rests(out.row, now_s)]
        return [out for out in rows if out.row is not None or not self._suspects.bad(out.topic)]


def _still_of_use(out: Outgoing, now_s: float) -> Outgoing | None:
    """A message with what is left of its time; None where that is over."""
    if out.until_s is None:
        return out
    left_s = out.until_s - now_s
    return structs.replace(out, expires_in_s=math.ceil(left_s)) if left_s > 0 else None
