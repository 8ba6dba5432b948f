"""What a runner needs done of the shell: the effects of a run, each as one question to it. Holds no code that runs."""

from collections.abc import Callable
from typing import Protocol as Port

from rea_edge.cancel import Cancel
from rea_edge.records import (
    Act,
    Answer,
    AskedApproval,
    Begun,
    Call,
    Criterion,
    EffectClass,
    Job,
    Moved,
    Protocol,
    Recall,
    Result,
    Run,
    Switched,
    Verify,
)


class Effects(Port):
    """What the runner needs done. Each returns within `seconds` (and a little), or at once when cancelled."""

    def begin(self, job: Job, cancel: Cancel) -> Begun:
        """Choose endpoint, protocol and tools. Raises `EndpointFailed` where there is nothing to ask, `RequestRefused`
        where the job may not or cannot be begun any more."""
        ...

    def switch(self, job: Job, begun: Begun, protocol: Protocol) -> Switched:
        """Write the opening of a run anew, in another protocol."""
        ...

    def moved(self, run: Run, seconds: float, cancel: Cancel) -> Moved | None:
        """Where this run's next question goes if not to the endpoint it has; None: to that one."""
        ...

    def ask(self, run: Run, body: bytes, seconds: float, cancel: Cancel) -> Answer:
        """Put one question of a run. Raises `EndpointFailed`, `retryable` where asking anew is of use."""
        ...

    def refusal(self, run: Run, act: Act, cancel: Cancel) -> str | None:
        """The gate: why this call may not run, or None. Reads what interlocks ask for."""
        ...

    def approval(self, run: Run, act: Act) -> AskedApproval | str | None:
        """What a person is to be asked before this call may start; why it may not start at all; or None: it may.

        A yes that the run has is checked against this very call."""
        ...

    def effect(self, call: Call, recorded: EffectClass) -> EffectClass:
        """What a call must be taken for: what the run recorded, or what the tool has become, if that is stricter."""
        ...

    def verify(self, call: Call) -> Criterion | None:
        """What a read returns if this call took effect; None where nothing can be asked."""
        ...

    def cost(self, call: Call) -> float:
        """What is charged for a start of this call."""
        ...

    def probe(self, run: Run, asked: Verify) -> Result:
        """Ask whether a call took effect. Passes the gate like any read; cannot be cancelled."""
        ...

    def recalls(self, call: Call) -> bool:
        """Whether the end of such a call can be asked for later, by its request id."""
        ...

    def recall(self, run: Run, asked: Recall) -> Result | None:
        """How a call ended that was cut off, by the word of who carries it out; None: he does not know. Starts nothing."""
        ...

    def act(
        self, run: Run, call: Call, request_id: str, seconds: float, cancel: Cancel, starting: Callable[[], bool]
    ) -> Result:
        """Run one call of a run. `starting` is called right before its start, after any wait; False means: do not start.

        The fault `denied`: the gate held it back in that last moment, and nothing has started."""
        ...
