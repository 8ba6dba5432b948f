"""A broker that will not take what a node says: the node says which and why, and goes on."""

import json
import threading
from pathlib import Path

import pytest

from rea_edge.emulated.broker import Action, Peer
from rea_edge.emulated.endpoint import ScriptedEndpoint
from rea_edge.emulated.packets import Packet, Publish
from rea_edge.mqtt import LinkSettings
from rea_edge.store import Store
from tests.brokers import Emulated, Mosquitto, wait_until
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import call, endpoint_table, finish, script, wait_online
from tests.mqtt.station import Station, running


def faults(broker: Emulated, base: str) -> str:
    return " ".join(json.loads(broker.retained().get(f"{base}/out/_all/status", b"{}")).get("faults", []))


def test_a_state_that_the_connection_does_not_survive_is_set_aside_named_and_kept(make_house: MakeHouse) -> None:
    with Emulated() as broker, ScriptedEndpoint(script(finish("Done."))) as endpoint:
        house = make_house(broker, extra=endpoint_table(endpoint.url)).start()
        base = f"{house.root}/{house.node}"
        bad = f"{base}/out/me/task/bad/state"

        def receive(_client_id: str, packet: Packet) -> str | None:
            return "cut" if isinstance(packet, Publish) and packet.topic == bad else None

        broker.on_recv = receive  # type: ignore[assignment]  # a str is wider than the verdicts
        with house.client() as client:
            wait_online(client)
            client.send("task", {"id": "bad", "goal": "Say it."})
            wait_until(lambda: "set aside" in faults(broker, base), "it is said", 20)
            assert bad in faults(broker, base)
            assert client.submit({"id": "good", "goal": "Say it."})[1].accepted
            assert client.watch("good", None).outcome == "gave_up"
        assert house.stop() == 0
    store = Store.open(house.folder / "state")
    assert bad in {row.topic for row in store.aside()}
    store.close()


@pytest.mark.parametrize("protocol", ["5"])
def test_a_topic_the_rules_deny_is_named_with_its_rule_and_published_once_they_allow_it(
    make_house: MakeHouse, protocol: str
) -> None:
    denied, tried = ["/task/"], threading.Event()

    def access(_peer: Peer, action: Action, topic: str) -> bool:
        refused = action == "write" and any(part in topic for part in denied)
        if refused:
            tried.set()
        return not refused

    with Emulated(access=access) as broker, ScriptedEndpoint(script(finish("Done."))) as endpoint:
        house = make_house(broker, protocol=protocol, extra=endpoint_table(endpoint.url)).start()
        base = f"{house.root}/{house.node}"
        with house.client() as client:
            wait_online(client)
            client.send("task", {"id": "t1", "goal": "Say it."})
            assert tried.wait(10)
            broker.kick(f"rea-{house.node}")  # the first word of a connection is how the node is
            wait_until(lambda: f"write {base}/out/#" in faults(broker, base), "it is said", 20)
            assert f"{base}/out/me/task/t1/state" in faults(broker, base)
            denied.clear()
            broker.kick(f"rea-{house.node}")
            wait_until(lambda: f"{base}/out/me/task/t1/state" in broker.retained(), "it is published", 20)
            broker.kick(f"rea-{house.node}")
            wait_until(lambda: "access rules" not in faults(broker, base), "the fault is gone", 20)


def test_a_broker_that_takes_small_packets_and_keeps_nothing_gets_cut_states_and_is_named(
    tmp_path: Path, make_house: MakeHouse
) -> None:
    mosquitto = Mosquitto(tmp_path, extra=("max_packet_size 3000", "retain_available false"))
    try:
        with ScriptedEndpoint(script(call("look", name="tank"), finish("long " * 1000))) as endpoint:
            house = make_house(mosquitto.start(), extra=endpoint_table(endpoint.url)).start()
            base = f"{house.root}/{house.node}"
            settings = LinkSettings(url=mosquitto.url, client_id="me", packet_max=3000)
            with running(me := Station(settings, f"{base}/out/me/#", f"{base}/out/_all/status")):
                sent = b'{"id":"t1","goal":"Look."}'
                wait_until(lambda: me.accepted, "the node is up", 15)
                me.post(f"{base}/in/me/task", sent, expires_in_s=60)
                wait_until(lambda: any(b'"ended"' in one.payload for one in me.accepted), "the task has ended", 15)
                ended = json.loads(next(one.payload for one in me.accepted if b'"ended"' in one.payload))
                assert (ended["id"], ended["outcome"]) == ("t1", "achieved")
                assert ended["answer"].startswith("long long")
                assert "ask for the whole by query" in ended["cut"]
                me.post(f"{base}/in/me/query/status", b'{"id":"q1"}', expires_in_s=60)
                wait_until(lambda: any(one.topic.endswith("reply/q1") for one in me.accepted), "the reply", 15)
                reply = next(one.payload for one in me.accepted if one.topic.endswith("reply/q1"))
                assert b"no retained messages" in reply
                assert b"at most 3000 bytes" in reply
    finally:
        mosquitto.kill()
