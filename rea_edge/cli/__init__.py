"""The command line, but for `run`, which must stay light and is in `__main__`.

Files import in this order: `parser`, `readings` (how a replay is shown), `ask` (commands that talk to a node), `found`,
`look` (commands that look at this machine: check, show --state), `state` (commands about a state file: check --state,
export), `exam`, `release`, `main`.
"""
