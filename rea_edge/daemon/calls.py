"""How a call that the gate lets through is made: its start is counted, and what of it may be seen. Holds no journal."""

import threading
from collections.abc import Callable

from rea_edge.cancel import Cancel
from rea_edge.daemon.gates import Gates
from rea_edge.records import Call, Fault, Result, Run
from rea_edge.toolbox import Asker, Toolbox


class Calls:
    """The calls of runs that share one set of tools. `secrets` are hidden from what they give."""

    def __init__(self, toolbox: Toolbox, gates: Gates, secrets: tuple[str, ...]) -> None:
        self._toolbox = toolbox
        self._gates = gates
        self._secrets = secrets

    def act(
        self,
        run: Run,
        call: Call,
        request_id: str,
        seconds: float,
        cancel: Cancel,
        starting: Callable[[], bool],
        *,
        once: bool,
    ) -> Result:
        """Make a call. The fault `denied`: the gate held it back in the last moment. `once`: it is not to be tried again
        by itself."""
        denied: str | None = None

        def counted() -> bool:
            nonlocal denied
            denied = self._gates.take(call.name, self._toolbox.tools)
            return denied is None and starting()

        result = self._run(run, call, request_id, seconds, cancel, counted, once=once)
        return result if denied is None else Fault(fault="denied", message=denied)

    def read(self, run: Run, call: Call, request_id: str, seconds: float, cancel: Cancel) -> Result:
        """Make a call for the gate itself."""
        return self._run(run, call, request_id, seconds, cancel, lambda: True)

    def _run(
        self,
        run: Run,
        call: Call,
        request_id: str,
        seconds: float,
        cancel: Cancel,
        starting: Callable[[], bool],
        *,
        once: bool = False,
    ) -> Result:
        from rea_edge.visible import visible

        ended = threading.Event()
        cancel.subscribe(ended.set)
        job, tainted = run.job, any(head.tainted for head in run.open[:1])
        asker = Asker(via=(job.who, *job.via), trace=job.trace, tainted=tainted)
        try:
            result = self._toolbox.run(
                call.name, call.args, request_id, seconds, ended, starting, once=once, asker=asker
            )
        finally:
            cancel.unsubscribe(ended.set)
        tool = self._toolbox.tools.get(call.name)
        return result if tool is None else visible(result, tool, self._secrets)
