"""A task from a sender to its answer, over both brokers and both protocol versions."""

import json
import re
import threading

import pytest

from rea_edge.emulated.endpoint import Held, ScriptedEndpoint
from rea_edge.errors import RequestRefused
from rea_edge.wire import TaskEvent, TaskState
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


def test_a_task_goes_from_its_goal_to_its_answer(broker: AnyBroker, protocol: str, make_house: MakeHouse) -> None:
    with ScriptedEndpoint(
        script(call("look", name="tank"), call("turn", percent=20), finish("The valve is at 20."))
    ) as endpoint:
        house = make_house(broker, protocol=protocol, extra=endpoint_table(endpoint.url)).start()
        with house.client() as client:
            wait_online(client)
            task_id, accepted = client.submit({"goal": "Turn the valve to 20."})
            words = list(client.follow(task_id, silent_s=15))
        state = words[-1]
        assert isinstance(state, TaskState)
        assert (state.outcome, state.answer) == ("achieved", "The valve is at 20.")
        assert [(done.n, done.tool, done.result) for done in state.done] == [(1, "look", "ok"), (2, "turn", "ok")]
        assert state.usage.steps == 3 and not state.usage.estimated
        assert state.body == accepted.body
        kinds = [word.kind for word in words if isinstance(word, TaskEvent)]
        assert [kind for kind in kinds if kind in ("call", "result")] == ["call", "result", "call", "result"]
        assert house.ledger() == [f"turn {state.run}-2"]


def test_the_same_task_twice_is_one_and_another_body_is_a_conflict(broker: AnyBroker, make_house: MakeHouse) -> None:
    with ScriptedEndpoint(script(call("turn", percent=5), finish("Done it."))) as endpoint:
        house = make_house(broker, extra=endpoint_table(endpoint.url)).start()
        with house.client() as client:
            wait_online(client)
            for _ in range(3):
                client.submit({"id": "same", "goal": "Turn it."})
            assert client.watch("same", None).outcome == "achieved"
            _, again = client.submit({"id": "same", "goal": "Turn it."})
            assert again.outcome == "achieved"
            with pytest.raises(RequestRefused) as refused:
                client.submit({"id": "same", "goal": "Turn it back."})
            assert refused.value.code == "id_conflict"
        assert len(house.ledger("turn")) == 1


def test_a_query_task_is_offered_no_tool_that_acts_and_cannot_call_one(
    broker: AnyBroker, make_house: MakeHouse
) -> None:
    with ScriptedEndpoint(script(call("ring"), call("look", name="tank"), finish("It is 71.5 percent."))) as endpoint:
        house = make_house(broker, extra=endpoint_table(endpoint.url)).start()
        with house.client() as client:
            wait_online(client)
            task_id, _ = client.submit({"goal": "How full?", "mode": "query"})
            state = client.watch(task_id, None)
        assert state.outcome == "achieved"
        first = questions(endpoint)[0].decode()
        assert re.search(r"\blook\b", first) and not re.search(r"\bring\b", first)
        assert house.ledger("ring") == []


def test_limits_of_a_request_lower_the_configured_ones_and_never_raise_them(
    broker: AnyBroker, make_house: MakeHouse
) -> None:
    # Another act each time: a run that goes in circles would end by itself.
    with ScriptedEndpoint(lambda request: call("turn", percent=turns_so_far(request))) as endpoint:
        house = make_house(broker, extra=endpoint_table(endpoint.url, steps=4)).start()
        with house.client() as client:
            wait_online(client)
            few, _ = client.submit({"goal": "Look.", "limits": {"steps": 2}})
            state = client.watch(few, None)
            assert (state.outcome, state.limit, state.usage.steps) == ("exceeded", "steps", 2)
            assert state.answer and '"percent":1' in state.answer
            many, _ = client.submit({"goal": "Look.", "limits": {"steps": 100}})
            state = client.watch(many, None)
            assert (state.outcome, state.limit, state.usage.steps) == ("exceeded", "steps", 4)


def test_a_cancel_ends_a_task_that_waits_and_one_that_runs(broker: AnyBroker, make_house: MakeHouse) -> None:
    release = threading.Event()
    answers = script(call("look", name="tank"), finish("Done it."))

    with ScriptedEndpoint(lambda request: Held(answers(request), release)) as endpoint:
        house = make_house(broker, extra=endpoint_table(endpoint.url)).start()
        with house.client() as client:
            wait_online(client)
            client.submit({"id": "first", "goal": "Look."})
            wait_for_questions(endpoint, 1)
            client.submit({"id": "second", "goal": "Look."})
            client.data("ctl", {"task": "second", "do": "cancel", "text": "not needed"})
            second = client.watch("second", None)
            assert second.outcome == "cancelled" and "not needed" in str(second.reason)
            client.data("ctl", {"task": "first", "do": "cancel"})
            assert client.watch("first", None).outcome == "cancelled"
            assert endpoint.wait_for_abandoned(1, 5)
            assert client.data("ctl", {"task": "first", "do": "cancel"}) == {"task": "first"}, "the same answer again"
            with pytest.raises(RequestRefused) as refused:
                client.data("ctl", {"task": "third", "do": "cancel"})
            assert refused.value.code == "unknown_task"
        release.set()


def test_many_cancels_of_one_task_are_one_row_of_its_journal(broker: AnyBroker, make_house: MakeHouse) -> None:
    with ScriptedEndpoint(script(call("ring", seconds=1.0), finish("It rang."))) as endpoint:
        house = make_house(broker, extra=endpoint_table(endpoint.url)).start()
        with house.client() as client:
            wait_online(client)
            client.submit({"id": "t1", "goal": "Ring."})
            wait_until(lambda: house.ledger("ring"), "it rings", 10)
            for number in range(30):
                client.send("ctl", {"id": f"x{number}", "task": "t1", "do": "cancel"})
            assert client.watch("t1", None).outcome == "cancelled"
            journal = client.data("query", {"task": "t1", "limit": 200}, "journal")
        assert isinstance(journal, dict)
        asked = [event for event in journal["events"] if event.get("text", "").startswith("cancel asked")]
        assert len(asked) == 1


def test_the_newest_answer_is_kept_as_plain_text(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    with ScriptedEndpoint(script(call("look", name="tank"), finish("It is 71.5 percent full."))) as endpoint:
        house = make_house(mosquitto, extra=endpoint_table(endpoint.url)).start()
        with house.client() as client:
            wait_online(client)
            task_id, _ = client.submit({"goal": "How full is it?"})
            client.watch(task_id, None)
        with house.client() as later:
            message = later.hear(later.topics.last("me"), 10)
            assert message is not None and message.retained
            assert message.payload.decode() == "It is 71.5 percent full."


def test_an_endpoint_that_is_down_fails_the_task_by_name_and_is_a_fault_in_the_status(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    with ScriptedEndpoint(script(finish("x"))) as endpoint:
        extra = endpoint_table(endpoint.url, task_s=2.0)
    house = make_house(mosquitto, extra=extra).start()
    with house.client() as client:
        wait_online(client)
        task_id, _ = client.submit({"goal": "Look."})
        state = client.watch(task_id, None)
        assert state.outcome in ("failed", "exceeded")
        assert "connect" in json.dumps(state.reason) or state.limit == "seconds"
        health = client.data("query", {}, "status")
        assert isinstance(health, dict) and "connect" in json.dumps(health["status"]["faults"])


def test_a_task_that_waits_too_long_for_its_start_expires_and_nothing_of_it_runs(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    release = threading.Event()
    with ScriptedEndpoint(lambda request: Held(finish("Done it."), release)) as endpoint:
        house = make_house(mosquitto, extra=endpoint_table(endpoint.url, queue_s=1.0)).start()
        with house.client() as client:
            wait_online(client)
            client.submit({"id": "first", "goal": "Look."})
            wait_for_questions(endpoint, 1)
            client.submit({"id": "late", "goal": "Ring."})
            threading.Timer(1.5, release.set).start()
            *told, state = client.follow("late", silent_s=15)
            # Told from memory, the end comes right before the state or right behind it.
            ends = [word for word in told if isinstance(word, TaskEvent) and word.kind == "end"]
            assert ends or client.hear(client.topics.event("me", "late"), 5) is not None
        assert isinstance(state, TaskState)
        assert (state.outcome, state.error) == ("expired", "expired")
        assert state.usage.steps == 0


def test_more_tasks_than_may_wait_are_refused_as_busy(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    release = threading.Event()
    with ScriptedEndpoint(lambda request: Held(finish("Done it."), release)) as endpoint:
        house = make_house(mosquitto, extra=endpoint_table(endpoint.url, queue=2)).start()
        with house.client() as client:
            wait_online(client)
            client.submit({"id": "runs", "goal": "Look."})
            wait_for_questions(endpoint, 1)
            for number in range(2):
                client.submit({"id": f"w{number}", "goal": "Look."})
            with pytest.raises(RequestRefused) as refused:
                client.submit({"id": "w2", "goal": "Look."})
            assert refused.value.code == "busy" and refused.value.retryable
            release.set()


def test_a_direct_call_that_waits_too_long_for_its_start_expires(broker: AnyBroker, make_house: MakeHouse) -> None:
    house = make_house(broker, extra="[limits]\nqueue_s = 1.0").start()
    with house.client() as client:
        wait_online(client)
        for number in range(2):
            client.send("call", {"id": f"d{number}", "args": {"seconds": 1.5}}, "doze")
        late = client.ask("call", {"id": "late"}, "ring")
    assert late.error is not None and late.error.code == "expired"
    assert house.ledger("ring") == []
