"""What began before a reload: it keeps its tools and their host, within the stricter of both configurations."""

import threading

import msgspec
import pytest

from rea_edge.emulated.endpoint import Held, ScriptedEndpoint
from tests.brokers import Mosquitto, wait_until
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import House, call, endpoint_table, finish, questions, script, wait_for_questions, wait_online
from tests.e2e.test_approval import reply_to
from tests.e2e.test_reload import HORN, OPERATED, change_tools, code_of, hosts_of, reloaded
from tests.e2e.test_taint import house_with


def test_what_runs_keeps_its_tools_and_its_host_until_it_has_ended(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    more = threading.Event()
    answers = script(call("look", name="tank"), call("turn", percent=5), finish("The valve is at 5."))
    with ScriptedEndpoint(lambda request: Held(answers(request), more)) as endpoint:
        house = make_house(mosquitto, extra=OPERATED + endpoint_table(endpoint.url))
        house.start()
        with house.client() as client, house.client("op") as operator:
            wait_online(client)
            task_id, _ = client.submit({"goal": "Look, and turn the valve."})
            wait_for_questions(endpoint, 1)
            client.send("call", {"id": "c1", "args": {"seconds": 4.0}}, "doze")
            wait_until(lambda: len(house.ledger("doze")) == 1, "the call is under way", 20)
            old = hosts_of(house)
            change_tools(
                house, ('return {"percent": percent}', 'return {"percent": -1}'), ('"rested"', '"new"'), more=HORN
            )
            reloaded(operator)
            assert len(hosts_of(house)) == 2 and old < hosts_of(house)
            assert client.ask("call", {"args": {"percent": 7}}, "turn").data == {"percent": -1}
            assert reply_to(client, "c1").data == "rested", "a call under way ends on its host"
            more.set()
            state = client.watch(task_id, None)
            assert state.outcome == "achieved" and [one.result for one in state.done] == ["ok", "ok"]
            assert b'"percent\\":5' in questions(endpoint)[-1].replace(b" ", b""), "by the tool it was offered"
            wait_until(lambda: not old & hosts_of(house), "then the host before is gone", 20)


def test_a_run_that_began_before_is_held_to_the_newest_gate_where_that_is_stricter(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    more = threading.Event()
    answers = script(
        call("turn", percent=60),
        call("turn", percent=20),
        call("ring"),
        call("look", name="tank"),
        finish("It is at 20."),
    )
    with ScriptedEndpoint(lambda request: Held(answers(request), more)) as endpoint:
        gates = "[gate.turn]\nranges = {percent = [10, 100]}\n"
        house = make_house(mosquitto, extra=OPERATED + gates + endpoint_table(endpoint.url)).start()
        with house.client() as client, house.client("op") as operator:
            wait_online(client)
            task_id, _ = client.submit({"goal": "Turn it to 60."})
            wait_for_questions(endpoint, 1)
            narrower = gates.replace("[10, 100]", "[0, 50]") + '[gate.ring]\nconfirm = "always"\n'
            house.config.write_text(house.config.read_text().replace(gates, narrower))
            reloaded(operator)
            more.set()
            state = client.watch(task_id, None)
            assert [one.result for one in state.done] == ["denied", "ok", "denied", "ok"], state.done


def test_a_run_that_outlives_many_reloads_gets_the_newest_tools_and_no_more_than_three_hosts_live(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    more = threading.Event()
    answers = script(call("turn", percent=5), finish("The valve is turned."))
    with ScriptedEndpoint(lambda request: Held(answers(request), more)) as endpoint:
        house = make_house(mosquitto, extra=OPERATED + endpoint_table(endpoint.url)).start()
        with house.client() as client, house.client("op") as operator:
            wait_online(client)
            task_id, _ = client.submit({"goal": "Turn the valve."})
            wait_for_questions(endpoint, 1)
            (first,) = hosts_of(house)
            for count, value in enumerate(("percent", "-1", "-2"), 1):
                change_tools(house, (f'return {{"percent": {value}}}', f'return {{"percent": {-count}}}'))
                reloaded(operator)
                if count < 3:  # and keeps the set of tools before the newest in use
                    client.send("call", {"id": f"c{count}", "args": {"seconds": 25.0}}, "doze")
                    wait_for_dozing(house, count)
            wait_until(lambda: first not in hosts_of(house) and len(hosts_of(house)) <= 3, "the first has ended", 20)
            more.set()
            assert client.watch(task_id, None).outcome == "achieved"
            assert b'"percent\\":-3' in questions(endpoint)[-1].replace(b" ", b"")


def wait_for_dozing(house: House, count: int) -> None:
    wait_until(lambda: len(house.ledger("doze")) == count, f"{count} calls are under way", 20)


def test_what_was_asked_for_under_other_parameters_is_checked_again(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    house = make_house(mosquitto, extra=OPERATED).start()
    with house.client() as client, house.client("op") as operator, house.client("ann") as ann:
        wait_online(client)
        for count in range(2):
            client.send("call", {"id": f"c{count}", "args": {"seconds": 4.0}}, "doze")
        wait_for_dozing(house, 2)
        ann.send("call", {"id": "c9", "args": {"percent": 90}}, "turn")
        wait_until(lambda: b'"calls":1' in msgspec.json.encode(client.data("query", {}, "metrics")), "it waits", 20)
        change_tools(house, ("le=100", "le=50"))
        reloaded(operator)
        reply = reply_to(ann, "c9")
        assert code_of(reply) == "policy_denied" and "declared otherwise" in str(reply.error), reply
        assert house.ledger("turn") == []


@pytest.mark.parametrize("mode", ["query", "act"])
def test_a_tool_that_has_become_one_that_acts_is_taken_for_that_by_runs_from_before(
    mosquitto: Mosquitto, make_house: MakeHouse, mode: str
) -> None:
    """In mode query it is refused; in mode act its intent goes to disk, and a kill in the middle leaves it unknown."""
    more = threading.Event()
    answers = script(call("doze", seconds=30), finish("It is as it was."))
    with ScriptedEndpoint(lambda request: Held(answers(request), more)) as endpoint:
        extra = OPERATED + endpoint_table(endpoint.url)
        house = make_house(mosquitto, extra=extra).start()
        with house.client(silent_s=30) as client, house.client("op") as operator:
            wait_online(client)
            task_id, _ = client.submit({"goal": "Sleep.", "mode": mode, "limits": {"steps": 3}})
            wait_for_questions(endpoint, 1)
            change_tools(house, ('effect="read", device="slow"', 'effect="once", device="slow"'))
            reloaded(operator)
            more.set()
            if mode == "act":
                wait_until(lambda: len(house.ledger("doze")) == 1, "it runs", 20)
                house.kill()
                house.start()
            state = client.watch(task_id, None)
            assert [one.result for one in state.done] == ["denied" if mode == "query" else "unknown"]
            assert len(house.ledger("doze")) == (0 if mode == "query" else 1)


def test_a_device_is_used_by_one_call_at_a_time_whatever_set_of_tools_it_comes_from(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    house = make_house(mosquitto, extra=OPERATED)
    change_tools(
        house,
        (
            '    time.sleep(seconds)\n    return {"rang"',
            "    time.sleep(seconds)\n    note('end')\n    return {\"rang\"",
        ),
    )
    house.start()
    with house.client() as client, house.client("op") as operator, house.client("ann") as ann:
        wait_online(client)
        client.send("call", {"id": "c1", "args": {"seconds": 4.0}}, "ring")
        wait_until(lambda: len(house.ledger("ring")) == 1, "it rings", 20)
        change_tools(house, ("Ring the bell.", "Ring the newer bell."))
        reloaded(operator)
        assert ann.ask("call", {"id": "c2", "args": {"seconds": 0.1}}, "ring").ok
        assert reply_to(client, "c1").ok
        assert [line.split()[0] for line in house.ledger()] == ["ring", "end", "ring", "end"]


def test_a_run_that_acted_on_free_text_ceases_to_when_a_reload_says_so(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    more = threading.Event()
    answers = script(call("read_log"), call("ring"), call("turn", percent=5), finish("It rang."))
    with ScriptedEndpoint(lambda request: Held(answers(request), more)) as endpoint:
        trusting = '[task.default]\nuntrusted = "allow"\n'
        house = house_with(make_house, mosquitto, OPERATED + trusting + endpoint_table(endpoint.url))
        with house.client() as client, house.client("op") as operator:
            wait_online(client)
            task_id, _ = client.submit({"goal": "Ring as the log says."})
            wait_for_questions(endpoint, 1)
            house.config.write_text(house.config.read_text().replace(trusting, ""))
            reloaded(operator)
            more.set()
            state = client.watch(task_id, None)
            assert [one.result for one in state.done] == ["ok", "denied", "ok"], state.done
            assert house.ledger("ring") == []
