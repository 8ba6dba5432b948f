"""Tools of other nodes: the parts that need no node."""
