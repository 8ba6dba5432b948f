"""The command line, but for `run`, which must stay light and is in `__main__`.

Files import in this order: `parser`, `ask` (commands that talk to a node), `look` (commands that look at this machine:
check, show --state), `main`.
"""
