"""Whoever is killed, at whatever moment: nothing of a tool goes on, open calls say so, and the next host waits."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rea_edge.records import Ok, Result
from rea_edge.toolhost import tree
from rea_edge.toolhost.client import ToolHost
from rea_edge.toolhost.launch import Hosts
from tests.toolhost.rig import Rig, comes_true, marked, name_of, started, value, written

PYTHON = """
def leave_one_behind():
    if os.fork() == 0:
        os.setsid()
        time.sleep(60)

def tell(name):
    open(os.path.join(HERE, name), "w").close()

@tool(effect="once", timeout_s=60)
def hangs() -> None:
    "."
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    leave_one_behind()
    tell("hanging")
    time.sleep(60)

@tool(effect="once")
def naps() -> str:
    "."
    tell("napping")
    time.sleep(0.5)
    return "rested"

@tool(effect="once")
def kills_the_host() -> None:
    "."
    leave_one_behind()
    keeper = os.getppid()
    host = int(open(f"/proc/{keeper}/stat").read().rpartition(")")[2].split()[1])
    os.kill(host, signal.SIGKILL)
    time.sleep(60)

@tool(effect="once")
def stops_the_host() -> None:
    "."
    keeper = os.getppid()
    host = int(open(f"/proc/{keeper}/stat").read().rpartition(")")[2].split()[1])
    os.kill(host, signal.SIGSTOP)
    os.kill(keeper, signal.SIGSTOP)
    time.sleep(60)

@tool(effect="read")
def well() -> str:
    "."
    return "well"
"""


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with started(tmp_path, {"tools.py": PYTHON}) as rig:
        assert rig.loaded.faults == ()
        yield rig


class calling:
    """A call under way in another thread."""

    def __init__(self, rig: Rig, name: str) -> None:
        self.results: list[Result] = []
        self.thread = threading.Thread(target=lambda: self.results.append(rig.call(name, 60.0)))
        self.rig = rig

    def __enter__(self) -> "calling":
        self.thread.start()
        assert comes_true(lambda: list(self.rig.state_dir.glob("*ing")))
        return self

    def __exit__(self, *_: object) -> None:
        self.rig.host.halt()
        self.thread.join()


def keepers(host: ToolHost) -> list[int]:
    return tree.children(host.pids()[0])


def test_a_killed_host_ends_its_calls_at_once_and_the_next_call_has_a_new_one(rig: Rig) -> None:
    first = rig.host.pids()[0]
    with calling(rig, "hangs") as call:
        began = time.monotonic()
        os.kill(first, signal.SIGKILL)
        assert comes_true(lambda: call.results)
        assert name_of(call.results[0]) == "host_gone"
        assert time.monotonic() - began < 1.0
        assert comes_true(lambda: not marked(rig.state_dir))
    assert rig.host.pids() == ()
    assert value(rig.call("well")) == "well"
    assert rig.host.alive
    assert rig.host.pids()[0] != first


def test_a_tool_that_kills_the_host_ends_with_it(rig: Rig) -> None:
    assert name_of(rig.call("kills_the_host")) == "host_gone"
    assert comes_true(lambda: not marked(rig.state_dir))
    assert value(rig.call("well")) == "well"


def test_a_tool_that_stops_host_and_keeper_holds_its_caller_no_longer_than_the_margin(rig: Rig) -> None:
    began = time.monotonic()
    assert name_of(rig.call("stops_the_host", 0.5)) == "timeout"
    assert time.monotonic() - began < 3.5
    assert comes_true(lambda: not marked(rig.state_dir))
    assert value(rig.call("well")) == "well"


def test_a_killed_keeper_leaves_nothing_and_the_host_goes_on(rig: Rig) -> None:
    with calling(rig, "hangs") as call:
        os.kill(keepers(rig.host)[0], signal.SIGKILL)
        assert comes_true(lambda: call.results)
        assert name_of(call.results[0]) == "crashed"
        assert comes_true(lambda: not rig.left())
    assert value(rig.call("well")) == "well"


def test_a_stopped_host_ends_what_runs_and_lets_it_finish_first_where_there_is_time(rig: Rig) -> None:
    with calling(rig, "naps") as call:
        rig.host.stop(5.0)
        assert comes_true(lambda: call.results)
        assert value(call.results[0]) == "rested"
    assert not rig.host.alive
    assert marked(rig.state_dir) == []
    assert name_of(rig.call("well")) == "no_host"


def test_a_stopped_host_does_not_wait_longer_than_it_was_given(rig: Rig) -> None:
    with calling(rig, "hangs") as call:
        began = time.monotonic()
        rig.host.stop(0.2)
        assert time.monotonic() - began < 2.0
        assert comes_true(lambda: call.results)
    assert name_of(call.results[0]) == "host_gone"
    assert marked(rig.state_dir) == []


def test_signals_to_the_group_of_the_daemon_do_not_end_a_running_tool(rig: Rig) -> None:
    with calling(rig, "naps") as call:
        for pid in (rig.host.pids()[0], *keepers(rig.host)):
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                os.kill(pid, number)
        assert comes_true(lambda: call.results)
        assert value(call.results[0]) == "rested"


@pytest.mark.parametrize("besides", ["nothing", "the host too"])
def test_a_killed_daemon_leaves_no_process_of_a_tool(tmp_path: Path, besides: str) -> None:
    (file,) = written(tmp_path, {"tools.py": PYTHON})
    driver = Path(__file__).with_name("driver.py")
    environment = {**os.environ, "PYTHONPATH": str(driver.parents[2])}
    daemon = subprocess.Popen(
        [sys.executable, str(driver), str(tmp_path), str(file), "hangs"], stdout=subprocess.PIPE, env=environment
    )
    try:
        assert daemon.stdout is not None
        host = int(daemon.stdout.readline().split()[1])
        assert comes_true((tmp_path / "hanging").exists)
        assert len(marked(tmp_path)) == 4  # host, keeper, tool, what the tool left behind
        daemon.kill()
        if besides == "the host too":
            os.kill(host, signal.SIGKILL)
        assert comes_true(lambda: not marked(tmp_path)), marked(tmp_path)
    finally:
        daemon.kill()
        daemon.wait()
        daemon.stdout.close() if daemon.stdout else None
        for pid in marked(tmp_path):
            os.kill(pid, signal.SIGKILL)


def test_a_new_host_runs_nothing_while_a_keeper_of_the_old_one_is_alive(tmp_path: Path) -> None:
    with started(tmp_path, {"tools.py": PYTHON}, lock_s=0.5) as rig:
        with calling(rig, "hangs") as call:
            (keeper,) = keepers(rig.host)
            os.kill(keeper, signal.SIGSTOP)  # it cannot see that the host is gone, and its tool goes on
            os.kill(rig.host.pids()[0], signal.SIGKILL)
            assert comes_true(lambda: not rig.host.alive)
            (fault,) = rig.host.start().faults
            assert "the tool host before this one still runs after 0.5 s" in fault
            assert name_of(rig.call("well")) == "no_host"
            os.kill(keeper, signal.SIGCONT)
            assert comes_true(lambda: call.results)
            assert name_of(call.results[0]) == "host_gone"
        assert value(rig.call("well")) == "well"


def test_hosts_of_one_daemon_live_side_by_side_and_those_of_the_next_wait_for_all_of_them(tmp_path: Path) -> None:
    (file,) = written(tmp_path, {"tools.py": PYTHON})
    ours, theirs = Hosts(), Hosts()
    made = [ToolHost(tmp_path, [file], memory_mib=64, lock_s=0.3, hosts=hosts) for hosts in (ours, ours, theirs)]
    first, second, next_daemons = made
    try:
        assert first.start().faults == () and second.start().faults == (), "the second waits for nobody"
        for left in (first, second):
            (fault,) = next_daemons.start().faults
            assert "is locked" in fault
            left.stop(0.0)
        assert next_daemons.start().faults == ()
    finally:
        for host in made:
            host.stop(0.0)


def test_starting_twice_keeps_the_host_and_says_the_same(rig: Rig) -> None:
    pids = rig.host.pids()
    assert rig.host.start() == rig.loaded
    assert rig.host.pids() == pids


def test_a_host_that_cannot_be_started_is_a_fault_and_not_an_exception(tmp_path: Path) -> None:
    (file,) = written(tmp_path, {"tools.py": PYTHON})
    for python in ("/nowhere/python", "/bin/true"):
        host = ToolHost(tmp_path, [file], memory_mib=64, python=python)
        loaded = host.start()
        assert loaded.tools == () and "tool host" in loaded.faults[0]
        host.stop(0.0)


SLOW = """
time.sleep(0.6)

@tool(effect="read")
def late() -> str:
    "."
    return "here"
"""


def test_a_host_that_needs_longer_to_start_than_a_call_may_take_starts_all_the_same(tmp_path: Path) -> None:
    with started(tmp_path, {"slow.py": SLOW}) as rig:
        os.kill(rig.host.pids()[0], signal.SIGKILL)
        assert comes_true(lambda: not rig.host.alive)
        assert name_of(rig.call("late", 0.3)) == "no_host"
        assert comes_true(lambda: isinstance(rig.call("late", 0.3), Ok))


def test_a_stop_while_a_host_is_starting_leaves_none(tmp_path: Path) -> None:
    with started(tmp_path, {"slow.py": SLOW}) as rig:
        os.kill(rig.host.pids()[0], signal.SIGKILL)
        assert comes_true(lambda: not rig.host.alive)
        assert name_of(rig.call("late", 0.1)) == "no_host"
        began = time.monotonic()
        rig.host.stop(0.0)
        assert time.monotonic() - began < 0.5
        assert comes_true(lambda: not marked(tmp_path))
