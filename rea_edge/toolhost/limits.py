"""What a tool's child may use, and how a fresh child is shut off from the processes above it.

Holds numbers and the calls that set them; runs nothing. Numbers are per process; the keeper also adds up the memory
of the whole tree. What only a control group can stop (kernel memory, forks without end) is left to the unit file.
"""

import os
import resource
import signal

from msgspec import Struct

RESULT_BYTES = 64 * 1024  # a result, as JSON; also what a program may write to standard output
LOG_BYTES = 16 * 1024  # what is kept of standard error, and of what a Python tool prints
FLOOD_BYTES = 1024 * 1024  # what may be written there before the tool is ended
FILE_MIB = 16  # the largest file a tool may write
DESCRIPTORS = 64
OOM_SCORE = 800  # out of memory, the kernel ends tools before the daemon
TOP_DESCRIPTOR = 1024  # the host keeps itself below this, so that closing up to it closes all
PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "REA_STATE_DIR")


class Limits(Struct, frozen=True):
    memory_mib: int
    cpu_s: int
    result_bytes: int = RESULT_BYTES


def close_all_but(keep: set[int]) -> None:
    """Close every descriptor above 2 that is not named."""
    start = 3
    for descriptor in sorted(keep | {TOP_DESCRIPTOR}):
        if descriptor >= start:
            os.closerange(start, descriptor)
            start = descriptor + 1


def stay_alone(limits: Limits, request_id: str) -> None:
    """Give this process a session, signals, environment and limits of its own."""
    os.setsid()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    keep = {name: value for name, value in os.environ.items() if name in PASSED_ON or name.startswith("REA_TOOL_")}
    os.environ.clear()
    os.environ.update(keep, REA_REQUEST_ID=request_id)
    set_limit(resource.RLIMIT_CORE, 0, 0)
    set_limit(resource.RLIMIT_NOFILE, DESCRIPTORS, DESCRIPTORS)
    set_limit(resource.RLIMIT_FSIZE, FILE_MIB << 20, FILE_MIB << 20)
    # One second more than the soft limit ends also a tool that ignores the signal.
    set_limit(resource.RLIMIT_CPU, limits.cpu_s, limits.cpu_s + 1)
    set_limit(resource.RLIMIT_DATA, limits.memory_mib << 20, limits.memory_mib << 20)
    volunteer_for_oom()


def set_limit(what: int, soft: int, hard: int) -> None:
    """Set a limit, or keep a lower one that somebody above us set."""
    _, ceiling = resource.getrlimit(what)
    if ceiling != resource.RLIM_INFINITY:
        soft, hard = min(soft, ceiling), min(hard, ceiling)
    resource.setrlimit(what, (soft, hard))


def volunteer_for_oom() -> None:
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write(str(OOM_SCORE))
    except OSError:
        return  # read-only /proc in some containers: the limits above still hold
