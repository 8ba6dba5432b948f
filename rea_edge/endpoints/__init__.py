"""The model servers of a node: which is asked, what follows a failure, what is known of each.

Inside, files import in this order: counting, place, choice.
"""

from rea_edge.endpoints.choice import Chosen, Endpoints
from rea_edge.endpoints.place import Cache, Needs, client_of

__all__ = ["Cache", "Chosen", "Endpoints", "Needs", "client_of"]
