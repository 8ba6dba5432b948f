"""What must hold of `[peer.NAME]`: names that can stand in front of a tool's, pins of tools that are named."""

import re
from collections.abc import Mapping

from rea_edge.config.settings import Peer
from rea_edge.errors import ConfigInvalid
from rea_edge.topics import is_name, is_root

MOST_PEERS = 16  # each is three subscriptions, and a card in memory
MOST_NAME = 48  # characters of a tool's name, with what stands before it
BETWEEN = "__"

# No double line inside and none at the end: a name with one in the middle is read in one way only.
_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_TOOL = re.compile(r"[a-z][a-z0-9_]{0,47}")


def name_here(peer: str, tool: str) -> str:
    """What a peer's tool is called on this node."""
    return f"{peer}{BETWEEN}{tool}"


def check_peers(peers: Mapping[str, Peer]) -> None:
    """Refuse what cannot be offered or would pin nothing."""
    if len(peers) > MOST_PEERS:
        raise ConfigInvalid("peer", f"expected at most {MOST_PEERS} peers, got {len(peers)}")
    for name, peer in peers.items():
        _check_names(name, peer)
        _check_tools(name, peer)


def check_not_oneself(peers: Mapping[str, Peer], node: str, root: str) -> None:
    """Refuse a peer that is this node: its calls would come back to it and be refused, one by one."""
    for name, peer in peers.items():
        if (peer.id_of(name), peer.root or root) == (node, root):
            raise ConfigInvalid(f"peer.{name}.node", f"{node!r} is this node itself; its own tools it has anyway")


def _check_names(name: str, peer: Peer) -> None:
    if not _NAME.fullmatch(name):
        raise ConfigInvalid(
            f"peer.{name}",
            "it stands in front of its tools' names: expected words of a-z 0-9 with single _ between, such as"
            f' [peer.pump], and node = "{name}" in it',
        )
    node = peer.id_of(name)
    if not is_name(node) or node.startswith("_"):
        raise ConfigInvalid(f"peer.{name}.node", f"expected 1 to 36 of A-Z a-z 0-9 _ - and no _ in front, got {node!r}")
    if peer.root is not None and not is_root(peer.root):
        raise ConfigInvalid(f"peer.{name}.root", f"expected one to four names with / between, got {peer.root!r}")


def _check_tools(name: str, peer: Peer) -> None:
    for index, tool in enumerate(peer.tools):
        place = f"peer.{name}.tools[{index}]"
        if not _TOOL.fullmatch(tool):
            raise ConfigInvalid(place, f"expected the name of a tool, got {tool!r}; there is no wildcard: name each")
        if tool in peer.tools[:index]:
            raise ConfigInvalid(place, f"{tool!r} is named twice")
        if len(called := name_here(name, tool)) > MOST_NAME:
            raise ConfigInvalid(
                place, f"{called!r} has {len(called)} characters, at most {MOST_NAME} are a tool's name"
            )
    for key in ("effect", "timeout_s"):
        for tool in getattr(peer, key):
            if tool not in peer.tools:
                raise ConfigInvalid(
                    f"peer.{name}.{key}.{tool}", f"no tool named here; there are {', '.join(peer.tools)}"
                )
