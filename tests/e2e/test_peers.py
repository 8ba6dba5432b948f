"""Tools of another node: a person and a model use them by way of the first, and the chain of who asks goes with a call."""

import os
import signal
from pathlib import Path

import pytest

from rea_edge.emulated.endpoint import ScriptedEndpoint
from tests.brokers import AnyBroker, Mosquitto, wait_until
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import call, endpoint_table, finish, questions, script, wait_online
from tests.e2e.pair import EFFECTS, Pair, code_of, reply_to, result


def test_a_tool_of_another_node_is_called_as_if_it_were_here(broker: AnyBroker, make_house: MakeHouse) -> None:
    pair = Pair(make_house, broker, near="[gate.far__turn]\nranges = {percent = [0, 50]}\n").begin()
    with pair.near.client() as client:
        assert result(client, "look", name="tank").data == {"level": 71.5}
        assert code_of(result(client, "turn", percent=60)) == "policy_denied", "the gate of this node holds for it"
        assert result(client, "turn", percent=30).data == {"percent": 30}
        assert result(client, "ring").data == {"rang": True}
        assert [line.split()[0] for line in pair.far.ledger()] == ["turn", "ring"] and pair.near.ledger() == []
        assert code_of(result(client, "look", name="moon")) == "bad_request"
        assert code_of(result(client, "fail")) == "bad_request", "it was not named"


def test_a_model_uses_the_tools_of_another_node(broker: AnyBroker, make_house: MakeHouse) -> None:
    answers = (
        call("far__turn", percent=20),
        call("far__ring"),
        call("far__look", name="tank"),
        finish("The tank is at 71.5."),
    )
    with ScriptedEndpoint(script(*answers)) as endpoint:
        pair = Pair(make_house, broker, near=endpoint_table(endpoint.url)).begin()
        with pair.near.client() as client:
            task_id, _ = client.submit({"goal": "Turn the valve, ring, look at the tank."})
            ended = client.watch(task_id, None)
        assert (ended.outcome, [one.result for one in ended.done]) == ("achieved", ["ok"] * 3), ended
        assert [line.split()[0] for line in pair.far.ledger()] == ["turn", "ring"]
        opening = questions(endpoint)[0].decode()
        assert "far__ring" in opening and "far-1 says of it" in opening


def test_that_a_model_has_read_free_text_is_known_to_the_peer_whose_tool_it_calls(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    """The near node lets it; at the far one nobody can say yes to what a text may have put into its mind."""
    answers = (call("far__doze", seconds=0), call("far__ring"), call("far__look", name="tank"), finish("It is done."))
    with ScriptedEndpoint(script(*answers)) as endpoint:
        near = endpoint_table(endpoint.url) + '\n[task.default]\nuntrusted = "allow"\n'
        pair = Pair(make_house, mosquitto, near=near).begin()
        with pair.near.client() as client:
            task_id, _ = client.submit({"goal": "Rest, then ring."})
            ended = client.watch(task_id, None)
        assert [(one.tool, one.result) for one in ended.done] == [
            ("far__doze", "ok"),
            ("far__ring", "denied"),
            ("far__look", "ok"),
        ]
        assert ended.tainted_by is not None and pair.far.ledger("ring") == []


def test_a_call_that_has_come_by_a_node_is_refused_there(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    """Each has the other as a peer: what near asks of far, which would ask near, ends at far."""
    back = '[peer.back]\nnode = "near-1"\ntools = ["look"]\neffect = {look = "read"}\n'
    pair = Pair(make_house, mosquitto, far=back)
    config = pair.near.config
    config.write_text(config.read_text().replace('"look", ', '"back__look", "look", '))
    pair.near.start()
    with pair.near.client() as client:
        client.status()
    said = pair.far.run_command("peers", "accept", "back", "--config", str(pair.far.config))
    assert said.returncode == 0, said.stderr
    pair.far.start()
    with pair.far.client() as client:
        assert client.ask("call", {"args": {"name": "tank"}}, "back__look", wait_s=30.0).data == {"level": 71.5}
        for via, code in ((["near-1"], "policy_denied"), (["bob", "near-1"], "policy_denied"), (["bob"], None)):
            reply = client.ask("call", {"args": {"name": "tank"}, "via": via}, "back__look", wait_s=30.0)
            assert code_of(reply) == code, reply
        own = client.ask("call", {"args": {"name": "tank"}, "via": ["far-1"]}, "look", wait_s=30.0)
        assert code_of(own) == "policy_denied"
    pair.accept()
    with pair.near.client() as client:
        reply = client.ask("call", {"args": {"name": "tank"}}, "far__back__look", wait_s=30.0)
        assert reply.error is not None and "loop" in reply.error.message, reply


ASKING = '[access]\nidentity = "broker"\n[gate.ring]\nconfirm = "always"\napprovers = ["me", "near-1", "bob"]\n'


def test_nobody_on_whose_behalf_a_call_came_may_say_yes_to_it_at_the_peer(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    pair = Pair(make_house, mosquitto, far=ASKING, more=EFFECTS + "timeout_s = {ring = 60.0}\n").begin()
    with (
        pair.near.client() as client,
        pair.far.client("me", approver=True) as asker,
        pair.far.client("near-1", approver=True) as node,
        pair.far.client("bob", approver=True) as bob,
    ):
        client.send("call", {"id": "c1", "args": {}}, "far__ring")
        wait_until(lambda: len(bob.asks()) == 1, "it waits for a person", 30.0)
        (one,) = bob.asks()
        assert (one.who, one.via) == ("near-1", ["me"])
        journal = node.data("query", {"task": one.task}, "journal")
        assert isinstance(journal, dict) and journal["via"] == ["me"]
        for stranger in (asker, node):
            said = stranger.ask("say", {"request": one.request, "answer": "yes", "ask_hash": one.ask_hash})
            assert code_of(said) == "policy_denied"
        assert pair.far.ledger() == []
        assert bob.ask("say", {"request": one.request, "answer": "yes", "ask_hash": one.ask_hash}).ok
        assert reply_to(client, "c1").data == {"rang": True}
        assert pair.far.ledger() == [f"ring {one.request}"]
        client.send("call", {"id": "c2", "args": {}}, "far__ring")
        wait_until(lambda: len(bob.asks()) == 1, "the next one waits", 30.0)
        (two,) = bob.asks()
        assert bob.ask("say", {"request": two.request, "answer": "no", "ask_hash": two.ask_hash}).ok
        denied = reply_to(client, "c2")
        assert code_of(denied) == "policy_denied" and "bob has said no" in str(denied.error)


KEY = "5e" * 32


@pytest.mark.parametrize("signs", [pytest.param(True, id="with its key"), pytest.param(False, id="without")])
def test_a_node_with_a_key_at_its_peer_calls_only_what_it_signs(
    mosquitto: Mosquitto, make_house: MakeHouse, tmp_path: Path, signs: bool
) -> None:
    file = tmp_path / "key"
    file.write_text(KEY)
    file.chmod(0o600)
    far = f'[access]\nidentity = "keys"\nkeys = {{near-1 = "{file}"}}\n'
    more = EFFECTS + "timeout_s = {ring = 4.0}\n" + (f'signing_key_file = "{file}"\n' if signs else "")
    pair = Pair(make_house, mosquitto, far=far, more=more)
    pair.far.start()
    wait_until(lambda: pair.peers()["state"] == "online", "the far one is there", 30.0)
    pair.accept()
    pair.near.start()
    with pair.near.client() as client:
        wait_online(client)
        reply = result(client, "ring", seconds=3.5 if signs else 0.0)
        assert reply.ok == signs, reply
        assert len(pair.far.ledger("ring")) == signs


def test_a_reload_takes_up_peers_and_lets_go_of_them(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    pair = Pair(make_house, mosquitto)
    whole = pair.near.config.read_text()
    without = whole[: whole.index("[peer.far]")]
    pair.near.config.write_text(without)
    pair.far.start()
    pair.near.start()
    with pair.near.client() as client, pair.far.client() as there:
        wait_online(client)
        wait_online(there)
        assert code_of(result(client, "ring")) == "bad_request", "it knows no peer"
        pair.near.config.write_text(whole)
        pair.accept()
        os.kill(pair.near.pid, signal.SIGHUP)
        wait_until(lambda: result(client, "look", name="tank").ok, "its tools are here", 30.0)
        assert result(client, "ring").ok
        pair.near.config.write_text(without)
        os.kill(pair.near.pid, signal.SIGHUP)
        wait_until(lambda: code_of(result(client, "ring")) == "bad_request", "they are gone", 30.0)
        assert client.status_asked().faults == []
