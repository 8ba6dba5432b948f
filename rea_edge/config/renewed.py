"""What of a changed configuration a daemon that runs can take, and what has to wait for its next start. Pure."""

from msgspec import Struct, structs

from rea_edge.config.settings import Settings

_TABLES = ("broker", "memory", "store")  # what is built on them lasts as long as the process
_NODE = ("id", "state_dir")


def renewed(now: Settings, wanted: Settings) -> tuple[Settings, tuple[str, ...]]:
    """`wanted` with that of `now` which only a restart can change, and the settings of which this is so."""
    later = [f"node.{key}" for key in _changed(now.node, wanted.node) if key in _NODE]
    later += [f"{table}.{key}" for table in _TABLES for key in _changed(getattr(now, table), getattr(wanted, table))]
    if now.paces != wanted.paces:
        later.append("queue")
    kept = {table: getattr(now, table) for table in (*_TABLES, "paces")}
    node = structs.replace(wanted.node, id=now.node.id, state_dir=now.node.state_dir)
    return structs.replace(wanted, node=node, **kept), tuple(later)


def _changed(now: Struct, wanted: Struct) -> list[str]:
    return [key for key in now.__struct_fields__ if getattr(now, key) != getattr(wanted, key)]
