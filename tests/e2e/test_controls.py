"""Controls of a task from outside: a cancel that comes first, and what people settle."""

import threading

import msgspec
import pytest

from rea_edge.client import Client
from rea_edge.emulated.endpoint import Held, ScriptedEndpoint
from rea_edge.errors import RequestRefused
from rea_edge.mqtt import Incoming
from rea_edge.wire import TaskState
from tests.brokers import AnyBroker, Mosquitto, wait_until
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import (
    call,
    endpoint_table,
    finish,
    questions,
    script,
    turns_so_far,
    wait_for_questions,
    wait_online,
)


def refused(client: Client, **keys: object) -> RequestRefused:
    with pytest.raises(RequestRefused) as caught:
        client.data("ctl", keys)
    return caught.value


def test_a_task_that_was_cancelled_before_it_came_ends_without_having_started(
    broker: AnyBroker, make_house: MakeHouse
) -> None:
    with ScriptedEndpoint(script(call("ring"), finish("It rang."))) as endpoint:
        house = make_house(broker, extra=endpoint_table(endpoint.url)).start()
        with house.client(silent_s=30) as client:
            wait_online(client)
            for _ in range(2):
                said = refused(client, task="late", do="cancel", text="not needed")
                assert said.code == "unknown_task" and "if it still comes, it ends as cancelled" in said.message
            house.kill()
            house.start()
            client.submit({"id": "late", "goal": "Ring."})
            late = client.watch("late", None)
            assert (late.outcome, late.usage.steps) == ("cancelled", 0) and "not needed" in str(late.reason)
            assert client.data("ctl", {"task": "late", "do": "cancel"}) == {"task": "late"}
            client.submit({"id": "other", "goal": "Ring."})
            assert client.watch("other", None).outcome == "achieved"
        assert len(questions(endpoint)) == 2 and len(house.ledger("ring")) == 1


def unknown_calls(client: Client) -> list[dict[str, object]]:
    found = client.data("query", {}, "metrics")
    assert isinstance(found, dict)
    assert found["unknown"]["count"] == len(found["unknown"]["calls"])
    return found["unknown"]["calls"]


def state_of(client: Client, task_id: str, who: str = "me") -> TaskState:
    return msgspec.convert(client.data("query", {"task": task_id, "who": who}, "task"), TaskState)


def test_an_unknown_call_stands_in_health_until_a_person_settles_it(broker: AnyBroker, make_house: MakeHouse) -> None:
    with ScriptedEndpoint(script(call("ring", seconds=5.0), finish("It may have rung."))) as endpoint:
        house = make_house(broker, extra=endpoint_table(endpoint.url, tool_s=0.5)).start()
        with house.client(silent_s=30) as client, house.client("you") as other:
            wait_online(client)
            client.submit({"id": "t1", "goal": "Ring.", "type": "default"})
            assert [done.result for done in client.watch("t1", None).done] == ["unknown"]
            house.kill()
            house.start()
            (doubt,) = unknown_calls(client)
            assert (doubt["who"], doubt["id"], doubt["n"], doubt["tool"]) == ("me", "t1", 1, "ring")
            assert any("rea-edge settle" in fault for fault in client.status_asked().faults)
            settle: dict[str, object] = {"task": "t1", "do": "settle", "n": 1, "outcome": "done"}
            assert refused(other, **settle, who="me").code == "policy_denied"
            assert refused(other, **settle).code == "unknown_task"
            assert refused(client, **{**settle, "n": 2}).code == "bad_request"
            assert refused(client, task="t1", do="settle", n=1).code == "bad_request"
            for _ in range(2):
                assert client.data("ctl", settle) == {"task": "t1", "n": 1, "outcome": "done"}
            assert refused(client, **{**settle, "outcome": "not_done"}).code == "id_conflict"
            with house.client() as late:
                kept = late.hear(client.topics.state("me", "t1"), 10)
            assert settled_in(kept), "the broker keeps the state that says so"
            (done,) = state_of(client, "t1").done
            assert (done.result, done.settled) == ("ok", "me")
            assert unknown_calls(client) == [] and client.status_asked().faults == []
            assert "me says that call 1 took effect" in house.run_command("show", "t1").stdout


def settled_in(message: Incoming | None) -> bool:
    return message is not None and msgspec.json.decode(message.payload, type=TaskState).done[0].settled == "me"


@pytest.mark.parametrize(("outcome", "ok"), [("done", True), ("not_done", False)])
def test_a_direct_call_is_settled_by_its_id_and_answered_so_from_then_on(
    mosquitto: Mosquitto, make_house: MakeHouse, outcome: str, ok: bool
) -> None:
    house = make_house(mosquitto).start()
    with house.client(silent_s=30) as client:
        wait_online(client)
        keys: dict[str, object] = {"id": "c1", "args": {"seconds": 20.0}}
        client.send("call", keys, "ring")
        wait_until(lambda: house.ledger("ring"), "it rings", 15)
        house.kill()
        house.start()
        first = client.ask("call", keys, "ring")
        assert first.error is not None and first.error.code == "outcome_unknown"
        shown = house.run_command("status").stdout
        assert "ring" in shown and "rea-edge settle me/c1 --n 1 done|not_done" in shown, shown
        told = house.run_command("settle", "me/c1", "--n", "1", outcome)
        assert told.returncode == 0 and outcome in told.stdout, told
        with house.client(silent_s=30) as late:  # the first one may still hear answers to what it sent again
            again = late.ask("call", keys, "ring")
        assert again.ok == ok and (again.error is None) == ok
        assert ok or (again.error is not None and again.error.code == "tool_failed")
        assert unknown_calls(client) == []
    assert len(house.ledger("ring")) == 1


def test_an_operator_settles_a_call_of_a_task_that_goes_on_and_the_model_is_told(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    release = threading.Event()
    answers = script(call("ring", seconds=5.0), call("look", name="tank"), finish("It rang, and the tank is full."))
    with ScriptedEndpoint(
        lambda request: Held(answers(request), release) if turns_so_far(request) == 1 else answers(request)
    ) as endpoint:
        access = '[access]\nidentity = "broker"\noperators = ["op"]\n'
        house = make_house(mosquitto, extra=access + endpoint_table(endpoint.url, tool_s=0.5)).start()
        with house.client(silent_s=30) as client, house.client("op") as operator:
            wait_online(client)
            client.submit({"id": "t1", "goal": "Ring, then look."})
            wait_for_questions(endpoint, 2)
            settle: dict[str, object] = {"who": "me", "task": "t1", "do": "settle", "n": 1, "outcome": "not_done"}
            assert operator.ask("ctl", settle).ok
            assert state_of(client, "t1").done[0].result == "failed"
            release.set()
            ended = client.watch("t1", None)
        assert (ended.outcome, ended.done[0].settled) == ("achieved", "op")
        assert b"whose outcome was unknown, did not take effect" in questions(endpoint)[2]
        assert b"whose outcome was unknown" not in questions(endpoint)[1]
