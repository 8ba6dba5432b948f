"""What a person types, and what comes back: words, JSON, exit codes."""

import json
import shutil

from rea_edge.emulated.endpoint import ScriptedEndpoint
from tests.brokers import Mosquitto
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import call, endpoint_table, finish, script, wait_online


def test_the_commands_of_a_day(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    answers = script(
        json.dumps({"action": "tool", "tool_name": "look", "tool_args": {"name": "tank"}, "thought": "I should look."}),
        call("turn", percent=30),
        finish("The valve is at 30."),
    )
    with ScriptedEndpoint(answers) as endpoint:
        house = make_house(mosquitto, extra=endpoint_table(endpoint.url)).start()
        with house.client() as client:
            wait_online(client)
        assert "online" in house.run_command("status").stdout
        tools = json.loads(house.run_command("tools", "--json").stdout)
        assert [tool["name"] for tool in tools] == ["doze", "fail", "look", "ring", "turn"]

        done = house.run_command("task", "Turn the valve to 30.", "--id", "day1")
        assert done.returncode == 0, done.stderr
        for words in ("step 1", "Thought:", "I should look.", "Action:", "look", "Args:", "Observation:", "71.5"):
            assert words in done.stdout, (words, done.stdout)
        assert done.stdout.rstrip().endswith("The valve is at 30.")
        assert "\x1b" not in done.stdout, "plain when piped"

        told = json.loads(house.run_command("task", "Turn the valve to 30.", "--id", "day1", "--json").stdout)
        assert told["outcome"] == "achieved" and len(house.ledger("turn")) == 1

        shown = house.run_command("show", "day1").stdout
        assert "Observation" in shown and "achieved" in shown
        assert "day1" in house.run_command("tasks").stdout
        assert json.loads(house.run_command("show", "me/day1", "--json").stdout)["goal"] == "Turn the valve to 30."
        for command in ("show", "cancel"):
            denied = house.run_command(command, "you/day1")
            assert denied.returncode == 1 and "policy_denied" in denied.stderr, command

        called = house.run_command("call", "look", "name=pipe")
        assert called.returncode == 0 and json.loads(called.stdout) == {"level": 12.0}
        failed = house.run_command("call", "fail")
        assert failed.returncode == 1 and "no such device" in failed.stdout
        wrong = house.run_command("call", "look", "pipe")
        assert wrong.returncode == 2 and "KEY=VALUE" in wrong.stderr
        assert house.run_command("cancel", "day1").returncode == 1

        copy = house.folder / "copy"
        shutil.copytree(house.folder / "state", copy)
        read = house.run_command("show", "me/day1", "--state", str(copy))
        assert read.returncode == 0 and "Observation" in read.stdout
        assert house.run_command("show", "nobody/day1", "--state", str(copy)).returncode == 1

        checked = house.run_command("check", "--config", str(house.config))
        assert checked.returncode == 0, checked.stdout
        for words in ("configuration", "tool look", "broker", "endpoint"):
            assert words in checked.stdout


def test_a_task_that_is_not_achieved_exits_1_and_says_why(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    gave_up = json.dumps({"action": "give_up", "reason": "There is no such valve."})
    with ScriptedEndpoint(script(gave_up)) as endpoint:
        house = make_house(mosquitto, extra=endpoint_table(endpoint.url)).start()
        with house.client() as client:
            wait_online(client)
        done = house.run_command("task", "Turn the moon.")
        assert done.returncode == 1 and "gave_up" in done.stdout and "no such valve" in done.stdout


def test_a_silent_node_and_an_absent_broker_are_said_plainly(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    house = make_house(mosquitto)
    silent = house.run_command("status")
    assert silent.returncode == 1 and "has not answered" in silent.stderr
    mosquitto.stop()
    absent = house.run_command("call", "look", "name=tank")
    assert absent.returncode == 1 and "cannot be reached" in absent.stderr


def test_usage_errors_exit_2(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    house = make_house(mosquitto)
    assert house.run_command("nonsense").returncode == 2
    assert house.run_command("task").returncode == 2
    assert house.run_command("--version").stdout.startswith("rea-edge 0.")
