"""What we say about memory, compared with memory that is really held."""

import gc
import mmap
import os
import subprocess
import sys

import pytest

from rea_edge.memory import resident_mib, shared_fairly_mib, trim


def status_kib(field: str) -> int:
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(field))


def test_resident_memory_grows_by_what_is_held() -> None:
    before = resident_mib()
    held = mmap.mmap(-1, 32 * 1024 * 1024)  # pages of its own: the heap may have that much free from the tests before
    for page in range(0, len(held), mmap.PAGESIZE):
        held[page] = 1
    assert 30 < resident_mib() - before < 36
    assert resident_mib() == pytest.approx(status_kib("VmRSS:") / 1024, abs=2)
    held.close()


def test_trimming_gives_back_what_small_objects_held() -> None:
    # In a child: how much free heap there is to give back must not depend on the tests before.
    code = """
import ctypes, sys
from rea_edge.memory import resident_mib, trim
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
blocks = [libc.malloc(1000) for _ in range(40_000)]
for block in blocks: ctypes.memset(ctypes.c_void_p(block), 1, 1000)
for block in blocks[:-1]: libc.free(block)  # the last one holds the top of the heap
before = resident_mib()
assert trim()
print(before - resident_mib())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(done.stdout) > 20


def test_trimming_may_be_asked_for_at_any_time() -> None:
    gc.collect()
    assert trim()


def test_processes_together_count_what_they_share_once() -> None:
    alone = shared_fairly_mib([os.getpid()])
    assert 0 < alone <= resident_mib() + 1
    child = subprocess.Popen([sys.executable, "-c", "print(flush=True); input()"], stdin=-1, stdout=-1)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        both = shared_fairly_mib([os.getpid(), child.pid])
        assert both > shared_fairly_mib([os.getpid()]) + 1
    finally:
        child.communicate(b"\n", timeout=10)


def test_a_process_that_has_ended_counts_nothing() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait(timeout=20)
    assert shared_fairly_mib([child.pid]) == 0
