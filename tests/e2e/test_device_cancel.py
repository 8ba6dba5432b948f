"""A cancel, and a stop of the node, in each phase of a call to a device: it ends at once, and says whether it may have
taken effect."""

import os
import signal
import time

import pytest

from rea_edge.emulated.endpoint import ScriptedEndpoint
from rea_edge.emulated.packets import Connect, Packet, Publish, Subscribe
from tests.brokers import Emulated, wait_until
from tests.devices import Device, replying
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import call, endpoint_table, finish, script, wait_online
from tests.e2e.test_devices import house_with_things

PROMPT_S = 8.0  # on a busy machine; the call itself would take 60 s
THINGS = """
[ring_chime]
description = "Ring the chime."
effect = "once"
publish = "z/chime/ring"
await = "z/chime"
timeout_s = 60

[set_lamp]
description = "Switch the lamp on."
effect = "idempotent"
publish = "z/lamp/set"
payload = "ON"
await = "z/lamp"
timeout_s = 60
"""


class Deaf:
    """The hook of a broker that does not hear one kind of packet on connections for devices."""

    def __init__(self, kind: type | None) -> None:
        self.kind = kind
        self.met = 0

    def __call__(self, client_id: str, packet: Packet) -> str | None:
        if not client_id.endswith(".dev") or self.kind is None or not isinstance(packet, self.kind):
            return None
        self.met += 1
        return "drop"


@pytest.mark.parametrize(("lost", "result"), [
    pytest.param(Connect, "failed", id="waiting for the connection: nothing was sent"),
    pytest.param(Subscribe, "failed", id="waiting for the SUBACK: nothing was sent"),
    pytest.param(Publish, "unknown", id="sent, and the broker did not take it"),
    pytest.param(None, "unknown", id="sent, and the device says nothing"),
])  # fmt: skip
def test_a_cancel_of_a_call_to_a_device_is_prompt_and_true(
    make_house: MakeHouse, lost: type | None, result: str
) -> None:
    with Emulated() as broker, ScriptedEndpoint(script(call("ring_chime"), finish("It rang."))) as endpoint:
        broker.on_recv = deaf = Deaf(lost)  # type: ignore[assignment]  # a str is wider than the verdicts
        house = house_with_things(make_house, broker, endpoint_table(endpoint.url, tool_s=60), THINGS).start()
        with Device(broker.port, "z/chime/ring") as chime, house.client(silent_s=40) as client:
            wait_online(client, 30)
            client.submit({"id": "t1", "goal": "Ring.", "mode": "act"})
            wait_until(lambda: deaf.met or chime.heard.qsize(), "the phase", 30)
            began_s = time.monotonic()
            client.data("ctl", {"task": "t1", "do": "cancel"})
            ended = client.watch("t1", None)
            assert time.monotonic() - began_s < PROMPT_S
            assert ended.outcome == "cancelled"
            assert [done.result for done in ended.done] == [result]


@pytest.mark.slow
def test_a_stop_while_a_call_waits_for_the_connection_leaves_it_for_the_next_start(make_house: MakeHouse) -> None:
    with Emulated() as broker, ScriptedEndpoint(script(call("set_lamp"), finish("It is on."))) as endpoint:
        broker.on_recv = deaf = Deaf(Connect)  # type: ignore[assignment]
        house = house_with_things(make_house, broker, endpoint_table(endpoint.url, tool_s=60), THINGS).start()
        with (
            Device(broker.port, "z/lamp/set", answers=replying("z/lamp", "on")) as lamp,
            house.client(silent_s=40) as client,
        ):
            wait_online(client, 30)
            client.submit({"id": "t1", "goal": "Light.", "mode": "act"})
            wait_until(lambda: deaf.met, "the phase", 30)
            os.kill(house.pid, signal.SIGTERM)
            house.wait(60)
            deaf.kind = None
            house.start()
            ended = client.watch("t1", None)
            assert (ended.outcome, [done.result for done in ended.done]) == ("achieved", ["ok"])
            assert lamp.heard.qsize() == 1
