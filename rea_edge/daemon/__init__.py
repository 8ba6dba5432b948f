"""The daemon: lanes, timers, watchdog, memory guard, drain.

Files import in this order: `life` (time over restarts), `spending` (tokens of all tasks), `effects` (what a runner
needs done), `queue` (which run is next, who holds it), `lanes` (threads that bring runs forward), `running` (how runs
get on), `upkeep` (old states and runs), `view` (what queries and the card show), `desk` (what the mailbox asks), `post`
(the node's side of its connection), `node` (one node put together), `refuser` (the node without a store), `main` (the
process: signals, timers, exit codes).
"""
