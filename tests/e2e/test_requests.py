"""What comes in from outside: each bad request gets its own answer, nothing runs, and the node stays up."""

import json
import os
import sqlite3
from collections.abc import Callable
from socket import IPPROTO_TCP, TCP_NODELAY

import paho.mqtt.client as paho
import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from rea_edge.client import Client
from rea_edge.emulated.endpoint import ScriptedEndpoint
from rea_edge.wire import Reply
from tests.brokers import AnyBroker, Mosquitto, wait_until
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import House, call, endpoint_table, finish, questions, script, wait_online

Payload = bytes | str | dict[str, object]


class Sender:
    """A plain MQTT client that sends whatever it is told and keeps what comes back."""

    def __init__(self, house: House, broker: AnyBroker, who: str = "raw") -> None:
        self._base = f"{house.root}/{house.node}"
        self._who = who
        self.heard: list[paho.MQTTMessage] = []
        self._client = paho.Client(paho.CallbackAPIVersion.VERSION2, f"raw-{os.urandom(4).hex()}", protocol=paho.MQTTv5)
        self._client.on_message = lambda client, user, message: self.heard.append(message)
        self._client.on_socket_open = lambda client, user, sock: sock.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
        self._client.connect("127.0.0.1", broker.port)
        self._client.loop_start()
        wait_until(self._client.is_connected, "the raw sender is connected")
        _, mid = self._client.subscribe(f"{self._base}/out/{who}/#", 1)

    def send(self, leaf: str, payload: Payload, *, retain: bool = False, properties: Properties | None = None) -> None:
        body = json.dumps(payload) if isinstance(payload, dict) else payload
        topic = f"{self._base}/in/{self._who}/{leaf}"
        self._client.publish(topic, body, 1, retain, properties).wait_for_publish(5)

    def reply(self, request_id: str = "_bad") -> Reply:
        import msgspec

        topic = f"{self._base}/out/{self._who}/reply/{request_id}"
        wait_until(lambda: any(one.topic == topic for one in self.heard), f"a reply on {topic}", 10)
        found = next(one for one in self.heard if one.topic == topic)
        self.heard.remove(found)
        return msgspec.json.decode(found.payload, type=Reply)

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


BAD: list[tuple[str, str, Payload, str, str, str]] = [
    # name, leaf, payload, id of the reply, code, words in the message
    ("not json", "task", b'{"goal":', "_bad", "bad_request", "JSON"),
    ("a json array", "task", b"[1,2]", "_bad", "bad_request", "object"),
    ("a json number is no goal", "task", b"42", "_bad", "bad_request", "object"),
    ("a json text is no goal", "task", b'"turn it"', "_bad", "bad_request", "object"),
    ("not utf-8", "task", b"\xff\xfe\x00", "_bad", "bad_request", "UTF-8"),
    ("empty", "task", b"", "_bad", "bad_request", "empty"),
    ("no goal", "task", {"id": "b1"}, "b1", "bad_request", "goal"),
    ("an unknown key", "task", {"id": "b2", "goal": "x", "gaol": 1}, "b2", "bad_request", "gaol"),
    ("a key twice", "task", b'{"id":"b3","goal":"x","goal":"y"}', "_bad", "bad_request", "goal"),
    ("a wrong type", "task", {"id": "b4", "goal": 7}, "b4", "bad_request", "goal"),
    ("a bad id", "task", {"id": "a b", "goal": "x"}, "_bad", "bad_request", "id"),
    ("an unknown limit", "task", {"id": "b5", "goal": "x", "limits": {"lives": 9}}, "b5", "bad_request", "lives"),
    ("an unknown task type", "task", {"id": "b6", "goal": "x", "type": "nope"}, "b6", "bad_request", "nope"),
    ("a follow-up", "task", {"id": "b7", "goal": "x", "continues": "b1"}, "b7", "bad_request", "continues"),
    ("another epoch", "task", {"id": "b8", "goal": "x", "epoch": "old"}, "b8", "stale_epoch", "old"),
    ("a line break behind the id", "task", {"id": "e0\n", "goal": "x"}, "_bad", "bad_request", "id"),
    ("a trace of another kind", "task", {"id": "e1", "goal": "x", "trace": "a b\n"}, "e1", "bad_request", "trace"),
    ("a trace without end", "task", {"id": "e2", "goal": "x", "trace": "a" * 40_000}, "e2", "bad_request", "trace"),
    ("a page beyond all", "query/tasks", {"id": "e3", "after": 10**20}, "e3", "bad_request", "after"),
    ("a page before all", "query/tools", {"id": "e4", "after": -1}, "e4", "bad_request", "after"),
    ("too old", "task", {"id": "b9", "goal": "x", "sent_at": "yesterday"}, "b9", "bad_request", "sent_at"),
    ("too large", "task", b'{"id":"c0","goal":"' + b"x" * 70_000 + b'"}', "_bad", "too_large", "65536"),
    ("deeply nested", "task", b'{"id":"c1","goal":"x","context":' + b"[" * 5000 + b"]" * 5000 + b"}", "_bad", "bad_request", ""),
    ("no such tool", "call/nope", {"id": "c2"}, "c2", "bad_request", "look"),
    ("a missing argument", "call/look", {"id": "c3", "args": {}}, "c3", "bad_request", "name"),
    ("an unknown argument", "call/look", {"id": "c4", "args": {"name": "tank", "x": 1}}, "c4", "bad_request", "x"),
    ("a number beyond all", "call/turn", {"id": "e5", "args": {"percent": 10**300}}, "e5", "bad_request", "percent"),
    ("a value outside", "call/turn", {"id": "c5", "args": {"percent": 101}}, "c5", "bad_request", "percent"),
    ("plain text is no call", "call/look", b"tank", "_bad", "bad_request", "JSON"),
    ("no such query", "query/nope", {"id": "c6"}, "c6", "bad_request", "status"),
    ("another person's tasks", "query/tasks", {"id": "c7", "who": "you"}, "c7", "policy_denied", "operator"),
    ("an unknown task", "query/task", {"id": "c8", "task": "zz"}, "c8", "unknown_task", "zz"),
    ("a control of another's task", "ctl", {"id": "c9", "task": "t", "do": "cancel", "who": "you"}, "c9", "policy_denied", "operator"),
    ("no such control", "ctl", {"id": "d0", "task": "t", "do": "explode"}, "d0", "bad_request", "do"),
    ("an operator's control", "node", {"id": "d1", "do": "halt"}, "d1", "policy_denied", "identity"),
    ("an approval", "say", {"id": "d2", "request": "r", "answer": "yes"}, "d2", "policy_denied", "identity"),
]  # fmt: skip


def test_every_bad_request_gets_its_own_answer_and_nothing_runs(broker: AnyBroker, make_house: MakeHouse) -> None:
    with ScriptedEndpoint(script(call("ring"), finish("It rang."))) as endpoint:
        house = make_house(broker, extra=endpoint_table(endpoint.url)).start()
        sender = Sender(house, broker)
        try:
            with house.client() as client:
                wait_online(client)
                for name, leaf, payload, request_id, code, words in BAD:
                    sender.send(leaf, payload)
                    reply = sender.reply(request_id)
                    assert reply.error is not None, name
                    assert reply.error.code == code, (name, reply)
                    assert words in reply.error.message, (name, reply)
                assert client.data("query", {}, "tasks") == []
        finally:
            sender.close()
        assert house.ledger() == [] and questions(endpoint) == []


def retained_task(sender: Sender) -> None:
    sender.send("task", {"id": "r1", "goal": "x"}, retain=True)


def retained_call(sender: Sender) -> None:
    sender.send("call/ring", {"id": "r1"}, retain=True)


@pytest.mark.parametrize("send", [retained_task, retained_call], ids=["task", "call"])
def test_a_retained_request_is_refused(
    broker: AnyBroker, make_house: MakeHouse, send: Callable[[Sender], None]
) -> None:
    with ScriptedEndpoint(script(call("ring"), finish("It rang."))) as endpoint:
        house = make_house(broker, protocol="5", extra=endpoint_table(endpoint.url)).start()
        sender = Sender(house, broker)
        try:
            with house.client() as client:
                wait_online(client)
                send(sender)
                reply = sender.reply("r1")
                assert reply.error is not None and reply.error.code == "retained_refused"
                sender.send("task", b"", retain=True)
                sender.send("call/ring", b"", retain=True)
                assert client.data("query", {}, "tasks") == []
        finally:
            sender.close()
        assert house.ledger() == []


def test_plain_text_is_a_goal_that_may_only_read(broker: AnyBroker, make_house: MakeHouse) -> None:
    with ScriptedEndpoint(script(call("ring"), call("look", name="tank"), finish("It is 71.5 percent."))) as endpoint:
        house = make_house(broker, extra=endpoint_table(endpoint.url)).start()
        sender = Sender(house, broker)
        try:
            with house.client() as client:
                wait_online(client)
            sender.send("task", "\ufeffHow full is the tank?".encode())
            last = f"{house.root}/{house.node}/out/raw/last"
            wait_until(lambda: any(one.topic == last for one in sender.heard), "an answer", 15)
            assert next(one for one in sender.heard if one.topic == last).payload.decode() == "It is 71.5 percent."
        finally:
            sender.close()
        assert house.ledger("ring") == []


def test_an_mqtt5_response_topic_is_honoured_only_where_the_sender_is_answered_anyway(
    broker: AnyBroker, make_house: MakeHouse
) -> None:
    house = make_house(broker).start()
    sender = Sender(house, broker)
    try:
        with house.client() as client:
            wait_online(client)
        base = f"{house.root}/{house.node}"
        for place, (topic, honoured) in enumerate(
            [(f"{base}/out/raw/mine", True), (f"{base}/out/you/mine", False), ("somewhere/else", False)]
        ):
            properties = Properties(PacketTypes.PUBLISH)
            properties.ResponseTopic = topic
            properties.CorrelationData = b"c-7"
            sender.send("call/look", {"id": f"m{place}", "args": {"name": "tank"}}, properties=properties)
            wanted = topic if honoured else f"{base}/out/raw/reply/m{place}"
            wait_until(lambda wanted=wanted: any(one.topic == wanted for one in sender.heard), wanted, 10)
            message = next(one for one in sender.heard if one.topic == wanted)
            assert message.properties is not None and message.properties.CorrelationData == b"c-7"
            assert json.loads(message.payload)["data"] == {"level": 71.5}
    finally:
        sender.close()


def test_a_direct_call_answers_and_the_same_id_gives_the_first_result(broker: AnyBroker, make_house: MakeHouse) -> None:
    house = make_house(broker).start()
    with house.client() as client:
        wait_online(client)
        assert client.ask("call", {"id": "k1", "args": {"name": "pipe"}}, "look").data == {"level": 12.0}
        for _ in range(3):
            assert client.ask("call", {"id": "k2"}, "ring").data == {"rang": True}
        failed = client.ask("call", {"id": "k3"}, "fail")
        assert failed.error is not None and failed.error.code == "tool_failed"
        assert "no such device" in failed.error.message
        other = client.ask("call", {"id": "k2", "args": {"seconds": 1}}, "ring")
        assert other.error is not None and other.error.code == "id_conflict"
    assert len(house.ledger("ring")) == 1


def test_a_node_without_an_endpoint_refuses_tasks_and_serves_calls(broker: AnyBroker, make_house: MakeHouse) -> None:
    house = make_house(broker).start()
    sender = Sender(house, broker)
    try:
        with house.client() as client:
            wait_online(client)
            sender.send("task", {"id": "t1", "goal": "x"})
            reply = sender.reply("t1")
            assert reply.error is not None and reply.error.code == "endpoint_unavailable"
            assert client.ask("call", {"args": {"name": "tank"}}, "look").ok
    finally:
        sender.close()


@pytest.mark.parametrize("what", ["status", "tasks", "tools", "config", "metrics"])
def test_queries_answer_and_tell_no_secrets(broker: AnyBroker, make_house: MakeHouse, what: str) -> None:
    house = make_house(broker).start()
    with house.client() as client:
        wait_online(client)
        text = json.dumps(client.data("query", {}, what))
    assert broker.url not in text and str(house.folder) not in text


def names(client: Client) -> list[str]:
    tools = client.data("query", {}, "tools")
    assert isinstance(tools, list)
    return [tool["name"] for tool in tools]


def test_a_tool_file_that_does_not_load_is_a_fault_in_the_status_and_the_others_serve(
    broker: AnyBroker, make_house: MakeHouse
) -> None:
    house = make_house(broker)
    bad = house.folder / "bad.py"
    bad.write_text("import nothing_of_that_name\n")
    text = house.config.read_text()
    house.config.write_text(text.replace('devices.py"]', f'devices.py", "{bad}"]'))
    house.start()
    with house.client() as client:
        wait_online(client)
        assert names(client) == ["doze", "fail", "look", "ring", "turn"]
        assert any("bad.py" in fault for fault in client.status().faults)
    done = house.run_command("check", "--config", str(house.config))
    assert done.returncode == 78 and "bad.py" in done.stdout


def test_a_request_about_a_run_that_is_damaged_is_answered_and_the_node_stays_up(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    with ScriptedEndpoint(script(call("look", name="tank"), finish("It is 71.5 percent."))) as endpoint:
        house = make_house(mosquitto, extra=endpoint_table(endpoint.url)).start()
        with house.client() as client:
            wait_online(client)
            client.submit({"id": "spoilt", "goal": "Look."})
            client.watch("spoilt", None)
            client.submit({"id": "newer", "goal": "Look."})
            client.watch("newer", None)
            assert house.stop() == 0
            state = sqlite3.connect(house.folder / "state" / "state.db")
            state.execute(
                "UPDATE event SET body = x'00' WHERE seq = 1 AND run = (SELECT row FROM run WHERE id = 'spoilt')"
            )
            state.commit()
            state.close()
            house.start()
            wait_online(client)
            reply = client.ask("query", {"id": "q1", "task": "spoilt"}, "task")
            assert reply.error is not None and reply.error.code == "store_failed"
            assert client.ask("query", {"id": "q2", "task": "newer"}, "task").ok
            sessions = client.data("query", {}, "metrics")
            assert isinstance(sessions, dict) and sessions["link"]["sessions"] == 1


def test_correlation_data_without_measure_is_refused(broker: AnyBroker, make_house: MakeHouse) -> None:
    house = make_house(broker).start()
    sender = Sender(house, broker)
    try:
        with house.client() as client:
            wait_online(client)
        properties = Properties(PacketTypes.PUBLISH)
        properties.CorrelationData = b"x" * 60_000
        sender.send("call/ring", {"id": "m1"}, properties=properties)
        reply = sender.reply("_bad")
        assert reply.error is not None and reply.error.code == "too_large"
    finally:
        sender.close()
    assert house.ledger("ring") == []
