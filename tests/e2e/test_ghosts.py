"""What a broker keeps in a node's name and is not true any more: the node puts it right at each connection."""

import json
import time

from rea_edge.emulated.endpoint import ScriptedEndpoint
from rea_edge.mqtt import LinkSettings, Outgoing
from tests.brokers import AnyBroker, Mosquitto, wait_until
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import House, call, endpoint_table, finish, script, wait_online
from tests.mqtt.station import Station, running


def watcher(house: House, broker: AnyBroker) -> Station:
    """Sees all that is retained in the node's name, as somebody does who comes now."""
    return Station(
        LinkSettings(url=broker.url, client_id="eye", session_expiry_s=0), f"{house.root}/{house.node}/out/#"
    )


def retained(house: House, broker: AnyBroker) -> dict[str, bytes]:
    base = f"{house.root}/{house.node}/out/"
    with running(eye := watcher(house, broker)):
        eye.link.tell(fence := _fence(base))
        eye.wait_payloads(fence.payload)
        return {one.topic.removeprefix(base): one.payload for one in eye.accepted if one.retained and one.payload}


def _fence(base: str) -> Outgoing:
    return Outgoing(topic=f"{base}x/fence", payload=b"%d" % time.monotonic_ns())


def test_what_was_put_in_the_nodes_name_is_taken_back(broker: AnyBroker, make_house: MakeHouse) -> None:
    with ScriptedEndpoint(script(call("look", name="tank"), finish("Done."))) as endpoint:
        house = make_house(broker, extra=endpoint_table(endpoint.url)).start()
        base = f"{house.root}/{house.node}/out"
        with house.client() as client:
            wait_online(client)
            client.submit({"id": "t1", "goal": "Look."})
            client.watch("t1", None)
        good = retained(house, broker)
        assert json.loads(good["me/task/t1/state"])["state"] == "ended"
        card = good["_all/card"]
        house.kill()
        with running(forger := Station(LinkSettings(url=broker.url, client_id="forger"))):
            state = json.loads(good["me/task/t1/state"])
            forger.post(
                f"{base}/me/task/t1/state", json.dumps({**state, "state": "running", "seq": 1}).encode(), retain=True
            )
            forger.post(f"{base}/me/task/gone/state", json.dumps({**state, "id": "gone"}).encode(), retain=True)
            forger.post(f"{base}/me/task/rubbish/state", b"rubbish", retain=True)
            forger.post(f"{base}/_all/card", b'{"v":1,"tools":[]}', retain=True)
            forger.post(f"{base}/me/note", b"not ours to judge", retain=True)
            forger.wait_empty()
        house.start()
        wait_until(
            lambda: set(retained(house, broker)) >= {"me/task/t1/state"} and right(retained(house, broker)), "right", 20
        )
        after = retained(house, broker)
        assert json.loads(after["me/task/t1/state"])["seq"] == state["seq"]
        assert json.loads(after["_all/card"])["tools"] == json.loads(card)["tools"]
        assert after["me/note"] == b"not ours to judge"
        assert house.ledger() == []


def right(found: dict[str, bytes]) -> bool:
    gone = not {"me/task/gone/state", "me/task/rubbish/state"} & set(found)
    return (
        gone and json.loads(found["me/task/t1/state"])["state"] == "ended" and b'"tools":[]' not in found["_all/card"]
    )


def test_what_a_killed_broker_brings_back_is_put_right(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    with ScriptedEndpoint(script(call("look", name="tank"), finish("Done."))) as endpoint:
        house = make_house(mosquitto, extra=endpoint_table(endpoint.url)).start()
        base = f"{house.root}/{house.node}/out"
        with house.client() as client:
            wait_online(client)
            client.submit({"id": "t1", "goal": "Look."})
            client.watch("t1", None)
        state = json.loads(retained(house, mosquitto)["me/task/t1/state"])
        with running(old := Station(LinkSettings(url=mosquitto.url, client_id="old"))):
            old.post(
                f"{base}/me/task/t1/state", json.dumps({**state, "state": "running", "seq": 1}).encode(), retain=True
            )
            old.wait_empty()
        mosquitto.stop()  # saves what it has
        mosquitto.start()
        wait_until(lambda: json.loads(retained(house, mosquitto)["me/task/t1/state"])["state"] == "ended", "right", 20)
        mosquitto.kill()  # has not saved that
        mosquitto.start()
        wait_until(lambda: json.loads(retained(house, mosquitto)["me/task/t1/state"])["state"] == "ended", "again", 20)


def test_all_that_is_retained_says_until_when_and_expires(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    with ScriptedEndpoint(script(call("look", name="tank"), finish("Done."))) as endpoint:
        house = make_house(mosquitto, extra=endpoint_table(endpoint.url)).start()
        with house.client() as client:
            wait_online(client)
            client.submit({"id": "t1", "goal": "Look."})
            client.watch("t1", None)
        base = f"{house.root}/{house.node}/out/"
        with running(eye := watcher(house, mosquitto)):
            wait_until(lambda: len({one.topic for one in eye.accepted if one.retained}) >= 5, "all of it", 15)
            kept = {one.topic.removeprefix(base): one for one in eye.accepted if one.retained}
    expiries = {leaf: one.expires_in_s for leaf, one in kept.items()}
    assert all(expiry is not None and 0 < expiry <= 86_400 for expiry in expiries.values()), expiries
    for leaf in ("me/task/t1/state", "_all/status", "_all/card", "_all/health"):
        assert {"at", "until"} <= set(json.loads(kept[leaf].payload))
