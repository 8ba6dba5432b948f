"""The error tree. Each class says who must act; holds no logic and imports nothing of ours.

ReaError
├── RequestRefused      the sender: correct the request, or send it again if `retryable`
├── DecisionRejected    the model: it is told and asked again
├── OperatorError       the operator
│   ├── ConfigInvalid   exit 78: correct the named place
│   ├── ToolInvalid     the named tool file or key; its tools are absent until then
│   ├── RunUnreadable   the machine cannot follow a run's journal: that run is ended, the others go on
│   └── StoreUnusable   the state file or its disk
│       ├── StoreBusy   exit 75: another process holds the file
│       ├── StoreFull   nothing was written; go on when there is room
│       └── StoreBroken exit 74: an I/O error while running; nothing may act
├── EffectFailed        nobody: it becomes an observation
│   └── EndpointFailed  the model server, by the name of what it did
└── NodeSilent          the person at the command line: no answer came
"""

from typing import Literal

Code = Literal[
    "bad_request", "too_large", "retained_refused", "expired", "stale_epoch", "id_conflict", "busy", "policy_denied",
    "approval_timeout", "budget_exceeded", "tool_failed", "outcome_unknown", "endpoint_unavailable", "store_failed",
    "unknown_task", "internal",
]  # fmt: skip
DecisionErrorKind = Literal["unparseable", "unknown_tool", "invalid_args", "conflict", "empty", "truncated"]


class ReaError(Exception):
    """Root of everything we raise on purpose."""


class RequestRefused(ReaError):
    """A request that is not accepted; becomes an error reply. `code` is of the closed list on the wire."""

    def __init__(self, code: Code, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.code: Code = code
        self.message = message
        self.retryable = retryable


class DecisionRejected(ReaError):
    """A model's answer that gives no decision; `message` is written for the model and is short."""

    def __init__(self, kind: DecisionErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind: DecisionErrorKind = kind
        self.message = message


class OperatorError(ReaError):
    """Something that only a person with access to the node can mend."""


class ConfigInvalid(OperatorError):
    """A setting that is missing, unknown or wrong; `place` is its path, such as `limits.steps` or a file."""

    def __init__(self, place: str, message: str) -> None:
        super().__init__(f"{place}: {message}")
        self.place = place


class ToolInvalid(OperatorError):
    """A tool file that does not load; `place` is `file:line`, `file: tool` or `file: tool.key`."""

    def __init__(self, place: str, message: str) -> None:
        super().__init__(f"{place}: {message}")
        self.place = place


class RunUnreadable(OperatorError):
    """A run whose journal holds what this version does not know, or that shows a bug of ours. The message names the row."""


class StoreUnusable(OperatorError):
    """The state file cannot be opened, read or written."""


class StoreBusy(StoreUnusable):
    """Another process holds the state file; the message names it where it can be known."""


class StoreFull(StoreUnusable):
    """There is no room on the disk. The transaction is rolled back and the same store goes on when there is."""


class StoreBroken(StoreUnusable):
    """An I/O error or damage met while running. Nothing may act any more; the process ends with exit 74."""


class EffectFailed(ReaError):
    """An effect that did not succeed; `kind` names how, `suggestion` what may help (or is empty)."""

    def __init__(self, kind: str, message: str, suggestion: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.suggestion = suggestion


class EndpointFailed(EffectFailed):
    """The model server failed. `retryable`: asking again, after `retry_after_s`, is of use.

    Where a prompt did not fit: `context_tokens` is the size that the server says it has, `prompt_tokens` its count.
    `parameter`: the member of the request that it refuses by name.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        retryable: bool = False,
        retry_after_s: float | None = None,
        suggestion: str = "",
        context_tokens: int | None = None,
        prompt_tokens: int | None = None,
        parameter: str = "",
    ) -> None:
        super().__init__(kind, message, suggestion)
        self.retryable = retryable
        self.retry_after_s = retry_after_s
        self.context_tokens = context_tokens
        self.prompt_tokens = prompt_tokens
        self.parameter = parameter


class NodeSilent(ReaError):
    """No answer from the node or broker within the time a person waits."""
