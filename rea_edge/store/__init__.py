"""The state of a node in one SQLite file: what is acknowledged is on disk, what is read is what was written.

The one owner of `sqlite3`, the state folder and its lock. Bodies are bytes here: what events and messages mean is
known elsewhere. Wall times are given by callers. Files import in this order:
`rows`, `database`, `layout`, `folder`, `seen`, `reading`, `checking`, `copy`, `survey`, `carving`, `rescue`, `opening`,
`writing`, `store`. A daemon never reads copies: `copy`, `survey` and `rescue` are imported by name.
"""

from rea_edge.store.reading import Reading
from rea_edge.store.rows import EventRow, MessageKind, OutboxRow, RunKind, RunRow, StoreUsage
from rea_edge.store.store import Store
from rea_edge.store.writing import Transaction

__all__ = [
    "EventRow", "MessageKind", "OutboxRow", "Reading", "RunKind", "RunRow", "Store", "StoreUsage", "Transaction",
]  # fmt: skip
