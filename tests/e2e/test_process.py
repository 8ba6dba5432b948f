"""The daemon as a process: exit codes, systemd's socket, the watchdog, a store that cannot be used."""

import os
import resource
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.brokers import AnyBroker, Mosquitto, wait_until
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import ROOT, House, wait_online


class FakeSystemd:
    """A notify socket that keeps what it is told."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "notify"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(self.path))

    def next(self, word: str, seconds: float = 15.0) -> str:
        self._socket.settimeout(seconds)
        while True:
            text = self._socket.recv(4096).decode()
            if word in text:
                return text

    def close(self) -> None:
        self._socket.close()


def test_systemd_hears_ready_watchdog_and_stopping(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    house = make_house(mosquitto)
    systemd = FakeSystemd(house.folder)
    try:
        house.start(NOTIFY_SOCKET=str(systemd.path), WATCHDOG_USEC="1000000")
        assert "n1" in systemd.next("READY=1")
        for _ in range(3):
            systemd.next("WATCHDOG=1", 2.0)
        house_exit(house, signal.SIGTERM)
        systemd.next("STOPPING=1")
        assert house.wait(15) == 0
    finally:
        systemd.close()


def test_systemd_hears_when_a_reload_begins_and_when_it_is_over(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    house = make_house(mosquitto)
    systemd = FakeSystemd(house.folder)
    try:
        house.start(NOTIFY_SOCKET=str(systemd.path))
        systemd.next("READY=1")
        for broken in (False, True):
            if broken:
                house.config.write_text("no = configuration")
            before_us = time.monotonic_ns() // 1000
            os.kill(house.pid, signal.SIGHUP)
            stamp = systemd.next("RELOADING=1").partition("MONOTONIC_USEC=")[2]
            assert before_us <= int(stamp.split()[0]) <= time.monotonic_ns() // 1000
            systemd.next("READY=1", 30)
    finally:
        systemd.close()


def house_exit(house: House, number: signal.Signals) -> None:
    os.kill(house.pid, number)


def test_it_is_ready_without_a_broker_and_serves_once_there_is_one(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    mosquitto.stop()
    house = make_house(mosquitto)
    systemd = FakeSystemd(house.folder)
    try:
        house.start(NOTIFY_SOCKET=str(systemd.path))
        systemd.next("READY=1")
    finally:
        systemd.close()
    mosquitto.start()
    with house.client() as client:
        wait_online(client)


def test_a_second_daemon_on_the_same_state_exits_75_and_names_the_first(
    broker: AnyBroker, make_house: MakeHouse
) -> None:
    house = make_house(broker).start()
    with house.client() as client:
        wait_online(client)
    second = subprocess.run(
        [sys.executable, "-m", "rea_edge", "run", "--config", str(house.config)],
        cwd=ROOT, capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert second.returncode == 75
    assert str(house.pid) in second.stderr


@pytest.mark.parametrize(
    ("line", "words"),
    [
        pytest.param("[limits]\nstepz = 3", "limits.stepz", id="an unknown key"),
        pytest.param('[limits]\nsteps = "many"', "limits.steps", id="a wrong type"),
        pytest.param("[[", "line", id="no TOML"),
    ],
)
def test_a_bad_configuration_exits_78_and_names_the_place(
    mosquitto: Mosquitto, make_house: MakeHouse, line: str, words: str
) -> None:
    house = make_house(mosquitto, extra=line)
    done = house.run_command("run", "--config", str(house.config))
    assert done.returncode == 78
    assert words in done.stderr


def test_a_state_that_cannot_be_opened_keeps_the_node_up_degraded_until_it_can(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    house = make_house(mosquitto)
    (house.folder / "state").write_text("a file where a folder should be")
    house.start()
    with house.client() as client:
        wait_until(lambda: client.status().state == "degraded", "it says degraded", 15)
        reply = client.ask("call", {"id": "x1", "args": {"name": "tank"}}, "look")
        assert reply.error is not None and reply.error.code == "store_failed" and reply.error.retryable
        assert house.stop() == 0
        wait_until(lambda: client.status().state == "offline", "it says offline", 10)
        house.start()
        wait_until(lambda: client.status().state == "degraded", "it says degraded again", 15)
        house.kill()
        wait_until(lambda: client.status().state == "offline", "its will says offline", 10)
        house.start()
        wait_until(lambda: client.status().state == "degraded", "it says degraded once more", 15)
        (house.folder / "state").unlink()
        wait_until(lambda: client.ask("call", {"args": {"name": "tank"}}, "look").ok, "it works again", 30)


def test_a_new_node_whose_folder_is_mended_while_it_is_up_has_lost_no_state(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    house = make_house(mosquitto)
    (house.folder / "state").write_text("a file where a folder should be")
    house.start()
    with house.client() as client:
        wait_until(lambda: client.status().state == "degraded", "it says degraded", 15)
        (house.folder / "state").unlink()
        wait_online(client, 30)
        assert client.ask("call", {}, "ring").ok


def test_a_node_that_stops_while_it_is_degraded_says_offline(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    house = make_house(mosquitto)
    (house.folder / "state").write_text("a file where a folder should be")
    house.start()
    with house.client() as client:
        wait_until(lambda: client.status().state == "degraded", "it says degraded", 15)
        assert house.stop() == 0
        wait_until(lambda: client.status().state == "offline", "it says offline", 5)


def test_a_node_whose_state_was_lost_is_degraded_in_its_status_and_to_a_query(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    house = make_house(mosquitto)
    (house.folder / "state").mkdir()
    (house.folder / "state" / "state.db").write_text("no database at all, but long enough to be taken for one")
    house.start()
    with house.client() as client:
        wait_until(lambda: client.status().state == "degraded", "it says degraded", 15)
        found = client.data("query", {}, "status")
        assert isinstance(found, dict) and found["status"]["state"] == "degraded"
        assert "event=state_lost" in house.log.read_text(), "and the log says so, and where the old one is"
        assert any("state" in fault for fault in found["status"]["faults"])


def test_a_disk_that_fails_while_it_runs_ends_it_with_74_and_nothing_is_done(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    house = make_house(mosquitto).start()
    with house.client() as client:
        wait_online(client)
        resource.prlimit(house.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        client.send("call", {"id": "b1"}, "ring")
        assert house.wait(15) == 74
        assert house.ledger("ring") == []
        house.start()
        assert client.ask("call", {"id": "b1"}, "ring").ok
        assert len(house.ledger("ring")) == 1


def test_a_damaged_run_that_has_ended_costs_its_query_and_nothing_else(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    house = make_house(mosquitto).start()
    with house.client() as client:
        wait_online(client)
        assert client.ask("call", {"id": "d1", "args": {"name": "tank"}}, "look").ok
        assert house.stop() == 0
        db = sqlite3.connect(house.folder / "state" / "state.db")
        with db:
            db.execute("UPDATE event SET body = 'x' WHERE seq = 0")
        db.close()
        house.start()
        reply = client.ask("query", {"task": "d1"}, "journal")
        assert reply.error is not None and reply.error.code == "store_failed" and not reply.error.retryable
        assert client.ask("call", {"id": "d2", "args": {"name": "tank"}}, "look").ok


def test_above_the_hard_memory_limit_it_stops_in_order_with_75(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    house = make_house(mosquitto, extra="[memory]\nsoft_mib = 16\nhard_mib = 17").start()
    assert house.wait(30) == 75


def test_above_the_soft_memory_limit_new_requests_are_refused(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    house = make_house(mosquitto, extra="[memory]\nsoft_mib = 16").start()
    with house.client() as client:
        wait_until(lambda: any("memory" in fault for fault in client.status().faults), "it says so", 15)
        reply = client.ask("call", {"args": {"name": "tank"}}, "look")
        assert reply.error is not None and reply.error.code == "busy" and "memory" in reply.error.message


def no_more_writing(house: House) -> None:
    """From now on every write of the daemon to a file fails: what a dying disk does."""
    resource.prlimit(house.pid, resource.RLIMIT_FSIZE, (0, 0))


@pytest.mark.parametrize("where", ["at a request", "after a tool ran"])
def test_a_disk_that_fails_ends_the_process_with_74_and_the_next_start_goes_on(
    mosquitto: Mosquitto, make_house: MakeHouse, where: str
) -> None:
    house = make_house(mosquitto).start()
    with house.client(silent_s=30) as client:
        wait_online(client)
        if where == "at a request":
            no_more_writing(house)
        client.send("call", {"id": "c1", "args": {"seconds": 1.0}}, "ring")
        if where == "after a tool ran":
            wait_until(lambda: house.ledger("ring"), "it rings", 10)
            no_more_writing(house)
        assert house.wait(15) == 74
        house.start()
        reply = client.ask("call", {"id": "c1", "args": {"seconds": 1.0}}, "ring")
    assert len(house.ledger("ring")) == 1
    assert reply.ok is (where == "at a request"), reply
    assert reply.error is None or reply.error.code == "outcome_unknown"
