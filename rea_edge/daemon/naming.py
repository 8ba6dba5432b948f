"""The id of a node: the configured one, else one that is made once and kept. Reads and writes the store's settings."""

from contextlib import suppress

from rea_edge.config import Settings, default_id
from rea_edge.errors import StoreFull
from rea_edge.store import Store


def kept_name(settings: Settings, store: Store) -> str:
    """The node's id. One made from host name and machine id is kept, so that a renamed host stays the same node."""
    kept, wanted = store.meta_get("node"), settings.node.id
    if kept is not None and wanted == default_id(None):
        return kept
    if kept != wanted:
        with suppress(StoreFull), store.transaction() as tx:  # kept at a start that finds room
            tx.meta_set("node", wanted)
            if kept is not None:
                tx.meta_set("session", None)  # of the node by this name it knows nothing, nor has it ever connected
    return wanted
