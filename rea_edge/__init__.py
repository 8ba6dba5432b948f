"""rea-edge: a task loop for small boards. Holds the version; must not import anything."""

__version__ = "0.1.0"
