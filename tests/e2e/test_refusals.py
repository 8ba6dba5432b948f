"""A broker that will not take what a node says: the node says which and why, and goes on."""

import json
import threading

import pytest

from rea_edge.emulated.broker import Action, Peer
from rea_edge.emulated.endpoint import ScriptedEndpoint
from rea_edge.emulated.packets import Connect, Packet, Publish
from rea_edge.store import Store
from tests.brokers import Emulated, wait_until
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import endpoint_table, finish, script, wait_online


def faults(broker: Emulated, base: str) -> str:
    return " ".join(json.loads(broker.retained().get(f"{base}/out/_all/status", b"{}")).get("faults", []))


def test_a_state_that_the_connection_does_not_survive_is_set_aside_named_and_kept(make_house: MakeHouse) -> None:
    with Emulated() as broker, ScriptedEndpoint(script(finish("Done."))) as endpoint:
        house = make_house(broker, extra=endpoint_table(endpoint.url)).start()
        base = f"{house.root}/{house.node}"
        bad = f"{base}/out/me/task/bad/state"
        nodes: set[str] = set()

        def receive(client_id: str, packet: Packet) -> str | None:
            if isinstance(packet, Connect) and packet.will is not None:
                nodes.add(client_id)
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
