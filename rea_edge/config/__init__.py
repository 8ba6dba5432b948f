"""The configuration: TOML and environment, read once into one frozen `Settings`.

What the commands of a person or program read is in `config.client`.
"""

from rea_edge.config.listing import config_hash, public
from rea_edge.config.load import DEFAULT_FILE, default_id, load
from rea_edge.config.renewed import renewed
from rea_edge.config.settings import (
    Access,
    Broker,
    Endpoint,
    Log,
    Memory,
    Node,
    Peer,
    Queue,
    Secret,
    Settings,
    TaskLimits,
    TaskType,
)
from rea_edge.config.shipped import shipped_names, tool_files

__all__ = [
    "DEFAULT_FILE", "Access", "Broker", "Endpoint", "Log", "Memory", "Node", "Peer", "Queue", "Secret", "Settings",
    "TaskLimits", "TaskType", "config_hash", "default_id", "load", "public", "renewed", "shipped_names",
    "tool_files",
]  # fmt: skip
