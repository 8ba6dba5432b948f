"""A daemon with tools that are devices on MQTT: direct calls, a task, kills in the middle, topics of its own."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rea_edge.client import Client
from rea_edge.emulated.endpoint import ScriptedEndpoint
from rea_edge.wire import Reply
from tests.brokers import AnyBroker, Mosquitto
from tests.devices import Device
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import House, call, endpoint_table, finish, script, wait_online
from tests.e2e.test_approval import reply_to

OPERATED = '[access]\nidentity = "broker"\noperators = ["op"]\n'
THINGS = """
[get_lamp]
description = "Read whether the lamp is on."
effect = "read"
publish = "z/lamp/get"
payload = { state = "" }
await = "z/lamp"
await_path = "state"
fields = ["state"]

[look_lamp]
description = "What the lamp said last."
effect = "read"
await = "z/lamp"

[set_lamp]
description = "Switch the lamp."
effect = "idempotent"
publish = "z/lamp/set"
payload = { state = "{state}" }
await = "z/lamp"
await_match = { state = "{state}" }
timeout_s = 30
[set_lamp.parameters]
required = ["state"]
properties.state = { enum = ["ON", "OFF"] }

[ring_chime]
description = "Ring the chime."
effect = "once"
publish = "z/chime/ring"
await = "z/chime"
timeout_s = 30

[open_lock]
description = "Open the lock."
effect = "once"
publish = "z/lock/open"
await = "z/lock"
timeout_s = 30
verify = { tool = "look_lock", path = "lock", equals = "open" }

[look_lock]
description = "What the lock said last."
effect = "read"
await = "z/lock"
timeout_s = 2
"""


def house_with_things(make_house: MakeHouse, broker: AnyBroker, extra: str = "", things: str = THINGS) -> House:
    house = make_house(broker, extra=extra)
    (house.folder / "things.toml").write_text(things)
    config = house.config.read_text()
    house.config.write_text(config.replace('devices.py"]', f'devices.py", "{house.folder / "things.toml"}"]'))
    return house


class Lamp:
    """A lamp, a chime and a lock that do what they are told, unless they are told to say nothing."""

    def __init__(self, port: int) -> None:
        self.state = "OFF"
        self.mute = False
        self.device = Device(port, "z/+/get", "z/+/set", "z/+/ring", "z/+/open", answers=self._answer)

    def _answer(self, device: Device, topic: str, payload: bytes) -> None:
        _, name, verb = topic.split("/")
        if verb == "set":
            self.state = "ON" if b"ON" in payload else "OFF"
        if self.mute:
            return
        if name == "lamp":
            device.say("z/lamp", f'{{"state":"{self.state}","linkquality":99}}', retain=True)
        elif name == "lock":
            device.say("z/lock", '{"lock":"open"}', retain=True)
        else:
            device.say("z/chime", "rang")

    def next(self) -> tuple[str, bytes]:
        return self.device.next()


@contextmanager
def lamp_on(broker: AnyBroker) -> Iterator[Lamp]:
    lamp = Lamp(broker.port)
    with lamp.device:
        yield lamp


def killed_in_call(house: House, client: Client, lamp: Lamp, tool: str, **args: object) -> Reply:
    """The reply to a call in whose middle, when the device had heard it, the daemon was killed."""
    keys: dict[str, object] = {"id": "c1", "args": args}
    client.send("call", keys, tool)
    lamp.next()
    house.kill()
    lamp.mute = False
    house.start()
    return client.ask("call", keys, tool, wait_s=40)


def test_a_device_is_read_and_set_by_direct_calls(broker: AnyBroker, make_house: MakeHouse) -> None:
    house = house_with_things(make_house, broker).start()
    with lamp_on(broker) as lamp, house.client(silent_s=30) as client:
        wait_online(client)
        assert client.data("call", {"args": {"state": "ON"}}, "set_lamp") == {"state": "ON", "linkquality": 99}
        assert lamp.next() == ("z/lamp/set", b'{"state":"ON"}')
        assert client.data("call", {}, "get_lamp") == "ON"
        assert client.data("call", {}, "look_lamp") == {"state": "ON", "linkquality": 99}
        assert client.data("call", {}, "ring_chime") == "rang"


def test_a_task_switches_a_device(broker: AnyBroker, make_house: MakeHouse) -> None:
    answers = script(call("set_lamp", state="ON"), call("get_lamp"), finish("The lamp is on."))
    with ScriptedEndpoint(answers) as endpoint, lamp_on(broker) as lamp:
        house = house_with_things(make_house, broker, endpoint_table(endpoint.url)).start()
        with house.client(silent_s=30) as client:
            wait_online(client)
            done = house.run_command("task", "Turn the lamp on.")
            assert done.returncode == 0, done.stdout + done.stderr
        assert lamp.state == "ON"


def test_a_device_that_says_nothing_fails_a_call_and_leaves_a_once_call_unknown(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    house = house_with_things(make_house, mosquitto, things=THINGS.replace("timeout_s = 30", "timeout_s = 1")).start()
    with lamp_on(mosquitto) as lamp, house.client(silent_s=30) as client:
        lamp.mute = True
        wait_online(client)
        reply = client.ask("call", {"args": {"state": "ON"}}, "set_lamp")
        assert reply.error is not None and reply.error.code == "tool_failed"
        assert "no answer on z/lamp" in reply.error.message
        reply = client.ask("call", {}, "ring_chime")
        assert reply.error is not None and reply.error.code == "outcome_unknown"


@pytest.mark.parametrize(("tool", "args", "times"), [
    pytest.param("set_lamp", {"state": "ON"}, 2, id="idempotent: it is sent again"),
    pytest.param("ring_chime", {}, 1, id="once: nobody knows"),
    pytest.param("open_lock", {}, 1, id="verified: it took effect"),
])  # fmt: skip
def test_a_kill_between_publish_and_reply_ends_by_the_effect_of_the_tool(
    broker: AnyBroker, make_house: MakeHouse, tool: str, args: dict[str, object], times: int
) -> None:
    house = house_with_things(make_house, broker).start()
    with lamp_on(broker) as lamp, house.client(silent_s=40) as client:
        wait_online(client)
        lamp.mute = True
        if tool == "open_lock":
            lamp.device.keep("z/lock", '{"lock":"open"}')
        reply = killed_in_call(house, client, lamp, tool, **args)
        if tool == "ring_chime":
            assert reply.error is not None and reply.error.code == "outcome_unknown"
        else:
            assert reply.ok, reply
        assert 1 + lamp.device.heard.qsize() == times


def test_a_halt_ends_a_call_that_waits_for_its_device_and_nothing_more_is_sent(
    broker: AnyBroker, make_house: MakeHouse
) -> None:
    house = house_with_things(make_house, broker, OPERATED).start()
    with lamp_on(broker) as lamp, house.client() as client, house.client("op") as operator:
        wait_online(client)
        lamp.mute = True
        client.send("call", {"id": "c1"}, "ring_chime")
        assert lamp.next()[0] == "z/chime/ring"
        assert operator.ask("node", {"do": "halt"}).ok
        ended = reply_to(client, "c1")
        assert (
            ended.error is not None and ended.error.code == "outcome_unknown" and "halted by op" in ended.error.message
        )
        for tool, args in (("ring_chime", {}), ("set_lamp", {"state": "ON"}), ("open_lock", {})):
            refused = client.ask("call", {"args": args}, tool)
            assert refused.error is not None and refused.error.code == "policy_denied"
        lamp.mute = False
        assert client.data("call", {}, "get_lamp") == "OFF", "it may be looked at"
        assert lamp.next()[0] == "z/lamp/get" and lamp.device.heard.empty()


def test_a_reload_leaves_calls_to_devices_and_their_one_connection_alone(
    broker: AnyBroker, make_house: MakeHouse
) -> None:
    house = house_with_things(make_house, broker, OPERATED).start()
    with (
        lamp_on(broker) as lamp,
        house.client() as client,
        house.client("op") as operator,
        house.client("ann") as ann,
    ):
        wait_online(client)
        lamp.mute = True
        client.send("call", {"id": "c1"}, "ring_chime")
        lamp.next()
        (house.folder / "things.toml").write_text(THINGS.replace("Switch the lamp.", "Switch the new lamp."))
        assert operator.ask("node", {"do": "reload"}, wait_s=60).ok
        lamp.mute = False
        assert ann.ask("call", {"args": {"state": "ON"}}, "set_lamp").ok, "by the new tools"
        lamp.device.say("z/chime", "rang late")
        assert reply_to(client, "c1").data == "rang late", "by those it began with"


def test_tools_that_can_reach_the_nodes_own_topics_are_absent_and_named(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    house = house_with_things(make_house, mosquitto)
    (house.folder / "things.toml").write_text(
        THINGS
        + f'[spoof]\ndescription = "Spoof."\neffect = "once"\npublish = "{house.root}/{house.node}/in/ann/task"\n'
        + '[free]\ndescription = "Any."\neffect = "once"\npublish = "{a}/v1/{b}"\n'
        + '[free.parameters]\nrequired = ["a", "b"]\nproperties.a = { type = "string" }\nproperties.b = { type = "string" }\n'
        + f'[spy]\ndescription = "Spy."\neffect = "read"\nawait = "{house.root}/{house.node}/out/_all/status"\n'
        + '[shut_lock]\ndescription = "Shut."\neffect = "once"\npublish = "z/lock/shut"\nverify = { tool = "spy", equals = 1 }\n'
    )
    house.start()
    with house.client(silent_s=30) as client:
        wait_online(client)
        faults = " ".join(client.status_asked().faults)
        assert "spoof.publish" in faults and "free.publish" in faults and "can reach" in faults
        assert "shut_lock.verify.tool: 'spy' must be a tool that reads; there is no such tool" in faults
        reply = client.ask("call", {}, "spoof")
        assert reply.error is not None
    checked = house.run_command("check", "--config", str(house.config))
    assert checked.returncode == 78
    assert "spoof.publish" in checked.stdout and "shut_lock.verify.tool" in checked.stdout
    assert "publishes z/lamp/set (QoS 1), awaits z/lamp" in checked.stdout
