"""What becomes of the disk and the state file, seen from outside: said in status and log, never a loop, nothing lost."""

import os
import random
import signal
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from rea_edge.cli.ask import pages
from rea_edge.client import Client
from rea_edge.emulated.endpoint import Held, ScriptedEndpoint
from rea_edge.errors import NodeSilent, RequestRefused
from rea_edge.store import Store
from rea_edge.store.survey import survey
from tests import disks
from tests.brokers import Mosquitto, wait_until
from tests.durability.recording import strace_program
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import House, call, endpoint_table, finish, script, wait_for_questions, wait_online

RETRY_S = 25.0  # the daemon looks every 5 s whether a fault has gone


def wait_degraded(client: Client, word: str, seconds: float = RETRY_S) -> None:
    def is_so() -> bool:
        found = client.status()
        return found.state == "degraded" and any(word in fault for fault in found.faults)

    wait_until(is_so, f"it is degraded and says {word!r}", seconds)


def kill(house: House, client: Client) -> None:
    """Gone, and seen to be: what its status said before is not taken for its next word."""
    house.kill()
    wait_until(lambda: client.status().state == "offline", "its will says offline", 10)


def test_on_a_full_disk_it_stays_up_refuses_and_goes_on_by_itself_when_there_is_room(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    released = threading.Event()
    answers = script(call("ring"), finish("It rang."))
    with ScriptedEndpoint(lambda request: Held(answers(request), released)) as endpoint:
        house = make_house(mosquitto, extra=endpoint_table(endpoint.url))
        with disks.full(house.folder / "state") as disk, house.client(silent_s=30) as client:
            house.start()
            wait_online(client)
            client.submit({"id": "before", "goal": "Ring."})
            wait_for_questions(endpoint, 1)
            disk.fill()
            for number in range(20):  # what little room is left in the WAL is used up
                if refusal := full_for(client, f"f{number}"):
                    break
            assert refusal is not None and (refusal.code, refusal.retryable) == ("store_failed", True)
            wait_degraded(client, "disk is full")
            released.set()
            wait_until(lambda: "event=disk_full row=" in house.log.read_text(), "its lane waits for room", 15)
            assert client.data("query", {}, "status"), "what needs no room is answered"
            assert house.ledger("ring") == [], "nothing is done that is not written down"
            disk.free()
            wait_online(client, RETRY_S)
            assert client.watch("before", None).outcome == "achieved"
            assert len(house.ledger("ring")) >= 1
            client.submit({"id": "after", "goal": "Ring."})
            assert client.watch("after", None).outcome == "achieved"
            rang = [line.split()[1] for line in house.ledger("ring")]
            assert len(rang) == len(set(rang)), "an effect took place twice"
            assert house.stop() == 0
            assert survey(house.folder / "state").wrong is None
        assert "Traceback" not in house.log.read_text()


@pytest.mark.slow
def test_a_start_on_a_full_disk_waits_for_room_too(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    released = threading.Event()
    with ScriptedEndpoint(lambda request: Held(finish("It is there."), released)) as endpoint:
        house = make_house(mosquitto, extra=f"{endpoint_table(endpoint.url)}\n[task.default]\nmin_observations = 0")
        with disks.full(house.folder / "state") as disk, house.client(silent_s=30) as client:
            house.start()
            wait_online(client)
            client.submit({"id": "t1", "goal": "Is it there?"})
            wait_for_questions(endpoint, 1)
            kill(house, client)
            disk.fill()
            house.start()
            wait_until(lambda: client.status().state != "offline", "it is there", 15)
            disk.free()
            wait_online(client, RETRY_S)
            released.set()
            assert client.watch("t1", None).outcome == "achieved"
            assert house.stop() == 0


def full_for(client: Client, task_id: str) -> RequestRefused | None:
    try:
        client.submit({"id": task_id, "goal": "Ring."})
    except RequestRefused as exc:
        return exc
    return None


@pytest.mark.slow  # in every run the disk fails call by call, in tests/durability
@pytest.mark.parametrize("fault", ["an I/O error", "read-only"])
def test_a_disk_that_fails_and_comes_back_is_waited_for_and_nothing_acknowledged_is_lost(
    mosquitto: Mosquitto, make_house: MakeHouse, fault: str
) -> None:
    house = make_house(mosquitto)
    with disks.failing(house.folder / "disk") as disk, house.client(silent_s=30) as client:
        (house.folder / "state").symlink_to(house.folder / "disk" / "state")
        (house.folder / "disk" / "state").mkdir()
        house.start()
        wait_online(client)
        assert client.ask("call", {"id": "c1"}, "ring").ok
        (disk.fail if fault == "an I/O error" else disk.stop_writing)()
        client.send("call", {"id": "c2"}, "ring")
        assert house.wait(20) == 74, "an error while it runs: nothing may be done any more"
        assert len(house.ledger("ring")) == 1
        wait_until(lambda: client.status().state == "offline", "its will says offline", 10)
        house.start()
        wait_degraded(client, "store:")
        reply = client.ask("call", {"id": "c2"}, "ring")
        assert reply.error is not None and (reply.error.code, reply.error.retryable) == ("store_failed", True)
        mended(house, disk)
        wait_online(client, RETRY_S)
        assert client.ask("call", {"id": "c1"}, "ring").ok and len(house.ledger("ring")) == 1
        assert client.ask("call", {"id": "c2"}, "ring").ok and len(house.ledger("ring")) == 2
        assert not list((house.folder / "disk" / "state").glob("broken-*"))
        assert house.stop() == 0


def mended(house: House, disk: disks.Failing) -> None:
    """The daemon sleeps meanwhile: it would take the empty place of the disk for a new one."""
    os.kill(house.pid, signal.SIGSTOP)
    try:
        disk.mend()
    finally:
        os.kill(house.pid, signal.SIGCONT)


def overwrite(file: Path, change: Callable[[bytes], bytes]) -> None:
    file.write_bytes(change(file.read_bytes()))


def flip(content: bytes) -> bytes:
    """A bit of a request that a task which has not ended needs."""
    place = content.index(b"to-be-flipped")
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


def put_foreign(folder: Path) -> None:
    (folder / "state.db").unlink()
    db = sqlite3.connect(folder / "state.db")
    db.executescript("create table notes (text); insert into notes values ('mine')")
    db.close()


# What is done to the state of a daemon that was killed; the WAL is moved into the file first, but for the last.
DAMAGE: dict[str, Callable[[Path], object]] = {
    "a flipped bit": lambda folder: overwrite(folder / "state.db", flip),
    "emptied": lambda folder: overwrite(folder / "state.db", lambda old: b""),
    "cut": lambda folder: overwrite(folder / "state.db", lambda old: old[: len(old) // 2]),
    "garbage": lambda folder: overwrite(folder / "state.db", lambda old: random.Random(1).randbytes(len(old))),
    "another program's": put_foreign,
    "gone": lambda folder: (folder / "state.db").unlink(),
    "its WAL deleted": lambda folder: (folder / "state.db-wal").unlink(),
}


@pytest.mark.parametrize(
    "cases",
    [
        pytest.param(["its WAL deleted"], id="sample"),
        pytest.param(sorted(DAMAGE), id="all", marks=pytest.mark.slow),
    ],
)
def test_a_damaged_state_is_set_aside_once_and_said_and_the_node_goes_on(
    mosquitto: Mosquitto, make_house: MakeHouse, cases: list[str]
) -> None:
    with ScriptedEndpoint(lambda request: Held(finish("Never."), threading.Event())) as endpoint:
        house = make_house(mosquitto, extra=endpoint_table(endpoint.url)).start()
        state = house.folder / "state"
        with house.client(silent_s=30) as client:
            for number, case in enumerate(cases, 1):
                wait_until(lambda: client.status().state != "offline", "it is there", 15)
                client.submit({"id": f"t{number}", "goal": "A goal that is to-be-flipped."})
                kill(house, client)
                if case != "its WAL deleted":
                    db = sqlite3.connect(state / "state.db")
                    db.execute("pragma wal_checkpoint(truncate)")
                    db.close()
                DAMAGE[case](state)
                damaged = {one.name: one.read_bytes() for one in state.glob("state.db*")}
                house.start()
                wait_degraded(client, "state lost")
                assert "event=state_lost" in house.log.read_text()
                aside = state / f"broken-{number}"
                assert {name: (aside / name).read_bytes() for name in damaged} == damaged, case
                kill(house, client)
                house.start()
                wait_degraded(client, "state lost")
                assert not (state / f"broken-{number + 1}").exists(), "once is enough"
                assert client.ask("call", {"args": {"name": "tank"}}, "look").ok
        assert len(list(state.glob("broken-*"))) == len(cases)


@pytest.mark.slow
def test_a_wal_that_cannot_be_emptied_ends_it_once_and_then_it_waits_for_the_disk(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    """What a dying card shows first: SQLite goes on although nothing of the WAL reaches the file."""
    with ScriptedEndpoint(lambda request: Held(finish("Never."), threading.Event())) as endpoint:
        house = make_house(mosquitto, extra=endpoint_table(endpoint.url, queue=200))
        state = house.folder / "state"
        failing = [strace_program(), "-f", "-qq", "-o", str(house.folder / "trace"), "-P", str(state / "state.db")]
        failing += ["-e", "trace=pwrite64", "-e", "inject=pwrite64:error=EIO"]
        with house.client(silent_s=30) as client:
            house.start()
            wait_online(client)
            house.kill()
            house.start(*failing)
            accepted = []
            with pytest.raises((NodeSilent, RequestRefused)):
                for number in range(150):
                    client.submit({"id": f"t{number}", "goal": "x" * 60_000})
                    accepted.append(f"t{number}")
            assert house.wait(20) == 74 and "WAL" in house.log.read_text()
            assert 15 < len(accepted) < 100
            house.start(*failing)
            wait_degraded(client, "store:")
            assert house.alive
            house.kill()
            house.start()
            wait_online(client)
            assert {row["id"] for row in pages(client, "tasks", {})} >= set(accepted)


def test_a_request_that_comes_again_after_its_journal_gave_way_does_not_run_again(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    with ScriptedEndpoint(script(call("ring"), finish("It rang."))) as endpoint:
        house = make_house(mosquitto, extra=endpoint_table(endpoint.url)).start()
        with house.client() as client:
            wait_online(client)
            client.submit({"id": "t1", "goal": "Ring."})
            assert client.watch("t1", None).outcome == "achieved"
            assert client.ask("call", {"id": "c1"}, "ring").ok
            assert house.stop() == 0
            store = Store.open(house.folder / "state")
            with store.transaction() as tx:
                assert len(tx.prune(9e99, 0)) == 2
            store.close()
            house.start()
            _, state = client.submit({"id": "t1", "goal": "Ring."})
            assert (state.state, state.outcome) == ("ended", "achieved") and "journal was deleted" in str(state.reason)
            assert client.ask("call", {"id": "c1"}, "ring").ok
            taken = client.ask("call", {"id": "c1", "args": {"seconds": 0.5}}, "ring")
            assert taken.error is not None and taken.error.code == "id_conflict"
            assert len(house.ledger("ring")) == 2
            assert client.data("query", {"task": "t1"}, "journal")
