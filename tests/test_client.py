"""The sender's side alone, against a broker that the test fills; whole conversations are in the end-to-end tests."""

import pytest

from rea_edge.client import INBOX, Client
from rea_edge.config import Broker
from rea_edge.config.client import Client as ClientSettings
from rea_edge.errors import NodeSilent
from rea_edge.mqtt import LinkSettings
from rea_edge.topics import Topics
from tests.brokers import AnyBroker
from tests.mqtt.station import Station, running

STATUS = (
    b'{"state":"online","session":1,"boot":"b","epoch":"e","version":"0","config_hash":"","tools_hash":"","faults":[],'
    b'"at":null,"up_ms":1}'
)


def test_a_person_with_any_number_of_ended_tasks_still_hears_of_the_node(broker: AnyBroker) -> None:
    topics = Topics("rea/v1", "n1")
    with running(node := Station(LinkSettings(url=broker.url, client_id="n1"))):
        for number in range(INBOX + 200):
            node.post(topics.state("me", f"t{number}"), b"{}", retain=True)
        node.wait_empty()
        settings = ClientSettings(broker=Broker(url=broker.url, root="rea/v1"), node="n1", who="me")
        with Client(settings, silent_s=10.0) as client:
            node.post(topics.all("status"), STATUS, retain=True)
            assert client.status().state == "online"


def test_a_node_that_is_silent_is_told_with_the_time_it_was_given(broker: AnyBroker) -> None:
    settings = ClientSettings(broker=Broker(url=broker.url, root="rea/v1"), node="n2", who="ann")
    asked: list[str] = []
    with (
        Client(settings, silent_s=1.0) as client,
        pytest.raises(NodeSilent, match=r"node n2 has not answered for 5 s; this broker has no status"),
    ):
        client.ask("call", {"args": {}}, "ring", wait_s=4.0, still=lambda: asked.append("still"))
    assert asked == ["still"]
