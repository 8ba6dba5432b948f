"""A flood of one sender's requests, live or waiting at the broker, neither loses nor delays another's cancel."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rea_edge.client import Client
from rea_edge.emulated.broker import Caps
from rea_edge.emulated.endpoint import Fault, ScriptedEndpoint
from rea_edge.mqtt import LinkSettings
from tests.brokers import AnyBroker, Emulated, Mosquitto, wait_until
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import House, endpoint_table, wait_for_questions, wait_online
from tests.mqtt.station import Station, running

FLOOD = 1500
PROMPT_S = 2.0
QUEUED = 1000  # what Mosquitto keeps for a session by default


@pytest.fixture(params=["emulated", "mosquitto"])
def small_broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AnyBroker]:
    """A broker that keeps no more than a thousand messages for a session."""
    if request.param == "emulated":
        with Emulated(caps=Caps(queued=QUEUED)) as emulated:
            yield emulated
        return
    mosquitto = Mosquitto(tmp_path, extra=(f"max_queued_messages {QUEUED}",))
    try:
        yield mosquitto.start()
    finally:
        mosquitto.kill()


@pytest.fixture
def hanging() -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint(lambda request: Fault("hang_body")) as endpoint:
        yield endpoint


def flooding(house: House, broker: AnyBroker) -> Station:
    return Station(LinkSettings(url=broker.url, client_id="loud"), f"{house.root}/{house.node}/out/loud/#")


def flood(house: House, loud: Station) -> None:
    for number in range(FLOOD):
        body = json.dumps({"id": f"f{number}", "goal": "Look."}).encode()
        loud.post(f"{house.root}/{house.node}/in/loud/task", body, expires_in_s=600)


def with_a_task(house: House, me: Client, endpoint: ScriptedEndpoint) -> None:
    wait_online(me)
    me.submit({"id": "mine", "goal": "Look."})
    wait_for_questions(endpoint, 1)


def test_a_cancel_in_a_live_flood_is_answered_at_once(
    small_broker: AnyBroker, make_house: MakeHouse, hanging: ScriptedEndpoint
) -> None:
    house = make_house(small_broker, extra=endpoint_table(hanging.url)).start()
    loud = flooding(house, small_broker)
    with house.client("me") as me, running(loud):
        with_a_task(house, me, hanging)
        flood(house, loud)
        wait_until(lambda: len(loud.accepted) > 100, "the flood is under way", 20)
        began_s = time.monotonic()
        assert me.ask("ctl", {"task": "mine", "do": "cancel"}).ok
        took_s = time.monotonic() - began_s
        assert len(loud.published) < FLOOD or len(loud.accepted) < FLOOD, "the flood was over before"
        assert took_s < PROMPT_S
        assert me.watch("mine", None).outcome == "cancelled"


def test_a_cancel_that_waited_behind_a_flood_is_answered_as_soon_as_the_node_is_up(
    small_broker: AnyBroker, make_house: MakeHouse, hanging: ScriptedEndpoint
) -> None:
    house = make_house(small_broker, extra=endpoint_table(hanging.url)).start()
    base = f"{house.root}/{house.node}"
    loud = flooding(house, small_broker)
    me = Station(LinkSettings(url=small_broker.url, client_id="me"), f"{base}/out/me/#", f"{base}/out/_all/status")
    with running(loud, me):
        with house.client("me") as client:
            with_a_task(house, client, hanging)
        house.kill()
        wait_until(lambda: _last(me, "status").get("state") == "offline", "the will", 10)
        flood(house, loud)
        loud.wait_empty()
        me.post(f"{base}/in/me/ctl", b'{"id":"x1","task":"mine","do":"cancel"}', expires_in_s=600)
        me.wait_empty()
        house.start()
        wait_until(lambda: _last(me, "status").get("state") == "online", "the node is up", 20)
        wait_until(lambda: _last(me, "reply/x1"), "the cancel is answered", PROMPT_S)
        assert _last(me, "reply/x1").get("ok"), _last(me, "reply/x1")
        wait_until(lambda: _last(me, "mine/state").get("outcome") == "cancelled", "the task has ended", 10)


def _last(station: Station, leaf: str) -> dict[str, object]:
    found = [json.loads(one.payload) for one in station.accepted if one.topic.endswith(leaf)]
    return found[-1] if found else {}
