"""A whole daemon killed at system calls on its state files, one life after the other: every task ends as promised."""

import random
from pathlib import Path

import pytest

from rea_edge.emulated.endpoint import ScriptedEndpoint
from rea_edge.journal import run_from
from rea_edge.store.copy import StoreCopy
from tests.brokers import Mosquitto, wait_until
from tests.durability.tampering import KILL, counted, tampering, watching
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import House, endpoint_table, script, wait_online
from tests.e2e.test_crashes import ANSWERS, check, crashed, outcomes, submit_all

LIFE_S = 15.0
CALLS = ("pwrite64", "fdatasync")  # each of them is met in every life


def rehearsed(house: House) -> list[tuple[str, int]]:
    """The moments at which a life can be killed that takes up a state and does one task."""
    with house.client(silent_s=LIFE_S) as client:
        house.start()
        wait_online(client)
        house.kill()
        trace = house.folder / "trace"
        house.start(*watching(house.folder / "state", trace))
        submit_all(client, ["rehearsal"])
        outcomes(client, ["rehearsal"], LIFE_S)
        house.kill()
    calls = counted(trace)
    return [(call, number) for call in CALLS for number in range(1, calls[call] + 1)]


def used(state: Path) -> dict[str, int]:
    """Tokens by run, as the journals stand after a crash."""
    with StoreCopy(state) as copy:
        return {run.id: run_from(copy, run).used.tokens for run in copy.runs(1000)}


@pytest.mark.parametrize("kills", [pytest.param(2, id="sample"), pytest.param(0, marks=pytest.mark.slow, id="all")])
def test_a_daemon_killed_at_any_call_on_its_state_files_ends_every_task_as_promised(
    mosquitto: Mosquitto, make_house: MakeHouse, kills: int
) -> None:
    with ScriptedEndpoint(script(*ANSWERS)) as endpoint:
        limits = endpoint_table(endpoint.url, steps=40, tokens=1_000_000, queue=500)
        house = make_house(mosquitto, extra=limits)
        moments = rehearsed(house)
        # Drawn, so that no task is killed again and again at the same place.
        chosen = random.Random(6).sample(moments, kills or len(moments))
        names, spent, reached = [f"k{number}" for number in range(len(chosen))], used(house.folder / "state"), 0
        for name, moment in zip(names, chosen, strict=True):
            house.start(*tampering(house.folder / "state", house.folder / "trace", *moment, KILL))
            with house.client() as client:
                client.send("task", {"id": name, "goal": "Ring twice."})
            reached += died(house)
            now = used(house.folder / "state")
            assert all(now[run] >= tokens for run, tokens in spent.items()), "a restart forgot a cost"
            spent = now
        house.start()
        with house.client(silent_s=60) as client:
            submit_all(client, names)  # as a sender does that has not seen it accepted
            check(house, outcomes(client, ["rehearsal", *names], 30 + 2 * len(names)))
            assert reached >= len(chosen) * 0.7, f"{reached} of {len(chosen)} lives were killed where they should be"
            assert crashed(client, names) >= len(chosen) / 4, "the kills fell between the tasks and showed nothing"
        now = used(house.folder / "state")
        assert all(now[run] >= tokens for run, tokens in spent.items())


def died(house: House) -> bool:
    """Wait for the kill; where it does not come, do it by hand."""
    try:
        wait_until(lambda: not house.alive, "it is killed", LIFE_S)
    except pytest.fail.Exception:
        house.kill()
        return False
    return house.wait(0) == -9
