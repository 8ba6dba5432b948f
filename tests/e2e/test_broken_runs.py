"""A run that would end the daemon at every start is ended itself, once, and the others go on."""

import threading
from collections.abc import Callable

from rea_edge.client import Client
from rea_edge.emulated.endpoint import Held, ScriptedEndpoint
from rea_edge.store import RunRow, Store, Transaction
from tests.brokers import Mosquitto, wait_until
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import House, call, endpoint_table, finish, script, wait_for_questions, wait_online

FOREIGN = b'{"kind":"teleported","n":1}'


def change(house: House, kind: str, id: str, how: Callable[[Transaction, RunRow], object]) -> RunRow:
    """Write into the state of a daemon that is not running."""
    store = Store.open(house.folder / "state")
    try:
        row = store.run_of("task" if kind == "task" else "call", "me", id)
        assert row is not None and row.state != "ended"
        with store.transaction() as tx:
            how(tx, row)
        return row
    finally:
        store.close()


def foreign(tx: Transaction, row: RunRow) -> None:
    tx.append(row.row, row.seq, [FOREIGN], None)


def test_a_task_whose_journal_cannot_be_followed_ends_as_failed_and_the_others_go_on(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    released = threading.Event()
    asked = script(call("look", name="tank"), finish("It is 71.5."))
    with ScriptedEndpoint(lambda request: Held(asked(request), released)) as endpoint:
        house = make_house(mosquitto, extra=endpoint_table(endpoint.url)).start()
        with house.client(silent_s=30) as client:
            wait_online(client)
            client.submit({"id": "bad", "goal": "Look."})
            client.submit({"id": "good", "goal": "Look."})
            wait_for_questions(endpoint, 1)
            house.kill()
            row = change(house, "task", "bad", foreign)
            released.set()
            house.start()
            state = client.watch("bad", None)
            assert (state.outcome, state.error) == ("failed", "internal")
            assert state.reason is not None and state.reason.startswith(f"row {row.row} ")
            assert client.watch("good", None).outcome == "achieved"
            assert "event=run_unreadable" in house.log.read_text()
            assert client.submit({"id": "bad", "goal": "Look."})[1].outcome == "failed"
            assert house.stop() == 0
            house.start()
            client.submit({"id": "new", "goal": "Look."})
            assert client.watch("new", None).outcome == "achieved"


def test_a_direct_call_whose_journal_cannot_be_followed_is_answered_with_an_error(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    house = make_house(mosquitto).start()
    with house.client(silent_s=30) as client:
        wait_online(client)
        client.send("call", {"id": "d1", "args": {"seconds": 25}}, "doze")
        wait_until(lambda: house.ledger("doze"), "it dozes", 15)
        house.kill()
        change(house, "call", "d1", foreign)
        house.start()
        reply = client.ask("call", {"id": "d1", "args": {"seconds": 25}}, "doze")
        assert reply.error is not None and (reply.error.code, reply.error.retryable) == ("internal", False)
        assert client.ask("call", {"args": {"name": "tank"}}, "look").ok


def test_three_kills_while_a_task_begins_end_it_and_not_the_one_that_waits(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    released = threading.Event()
    with ScriptedEndpoint(lambda request: Held(finish("Good."), released)) as endpoint:
        table = endpoint_table(endpoint.url, protocol="auto").replace("context_tokens = 8192", "")
        house = make_house(mosquitto, extra=f"{table}\n[task.default]\nmin_observations = 0\ntools = []").start()
        with house.client(silent_s=30) as client:
            wait_online(client)
            client.submit({"id": "first", "goal": "Greet."})
            client.submit({"id": "second", "goal": "Greet."})
            for kill in range(1, 4):
                wait_for_questions(endpoint, kill, 20)  # of the probe: nothing of the run is in its journal
                assert stands(client, "first") == "accepted"
                house.kill()
                house.start()
            state = client.watch("first", None)
            assert (state.outcome, state.error) == ("failed", "internal")
            assert "3 restarts in a row" in str(state.reason)
            released.set()
            assert client.watch("second", None).outcome == "achieved"


def stands(client: Client, task_id: str) -> object:
    found = client.data("query", {"task": task_id}, "task")
    assert isinstance(found, dict)
    return found["state"]
