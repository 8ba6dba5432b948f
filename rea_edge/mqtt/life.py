"""One life of the link: its connections come up one after another, are served side by side, and end together.

One thread and one poll serve them all: a message of the controls waits for at most one turn of the rest, which is a
handful of messages, and no second thread has to be watched.
"""

import os
import select
import time
from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import Struct

from rea_edge.mqtt.bell import Bell
from rea_edge.mqtt.connection import CONNACK_S, FIRST_CONNACK_S, Connection
from rea_edge.mqtt.feed import Feed
from rea_edge.mqtt.line import Ears, Line
from rea_edge.mqtt.messages import Incoming, Outgoing, Will
from rea_edge.mqtt.versions import Versions

TURN_S = 10.0  # the longest turn; the watchdog counts on it
ADMISSION_S = 0.25  # how often the owner is asked while it waits
GOODBYE_S = 1.0  # for the DISCONNECT itself to leave


Admission = Literal["yes", "wait", "no"]


class Calls(Struct, frozen=True, kw_only=True):
    """What a life asks its owner, see `Link`. `came_up` gives the birth messages, `first_up` is told of the first
    connection, `connected` and `controls_connected` whether the broker had kept the session, `admitted` is asked before
    anything is accepted, and then again and again."""

    accept: Callable[[Incoming], bool]
    before_connect: Callable[[], Will | None]
    connected: Callable[[bool], None]
    controls_connected: Callable[[bool], None]
    first_up: Callable[[], None]
    admitted: Callable[[], Admission]
    came_up: Callable[[], Sequence[Outgoing]]
    shorter: Callable[[bytes, int], bytes | None]
    found: Callable[[Incoming], None]
    fence: Callable[[], str] | None
    controls_fence: Callable[[], str] | None


class Life:
    """`run` it once. `urgent` is what goes over the session of the controls, where there is one."""

    def __init__(self, calls: Calls, *, feed: Feed, urgent: Feed, versions: Versions, bell: Bell) -> None:
        self.lines: list[Connection] = []
        self.up = False  # all of them
        self.beat_s = time.monotonic()
        self._calls = calls
        self._feed = feed
        self._urgent = urgent
        self._versions = versions
        self._bell = bell
        self._prepared = False
        self._will: Will | None = None

    @property
    def ended(self) -> Connection | None:
        """The one whose end is the end of all."""
        return next((one for one in self.lines if one.ended), None)

    @property
    def main(self) -> Connection | None:
        return next((one for one in self.lines if not one.line.controls and not one.line.standby), None)

    @property
    def controls(self) -> Connection | None:
        return next((one for one in self.lines if one.line.controls), None)

    def run(self, lines: Sequence[Line]) -> None:
        """Returns when a connection has ended, or all are to; raises what a callback or a connection raises."""
        if all(self._brought_up(line) for line in lines):
            self.up = True
            self._feed.begin(self._calls.came_up())
            self._serve()

    def close(self, reason: str) -> None:
        """End what has not ended, without DISCONNECT."""
        for one in self.lines:
            one.close(reason)

    # --- coming up

    def _brought_up(self, line: Line) -> bool:
        known = self._versions.known or self._versions.current != "5"
        nonce = os.urandom(8).hex().encode()
        connection = Connection(line, self._versions.current, self._ears(line), nonce=nonce)
        first = not self.lines
        self.lines.append(connection)
        if first and line.presence:
            connection.hold()
        connection.open(CONNACK_S if known else FIRST_CONNACK_S)
        while self.ended is None and self._bell.stop_by_s is None:
            if connection.stage == "up":
                self._versions.worked()
                return not first or self._admitted(connection)
            self._send()
            self._turn(TURN_S)
        return False

    def _admitted(self, first: Connection) -> bool:
        """Wait until the owner says whether this node is to act; while it is not, a standby watches."""
        self._calls.first_up()
        while self.ended is None and self._bell.stop_by_s is None:
            match self._calls.admitted():
                case "yes":
                    first.release()
                    return not first.line.standby
                case "no" if not first.line.standby:
                    return False
                case _:
                    self._send()
                    self._turn(ADMISSION_S)
        return False

    def _ears(self, line: Line) -> Ears:
        if line.standby:
            return Ears(
                accept=self._calls.accept,
                acknowledged=self._urgent.acknowledged,
                before_connect=lambda: None,
                connected=lambda present: None,
                shorter=self._calls.shorter,
                found=self._calls.found,
                fence=None,
            )
        return Ears(
            accept=self._calls.accept,
            acknowledged=(self._urgent if line.controls else self._feed).acknowledged,
            before_connect=self._no_will if line.controls else self._one_will,
            connected=self._calls.controls_connected if line.controls else self._calls.connected,
            shorter=self._calls.shorter,
            found=self._calls.found,
            fence=self._calls.controls_fence if line.controls else self._calls.fence,
        )

    def _one_will(self) -> Will | None:
        """The owner prepares once for all connections of a life; only one of them carries the will."""
        if not self._prepared:
            self._will, self._prepared = self._calls.before_connect(), True
        return self._will

    def _no_will(self) -> None:
        self._one_will()

    # --- serving

    def _serve(self) -> None:
        while self.ended is None:
            if self._bell.stop_by_s is not None:
                return self._leave(self._bell.stop_by_s)
            if self._calls.admitted() == "no":
                return None
            self._send()
            self._turn(0.0 if self._more_to_send() else TURN_S)
        return None

    def _send(self) -> None:
        main = self.main if self.up else None
        if main is not None:
            self._feed.send_births(main)
        if self.lines and self.lines[0].stage == "up":
            self._urgent.send(self.lines[0])
        if main is not None:
            self._feed.send(main)

    def _more_to_send(self) -> bool:
        """The outbox should be looked at once more before waiting."""
        return self.main is not None and self._feed.more_for(self.main)

    def _turn(self, wait_s: float) -> None:
        """Wait for a connection or the bell, at most `wait_s`, then let each connection do what is due."""
        self.beat_s = time.monotonic()
        if self.ended is not None:
            return
        poll = select.poll()
        poll.register(self._bell.descriptor, select.POLLIN)
        for one in self.lines:
            poll.register(one.descriptor, one.interest)
        wait_s = min([wait_s, *(one.next_due_s() for one in self.lines)])
        ready = dict(poll.poll(max(0.0, wait_s) * 1000))
        for one in self.lines:
            one.turn(ready.get(one.descriptor, 0))
            if one.ended:
                return
        if self._bell.hear() or not ready:
            self._feed.pull_due = True  # also after a quiet turn, in case a ring was forgotten

    # --- leaving

    def _leave(self, by_s: float) -> None:
        """Send what waits, then the farewell as the last message, then DISCONNECT."""
        main = self.main
        assert main is not None
        for one in self.lines:
            one.stop_intake()
        half_s = (time.monotonic() + by_s) / 2
        self._turn_until(half_s, lambda: self._feed.empty and self._urgent.empty and self._quiet(), feeding=True)
        farewell = self._bell.farewell
        if farewell is not None and self._turn_until(by_s, lambda: main.ready_for(1)):
            main.send(farewell)
        if self._turn_until(by_s, self._quiet):
            for one in self.lines:
                one.disconnect()
            self._turn_until(time.monotonic() + GOODBYE_S, lambda: False)

    def _quiet(self) -> bool:
        return not any(one.in_flight for one in self.lines)

    def _turn_until(self, by_s: float, done: Callable[[], bool], *, feeding: bool = False) -> bool:
        """False where `by_s` passed or a connection ended first."""
        while self.ended is None:
            if feeding:
                self._send()
            if done():
                return True
            left_s = by_s - time.monotonic()
            if left_s <= 0:
                return False
            self._turn(0.0 if feeding and self._more_to_send() else left_s)
        return False
