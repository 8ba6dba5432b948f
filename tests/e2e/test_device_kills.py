"""kill -9 of the daemon, of the broker and of both, right when a device has heard a call and before it answers: what the
device itself did is held against what the node says of it."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rea_edge.wire import Reply
from tests.brokers import AnyBroker, Mosquitto
from tests.devices import Device
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import wait_online
from tests.e2e.test_devices import house_with_things

THINGS = """
[get_lamp]
description = "Read the lamp."
effect = "read"
publish = "z/lamp/get"
await = "z/lamp"
timeout_s = 40

[set_lamp]
description = "Switch the lamp on."
effect = "idempotent"
publish = "z/lamp/set"
payload = "ON"
await = "z/lamp"
timeout_s = 40

[ring_chime]
description = "Ring the chime."
effect = "once"
publish = "z/chime/ring"
await = "z/chime"
timeout_s = 40

[open_lock]
description = "Open the lock."
effect = "once"
publish = "z/lock/open"
await = "z/lock"
await_match = "open"
timeout_s = 40
verify = { tool = "look_lock", equals = "open" }

[look_lock]
description = "What the lock said last."
effect = "read"
await = "z/lock"
timeout_s = 30
"""


class Things:
    """A lamp, a chime and a lock. `did` is their own record; while `mute` nothing is answered, while `stuck` nothing is
    done. What is kept of the lock at the broker is said anew after each message, for brokers forget."""

    def __init__(self, port: int) -> None:
        self.did: list[str] = []
        self.mute, self.stuck = True, False
        self.lock = "shut"
        self.device = Device(port, "z/+/get", "z/+/set", "z/+/ring", "z/+/open", answers=self._answer)

    def _answer(self, device: Device, topic: str, _payload: bytes) -> None:
        if not self.stuck:
            self.did.append(topic)
            self.lock = "open" if topic == "z/lock/open" else self.lock
        if not self.mute:
            device.say(topic.rpartition("/")[0], "open" if "lock" in topic else "done")

    def back(self) -> None:
        """What is done after a power cut of all: they work, and say how they are."""
        self.mute, self.stuck = False, False
        self.device.say("z/lock", self.lock, retain=True)


@contextmanager
def things_on(broker: AnyBroker) -> Iterator[Things]:
    things = Things(broker.port)
    with things.device:
        yield things


@pytest.mark.parametrize("victims", ["daemon", "broker", "daemon and broker"])
@pytest.mark.parametrize(("tool", "stuck", "killed_daemon", "killed_broker"), [
    pytest.param("get_lamp", False, ("ok", 2), ("tool_failed", 1), id="a read is made again"),
    pytest.param("set_lamp", False, ("ok", 2), ("tool_failed", 1), id="so is what may be"),
    pytest.param("ring_chime", False, ("outcome_unknown", 1), ("outcome_unknown", 1), id="once, and nobody knows"),
    pytest.param("ring_chime", True, ("outcome_unknown", 0), ("outcome_unknown", 0), id="once, and it was not done"),
    pytest.param("open_lock", False, ("ok", 1), ("ok", 1), id="verified, and it was done"),
    pytest.param("open_lock", True, ("ok", 1), ("tool_failed", 0), id="verified, and it was not done"),
])  # fmt: skip
def test_what_the_node_says_after_a_kill_is_what_the_device_did(
    mosquitto: Mosquitto, make_house: MakeHouse,
    victims: str, tool: str, stuck: bool, killed_daemon: tuple[str, int], killed_broker: tuple[str, int],
) -> None:  # fmt: skip
    house = house_with_things(make_house, mosquitto, things=THINGS).start()
    keys: dict[str, object] = {"id": "c1", "args": {}}
    with things_on(mosquitto) as things, house.client(silent_s=60) as client:
        wait_online(client, 30)
        things.stuck = stuck
        client.send("call", keys, tool)
        things.device.next()
        if "daemon" in victims:
            house.kill()
        if "broker" in victims:
            mosquitto.kill()
            mosquitto.start()
            things.device.wait_subscribed()
        things.back()
        if "daemon" in victims:
            house.start()
        reply = client.ask("call", keys, tool, wait_s=60)
        expected = killed_daemon if "daemon" in victims else killed_broker
        assert (said_by(reply), len(things.did)) == expected
        assert client.ask("call", keys, tool).ok == reply.ok, "the same call again is the same answer"
        assert len(things.did) == expected[1]


def said_by(reply: Reply) -> str:
    return "ok" if reply.error is None else reply.error.code
