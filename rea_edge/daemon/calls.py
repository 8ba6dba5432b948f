"""How a call that the gate lets through is made: a last look at its start, what ends it early, what of it may be seen.

Holds no policy beyond that last look, and no journal.
"""

import threading
from collections.abc import Callable
from contextlib import nullcontext

from rea_edge import gate
from rea_edge.cancel import Cancel
from rea_edge.daemon.gates import Gates
from rea_edge.daemon.halts import Halt
from rea_edge.records import Call, EffectClass, Fault, Ok, Result, Run
from rea_edge.toolbox import Asker, Toolbox


class Calls:
    """The calls of runs that share one set of tools. `secrets` are hidden from what they give."""

    def __init__(self, toolbox: Toolbox, gates: Gates, halt: Halt, secrets: tuple[str, ...]) -> None:
        self._toolbox = toolbox
        self._gates = gates
        self._halt = halt
        self._secrets = secrets

    def act(
        self,
        run: Run,
        call: Call,
        effect: EffectClass,
        request_id: str,
        seconds: float,
        cancel: Cancel,
        starting: Callable[[], bool],
        *,
        once: bool,
        overtaken: Callable[[], str | None],
    ) -> Result:
        """Make a call, looking once more at what may have come up while it waited. The fault `denied`: it was held back
        in that last moment. `once`: it is not to be tried again by itself. `overtaken()`: why what let it through does
        not hold any more."""
        denied: str | None = None
        started = False

        def counted() -> bool:
            nonlocal denied, started
            denied = self._held_back(call, effect) or overtaken()
            denied = denied or self._gates.take(call.name, self._toolbox.tools)
            if denied is None and starting():
                # A halt may have come while the intent went to disk.
                denied = self._held_back(call, effect)
                started = denied is None
            return started

        result = self._run(run, call, request_id, seconds, cancel, counted, once=once)
        if denied is None and not started and not isinstance(result, Ok):
            denied = self._held_back(call, effect)  # it came while the call waited for its device
        return result if denied is None else Fault(fault="denied", message=denied)

    def read(self, run: Run, call: Call, request_id: str, seconds: float, cancel: Cancel) -> Result:
        """Make a call for the gate itself."""
        return self._run(run, call, request_id, seconds, cancel, lambda: True)

    def probe(self, run: Run, call: Call, request_id: str, seconds: float, cancel: Cancel) -> Result:
        """Ask whether a call took effect. No halt ends that: it only reads, and somebody waits for what it finds."""
        denied: str | None = None

        def counted() -> bool:
            nonlocal denied
            denied = self._gates.take(call.name, self._toolbox.tools)
            return denied is None

        result = self._run(run, call, request_id, seconds, cancel, counted, spared=True)
        return result if denied is None else Fault(fault="denied", message=denied)

    def _held_back(self, call: Call, effect: EffectClass) -> str | None:
        """Why the node as a whole lets nothing of this kind start, or None."""
        halted = self._halt.why
        return gate.held_back(halted, call.name) if halted is not None and effect != "read" else None

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
        spared: bool = False,
    ) -> Result:
        from rea_edge.visible import visible

        ended = threading.Event()
        cancel.subscribe(ended.set)
        job, tainted = run.job, any(head.tainted for head in run.open[:1])
        asker = Asker(via=(job.who, *job.via), trace=job.trace, tainted=tainted)
        try:
            with nullcontext() if spared else self._halt.ends(ended):
                result = self._toolbox.run(
                    call.name, call.args, request_id, seconds, ended, starting, once=once, asker=asker
                )
        finally:
            cancel.unsubscribe(ended.set)
        if isinstance(result, Fault) and result.fault == "cancelled" and ended.is_set() and not cancel.cancelled:
            result = Fault(fault="cancelled", message=f"it was ended: {self._halt.why or 'the node was halted'}")
        tool = self._toolbox.tools.get(call.name)
        return result if tool is None else visible(result, tool, self._secrets)
