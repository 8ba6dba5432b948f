"""Controls of a task from outside: a cancel that comes first, and what people settle."""

import pytest

from rea_edge.client import Client
from rea_edge.emulated.endpoint import ScriptedEndpoint
from rea_edge.errors import RequestRefused
from tests.brokers import AnyBroker
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import call, endpoint_table, finish, questions, script, wait_online


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
