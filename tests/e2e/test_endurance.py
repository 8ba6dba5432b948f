"""Thousands of steps in one process: memory does not grow, nor do descriptors and threads, and the file levels off."""

from pathlib import Path

import pytest
from msgspec import Struct

from rea_edge.emulated.endpoint import ScriptedEndpoint
from tests.brokers import Mosquitto
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import House, call, endpoint_table, finish, wait_online

PER_TASK = 50  # steps
WARM = 200  # steps, until every path has been taken


class Sample(Struct, frozen=True):
    rss_kib: int
    descriptors: int
    threads: int
    file_kib: int


def sampled(house: House) -> Sample:
    """The daemon's process as it stands, between two tasks."""
    process = Path(f"/proc/{house.pid}")
    state = house.folder / "state"
    return Sample(
        rss_kib=int((process / "statm").read_text().split()[1]) * 4,
        descriptors=len(list((process / "fd").iterdir())),
        threads=len(list((process / "task").iterdir())),
        file_kib=sum(file.stat().st_size for file in state.glob("state.db*")) // 1024,
    )


class Model:
    """Reads and turns, and finishes each task with its last step. Counted here: old turns drop out of a long prompt."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, request: dict[str, object]) -> str:
        step, self.asked = self.asked % PER_TASK, self.asked + 1
        if step == PER_TASK - 1:
            return finish("The valve has been turned often enough.")
        return call("turn", percent=step) if step % 2 else call("look", name="tank" if step % 4 else "pipe")


@pytest.mark.parametrize("steps", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_a_daemon_is_no_larger_after_many_steps(mosquitto: Mosquitto, make_house: MakeHouse, steps: int) -> None:
    with ScriptedEndpoint(Model()) as endpoint:
        limits = {"steps": 2 * PER_TASK, "tokens": 10_000_000, "task_s": 3600.0}
        extra = endpoint_table(endpoint.url, **limits).replace("context_tokens = 8192", "context_tokens = 4096")
        house = make_house(mosquitto, extra=f'{extra}\n[queue]\nrate = "120/second"\n[store]\nmax_mib = 8').start()
        samples: list[Sample] = []
        with house.client(silent_s=60) as client:
            wait_online(client)
            for number in range(steps // PER_TASK):
                task_id, _ = client.submit({"id": f"t{number}", "goal": "Turn the valve again and again."})
                state = client.watch(task_id, None)
                assert (state.outcome, state.usage.steps) == ("achieved", PER_TASK), state
                samples.append(sampled(house))
    warm, last = samples[WARM // PER_TASK - 1 :], samples[-1]
    print(*(f"{PER_TASK * (number + 1)} {one}" for number, one in enumerate(samples)), sep="\n")
    assert last.rss_kib - warm[0].rss_kib < 1024, samples
    assert {one.threads for one in warm} == {last.threads}
    assert max(one.descriptors for one in warm) <= warm[0].descriptors + 2
    assert max(one.file_kib for one in samples) < 7 * 1024
    late = [one.file_kib for one in samples[len(samples) // 2 :]]
    assert max(late) - min(late) < 1024, "the file has levelled off"
