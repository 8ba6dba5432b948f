"""What goes out, and in which order: birth messages, what was told, the outbox. Owns no socket and no thread.

`tell` and `told` are for any thread; the rest is for the link's.
"""

import threading
from collections.abc import Callable, Sequence

from rea_edge.mqtt.client import WINDOW
from rea_edge.mqtt.connection import Connection
from rea_edge.mqtt.messages import Outgoing
from rea_edge.mqtt.waiting import Waiting


class Feed:
    """Keeps a connection supplied as far as it is writable and its window has room."""

    def __init__(
        self, pull: Callable[[int], Sequence[Outgoing]], published: Callable[[Outgoing, int | None], None]
    ) -> None:
        self._pull = pull
        self._published = published
        self._births: list[Outgoing] = []
        self._lock = threading.Lock()
        self._more = True
        self.told = Waiting()
        self.pull_due = True

    def tell(self, out: Outgoing, *, connected: bool) -> None:
        with self._lock:
            self.told.put(out)
            if not connected:
                self.told.drop_qos0()

    def begin(self, births: Sequence[Outgoing]) -> None:
        self._births = list(births)
        self.pull_due = True

    def end(self, kept: list[Outgoing]) -> None:
        """The connection ended: `kept` was told and is not acknowledged. Births are made anew, rows pulled again."""
        self._births = []
        with self._lock:
            self.told.put_back(kept)
            self.told.drop_qos0()

    def acknowledged(self, out: Outgoing, reason: int | None) -> None:
        self.pull_due = self.pull_due or self._more
        self._published(out, reason)

    @property
    def empty(self) -> bool:
        return not self._births and not self.told and not self.pull_due

    def more_for(self, connection: Connection) -> bool:
        """The outbox should be looked at once more before waiting."""
        return self.pull_due and connection.ready_for(1)

    def send_births(self, connection: Connection) -> None:
        while self._births and connection.ready_for(self._births[0].qos):
            connection.send(self._births.pop(0))

    def send(self, connection: Connection) -> None:
        """What was told and the rows of the outbox; nothing while births are left."""
        if not self._births:
            self._send_told(connection)
            self._send_rows(connection)

    def _send_told(self, connection: Connection) -> None:
        """At most half of the window, so that many answers to queries cannot hold the outbox back."""
        share = max(1, connection.window // 2)
        while connection.writable:
            room = min(connection.room, share - len(connection.kept))
            with self._lock:
                out = self.told.take(room)
            if out is None:
                return
            connection.send(out, keep=out.qos > 0)

    def _send_rows(self, connection: Connection) -> None:
        if not self.more_for(connection):
            return
        flying = {out.row for out in connection.in_flight if out.row is not None}
        rows = self._pull(WINDOW)
        # A page that was not full is all there is: nothing more to look for until something new is said.
        self._more = len(rows) >= WINDOW
        self.pull_due = False
        for out in rows:
            if out.row in flying:
                continue
            if not connection.ready_for(out.qos):
                self._more = self.pull_due = True
                return
            connection.send(out)
            self.pull_due = self._more
