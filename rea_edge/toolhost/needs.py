"""Whether the node has the secrets that its tools need. Looked at once all files are loaded, by the daemon; by name."""

from collections.abc import Collection, Sequence

from rea_edge.records import Tool


def without_unmet_needs(tools: Sequence[Tool], secrets: Collection[str]) -> tuple[tuple[Tool, ...], tuple[str, ...]]:
    """The tools that can be given all they need, and what each of the others lacks."""
    known = ", ".join(sorted(secrets)) or "none"
    faults = tuple(
        f"{tool.source}: {tool.name}.needs: {name!r}, which [secrets] does not name; it names {known}"
        for tool in tools
        for name in tool.needs
        if name not in secrets
    )
    return tuple(tool for tool in tools if all(name in secrets for name in tool.needs)), faults
