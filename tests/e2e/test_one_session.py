"""A whole node at a broker that allows each login one session: it finds that out, and nothing is lost by it."""

from pathlib import Path

import pytest

from rea_edge.client import Client
from rea_edge.config import Broker
from rea_edge.config.client import Client as ClientSettings
from rea_edge.mqtt import LinkSettings
from tests.brokers import AnyBroker, Emulated, wait_until
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import House, wait_online
from tests.e2e.test_devices import house_with_things
from tests.mqtt.conftest import one_session_each  # noqa: F401 - a fixture
from tests.mqtt.station import Station, running


def test_a_node_whose_login_is_its_client_id_does_all_over_one_session(tmp_path: Path) -> None:
    with Emulated(login_is_id=True) as broker:
        house = House(tmp_path, broker.url, extra='username = "n1"').start()
        base = f"{house.root}/{house.node}"
        me = Station(LinkSettings(url=broker.url, client_id="me", username="me"), f"{base}/out/me/#")
        try:
            with running(me):
                wait_until(lambda: b"controls='shared" in house.log.read_bytes(), "it gives way", 20)
                me.post(f"{base}/in/me/call/look", b'{"id":"c1","args":{"name":"tank"}}', expires_in_s=60)
                me.post(f"{base}/in/me/ctl", b'{"id":"x1","task":"t1","do":"cancel"}', expires_in_s=60)
                for request_id in ("c1", "x1"):
                    wait_until(
                        lambda request_id=request_id: any(
                            one.topic.endswith(f"reply/{request_id}") for one in me.accepted
                        ),  # type: ignore[misc]
                        f"the reply to {request_id}",
                        20,
                    )
            assert house.log.read_bytes().count(b"rea_edge.mqtt event=up") == 1
        finally:
            house.close()


@pytest.mark.slow
def test_what_waited_for_such_a_node_is_there_after_its_restart(tmp_path: Path) -> None:
    with Emulated(login_is_id=True) as broker:
        house = House(tmp_path, broker.url, extra='username = "n1"').start()
        base = f"{house.root}/{house.node}"
        me = Station(LinkSettings(url=broker.url, client_id="me", username="me"), f"{base}/out/me/#")
        try:
            with running(me):
                wait_until(lambda: b"controls='shared" in house.log.read_bytes(), "it gives way", 20)
                house.kill()
                me.post(f"{base}/in/me/call/look", b'{"id":"c1","args":{"name":"tank"}}', expires_in_s=60)
                me.wait_empty()
                house.start()
                wait_until(lambda: any(one.topic.endswith("reply/c1") for one in me.accepted), "the reply", 20)
        finally:
            house.close()


def test_a_device_is_refused_by_name_and_the_node_stays_connected(
    one_session_each: AnyBroker,  # noqa: F811 - the fixture
    make_house: MakeHouse,
) -> None:
    house = house_with_things(make_house, one_session_each, 'username = "n1"').start()
    broker = Broker(url=one_session_each.url, root=house.root, username="me")
    with Client(ClientSettings(broker=broker, node=house.node, who="me"), silent_s=30) as client:
        wait_online(client, 30)
        for _ in range(3):
            error = client.ask("call", {}, "ring_chime").error
            assert error is not None and error.code == "tool_failed"
            assert "nothing was sent: the node would lose its own connection" in error.message
        assert "MQTT tools cannot be called: the broker allows one connection at a time" in str(
            client.status_asked().faults
        )
        assert client.data("call", {"args": {"name": "tank"}}, "look") == {"level": 71.5}
    log = house.log.read_bytes()
    assert log.count(b"rea_edge.mqtt event=up") == 1
    assert b"event=devices_down" not in log
