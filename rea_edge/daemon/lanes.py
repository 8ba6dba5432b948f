"""Lanes: threads that take runs and bring them to their end, one at a time each. Hold no policy."""

import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from rea_edge.cancel import Cancel, Stopped
from rea_edge.daemon.queue import Kind, Waiting
from rea_edge.errors import RunUnreadable, StoreFull
from rea_edge.journal import Held, Journal
from rea_edge.records import Ended, Run
from rea_edge.store import RunRow
from rea_edge.systemd import Lane as Sign

if TYPE_CHECKING:
    from rea_edge.runner import Runner

log = logging.getLogger("rea_edge.lane")

FULL_RETRY_S = 5.0
_EXPIRED = Ended(
    outcome="expired", answer="Nothing was done.", reason="it waited too long for its start", error="expired"
)
LOAD_S = 30.0  # reading a run from a slow disk; more is a broken disk


class Lane:
    """One thread. `expired(row)`: whether a run waited too long for its start. `fatal` hears what must end the process.

    `new_runner` is called for each run, with what is in force then: a node that waits for work has not loaded the machine.
    """

    def __init__(
        self,
        name: str,
        kind: Kind,
        *,
        waiting: Waiting,
        journal: Journal,
        new_runner: "Callable[[], AbstractContextManager[Runner]]",
        sign: Sign,
        resumed: Callable[[RunRow], bool | None],
        expired: Callable[[RunRow], bool],
        fatal: Callable[[BaseException], None],
    ) -> None:
        self.name = name
        self._new_runner = new_runner
        self._runner: Runner | None = None
        self._kind: Kind = kind
        self._waiting = waiting
        self._journal = journal
        self._sign = sign
        self._resumed = resumed
        self._expired = expired
        self._fatal = fatal
        self._stop = threading.Event()
        self.current: tuple[RunRow, Cancel] | None = None
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End after the tool under way; a question ends at once and is asked again at the next start."""
        self._stop.set()
        if self._runner is not None and self._runner.doing == "ask":
            self.cut()

    def cut(self) -> None:
        """End whatever effect is under way."""
        if current := self.current:
            current[1].cancel()

    def join(self, seconds: float) -> bool:
        """Wait for the lane to end; False if it has not."""
        self._thread.join(max(0.0, seconds))
        return not self._thread.is_alive()

    def _serve(self) -> None:
        try:
            while not self._stop.is_set():
                self._sign.rest()
                taken = self._waiting.take(self._kind)
                if taken is None:
                    return
                self.current = taken
                self._sign.beat(LOAD_S)
                left: RunRow | None = None
                try:
                    left = self._finish(*taken)
                finally:
                    self.current = None
                    if left is None:
                        self._waiting.drop(taken[0].row)
                    else:
                        self._waiting.leave(left)
        except Stopped:
            return
        except Exception as exc:
            # The one place that may catch everything: it is logged, and the process ends and starts anew.
            self._fatal(exc)

    def _finish(self, row: RunRow, cancel: Cancel) -> RunRow | None:
        """Bring a run forward; its row if it waits for a person, None if it has ended."""
        with self._new_runner() as runner:
            self._runner = runner
            return self._forward(row, cancel, runner)

    def _forward(self, row: RunRow, cancel: Cancel, runner: "Runner") -> RunRow | None:
        clean = self._resumed(row)
        try:
            held = self._journal.load(row)
            self._when_there_is_room(row, lambda: self._take_up(runner, held, clean))
            self._when_there_is_room(row, lambda: runner.finish(held, cancel, self._stop.is_set))
            if held.run.phase == "waiting":
                log.info("event=waits run=%s who=%s task_id=%s", held.run.id, row.who, row.id)
                return held.row
            _log_end(held.run, held.row)
        except RunUnreadable as exc:
            fault = exc
            self._when_there_is_room(row, lambda: _log_end(*self._journal.give_up(row, fault)))
        return None

    def _take_up(self, runner: "Runner", held: Held, clean: bool | None) -> None:
        if held.row.state == "accepted" and self._expired(held.row):
            runner.end(held, _EXPIRED)
        elif clean is not None:
            runner.resume(held, clean=clean)

    def _when_there_is_room(self, row: RunRow, act: Callable[[], None]) -> None:
        while True:
            try:
                return act()
            except StoreFull as full:
                # Nothing was written and nothing was started: the same commit is tried again when there is room.
                log.error("event=disk_full row=%d task_id=%s detail=%r", row.row, row.id, str(full))
                self._sign.beat(FULL_RETRY_S + LOAD_S)
                if self._stop.wait(FULL_RETRY_S):
                    raise Stopped from full


def _log_end(run: Run, row: RunRow) -> None:
    log.info(
        "event=ended run=%s who=%s task_id=%s trace_id=%s outcome=%s steps=%d tokens=%d seconds=%.1f",
        *(run.id, row.who, row.id, run.job.trace or "-", row.outcome),
        *(run.used.steps, run.used.tokens, run.used.seconds),
    )
