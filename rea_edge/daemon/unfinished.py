"""Runs that have not ended: those of an earlier start, and cancelled ones that no lane holds. Performs no act itself."""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from rea_edge.asks import Asks
from rea_edge.daemon.queue import Waiting
from rea_edge.errors import RunUnreadable, StoreFull
from rea_edge.journal import Journal, decode_job
from rea_edge.store import RunRow, Store

if TYPE_CHECKING:
    from rea_edge.runner import Runner

log = logging.getLogger("rea_edge.node")


class Unfinished:
    """`lived_s` is the time that the state has lived, `longest_s()` how long a run may wait for its start, `wake()` has
    the outbox looked at."""

    def __init__(
        self,
        *,
        store: Store,
        journal: Journal,
        waiting: Waiting,
        asks: Asks,
        lived_s: Callable[[], float],
        longest_s: Callable[[], float],
        runner: "Callable[[], AbstractContextManager[Runner]]",
        wake: Callable[[], None],
    ) -> None:
        self._store = store
        self._journal = journal
        self._waiting = waiting
        self._asks = asks
        self._lived_s = lived_s
        self._longest_s = longest_s
        self._runner = runner
        self._wake = wake
        self._old = self._taken_up()

    def resumed(self, row: RunRow) -> bool | None:
        """Of a run that is taken up for the first time since the start: whether it was stopped in order. None: any other."""
        return self._old.pop(row.row, None)

    def expired(self, row: RunRow) -> bool:
        """Whether a run has waited too long for its start."""
        return self._lived_s() - decode_job(row).accepted_s > self._longest_s()

    def end(self, row: RunRow) -> None:
        """End a cancelled run that waits in the queue or for a person, here in the thread that took the cancel."""
        if row.state == "waiting":
            self._waiting.put(row)
        claimed = self._waiting.claim(row.row, row.kind)
        if claimed is None:
            return  # a lane took it in this moment, and meets the cancel at its first commit
        try:
            held = self._journal.load(claimed[0])
            with self._runner() as runner:
                if (clean := self.resumed(row)) is not None:
                    runner.resume(held, clean=clean)
                runner.finish(held, claimed[1], lambda: False)
        except (StoreFull, RunUnreadable):
            self._waiting.put_back(row)  # the cancel is on disk: the lane that takes the run ends it
        else:
            self._waiting.drop(row.row)
        self._wake()

    def _taken_up(self) -> dict[int, bool]:
        """Unfinished runs go into the queue; what is known of the last stop goes with them: row to clean or not."""
        clean = self._store.was_clean
        rows = self._store.queue()
        asking = {row.row for row in rows if row.state == "waiting"}
        for row in rows:
            if row.row not in asking or not self._asks.take_up(row):
                self._waiting.put(row)
        if rows:
            log.info("event=taken_up runs=%d clean=%s", len(rows), clean)
        return {row.row: clean or row.row in asking for row in rows}  # what waits for a person is not under way
