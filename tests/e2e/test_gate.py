"""The gate from outside: what `[gate.NAME]` forbids does not run, by a task, by a direct call, after a restart."""

import time

import pytest

from rea_edge.client import Client
from rea_edge.emulated.endpoint import ScriptedEndpoint
from tests.brokers import AnyBroker, Mosquitto, wait_until
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import call, endpoint_table, finish, questions, script, wait_online


def code_of(client: Client, tool: str, **args: object) -> tuple[str, str]:
    reply = client.ask("call", {"args": args}, tool)
    return ("ok", "") if reply.error is None else (reply.error.code, reply.error.message)


def test_a_value_out_of_its_range_does_not_run(broker: AnyBroker, make_house: MakeHouse) -> None:
    house = make_house(broker, extra="[gate.turn]\nranges = {percent = [10, 80]}").start()
    with house.client() as client:
        wait_online(client)
        assert code_of(client, "turn", percent=80) == ("ok", "")
        code, words = code_of(client, "turn", percent=81)
        assert code == "policy_denied" and "from 10 to 80" in words
        assert len(house.ledger("turn")) == 1
        figures = client.data("query", {}, "metrics")
        assert isinstance(figures, dict) and figures["denied"] == {"total": 1, "tools": {"turn": 1}}


def test_a_value_that_is_not_among_those_of_the_node_does_not_run(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    house = make_house(mosquitto, extra='[gate.look]\nvalues = {name = ["tank"]}').start()
    with house.client() as client:
        wait_online(client)
        assert code_of(client, "look", name="tank") == ("ok", "")
        code, words = code_of(client, "look", name="pipe")
        assert code == "policy_denied" and "name must be one of tank on this node, not 'pipe'" in words


def test_a_rest_between_two_starts_holds_over_a_kill(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    house = make_house(mosquitto, extra="[gate.ring]\ndwell_s = 3600").start()
    with house.client() as client:
        wait_online(client)
        assert code_of(client, "ring") == ("ok", "")
        assert code_of(client, "ring")[0] == "policy_denied"
        house.kill()
        house.start()
        wait_online(client)
        code, words = code_of(client, "ring")
        assert code == "policy_denied" and "must rest 3600 s" in words
        assert len(house.ledger("ring")) == 1


def test_a_rate_is_kept_by_tasks_and_direct_calls_together(broker: AnyBroker, make_house: MakeHouse) -> None:
    answers = script(call("turn", percent=1), call("turn", percent=2), finish("The valve stands at 1."))
    with ScriptedEndpoint(answers) as endpoint:
        house = make_house(broker, extra='[gate.turn]\nrate = "2/hour"\n' + endpoint_table(endpoint.url)).start()
        with house.client() as client:
            wait_online(client)
            assert code_of(client, "turn", percent=50) == ("ok", "")
            task_id, _ = client.submit({"goal": "Turn the valve to 1, then to 2."})
            state = client.watch(task_id, None)
        assert [one.result for one in state.done] == ["ok", "denied"]
        assert len(house.ledger("turn")) == 2
        assert b"2 times in 3600 s" in questions(endpoint)[-1]


def test_an_interlock_reads_afresh_and_lets_nothing_run_against_it(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    rules = (
        '[gate.turn]\nonly_if = [{tool = "look", args = {name = "tank"}, path = "level", op = "<", value = 50}]\n'
        '[gate.ring]\nonly_if = [{tool = "look", args = {name = "pipe"}, path = "level", op = "<", value = 50}]\n'
    )
    house = make_house(mosquitto, extra=rules).start()
    with house.client() as client:
        wait_online(client)
        code, words = code_of(client, "turn", percent=50)
        assert code == "policy_denied" and "look" in words and "71.5" in words
        assert code_of(client, "ring") == ("ok", "")
        assert not house.ledger("turn")


def test_hours_hold_everything_back_where_the_clock_is_not_trusted_or_it_is_late(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    # One minute of the day, far from now: shut with a trusted clock and with one that is not.
    hour = (time.localtime().tm_hour + 12) % 24
    house = make_house(mosquitto, extra=f'[gate.ring]\nhours = "{hour:02d}:00-{hour:02d}:01"').start()
    with house.client() as client:
        wait_online(client)
        assert code_of(client, "ring")[0] == "policy_denied"
        assert not house.ledger("ring")


def test_a_rule_for_a_tool_that_is_not_there_is_a_fault(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    rules = "[gate.rong]\ndwell_s = 1\n[gate.turn]\nranges = {percentage = [0, 1]}\n[gate.look]\nvalues = {nam = [1]}\n"
    house = make_house(mosquitto, extra=rules).start()
    with house.client() as client:
        wait_online(client)
        wait_until(lambda: len(client.status().faults) == 3, "all are named", 10)
        assert any("gate.rong" in fault for fault in client.status().faults)
        assert any("gate.turn.ranges.percentage" in fault for fault in client.status().faults)
        assert any("gate.look.values.nam" in fault for fault in client.status().faults)


def test_a_dry_run_passes_the_gate_and_runs_nothing_that_acts(broker: AnyBroker, make_house: MakeHouse) -> None:
    answers = script(call("look", name="tank"), call("turn", percent=20), call("turn", percent=90), finish("Turned."))
    rules = "[gate.turn]\nranges = {percent = [0, 80]}\n"
    with ScriptedEndpoint(answers) as endpoint:
        house = make_house(broker, extra=rules + endpoint_table(endpoint.url)).start()
        with house.client() as client:
            wait_online(client)
            task_id, _ = client.submit({"goal": "Turn the valve.", "dry_run": True})
            state = client.watch(task_id, None)
            reply = client.ask("call", {"args": {"percent": 5}, "dry_run": True}, "turn")
            assert reply.ok and isinstance(reply.data, dict) and reply.data["dry_run"] is True
            assert client.ask("call", {"args": {"percent": 85}, "dry_run": True}, "turn").error is not None
        assert [one.result for one in state.done] == ["ok", "ok", "denied"]
        assert state.dry_run and state.reason == "a dry run: nothing that acts was run"
        assert not house.ledger("turn")
        typed = house.run_command("call", "turn", "percent=5", "--dry-run")
        assert typed.returncode == 0 and "not run" in typed.stdout
        assert not house.ledger("turn")


DECLARED = '''
from rea_edge.tool import tool


@tool(effect="read", fields=["level"], redact=["addresses"])
def gauge(percent: int = 5) -> dict[str, object]:
    """Read a gauge."""
    return {"level": "at 192.168.4.7, password=opensesame", "serial": "SN-0815"}


@tool(effect="idempotent", ranges={"percent": [0, 50]})
def fan(percent: int) -> int:
    """Set the fan."""
    return percent
'''


def test_what_a_tool_declares_holds_beside_what_the_node_says(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    answers = script(call("gauge"), finish("It was read."))
    with ScriptedEndpoint(answers) as endpoint:
        house = make_house(
            mosquitto, extra="[gate.fan]\nranges = {percent = [20, 100]}\n" + endpoint_table(endpoint.url)
        )
        (house.folder / "devices.py").write_text(DECLARED)
        house.start()
        with house.client() as client:
            wait_online(client)
            assert [code_of(client, "fan", percent=percent)[0] for percent in (19, 20, 50, 51)] == [
                "policy_denied", "ok", "ok", "policy_denied",
            ]  # fmt: skip
            task_id, _ = client.submit({"goal": "Read the gauge."})
            client.watch(task_id, None)
            journal = client.ask("query", {"task": task_id}, "journal")
        seen = questions(endpoint)[-1].decode() + str(journal.data) + house.log.read_text()
        seen += (house.folder / "state/state.db").read_bytes().decode("latin-1")
        assert "(address)" in seen
        assert not any(word in seen for word in ("SN-0815", "192.168.4.7", "opensesame"))


SLOW_READS = """[gate.turn]
only_if = [
    {tool = "doze", args = {seconds = 1.0}, op = "==", value = "rested"},
    {tool = "doze", args = {seconds = 1.1}, op = "==", value = "rested"},
]
"""


def test_what_interlocks_read_is_time_of_the_call_and_of_the_run(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    answers = script(call("turn", percent=1), finish("The valve is at 1."))
    with ScriptedEndpoint(answers) as endpoint:
        house = make_house(mosquitto, extra=SLOW_READS + endpoint_table(endpoint.url)).start()
        with house.client(silent_s=30) as client:
            wait_online(client)
            task_id, _ = client.submit({"id": "long", "goal": "Turn it to 1."})
            state = client.watch(task_id, None)
            assert [one.result for one in state.done] == ["ok"] and state.usage.seconds >= 2.1
            task_id, _ = client.submit({"id": "short", "goal": "Turn it to 1.", "limits": {"tool_s": 1.6}})
            state = client.watch(task_id, None)
            assert [one.result for one in state.done] == ["denied"] and 1.5 < state.usage.seconds < 2.1
        assert len(house.ledger("turn")) == 1


@pytest.mark.slow
def test_a_stop_while_an_interlock_is_read_denies_nothing(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    rule = '[gate.turn]\nonly_if = [{tool = "doze", args = {seconds = 28.0}, op = "==", value = "rested"}]\n'
    with ScriptedEndpoint(script(call("turn", percent=1), finish("The valve is at 1."))) as endpoint:
        house = make_house(mosquitto, extra=rule + endpoint_table(endpoint.url, tool_s=40.0)).start()
        with house.client(silent_s=60) as client:
            wait_online(client)
            task_id, _ = client.submit({"goal": "Turn it to 1."})
            wait_until(lambda: house.ledger("doze"), "the interlock is read", 15)
            assert house.stop() == 0
            house.config.write_text(house.config.read_text().replace("28.0", "0.1"))
            house.start()
            state = client.watch(task_id, None)
        assert [one.result for one in state.done] == ["ok"]
