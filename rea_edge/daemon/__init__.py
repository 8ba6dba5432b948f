"""The daemon: lanes, timers, watchdog, memory guard, drain.

Files import in this order: `life` (time over restarts), `spending` (tokens of all tasks), `gates` (the rules of
tools), `halts` (an operator's halt), `calls` (how a call is made), `equipment` (the tools as they were loaded),
`putting` (how a job is put to an endpoint), `effects` (what a runner needs done), `inforce` (the newest
configuration, and older ones while runs use them), `reloads` (reading it anew), `queue` (which run is next, who holds
it), `lanes` (threads that bring runs forward), `unfinished` (runs of an earlier start), `crew` (all lanes), `running`
(how runs get on), `upkeep` (old states and runs), `card` (how a tool is told), `view` (what queries show), `desk`
(what the mailbox asks), `orders` (what an operator orders), `rival` and `presence` (a second node with our id),
`ghosts`, `complaints` and `fitting` (what a broker keeps, refuses and is too small for), `post` (the node's side of
its connection), `denials` (what was refused), `health` (how the node is), `news` (what it says to all), `naming` (its
id), `node` (one node put together), `refuser` (the node without a store), `main` (the process: signals, timers, exit
codes).
"""
