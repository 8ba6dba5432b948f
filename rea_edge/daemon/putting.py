"""How a job is put to an endpoint: its opening, what constrains each answer, and the condition that its goal makes.

Asks nothing and knows no run. What only a task needs is imported at the first one.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rea_edge.config import TaskType
from rea_edge.config.prompts import prompt_file
from rea_edge.endpoints import Chosen
from rea_edge.errors import RequestRefused
from rea_edge.records import Criterion, Job, Protocol, Switched, Tool

if TYPE_CHECKING:
    from rea_edge.bounds import Bounds

COMMAND_TOKENS = 96  # of an answer in protocol command: a guard with two calls has about forty


def asked_in(protocol: Protocol, kind: TaskType, there: Chosen | None, job: Job, tools: list[Tool]) -> Switched:
    """How this job is put in this protocol to this endpoint."""
    from rea_edge import opening

    return Switched(
        protocol=protocol,
        opening=opening.opening(
            protocol, _prompt(kind, protocol), tools, job.goal, job.context, commands=kind.commands
        ),
        ask=constraint(protocol, there, tools, kind.commands, job.goal),
        answer_tokens=min(job.limits.answer_tokens, COMMAND_TOKENS if protocol == "command" else 1 << 30),
    )


def narrowed(
    protocol: Protocol, goal: str, tools: Sequence[Tool], commands: int
) -> "tuple[Sequence[Tool], Bounds | None]":
    """What may be answered: in protocol command only what the goal speaks for. The prompt stays that of all tools."""
    if protocol != "command":
        return tools, None
    from rea_edge import evidence

    return evidence.narrowed(goal, tools, commands)


def premise(protocol: Protocol, goal: str, tools: Sequence[Tool]) -> Criterion | None:
    """Under which condition the goal acts, where the model itself compares; in protocol command a line says it."""
    if protocol == "command":
        return None
    from rea_edge import evidence

    return evidence.condition_of(goal, tools)


def constraint(protocol: Protocol, there: Chosen | None, tools: list[Tool], commands: int, goal: str) -> str:
    """What goes with each question; of an endpoint of which nothing is known, only what any server takes."""
    from rea_edge import opening

    kept, bounds = narrowed(protocol, goal, tools, commands)
    return opening.constraint(
        protocol,
        kept,
        llama_cpp=there is not None and there.profile.llama_cpp,
        json_schema=there is not None and there.profile.json_schema,
        commands=commands,
        temperature=None if there is None else there.settings.temperature,
        bounds=bounds,
        without=() if there is None else there.profile.without,
    )


def _prompt(kind: TaskType, protocol: Protocol) -> str:
    try:
        return prompt_file(kind.prompt, protocol).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as exc:
        raise RequestRefused("internal", f"the prompt of this task type cannot be read: {exc}") from exc
