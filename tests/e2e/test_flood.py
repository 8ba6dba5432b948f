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
from tests.e2e.house import House, endpoint_table, timed, wait_for_questions, wait_online
from tests.e2e.test_idle import written
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
        wait_until(lambda: len(loud.accepted) > 40, "the flood is under way", 20)
        began_s = time.monotonic()
        assert me.ask("ctl", {"task": "mine", "do": "cancel"}).ok
        took_s = time.monotonic() - began_s
        assert len(loud.published) < FLOOD or len(loud.accepted) < FLOOD, "the flood was over before"
        assert took_s < PROMPT_S
        assert me.watch("mine", None).outcome == "cancelled"


def rss_kib(house: House) -> int:
    return int(Path(f"/proc/{house.pid}/statm").read_text().split()[1]) * 4


def test_a_live_flood_delays_nobody_elses_task_and_query_and_takes_no_memory(
    small_broker: AnyBroker, make_house: MakeHouse, hanging: ScriptedEndpoint
) -> None:
    house = make_house(small_broker, extra=endpoint_table(hanging.url)).start()
    loud = flooding(house, small_broker)
    with house.client("me") as me, running(loud):
        with_a_task(house, me, hanging)
        before_kib = rss_kib(house)
        flood(house, loud)
        wait_until(lambda: len(loud.accepted) > 40, "the flood is under way", 20)
        for number in range(5):
            assert timed(lambda: me.submit({"id": f"m{number}", "goal": "Look."})) < PROMPT_S  # noqa: B023
            assert timed(lambda: me.data("query", {}, "status")) < PROMPT_S
            assert timed(lambda: me.ask("call", {"args": {"name": "tank"}, "id": f"c{number}"}, "look")) < PROMPT_S  # noqa: B023
        loud.wait_empty()
        assert rss_kib(house) - before_kib < 2048
        health = me.data("query", {}, "metrics")
        assert isinstance(health, dict) and health["unsaid"] > 800, "most of it was not even answered"
        rows = me.data("query", {"limit": 100}, "tasks")
        assert isinstance(rows, list) and len(rows) == 6


def test_refused_requests_write_nothing(mosquitto: Mosquitto, make_house: MakeHouse, hanging: ScriptedEndpoint) -> None:
    house = make_house(mosquitto, extra=endpoint_table(hanging.url, queue=4)).start()
    loud = flooding(house, mosquitto)
    with house.client("loud") as client, running(loud):
        with_a_task(house, client, hanging)
        for number in range(4):
            client.submit({"id": f"w{number}", "goal": "Look."})
        before = written(house)
        base = f"{house.root}/{house.node}/in/loud"
        for number in range(300):
            loud.post(f"{base}/task", json.dumps({"id": f"f{number}", "goal": "Look."}).encode(), expires_in_s=600)
            loud.post(f"{base}/query/nothing", json.dumps({"id": f"q{number}"}).encode(), expires_in_s=600)
            loud.post(f"{base}/call/nothing", b"{" * (number % 7), expires_in_s=600)
        loud.wait_empty()
        client.data("query", {}, "status")
        assert written(house) == before


def test_a_request_that_was_accepted_is_never_refused_however_often_it_is_sent_again(
    mosquitto: Mosquitto, make_house: MakeHouse, hanging: ScriptedEndpoint
) -> None:
    house = make_house(mosquitto, extra=f"{endpoint_table(hanging.url)}\n[queue]\nburst = 5").start()
    loud = flooding(house, mosquitto)
    topic, body = f"{house.root}/{house.node}/in/loud/task", b'{"id":"again","goal":"Look."}'

    def told() -> int:
        return sum(one.topic.endswith("again/state") for one in loud.accepted)

    with house.client("me") as me, running(loud):
        wait_online(me)
        for _ in range(300):
            loud.post(topic, body, expires_in_s=600)
        loud.wait_empty()
        wait_until(lambda: told() > 5, "it is told again, from memory too", 10)
        assert me.data("query", {}, "status")
        assert not any("/reply/" in one.topic for one in loud.accepted)
        assert told() < 150, "and not as often as it was sent"
        before = told()
        wait_until(lambda: loud.post(topic, body, expires_in_s=600) or told() > before, "and again a moment later", 5)


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
