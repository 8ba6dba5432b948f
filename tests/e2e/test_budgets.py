"""What all tasks together may spend: kept over restarts and kills, told, and refused by name when it is gone."""

import json
import threading

import msgspec
import pytest

from rea_edge.client import Client
from rea_edge.emulated.endpoint import Held, ScriptedEndpoint
from rea_edge.errors import RequestRefused
from rea_edge.wire import BudgetLeft
from tests.brokers import Mosquitto
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import endpoint_table, finish, questions, wait_for_questions, wait_online

QUERY: dict[str, object] = {"mode": "query", "goal": "How is it?"}
TYPE = "[task.default]\nmin_observations = 0\n"


def left(client: Client) -> int:
    return client.status_asked().budgets["day_tokens"].left


def cap_of(body: bytes) -> int:
    return int(json.loads(body)["max_tokens"])


def test_a_day_budget_ends_tasks_by_name_refuses_new_ones_and_survives_restarts(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    with ScriptedEndpoint(lambda request: finish("All is well.")) as endpoint:
        extra = endpoint_table(endpoint.url, day_tokens=2000, month_tokens=1_000_000) + "\n" + TYPE
        house = make_house(mosquitto, extra=extra).start()
        with house.client() as client:
            wait_online(client)
            assert left(client) == 2000
            used = 0
            for number in range(50):
                before = left(client)
                task_id, _ = client.submit(dict(QUERY))
                state = client.watch(task_id, None)
                used += state.usage.tokens
                assert left(client) == 2000 - used
                if state.outcome != "achieved":
                    break
                if number == 1:
                    assert house.stop() == 0
                    house.start()
                if number == 2:
                    house.kill()
                    house.start()
            assert (state.outcome, state.limit, state.usage.steps) == ("exceeded", "day_tokens", 0)
            assert 0 < before < cap_of(questions(endpoint)[-1]) + 2000
            asked = [(len(body), cap_of(body)) for body in questions(endpoint)]
            assert asked[-1][1] < asked[0][1], "the last answers were capped to what was left"
            health = client.data("query", {}, "metrics")
            assert isinstance(health, dict)
            shown = msgspec.convert(health["budgets"], dict[str, BudgetLeft])
            assert shown["day_tokens"].left == 2000 - used and shown["month_tokens"].left == 1_000_000 - used
            house.config.write_text(house.config.read_text().replace("day_tokens = 2000", f"day_tokens = {used + 15}"))
            assert house.stop() == 0
            house.start()
            with pytest.raises(RequestRefused) as refused:
                client.submit(dict(QUERY))
            assert refused.value.code == "budget_exceeded" and refused.value.retryable
            assert any("day_tokens" in fault for fault in client.status_asked().faults)
        said = house.run_command("status")
    assert "day_tokens: 15 of" in said.stdout, said


def test_each_kill_in_the_middle_of_a_question_pays_for_it(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    never = threading.Event()
    with ScriptedEndpoint(lambda request: Held(finish("All is well."), never)) as endpoint:
        extra = endpoint_table(endpoint.url, day_tokens=100_000) + "\n" + TYPE
        house = make_house(mosquitto, extra=extra).start()
        with house.client(silent_s=30) as client:
            wait_online(client)
            task_id, _ = client.submit(dict(QUERY))
            lefts = []
            for number in range(1, 4):
                wait_for_questions(endpoint, number)
                lefts.append(left(client))
                house.kill()
                house.start()
            state = client.watch(task_id, None)
            assert (state.outcome, state.error) == ("failed", "internal")
            assert left(client) == lefts[-1] == 100_000 - state.usage.tokens
        never.set()
    costs = {earlier - later for earlier, later in zip([100_000, *lefts], lefts, strict=False)}
    assert len(costs) == 1 and costs.pop() > 1000, "each question was charged whole, and stayed so"
    assert state.usage.steps == 3
