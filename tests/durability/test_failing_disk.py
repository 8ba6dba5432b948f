"""An error of the disk at any write or sync: the run stops there, and the next start has all that was acknowledged."""

import random
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from rea_edge.emulated.endpoint import ScriptedEndpoint
from rea_edge.errors import RequestRefused, StoreUnusable
from rea_edge.store.copy import StoreCopy
from tests.brokers import Mosquitto
from tests.durability.crashed import check_journal_ahead
from tests.durability.recording import ROOT
from tests.durability.tampering import attached, counted, tampered, tampering, watching
from tests.durability.test_borders import Told, check, check_prefix
from tests.durability.test_intake import IN_A_HURRY
from tests.durability.test_killed_daemon import rehearsed
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import House, endpoint_table, finish, script, wait_online
from tests.e2e.test_crashes import ANSWERS, outcomes, submit_all
from tests.e2e.test_crashes import check as check_tasks

Moment = tuple[str, int]
WRITING = ("pwrite64", "write", "ftruncate", "fsync", "fdatasync")
LIFE_S = 20.0
REST_S = 1.0  # without anything to do; one that is to end has ended by then


def shell(folder: Path, *under: str) -> Told | str:
    """What it told at its end, or the name of the error that stopped it."""
    done = subprocess.run(
        [*under, sys.executable, "-m", "tests.durability.shell", str(folder), "0"],
        cwd=ROOT, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    if done.returncode == 0:
        return msgspec.json.decode(done.stdout, type=Told)
    last = done.stderr.decode().splitlines()[-1]
    return last.partition(":")[0].removeprefix("rea_edge.errors.")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Told, list[Moment]]:
    folder = tmp_path_factory.mktemp("whole")
    told = shell(folder, *watching(folder / "state", folder / "trace"))
    assert isinstance(told, Told)
    calls = counted(folder / "trace")
    return told, [(call, number) for call in WRITING for number in range(1, calls[call] + 1)]


def failed_at(folder: Path, moment: Moment, error: str, whole: Told) -> str:
    """Let the disk fail there once, then let the run go on at the next start. What stopped it, empty if nothing did."""
    folder.mkdir()
    stopped = shell(folder, *tampering(folder / "state", folder / "trace", *moment, f"error={error}"))
    assert tampered(folder / "trace"), moment
    check_journal_ahead(folder)
    told = shell(folder)
    assert isinstance(told, Told), told
    check(folder, told.run, whole.run)
    check_prefix(folder)
    return stopped if isinstance(stopped, str) else ""


@pytest.mark.parametrize("error", ["EIO", "ENOSPC"])
@pytest.mark.parametrize("errors", [pytest.param(2, id="sample"), pytest.param(0, marks=pytest.mark.slow, id="all")])
def test_a_run_whose_disk_fails_at_any_call_stops_there_and_ends_after_the_next_start(
    tmp_path: Path, whole: tuple[Told, list[Moment]], errors: int, error: str
) -> None:
    told, moments = whole
    chosen = random.Random(error).sample(moments, errors) if errors else moments
    stopped = [failed_at(tmp_path / f"{call}-{number}", (call, number), error, told) for call, number in chosen]
    # What is not told is what SQLite does on its own account after a good commit, and the witness.
    assert set(stopped) <= {"StoreBroken", "StoreFull", "StoreUnusable", ""}, stopped
    assert errors or stopped.count("") < len(stopped) / 2, "a share of all calls: two drawn ones have none"


@pytest.mark.parametrize("error", ["EIO", "ENOSPC"])
@pytest.mark.parametrize("lives", [pytest.param(1, id="sample"), pytest.param(0, marks=pytest.mark.slow, id="all")])
def test_a_daemon_whose_disk_fails_at_any_call_ends_every_task_as_promised(
    mosquitto: Mosquitto, make_house: MakeHouse, lives: int, error: str
) -> None:
    with ScriptedEndpoint(script(*ANSWERS)) as endpoint:
        table = endpoint_table(endpoint.url, steps=40, tokens=1_000_000, queue=500)
        house = make_house(mosquitto, extra=f"{table}\n{IN_A_HURRY}")
        moments = rehearsed(house)
        chosen = random.Random(error).sample(moments, lives or len(moments))
        names = [f"k{number}" for number in range(len(chosen))]
        for name, (call, number) in zip(names, chosen, strict=True):
            house.start(*tampering(house.folder / "state", house.folder / "trace", call, number, f"error={error}"))
            with house.client() as client:
                client.send("task", {"id": name, "goal": "Ring twice."})
            code = ended_by_itself(house)
            assert code in (None, 74), (call, number, code)
            assert code is None or (error, call) != ("ENOSPC", "pwrite64"), "a full disk ends no daemon"
        house.start()
        with house.client(silent_s=60) as client:
            submit_all(client, names)
            check_tasks(house, outcomes(client, ["rehearsal", *names], 30 + 2 * len(names)))


def ended_by_itself(house: House) -> int | None:
    """The exit code, as soon as it ends; None if it goes on, the error behind it: then it is killed."""
    end_s = time.monotonic() + LIFE_S
    rests_since_s = None
    while house.alive and time.monotonic() < end_s:
        now_s = time.monotonic()
        rests_since_s = (rests_since_s or now_s) if tampered_and_at_rest(house) else None
        if rests_since_s is not None and now_s - rests_since_s > REST_S:
            break
        time.sleep(0.1)
    if house.alive:
        house.kill()
        return None
    return house.wait(0)


def tampered_and_at_rest(house: House) -> bool:
    if not tampered(house.folder / "trace"):
        return False
    try:
        with StoreCopy(house.folder / "state") as copy:
            return not copy.queue()
    except StoreUnusable:
        return False  # it is being written


def test_a_full_disk_refuses_and_goes_on_when_there_is_room(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    with ScriptedEndpoint(script(finish("It is so."))) as endpoint:
        extra = f"{endpoint_table(endpoint.url)}\n[task.default]\nmin_observations = 0"
        house = make_house(mosquitto, extra=extra).start()
        with house.client(silent_s=30) as client:
            wait_online(client)
            submit_all(client, ["before"])
            outcomes(client, ["before"], 15)
            with attached(house.pid, house.folder / "state", house.folder / "trace", "pwrite64", "1+", "error=ENOSPC"):
                with pytest.raises(RequestRefused) as refused:
                    client.submit({"id": "during", "goal": "Say so."})
                assert (refused.value.code, refused.value.retryable) == ("store_failed", True)
                assert client.data("query", {"task": "before"}, "task"), "queries are answered from what is there"
            submit_all(client, ["during", "after"])
            ended = outcomes(client, ["before", "during", "after"], 30)
        assert {state.outcome for state in ended.values()} == {"achieved"}
        assert house.alive
