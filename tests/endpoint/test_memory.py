"""Hostile servers cost the process next to no memory. Measured in a process of its own."""

import subprocess
import sys
from contextlib import ExitStack

from rea_edge.emulated.endpoint import Fault, FaultKind, ScriptedEndpoint

PROGRAM = """
import gc, os, sys
from rea_edge.cancel import Cancel
from rea_edge.endpoint import Endpoint
from rea_edge.errors import EndpointFailed
def peak_kib():
    return int(next(l for l in open("/proc/self/status") if l.startswith("VmHWM")).split()[1])
endpoints = [Endpoint(name="a", url=url, model="m") for url in sys.argv[1:]]
def ask_all():
    kinds = []
    for endpoint in endpoints:
        try:
            endpoint.ask(b'{"stream": true}', seconds=0.6, cancel=Cancel())
        except EndpointFailed as exc:
            kinds.append(exc.kind)
    return kinds
endpoints[-1].get("/health", seconds=5, cancel=Cancel())  # httpx and a first connection
before = peak_kib()
kinds = ask_all() + ask_all()
print(peak_kib() - before, *kinds)
"""

MOST_KIB = 4096  # one body cap is 256 KiB; the rest is parsing, buffers and the allocator


def test_the_worst_servers_cost_less_than_four_mebibytes() -> None:
    faults: list[FaultKind] = ["huge_body", "endless_line", "gzip_bomb", "huge_header", "drip_body"]
    with ExitStack() as stack:
        urls = [stack.enter_context(ScriptedEndpoint([Fault(fault)])).url for fault in faults]
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, *urls],
            env={"PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    grown, *kinds = done.stdout.split()
    assert kinds == ["body_cap", "body_cap", "encoding", "body_cap", "timeout_total"] * 2
    assert int(grown) < MOST_KIB
    print(f"peak grew by {grown} KiB")
