"""Between the gate's yes and the start a call may wait for its device, and between its attempts too: what holds then?"""

import pytest

from rea_edge.emulated.endpoint import ScriptedEndpoint
from tests.brokers import Mosquitto, wait_until
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import call, endpoint_table, finish, script, wait_online
from tests.e2e.test_reload import OPERATED, reloaded

CLANG = '''

@tool(effect="idempotent", device="bell", timeout_s=25.0)
def clang(times: int = 1) -> int:
    """Strike the bell from outside."""
    note("clang")
    return times


@tool(effect="idempotent", device="pump", retries=2)
def prime(times: int = 1) -> int:
    """Fill the pump; it fails after it has run."""
    note("prime")
    raise OSError("no pressure")
'''


@pytest.mark.parametrize(
    ("stricter", "words"),
    [
        pytest.param("[gate.clang]\nranges = {times = [0, 2]}\n", "from 0 to 2", id="a bound"),
        pytest.param('[gate.clang]\nconfirm = "always"\napprovers = ["bob"]\n', "yes", id="a person's yes"),
    ],
)
def test_a_call_that_waits_for_its_device_does_not_start_against_a_reload(
    mosquitto: Mosquitto, make_house: MakeHouse, stricter: str, words: str
) -> None:
    with ScriptedEndpoint(script(call("ring", seconds=8), finish("It rang."))) as endpoint:
        house = make_house(mosquitto, extra=OPERATED + endpoint_table(endpoint.url, tool_s=20.0))
        tools = house.folder / "devices.py"
        tools.write_text(tools.read_text() + CLANG)
        house.start()
        with house.client(silent_s=30) as client, house.client("op", silent_s=30) as operator:
            wait_online(client)
            client.submit({"id": "t1", "goal": "Ring."})
            wait_until(lambda: house.ledger("ring"), "the bell is in use", 20)
            client.send("call", {"id": "c1", "args": {"times": 5}}, "clang")
            wait_until(lambda: "kind=call who=me task_id=c1" in house.log.read_text(), "the call waits", 20)
            house.config.write_text(house.config.read_text() + stricter)
            reloaded(operator)
            reply = client.ask("call", {"id": "c1", "args": {"times": 5}}, "clang", wait_s=30)
        assert reply.error is not None and reply.error.code == "policy_denied" and words in reply.error.message
        assert house.ledger("clang") == []


def test_a_tool_that_must_rest_between_two_starts_is_not_tried_again_by_itself(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    house = make_house(mosquitto, extra="[gate.prime]\ndwell_s = 3600\n")
    tools = house.folder / "devices.py"
    tools.write_text(tools.read_text() + CLANG)
    house.start()
    with house.client() as client:
        wait_online(client)
        reply = client.ask("call", {"id": "c1"}, "prime", wait_s=20)
    assert reply.error is not None and "no pressure" in reply.error.message
    assert len(house.ledger("prime")) == 1
