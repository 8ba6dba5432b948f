"""Thousands of tasks while daemon and broker are killed: a task seen accepted ends, and none is run twice."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Literal

import pytest

from rea_edge.emulated.endpoint import ScriptedEndpoint
from rea_edge.mqtt import LinkSettings
from rea_edge.store.copy import StoreCopy
from rea_edge.topics import Topics
from tests.brokers import AnyBroker, Emulated, Mosquitto
from tests.durability.sender import Sender
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import House, call, endpoint_table, finish, script
from tests.e2e.test_crashes import check

RINGS_EVERY = 10  # one task in so many acts; the others only cost a question
AT_ONCE = 40
IN_A_HURRY = '[queue]\nrate = "120/second"\nburst = 10000'  # else one sender's thousands take half an hour
RINGING, SAYING = script(call("ring"), finish("It rang.")), script(finish("It is so."))


class Model:
    """Answers, and counts what it was asked (an endpoint keeps its newest requests only)."""

    def __init__(self) -> None:
        self.asked = 0
        self._lock = threading.Lock()

    def __call__(self, request: dict[str, object]) -> str:
        with self._lock:
            self.asked += 1
        return RINGING(request) if "Ring the bell, number" in str(request["messages"]) else SAYING(request)


def crash(broker: AnyBroker) -> None:
    """It comes back with what it had saved, which is nothing of late."""
    match broker:
        case Mosquitto():
            broker.kill()
        case Emulated():
            broker.stop(lose=True)
    broker.start()


class Trouble:
    """Kills the daemon so often and the broker so often, at drawn moments while the first `tasks` come to their ends."""

    def __init__(self, house: House, broker: AnyBroker, tasks: int, kills: int, broker_kills: int) -> None:
        self._chance = random.Random(tasks)
        moments = self._chance.sample(range(1, tasks * 9 // 10), kills + broker_kills)
        self._due: dict[int, Callable[[], None]] = dict.fromkeys(moments[:kills], self._restart)
        self._due |= {moment: lambda: crash(broker) for moment in moments[kills:]}
        self._house = house
        self.made = 0

    def __call__(self, ended: int) -> None:
        if act := self._due.pop(ended, None):
            # Time is the event here: the kill must fall anywhere, not right after a publication.
            time.sleep(self._chance.random() * 0.05)
            act()
            self.made += 1

    def _restart(self) -> None:
        self._house.kill()
        self._house.start()


def sizes() -> Iterator[object]:
    """Broker, protocol, tasks, kills of the daemon, kills of the broker."""
    for broker, protocol in (("emulated", "5"), ("mosquitto", "3.1.1"), ("emulated", "3.1.1"), ("mosquitto", "5")):
        if broker == "mosquitto" and protocol == "3.1.1":
            yield pytest.param(broker, protocol, 120, 3, 1, id=f"sample-{broker}-{protocol}")
        yield pytest.param(broker, protocol, 3000, 15, 5, marks=pytest.mark.slow, id=f"whole-{broker}-{protocol}")


@pytest.mark.parametrize(
    ("broker", "protocol", "tasks", "kills", "broker_kills"), list(sizes()), indirect=["broker", "protocol"]
)
def test_no_task_is_lost_or_run_twice_while_daemon_and_broker_are_killed(
    broker: AnyBroker,
    protocol: Literal["5", "3.1.1"],
    make_house: MakeHouse,
    tasks: int,
    kills: int,
    broker_kills: int,
) -> None:
    goals = {f"i{n}": f"Ring the bell, number {n}." if n % RINGS_EVERY == 0 else f"Say {n}." for n in range(tasks)}
    model = Model()
    with ScriptedEndpoint(model) as endpoint:
        extra = f"{endpoint_table(endpoint.url)}\n[task.default]\nmin_observations = 0\n{IN_A_HURRY}"
        house = make_house(broker, protocol=protocol, extra=extra).start()
        settings = LinkSettings(url=broker.url, client_id="sender", protocol=protocol, reconnect_min_s=0.1)
        trouble = Trouble(house, broker, tasks, kills, broker_kills)
        with Sender(settings, Topics(house.root, house.node), "me") as sender:
            missing = sender.bring_to_end(goals, AT_ONCE, 30.0, trouble)
        assert not missing, f"{len(missing)} tasks have not ended: {sorted(missing)[:5]}"
        assert trouble.made == kills + broker_kills
        check(house, sender.ended)
        house.stop()
        with StoreCopy(house.folder / "state") as copy:
            assert copy.runs(1)[0].row == tasks, "a task was accepted twice"
    rings = sum("Ring" in goal for goal in goals.values())
    assert tasks + rings <= model.asked <= tasks + rings + kills, "a question was put again without a kill"
    assert len(house.ledger("ring")) >= rings - kills
