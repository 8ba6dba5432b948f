"""An operator's halt: what runs is ended, and nothing acts by any way in until somebody lifts it."""

import json
import os
import signal
import threading
from pathlib import Path

import pytest

from rea_edge.client import Client
from rea_edge.emulated.endpoint import Held, ScriptedEndpoint
from rea_edge.wire import NodeStatus, Reply
from tests import disks
from tests.brokers import AnyBroker, Mosquitto, wait_until
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import TOOLS, House, call, endpoint_table, finish, script, wait_for_questions, wait_online
from tests.e2e.test_approval import asked, reply_to, say

OPERATED = '[access]\nidentity = "broker"\noperators = ["op", "ann"]\n'
LONG = '''

def work(word):
    note(f"{word}-{os.getpid()}")
    time.sleep(40)
    return word


@tool(effect="once", device="saw", timeout_s=60.0)
def saw() -> str:
    """Saw for a while."""
    return work("saw")


@tool(effect="idempotent", device="heat", timeout_s=60.0)
def heat() -> str:
    """Heat for a while."""
    return work("heat")
'''


def with_long_tools(house: House) -> House:
    (house.folder / "devices.py").write_text(TOOLS + LONG)
    return house


def pid_of(house: House, word: str, count: int = 1) -> int:
    """Of the newest tool process that has noted this word, once there are so many."""
    wait_until(lambda: len(house.ledger(f"{word}-")) >= count, f"{word} runs", 30)
    return int(house.ledger(f"{word}-")[-1].split()[0].rpartition("-")[2])


def gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def code_of(reply: Reply) -> str | None:
    return None if reply.error is None else reply.error.code


def refused(reply: Reply) -> bool:
    return code_of(reply) == "policy_denied" and "the node is halted by op" in str(reply.error)


def halted(operator: Client) -> dict[str, object]:
    said = operator.data("node", {"do": "halt"})
    assert isinstance(said, dict)
    return said


def wait_degraded(client: Client) -> NodeStatus:
    wait_until(lambda: client.status().state == "degraded", "it says degraded", 30)
    return client.status()


def test_a_halt_ends_a_call_under_way_at_once_and_its_outcome_is_that_of_its_effect(
    broker: AnyBroker, make_house: MakeHouse
) -> None:
    house = with_long_tools(make_house(broker, extra=OPERATED)).start()
    with house.client() as client, house.client("op") as operator, house.client("ann") as ann:
        wait_online(client)
        client.send("call", {"id": "c1"}, "saw")
        ann.send("call", {"id": "c2"}, "heat")
        pids = [pid_of(house, "saw"), pid_of(house, "heat")]
        said = halted(operator)
        assert said["ended"] == 2 and "the node is halted by op" in str(said["halted"])
        wait_until(lambda: all(map(gone, pids)), "what ran is gone, by its pid", 10)
        sawn, heated = reply_to(client, "c1"), reply_to(ann, "c2")
        assert code_of(sawn) == "outcome_unknown", "nobody knows how far a saw has come"
        assert code_of(heated) == "tool_failed" and "halted by op" in str(heated.error), heated
        found = wait_degraded(client)
        assert "an operator has released" in found.faults[0] and "halted by op" in found.faults[0]
        assert refused(client.ask("call", {"args": {"percent": 3}}, "turn"))
        assert client.ask("call", {"args": {"name": "tank"}}, "look").ok, "people can still look"
        assert halted(ann) == {"halted": said["halted"], "ended": 0}, "who was first has halted it"
        assert ann.data("node", {"do": "release"}) == {"lost": None, "halted": said["halted"]}
        wait_online(client)
        assert client.ask("call", {"args": {"percent": 3}}, "turn").ok
    assert len(house.ledger("saw")) == len(house.ledger("heat")) == len(house.ledger("turn")) == 1


def test_a_halt_outlives_kill_9_and_is_lifted_on_the_device(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    house = make_house(mosquitto, extra=OPERATED).start()
    with house.client(silent_s=30) as client, house.client("op", silent_s=30) as operator:
        wait_online(client)
        halted(operator)
        house.kill()
        house.start()
        wait_degraded(client)
        assert refused(client.ask("call", {}, "ring"))
        house.stop()
        lifted = house.run_command("release", "--config", str(house.config), "--json")
        assert lifted.returncode == 0, lifted
        told = json.loads(lifted.stdout)
        assert (told["lost"], told["released"]) == (None, True) and "halted by op" in told["halted"]
        house.start()
        wait_online(client)
        assert client.ask("call", {}, "ring").ok
    assert len(house.ledger("ring")) == 1


def test_only_an_operator_halts_a_node_and_the_command_line_does(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    house = make_house(mosquitto, extra=OPERATED).start()
    with house.client() as client:
        wait_online(client)
        assert code_of(client.ask("node", {"do": "halt"})) == "policy_denied"
        stranger = house.run_command("halt")
        assert stranger.returncode == 1 and "policy_denied" in stranger.stderr
        assert client.ask("call", {"args": {"percent": 1}}, "turn").ok
        done = house.run_command("halt", who="op")
        assert done.returncode == 0 and "halted by op" in done.stdout and "0 calls" in done.stdout, done
        assert done.stdout.endswith(f"rea-edge release --node {house.node}\n")
        assert refused(client.ask("call", {"args": {"percent": 2}}, "turn"))
        lifted = house.run_command("release", "--node", house.node, who="op")
        assert lifted.returncode == 0 and "halted by op" in lifted.stdout, lifted
        assert client.ask("call", {"args": {"percent": 3}}, "turn").ok
    assert len(house.ledger("turn")) == 2


def test_a_task_under_way_goes_on_without_acting(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    more = threading.Event()
    answers = script(
        call("turn", percent=1),
        call("ring"),
        call("look", name="tank"),
        finish("The bell is held back; the tank is at 71.5."),
    )
    with ScriptedEndpoint(lambda request: Held(answers(request), more)) as endpoint:
        house = make_house(mosquitto, extra=OPERATED + endpoint_table(endpoint.url)).start()
        with house.client() as client, house.client("op") as operator:
            wait_online(client)
            task_id, _ = client.submit({"goal": "Turn, ring and look."})
            wait_for_questions(endpoint, 1)
            halted(operator)
            more.set()
            state = client.watch(task_id, None)
            assert [done.result for done in state.done] == ["denied", "denied", "ok"], state
            assert state.outcome == "achieved" and house.ledger() == []


@pytest.mark.parametrize("before", ["ask", "held", "in doubt"])
def test_nothing_acts_while_halted_by_whatever_way_it_comes(
    mosquitto: Mosquitto, make_house: MakeHouse, before: str
) -> None:
    """Direct calls, a task, and what had begun before: a call that waits for a yes, a run whose question was under way,
    a call that a kill cut off and that would run again."""
    more = threading.Event()
    answers = script(call("turn", percent=1), call("ring"), finish("Nothing was allowed."))
    gate = '[gate.turn]\nconfirm = "task"\napprovers = ["bob"]\n' if before == "ask" else ""
    with ScriptedEndpoint(lambda request: Held(answers(request), more)) as endpoint:
        house = with_long_tools(make_house(mosquitto, extra=OPERATED + gate + endpoint_table(endpoint.url))).start()
        with (
            house.client(silent_s=30) as client,
            house.client("op", silent_s=30) as operator,
            house.client("bob", silent_s=30, approver=True) as bob,
        ):
            wait_online(client)
            if before == "ask":
                more.set()
            task_id, _ = client.submit({"goal": "Turn and ring."})
            waiting = asked(bob) if before == "ask" else []
            if before == "held":
                wait_for_questions(endpoint, 1)
            if before == "in doubt":
                client.send("call", {"id": "c9"}, "heat")
                pid_of(house, "heat")
                house.kill()
                # Halted before its lane takes it up: the daemon is started only when the order is in its queue.
                operator.send("node", {"id": "h1", "do": "halt"})
                house.start()
                wait_degraded(client)
            else:
                halted(operator)
            known = len(house.ledger())
            for one in waiting:
                assert say(bob, one).ok, "what a person says is written down"
            house.kill()
            house.start()
            more.set()
            wait_degraded(client)
            state = client.watch(task_id, None)
            assert {done.result for done in state.done} == {"denied"}, state
            for tool, args in (("ring", {}), ("turn", {"percent": 2}), ("saw", {})):
                assert refused(client.ask("call", {"args": args}, tool))
            fresh, _ = client.submit({"goal": "Turn and ring, once more."})
            assert {done.result for done in client.watch(fresh, None).done} == {"denied"}
            acts = house.ledger()[known:]
    assert before == "in doubt" or acts == [], "nothing has started"
    assert not [one for one in acts if one.startswith(("ring", "turn", "saw"))], acts


def test_a_stop_while_halted_is_in_order_and_the_halt_stays(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    house = make_house(mosquitto, extra=OPERATED).start()
    with house.client(silent_s=30) as client, house.client("op", silent_s=30) as operator:
        wait_online(client)
        halted(operator)
        assert house.stop() == 0
        house.start()
        wait_degraded(client)
        assert refused(client.ask("call", {}, "ring"))
        os.kill(house.pid, signal.SIGTERM)
        assert house.wait(40) == 0


def test_a_halt_on_a_full_disk_holds_and_is_written_once_there_is_room(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    house = with_long_tools(make_house(mosquitto, extra=OPERATED))
    with (
        disks.full(house.folder / "state") as disk,
        house.client(silent_s=30) as client,
        house.client("op", silent_s=30) as operator,
    ):
        house.start()
        wait_online(client)
        client.send("call", {"id": "c1"}, "heat")
        pid = pid_of(house, "heat")
        disk.fill()
        wait_until(lambda: code_of(client.ask("call", {}, "ring")) == "store_failed", "it meets the full disk", 30)
        said = operator.ask("node", {"do": "halt"})
        assert code_of(said) == "store_failed" and "halted, but a restart would forget it" in str(said.error), said
        wait_until(lambda: gone(pid), "what ran is gone all the same", 10)
        assert "not on disk" in wait_degraded(client).faults[0]
        disk.free()
        wait_until(lambda: "not on disk" not in client.status_asked().faults[0], "it is written", 30)
        house.kill()
        house.start()
        wait_degraded(client)
        assert refused(client.ask("call", {}, "ring"))
        house.kill()
