"""What calls cost: charged before they start, kept over kills, and never more than the limit, in tasks and direct calls."""

import json

from rea_edge.emulated.endpoint import ScriptedEndpoint
from tests.brokers import AnyBroker, Mosquitto, wait_until
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import House, call, endpoint_table, finish, questions, script, wait_online

TOOLS = """
import os, time
from rea_edge.tool import request_id, tool


def note(word):
    with open(os.environ["REA_TOOL_LEDGER"], "a") as file:
        file.write(f"{word} {request_id()}\\n")
        os.fsync(file.fileno())


@tool(effect="read", cost=0.1, timeout_s=30)
def forecast(seconds: float = 0.0) -> int:
    '''Ask a weather service that is paid by the call.'''
    note("forecast")
    time.sleep(seconds)
    return 21


@tool(effect="once", cost=0.2)
def text(to: str) -> str:
    '''Send a text message.'''
    note("text")
    return to


@tool(effect="idempotent", retries=2)
def warm() -> str:
    '''Costs what the node says; fails.'''
    note("warm")
    raise OSError("no such oven")
"""


def paying(broker: AnyBroker, make_house: MakeHouse, extra: str) -> House:
    house = make_house(broker, extra=extra)
    (house.folder / "devices.py").write_text(TOOLS)
    return house.start()


def test_a_call_that_would_cost_more_than_is_left_does_not_run_and_the_model_is_told(
    broker: AnyBroker, make_house: MakeHouse
) -> None:
    calls = [call("forecast"), call("text", to="ann"), call("text", to="bob"), call("forecast"), finish("Told.")]
    with ScriptedEndpoint(script(*calls)) as endpoint:
        house = paying(broker, make_house, endpoint_table(endpoint.url, cost=0.4))
        with house.client() as client:
            wait_online(client)
            task_id, _ = client.submit({"goal": "Tell them."})
            state = client.watch(task_id, None)
            assert [one.result for one in state.done] == ["ok", "ok", "denied", "ok"], "exactly the limit is allowed"
            assert (state.usage.cost, state.limits.cost) == (0.4, 0.4)
            journal = client.ask("query", {"task": task_id}, "journal")
    assert b"text costs 0.2, and 0.1 of 0.4 are left for this task" in b"".join(questions(endpoint))
    assert "call 2 costs 0.2; 0.3 so far" in str(journal.data)
    assert (len(house.ledger("forecast")), len(house.ledger("text"))) == (2, 1)


def test_a_start_that_a_kill_cuts_off_stays_charged_and_does_not_start_again(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    calls = [call("forecast", seconds=25.0), call("forecast"), call("text", to="ann"), finish("It is warm.")]
    with ScriptedEndpoint(script(*calls)) as endpoint:
        house = paying(mosquitto, make_house, endpoint_table(endpoint.url, cost=0.3))
        with house.client() as client:
            wait_online(client)
            task_id, _ = client.submit({"goal": "How warm is it?"})
            wait_until(lambda: len(house.ledger("forecast")) == 1, "it has started", 30)
            house.kill()
            house.start()
            state = client.watch(task_id, None)
    assert [one.result for one in state.done] == ["failed", "ok", "denied"] and state.usage.cost == 0.2
    assert b"which is charged again" in b"".join(questions(endpoint))
    assert len(house.ledger("forecast")) == 2


def test_the_node_can_raise_a_cost_and_what_costs_is_not_tried_again(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    extra = "[limits]\ncost = 5\n[gate.warm]\ncost = 3\n[gate.text]\ncost = 0.1\n[gate.forecast]\ncost = 6"
    house = paying(mosquitto, make_house, extra)
    with house.client() as client:
        wait_online(client)
        failed = client.ask("call", {}, "warm")
        assert failed.error is not None and failed.error.code == "tool_failed" and len(house.ledger("warm")) == 1
        refused = client.ask("call", {}, "forecast")
        assert refused.error is not None and refused.error.code == "policy_denied"
        assert "forecast costs 6, and 5 of 5 are left" in refused.error.message
        assert client.ask("call", {"args": {"to": "ann"}}, "text").ok
        assert not house.ledger("forecast")
    with house.client() as client:
        card = client.hear(client.topics.all("card"), 10.0)
        assert card is not None
        costs = {tool["name"]: tool["cost"] for tool in json.loads(card.payload)["tools"]}
        assert costs == {"forecast": 6, "text": 0.2, "warm": 3}


def test_a_dry_run_costs_nothing_and_runs_nothing_that_costs(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    with ScriptedEndpoint(script(call("forecast"), call("text", to="ann"), finish("Done."))) as endpoint:
        house = paying(mosquitto, make_house, endpoint_table(endpoint.url, cost=0.2))
        with house.client() as client:
            wait_online(client)
            task_id, _ = client.submit({"goal": "Tell her.", "dry_run": True})
            state = client.watch(task_id, None)
    assert [one.result for one in state.done] == ["ok", "ok"] and state.usage.cost == 0
    assert not house.ledger()


def test_what_a_gate_reads_must_be_free(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    extra = '[gate.text]\nonly_if = [{tool = "forecast", op = ">", value = 20}]'
    house = paying(mosquitto, make_house, extra)
    with house.client() as client:
        wait_online(client)
        wanted = "gate.text.only_if.tool: 'forecast' costs 0.1, and what is read so must be free"
        wait_until(lambda: wanted in client.status().faults, "it is told", 30)
        refused = client.ask("call", {"args": {"to": "ann"}}, "text")
        assert refused.error is not None and refused.error.code == "policy_denied"
        assert not house.ledger()


def test_what_all_calls_of_a_day_may_cost_is_kept_over_a_kill(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    answers = script(call("text", to="ann"), call("forecast"), finish("It is warm."))
    with ScriptedEndpoint(answers) as endpoint:
        house = paying(mosquitto, make_house, endpoint_table(endpoint.url, day_cost=0.3, month_cost=9))
        with house.client() as client:
            wait_online(client)
            assert client.ask("call", {"args": {"to": "bob"}}, "text").ok
            house.kill()
            house.start()
            wait_online(client)
            task_id, _ = client.submit({"goal": "Tell her, then say how warm it is."})
            state = client.watch(task_id, None)
            assert [one.result for one in state.done] == ["denied", "ok"] and state.usage.cost == 0.1
            refused = client.ask("call", {}, "forecast")
            assert refused.error is not None and refused.error.code == "policy_denied"
            assert "it costs 0.1, and 0 of 0.3 (day_cost) are left; renewed in" in refused.error.message
            status = client.ask("query", {}, "status").data
    assert isinstance(status, dict)
    lefts = {limit: one["left"] for limit, one in status["status"]["budgets"].items()}
    assert lefts == {"day_cost": 0, "month_cost": 8.7} and "day_cost: all 0.3 are spent" in status["status"]["faults"]
    assert (len(house.ledger("text")), len(house.ledger("forecast"))) == (1, 1)


def test_a_request_and_a_task_type_may_lower_what_a_task_may_cost(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    types = "[task.cheap]\nlimits = {cost = 0.1}\n"
    with ScriptedEndpoint(script(call("text", to="ann"), finish("No."))) as endpoint:
        house = paying(mosquitto, make_house, types + endpoint_table(endpoint.url, cost=1))
        with house.client() as client:
            wait_online(client)
            for keys in ({"limits": {"cost": 0.1}}, {"type": "cheap"}, {"type": "cheap", "limits": {"cost": 9}}):
                task_id, _ = client.submit({"goal": "Tell her.", **keys})
                state = client.watch(task_id, None)
                assert [one.result for one in state.done] == ["denied"] and state.limits.cost == 0.1
    assert not house.ledger()
