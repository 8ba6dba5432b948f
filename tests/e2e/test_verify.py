"""Calls that can be verified: after a kill and after a timeout the device itself says what became of them.

And a call's id that comes again: it gets the first result, whatever happened in between.
"""

import os
import signal
from pathlib import Path

import msgspec
import pytest

from rea_edge.client import Client
from rea_edge.emulated.endpoint import ScriptedEndpoint
from rea_edge.wire import Reply
from tests.brokers import AnyBroker, Mosquitto, wait_until
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import House, call, endpoint_table, finish, script, wait_online

BOLT = '''

PLACE = LEDGER.with_name("bolt")


@tool(effect="read", device="bolt")
def look_bolt() -> dict[str, int]:
    """Where the bolt is."""
    return {"at": int(PLACE.read_text()) if PLACE.exists() else 0}


@tool(effect="once", device="bolt", timeout_s=TIMEOUT, verify={"tool": "look_bolt", "path": "at", "equals": "{to}"})
def bolt(to: int, before: float = 0.0, after: float = 0.0) -> str:
    """Move the bolt."""
    note("asked")
    time.sleep(before)
    PLACE.write_text(str(to))
    note("moved")
    time.sleep(after)
    return "moved"
'''
VERIFIED = {"done": True, "verified_by": "look_bolt", "found": {"at": 7}}


def bolted(house: House, timeout_s: float = 20.0) -> House:
    with (house.folder / "devices.py").open("a") as file:
        file.write(BOLT.replace("TIMEOUT", str(timeout_s)))
    return house


def moves(house: House, word: str) -> list[str]:
    """The request ids of the calls that came that far."""
    return [line.split()[1] for line in house.ledger(word)]


def killed_in_call(house: House, client: Client, word: str, **args: object) -> Reply:
    """The reply to a call in whose middle the daemon was killed."""
    keys: dict[str, object] = {"id": "c1", "args": {"to": 7, **args}}
    client.send("call", keys, "bolt")
    wait_until(lambda: house.ledger(word), f"the ledger says {word}", 15)
    house.kill()
    house.start()
    return client.ask("call", keys, "bolt", wait_s=30)


def test_a_call_that_took_effect_before_the_kill_is_done_and_does_not_run_again(
    broker: AnyBroker, make_house: MakeHouse
) -> None:
    house = bolted(make_house(broker)).start()
    with house.client(silent_s=30) as client:
        wait_online(client)
        reply = killed_in_call(house, client, "moved", after=15)
        assert (reply.ok, reply.data) == (True, VERIFIED)
        shown = house.run_command("show", "c1").stdout
        assert "asked whether it took effect" in shown
    assert len(moves(house, "asked")) == 1


def test_a_call_that_took_no_effect_before_the_kill_runs_again_with_the_same_request_id(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    house = bolted(make_house(mosquitto)).start()
    with house.client(silent_s=30) as client:
        wait_online(client)
        reply = killed_in_call(house, client, "asked", before=2)
        assert (reply.ok, reply.data) == (True, "moved")
    first, second = moves(house, "asked")
    assert first == second and moves(house, "moved") == [first]


def test_a_probe_that_fails_leaves_a_call_unknown(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    house = bolted(make_house(mosquitto)).start()
    (house.folder / "bolt").write_text("stuck")
    with house.client(silent_s=30) as client:
        wait_online(client)
        reply = killed_in_call(house, client, "asked", before=15)
        assert reply.error is not None and reply.error.code == "outcome_unknown"
        assert "look_bolt could not tell" in reply.error.message
    assert len(moves(house, "asked")) == 1


@pytest.mark.parametrize(
    "rule",
    ['rate = "1/hour"', 'only_if = [{tool = "look", args = {name = "tank"}, path = "level", op = "<", value = 0}]'],
)
def test_a_probe_keeps_to_the_rules_of_its_tool(mosquitto: Mosquitto, make_house: MakeHouse, rule: str) -> None:
    house = bolted(make_house(mosquitto, extra=f"[gate.look_bolt]\n{rule}")).start()
    with house.client(silent_s=30) as client:
        wait_online(client)
        assert client.ask("call", {}, "look_bolt").ok is rule.startswith("rate")
        reply = killed_in_call(house, client, "moved", after=15)
        assert reply.error is not None and reply.error.code == "outcome_unknown"
        assert "look_bolt could not tell" in reply.error.message
    assert len(moves(house, "asked")) == 1


@pytest.mark.parametrize(("slow", "took"), [("after", True), ("before", False)])
def test_after_a_timeout_in_a_living_node_the_probe_says_whether_it_took_effect(
    mosquitto: Mosquitto, make_house: MakeHouse, slow: str, took: bool
) -> None:
    house = bolted(make_house(mosquitto), timeout_s=1.0).start()
    with house.client(silent_s=30) as client:
        wait_online(client)
        reply = client.ask("call", {"args": {"to": 7, slow: 20}}, "bolt")
        if took:
            assert (reply.ok, reply.data) == (True, VERIFIED)
        else:
            assert reply.error is not None and reply.error.code == "tool_failed"
            assert "look_bolt says that it did not take effect" in reply.error.message
        assert client.status_asked().faults == [], "nothing is unknown"
    assert len(moves(house, "asked")) == 1 and len(moves(house, "moved")) == took


def test_the_model_is_told_that_its_call_was_verified(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    with ScriptedEndpoint(script(call("bolt", to=7, after=15), finish("The bolt is at 7."))) as endpoint:
        house = bolted(make_house(mosquitto, extra=endpoint_table(endpoint.url, tool_s=30.0))).start()
        with house.client(silent_s=30) as client:
            wait_online(client)
            client.submit({"id": "t1", "goal": "Bolt it."})
            wait_until(lambda: house.ledger("moved"), "the bolt has moved", 15)
            house.kill()
            house.start()
            state = client.watch("t1", None)
        assert (state.outcome, [done.result for done in state.done]) == ("achieved", ["ok"])
        assert b'\\"verified_by\\":\\"look_bolt\\"' in endpoint.requests[-1].body


def test_a_probe_that_names_no_tool_is_a_fault_and_its_tool_is_absent(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    house = bolted(make_house(mosquitto))
    tools = Path(house.folder / "devices.py")
    tools.write_text(tools.read_text().replace('"tool": "look_bolt"', '"tool": "look_blot"'))
    house.start()
    with house.client() as client:
        wait_online(client)
        (fault,) = client.status_asked().faults
        assert "devices.py: bolt.verify.tool: 'look_blot' must be a tool that reads" in fault
        reply = client.ask("call", {"args": {"to": 1}}, "bolt")
        assert reply.error is not None and "no tool 'bolt'" in reply.error.message
        assert client.ask("call", {}, "look_bolt").ok
    assert house.run_command("check", "--config", str(house.config)).returncode == 78


def test_a_call_whose_id_comes_again_gets_the_first_result_and_does_nothing(
    broker: AnyBroker, protocol: str, make_house: MakeHouse
) -> None:
    house = bolted(make_house(broker, protocol=protocol)).start()
    with house.client(silent_s=30) as client:
        wait_online(client)
        keys: dict[str, object] = {"id": "c1", "args": {"to": 7, "after": 1}}
        for _ in range(4):  # while it is under way
            client.send("call", keys, "bolt")
        assert client.ask("call", keys, "bolt").data == "moved"
        (house.folder / "bolt").write_text("9")
        assert client.ask("call", keys, "bolt").data == "moved"
        house.kill()
        house.start()
        again = client.ask("call", keys, "bolt")
        assert (again.ok, again.data) == (True, "moved")
        with house.client(silent_s=30) as late:  # the first one still hears answers to what it sent again
            other = late.ask("call", {"id": "c1", "args": {"to": 8}}, "bolt")
            assert other.error is not None and other.error.code == "id_conflict"
            wrong = late.ask("call", {"id": "c1", "args": {"name": "tank"}}, "look")
            assert wrong.error is not None and wrong.error.code == "id_conflict", "another tool under the same id"
        rows = client.data("query", {"task": "c1", "limit": 200}, "journal")
        assert isinstance(rows, dict) and msgspec.json.encode(rows).count(b'"kind":"result"') == 1
    assert len(moves(house, "asked")) == 1 and (house.folder / "bolt").read_text() == "9"


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_nothing_in_doubt_runs_again_while_a_process_of_the_daemon_before_is_alive(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    house = make_house(mosquitto).start()
    keys: dict[str, object] = {"id": "d1", "args": {"seconds": 1.0}}
    with house.client(silent_s=40) as client:
        wait_online(client)
        client.send("call", keys, "doze")
        wait_until(lambda: house.ledger("doze"), "it dozes", 15)
        tool = int(house.ledger("doze")[0].split()[0].split("-")[1])
        keeper = parent_of(tool)
        host = parent_of(keeper)
        # As where the kernel is slow to end them: stopped, the keeper does not see that all above it are gone.
        os.kill(keeper, signal.SIGSTOP)
        os.kill(host, signal.SIGKILL)
        house.kill()
        try:
            house.start()
            with pytest.raises(pytest.fail.Exception):
                wait_until(lambda: len(house.ledger("doze")) > 1, "it must not doze again", 3.0)
        finally:
            os.kill(keeper, signal.SIGCONT)
        wait_until(lambda: len(house.ledger("doze")) > 1, "it dozes again", 30)
        assert is_gone(keeper) and is_gone(tool)
        assert client.ask("call", keys, "doze").data == "rested"
    first, second = (line.split()[1] for line in house.ledger("doze"))
    assert first == second, "the same request id"
