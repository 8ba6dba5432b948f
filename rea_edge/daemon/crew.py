"""All lanes of a node, and how they end. What each of them does with a run is `lanes`'."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rea_edge.daemon.inforce import InForce
from rea_edge.daemon.lanes import Lane
from rea_edge.daemon.queue import Kind, Waiting
from rea_edge.daemon.unfinished import Unfinished
from rea_edge.journal import Journal
from rea_edge.systemd import Progress

if TYPE_CHECKING:
    from rea_edge.runner import Runner, Tell

STEP_MARGIN_S = 15.0  # beyond an effect's own limit before the watchdog calls its lane stuck
TOOL_LANES = 2  # a slow direct call does not hold the next one up
TOOL_DRAIN_S = 20.0
ASK_DRAIN_S = 2.0

log = logging.getLogger("rea_edge.node")


class Lanes:
    """One for tasks, two for direct calls. `live` hears each event once it is on disk, `fatal` what must end the process."""

    def __init__(
        self,
        *,
        in_force: InForce,
        waiting: Waiting,
        journal: Journal,
        unfinished: Unfinished,
        live: "Tell",
        progress: Progress,
        fatal: Callable[[BaseException], None],
    ) -> None:
        def lane(name: str, kind: Kind) -> Lane:
            sign = progress.lane(name)
            return Lane(
                name,
                kind,
                waiting=waiting,
                journal=journal,
                new_runner=lambda: leased_runner(in_force, live, lambda seconds: sign.beat(seconds + STEP_MARGIN_S)),
                sign=sign,
                resumed=unfinished.resumed,
                expired=unfinished.expired,
                fatal=fatal,
            )

        self.all = (lane("agent", "task"), *(lane(f"tool-{n}", "call") for n in range(TOOL_LANES)))

    def start(self) -> None:
        for lane in self.all:
            lane.start()

    def stop(self) -> None:
        """Let all end: questions at once, tools within `TOOL_DRAIN_S`."""
        for lane in self.all:
            lane.stop()
        end_s = time.monotonic() + TOOL_DRAIN_S
        late = [lane for lane in self.all if not lane.join(end_s - time.monotonic())]
        for lane in late:
            log.warning("event=cut_at_stop lane=%s", lane.name)
            lane.cut()
        for lane in late:
            lane.join(ASK_DRAIN_S)


@contextmanager
def leased_runner(in_force: InForce, live: "Tell", beat: Callable[[float], None]) -> "Iterator[Runner]":
    """A runner for one run, with what is in force now."""
    from rea_edge.runner import Runner

    with in_force.lease() as effects:
        yield Runner(effects, live, beat)
