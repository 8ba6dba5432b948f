"""Waits and ages over restarts of a daemon whose clocks are moved from outside: boot time by a time namespace, the wall
clock by libfaketime. The clock of a test machine is seldom trusted, so this is the board without one; the rules for
trusted clocks are tables (`test_timeline`, `test_allowance`)."""

import subprocess
import threading
from pathlib import Path

import msgspec
import pytest

from rea_edge.client import Client
from rea_edge.emulated.endpoint import Held, ScriptedEndpoint
from rea_edge.wire import TaskState
from tests.brokers import Mosquitto, wait_until
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import House, endpoint_table, finish, questions, wait_for_questions, wait_online
from tests.e2e.test_requests import Sender

TYPE = "[task.default]\nmin_observations = 0\n"
FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
# The last one: without it each timed wait for the interpreter's lock ends at once, and threads spin.
WRONG = {"LD_PRELOAD": f"{FAKETIME}", "FAKETIME_DONT_FAKE_MONOTONIC": "1", "FAKETIME_FORCE_MONOTONIC_FIX": "0"}


def later(seconds: float) -> tuple[str, ...]:
    """The words that start a program in the same boot, this much later."""
    words = ("unshare", "-T", "--boottime", str(int(seconds)))
    if subprocess.run([*words, "true"], capture_output=True, check=False).returncode:
        pytest.skip("time namespaces are not permitted here")
    return words


@pytest.mark.parametrize(
    ("seconds", "outcome"), [(1800.0, "achieved"), (7200.0, "expired")], ids=["within queue_s", "beyond it"]
)
def test_a_task_that_waits_over_a_restart_goes_on_waiting(
    mosquitto: Mosquitto, make_house: MakeHouse, seconds: float, outcome: str
) -> None:
    release = threading.Event()
    with ScriptedEndpoint(lambda request: Held(finish("Done it."), release)) as endpoint:
        house = make_house(mosquitto, extra=f"{endpoint_table(endpoint.url, queue_s=3600.0)}\n{TYPE}").start()
        with house.client() as client:
            wait_online(client)
            client.submit({"id": "begun", "goal": "Look."})
            wait_for_questions(endpoint, 1)
            client.submit({"id": "waits", "goal": "Look."})
            house.kill()
            release.set()
            house.start(*later(seconds))
            assert client.watch("begun", None).outcome == "achieved", "what has begun does not expire"
            assert client.watch("waits", None).outcome == outcome


@pytest.mark.parametrize(
    "killed", [pytest.param(False, id="stopped"), pytest.param(True, id="killed", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(("seconds", "code"), [(30.0, None), (7200.0, "expired")], ids=["soon", "two hours later"])
def test_a_request_that_waited_in_the_broker_is_as_old_as_the_node_was_away(
    mosquitto: Mosquitto, make_house: MakeHouse, seconds: float, code: str | None, killed: bool
) -> None:
    house = make_house(mosquitto).start()
    with house.client() as client:
        wait_online(client)
        if killed:
            wait_until(lambda: b'"up"' in journal_of(house), "the node has written down that it is up", 15)
            house.kill()
        else:
            assert house.stop() == 0
    sender = Sender(house, mosquitto)
    try:
        sender.send("call/ring", {"id": "c1", "args": {}, "ttl_ms": 60_000})
        house.start(*later(seconds))
        reply = sender.reply("c1")
    finally:
        sender.close()
    assert (reply.error and reply.error.code) == code, reply
    assert len(house.ledger("ring")) == (1 if code is None else 0)


def ended(client: Client, task_id: str) -> TaskState:
    def state() -> TaskState:
        return msgspec.convert(client.data("query", {"task": task_id}, "task"), TaskState)

    wait_until(lambda: state().state == "ended", f"{task_id} has ended", 20)
    return state()


def journal_of(house: House) -> bytes:
    return (house.folder / "state" / "state.db-wal").read_bytes()


def test_a_wall_clock_years_off_changes_nothing_over_restarts(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    if FAKETIME is None:
        pytest.skip("faketime is not installed (Debian: apt-get install faketime)")
    release = threading.Event()
    with ScriptedEndpoint(lambda request: Held(finish("Done it."), release)) as endpoint:
        extra = f"{endpoint_table(endpoint.url, queue_s=600.0, day_tokens=50_000)}\n{TYPE}"
        house = make_house(mosquitto, extra=extra).start()
        spent = 0
        with house.client(silent_s=30) as client:
            wait_online(client)
            for number, wrong in enumerate(("+10y", "-2y")):
                asked = len(questions(endpoint))
                client.submit({"id": f"a{number}", "goal": "Look."})
                client.submit({"id": f"b{number}", "goal": "Look."})
                wait_for_questions(endpoint, asked + 1)
                house.kill()
                release.set()
                house.start(**WRONG, FAKETIME=wrong)
                for task_id in (f"a{number}", f"b{number}"):
                    state = ended(client, task_id)
                    assert state.outcome == "achieved", (wrong, state)
                    spent += state.usage.tokens
                assert client.status_asked().budgets["day_tokens"].left == 50_000 - spent, wrong
                release.clear()
