"""What systemd hears from us, heard on a real socket, and whom the watchdog names."""

import math
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rea_edge.systemd import Notifier, Progress, notifier, watchdog_s


class Ear:
    """The other end of the notify socket."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address.replace("@", "\0", 1) if address.startswith("@") else address)
        self.socket.settimeout(5)

    def heard(self) -> list[str]:
        return self.socket.recv(4096).decode().split("\n")


@pytest.fixture(params=["path", "abstract"])
def ear(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ear]:
    address = f"@rea-edge-test-{os.getpid()}" if request.param == "abstract" else str(tmp_path / "notify")
    ear = Ear(address)
    yield ear
    ear.socket.close()


def test_each_state_is_said_in_systemds_words(ear: Ear) -> None:
    ours = notifier({"NOTIFY_SOCKET": ear.address})
    said = [
        (ours.ready("idle"), ["READY=1", "STATUS=idle"]),
        (ours.ready(), ["READY=1"]),
        (ours.status("running r-1"), ["STATUS=running r-1"]),
        (ours.reloading(1_234_567_890), ["RELOADING=1", "MONOTONIC_USEC=1234567"]),
        (ours.extend(2.5), ["EXTEND_TIMEOUT_USEC=2500000"]),
        (ours.watchdog(), ["WATCHDOG=1"]),
        (ours.stopping("draining"), ["STOPPING=1", "STATUS=draining"]),
    ]
    for sent, lines in said:
        assert sent
        assert ear.heard() == lines


def test_a_reload_carries_the_clock_systemd_compares_with(ear: Ear) -> None:
    before = time.monotonic_ns() // 1000
    assert Notifier(ear.address).reloading()
    stamp = int(ear.heard()[1].removeprefix("MONOTONIC_USEC="))
    assert before <= stamp <= time.monotonic_ns() // 1000


def test_a_status_of_several_lines_cannot_say_something_else(ear: Ear) -> None:
    Notifier(ear.address).status("broken\nWATCHDOG=1\r\nREADY=1")
    assert ear.heard() == ["STATUS=broken WATCHDOG=1 READY=1"]


def test_without_systemd_nothing_is_sent_and_nothing_fails() -> None:
    assert not notifier({}).ready()
    assert not notifier({"NOTIFY_SOCKET": ""}).watchdog()


def test_a_socket_that_is_gone_does_not_stop_the_daemon(tmp_path: Path) -> None:
    assert not Notifier(str(tmp_path / "none")).ready()


def test_a_socket_nobody_reads_does_not_hold_the_daemon_for_ever(tmp_path: Path) -> None:
    ear = Ear(str(tmp_path / "full"))
    try:
        ours, began = Notifier(ear.address), time.monotonic()
        assert not all(ours.watchdog() for _ in range(5_000))
        assert time.monotonic() - began < 10
    finally:
        ear.socket.close()


@pytest.mark.parametrize(
    ("environ", "seconds"),
    [
        pytest.param({"WATCHDOG_USEC": "60000000"}, 60.0, id="for whoever we are"),
        pytest.param({"WATCHDOG_USEC": "1500000", "WATCHDOG_PID": "7"}, 1.5, id="for us"),
        pytest.param({"WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "8"}, None, id="for another process"),
        pytest.param({"WATCHDOG_USEC": "0"}, None, id="switched off"),
        pytest.param({"WATCHDOG_USEC": "soon"}, None, id="no number"),
        pytest.param({}, None, id="not asked for"),
    ],
)
def test_the_watchdog_interval_is_the_one_meant_for_us(environ: dict[str, str], seconds: float | None) -> None:
    assert watchdog_s(environ, 7) == seconds


def test_a_lane_is_overdue_only_after_the_time_its_own_step_allows() -> None:
    progress = Progress()
    progress.lane("agent").beat(300)
    progress.lane("mqtt").beat(10)
    now = time.monotonic()
    assert progress.overdue(now + 9) is None
    assert progress.overdue(now + 11) == "mqtt"


def test_the_lane_furthest_behind_is_named() -> None:
    progress = Progress()
    progress.lane("tool").beat(20)
    progress.lane("mqtt").beat(10)
    assert progress.overdue(time.monotonic() + 1_000) == "mqtt"


def test_a_new_beat_replaces_the_last() -> None:
    progress = Progress()
    lane = progress.lane("agent")
    lane.beat(10)
    lane.beat(300)
    assert progress.overdue(time.monotonic() + 200) is None


def test_a_lane_that_rests_or_has_ended_is_never_overdue() -> None:
    progress = Progress()
    progress.lane("agent").beat(1)
    progress.lane("tool").beat(1)
    progress.lane("agent").rest()
    progress.forget("tool")
    assert progress.overdue(time.monotonic() + 1e9) is None
    assert Progress().overdue(math.inf) is None


def test_a_deadlocked_lane_is_named_while_others_go_on() -> None:
    progress, lock = Progress(), threading.Lock()
    lock.acquire()

    def stuck() -> None:
        progress.lane("agent").beat(0.05)
        lock.acquire()

    thread = threading.Thread(target=stuck, daemon=True)
    thread.start()
    try:
        busy = progress.lane("mqtt")
        until = time.monotonic() + 5
        while (late := progress.overdue(time.monotonic())) is None and time.monotonic() < until:
            busy.beat(60)
            thread.join(0.01)
        assert late == "agent"
    finally:
        lock.release()
        thread.join(5)


def test_many_threads_may_beat_while_one_looks() -> None:
    progress = Progress()

    def beat(name: str) -> None:
        for _ in range(2_000):
            progress.lane(name).beat(60)
            progress.forget(name)

    threads = [threading.Thread(target=beat, args=(f"lane-{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert progress.overdue(time.monotonic()) is None
    for thread in threads:
        thread.join()


def test_importing_it_loads_no_large_library() -> None:
    large = "{'ssl', 'asyncio', 'logging'}"
    code = f"import sys, rea_edge.systemd, rea_edge.memory; print(sorted({large} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
