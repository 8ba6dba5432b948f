"""[access] identity = "broker": who may send, who may call what, and what operators may."""

import threading

from rea_edge.client import Client
from rea_edge.emulated.endpoint import Held, ScriptedEndpoint
from rea_edge.topics import What
from rea_edge.wire import Reply
from tests.brokers import Mosquitto
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import call, endpoint_table, finish, questions, script, wait_for_questions, wait_online

OPERATED = '[access]\nidentity = "broker"\noperators = ["op"]\n'
ALL: tuple[tuple[What, str, dict[str, object]], ...] = (
    ("task", "", {"goal": "Look."}),
    ("call", "look", {"args": {"name": "tank"}}),
    ("query", "status", {}),
    ("ctl", "", {"task": "t1", "do": "cancel"}),
    ("node", "", {"do": "release"}),
)


def code_of(reply: Reply) -> str | None:
    return None if reply.error is None else reply.error.code


def look(client: Client) -> Reply:
    return client.ask("call", {"args": {"name": "tank"}}, "look")


def test_who_is_no_sender_is_denied_everything(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    with ScriptedEndpoint(script(finish("Nothing."))) as endpoint:
        house = make_house(mosquitto, extra=f'{OPERATED}senders = ["me"]\n{endpoint_table(endpoint.url)}').start()
        with house.client("stranger") as stranger, house.client() as client, house.client("op") as operator:
            wait_online(client)
            for place, (what, leaf, keys) in enumerate(ALL):
                reply = stranger.ask(what, {"id": f"s{place}", **keys}, leaf)
                assert code_of(reply) == "policy_denied" and "senders" in str(reply.error), what
            assert look(client).ok and look(operator).ok
        assert questions(endpoint) == []


def test_a_tool_is_open_only_to_its_callers_in_calls_and_in_tasks(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    with ScriptedEndpoint(script(call("ring"), finish("It rang."))) as endpoint:
        access = f'{OPERATED}callers = {{ring = ["bob"], rnig = ["bob"]}}\n{endpoint_table(endpoint.url)}'
        house = make_house(mosquitto, extra=access).start()
        with house.client("bob") as bob, house.client() as client:
            wait_online(client)
            assert code_of(client.ask("call", {}, "ring")) == "policy_denied"
            assert look(client).ok
            client.submit({"id": "t1", "goal": "Ring."})
            assert client.watch("t1", None).done == [] and house.ledger("ring") == []
            assert b"ring" not in questions(endpoint)[0].replace(b"string", b""), "it is not even offered"
            assert bob.ask("call", {}, "ring").ok
            assert "access.callers.rnig: there is no such tool" in client.status_asked().faults
        assert len(house.ledger("ring")) == 1


def test_an_operator_sees_and_cancels_what_others_sent_and_nobody_else_does(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    release = threading.Event()
    with ScriptedEndpoint(lambda request: Held(finish("Done."), release)) as endpoint:
        house = make_house(mosquitto, extra=OPERATED + endpoint_table(endpoint.url)).start()
        with house.client() as client, house.client("op") as operator, house.client("you") as other:
            wait_online(client)
            client.submit({"id": "t1", "goal": "Look."})
            wait_for_questions(endpoint, 1)
            for what in ("task", "journal"):
                assert code_of(other.ask("query", {"who": "me", "task": "t1"}, what)) == "policy_denied"
                assert operator.ask("query", {"who": "me", "task": "t1"}, what).ok
            listed = operator.data("query", {"who": "me"}, "tasks")
            assert isinstance(listed, list) and [row["id"] for row in listed] == ["t1"]
            assert operator.data("query", {}, "tasks") == []
            cancel: dict[str, object] = {"who": "me", "task": "t1", "do": "cancel"}
            assert code_of(other.ask("ctl", cancel)) == "policy_denied"
            assert operator.data("ctl", cancel) == {"task": "t1"}
            ended = client.watch("t1", None)
        release.set()
        assert ended.outcome == "cancelled" and "by op" in str(ended.reason)
