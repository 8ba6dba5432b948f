"""The model server: one bounded, cancellable client. The one owner of httpx (and of httpcore under it).

Inside, files import in this order: refusals, surrogates, faults, bounds, events, assembly, sockets, network, client.
Only `network` imports httpx, and it is imported at the first question: a daemon that waits has not paid for it.
"""

from rea_edge.endpoint.client import Endpoint

__all__ = ["Endpoint"]
