"""A whole node at a broker that allows each login one session: it finds that out, and nothing is lost by it."""

from pathlib import Path

import pytest

from rea_edge.mqtt import LinkSettings
from tests.brokers import Emulated, wait_until
from tests.e2e.house import House
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
