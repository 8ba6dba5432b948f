"""The members of a request that a server may refuse by name, and how the same is asked without them. Pure.

Reads no refusal (see `endpoint.refusals`) and keeps none (see `probe.Profile`).
"""

from collections.abc import Collection, Mapping
from typing import Final

# Newer OpenAI models take the token cap by its other name alone.
INSTEAD: Final[Mapping[str, str]] = {"max_tokens": "max_completion_tokens"}

# Without these it is the same question, only less constrained, or one whose tokens are not counted.
SPARED: Final = frozenset({
    "max_tokens", "stream", "stream_options", "temperature", "stop", "response_format", "grammar", "tool_choice",
    "parallel_tool_calls",
})  # fmt: skip


def kept(members: Mapping[str, object], without: Collection[str]) -> dict[str, object]:
    """What is sent of these to a server that refuses some names; a token cap is never left out."""
    gone = {*without, "stream_options"} if "stream" in without else {*without}
    return {
        INSTEAD.get(name, name) if name in gone else name: value
        for name, value in members.items()
        if name not in gone or name in INSTEAD
    }
