"""A node that has nothing to do wears no flash."""

import json

import pytest

from rea_edge.mqtt import LinkSettings
from tests.brokers import Mosquitto, wait_until
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import House, wait_online
from tests.mqtt.station import Station, running


def written(house: House) -> dict[str, int]:
    """When each file of the state was written last."""
    return {file.name: file.stat().st_mtime_ns for file in (house.folder / "state").iterdir()}


@pytest.mark.slow
def test_between_two_reports_of_its_health_an_idle_node_writes_nothing(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    house = make_house(mosquitto, extra="[limits]\nday_tokens = 1000").start()
    health = Station(LinkSettings(url=mosquitto.url, client_id="me"), f"{house.root}/{house.node}/out/_all/health")

    def reports() -> int:
        return len({json.loads(one.payload)["up_ms"] for one in health.accepted})

    with house.client() as client, running(health):
        wait_online(client)
        wait_until(lambda: reports() == 2, "its health is told a second time", 90)  # what a start writes is written
        before = written(house)
        wait_until(lambda: reports() == 3, "and a third", 90)
        assert written(house) == before
