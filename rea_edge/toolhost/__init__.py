"""The one owner of child processes: a host process, a keeper for each call, the tool in a child of the keeper.

Importing the package defines nothing. Its files import in this order:
`faults`, `frames`, `tree`, `limits`, `landlock`, `confine`, then in the host's processes `command`, `subset`, `extras`,
`declare`, `tables`, `load`, `work`, `keeper`, `keepers`, `host`, `__main__`, and in the daemon `probes`, `launch`,
`client`. The daemon never runs tool code; `subset`, `extras`, `declare` and `tables` are imported by short-lived children
only, so that the host stays small.
"""
