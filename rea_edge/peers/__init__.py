"""Tools of other nodes: what was accepted of them, what their cards say now, and how a call of one is carried out.

Files import in this order: pinned, answers, watched, calls, peers. What a card says is read in `pins`.
"""

from rea_edge.peers.peers import Peers
from rea_edge.peers.pinned import pins_folder, write_pin
from rea_edge.peers.watched import Watched, accepted_tools, watched_in

__all__ = ["Peers", "Watched", "accepted_tools", "pins_folder", "watched_in", "write_pin"]
