"""The daemon: lanes, timers, watchdog, memory guard, drain.

Files import in this order: `life` (time over restarts), `spending` (tokens of all tasks), `gates` (the rules of tools),
`equipment` (the tools as they were loaded), `putting` (how a job is put to an endpoint), `effects` (what a runner needs
done), `queue` (which run is next, who holds it), `lanes` (threads that bring runs forward), `running` (how runs get
on), `upkeep` (old states and runs), `card` (how a tool is told), `view` (what queries show), `desk` (what the mailbox
asks), `rival`
and `presence` (a second node with our id), `ghosts`, `complaints` and `fitting` (what a broker keeps, refuses and is
too small for), `post` (the node's side of its connection), `health` (how the node is), `news` (what it says to all),
`naming` (its id), `node` (one node put together), `refuser` (the node without a store), `main` (the process: signals,
timers, exit codes).
"""
