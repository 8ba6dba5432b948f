"""What a person types, and what comes back: words, JSON, exit codes."""

import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rea_edge.emulated.endpoint import Fault, ScriptedEndpoint
from tests.brokers import Mosquitto, free_port, wait_until
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import ROOT, House, call, endpoint_table, finish, script, wait_online
from tests.endpoint.servers import raw_server, reply, says


@pytest.mark.parametrize(
    ("url", "words"),
    [
        pytest.param("http://127.0.0.1:9/v1", "connect", id="nobody there"),
        pytest.param("127.0.0.1:9", "http://HOST:PORT/v1", id="no url"),
        pytest.param("{}", "unauthorized", id="a key is wanted"),
    ],
)
def test_a_demo_at_a_server_that_does_not_answer_says_so_at_once(url: str, words: str) -> None:
    with raw_server(says(reply(b"", status="401 Unauthorized"))) as refusing:
        began_s = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "rea_edge", "demo", "--once", "--endpoint", url.format(refusing)],
            cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert time.monotonic() - began_s < 10.0
    assert done.returncode in (1, 78) and words in done.stderr and len(done.stderr.splitlines()) == 1


def test_a_demo_whose_server_goes_away_ends_with_the_first_task_that_finds_none() -> None:
    with ScriptedEndpoint(lambda request: Fault("status", status=401)) as server:
        done = subprocess.run(
            [sys.executable, "-m", "rea_edge", "demo", "--once", "--protocol", "json", "--endpoint", server.url],
            cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == 1 and done.stdout.count("Task: ") == 1
    assert "unauthorized" in done.stdout and "left out" in done.stdout


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


PROGRAMS = """
[restart]
description = "Restart it."
effect = "once"
command = ["no-such-program", "{unit}"]
[restart.parameters]
required = ["unit"]
properties.unit = {enum = ["nginx", "ssh"]}
"""


def test_check_explains_each_tool_and_finds_a_program_that_is_not_there(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    house = make_house(mosquitto, extra="[gate.turn]\nranges = {percent = [0, 80]}")
    settings = house.config.read_text()
    checked = house.run_command("check", "--config", str(house.config))
    assert checked.returncode == 0
    assert (
        "  percent: a whole number from 0 to 80 (the tool itself takes a whole number from 0 to 100)\n"
        in checked.stdout
    )
    (house.folder / "programs.toml").write_text(PROGRAMS)
    house.config.write_text(settings.replace('devices.py"]', f'devices.py", "{house.folder / "programs.toml"}"]'))
    checked = house.run_command("check", "--config", str(house.config), "--json")
    assert checked.returncode == 78
    tools = {one["tool"]["name"]: one for one in json.loads(checked.stdout) if "tool" in one}
    assert not tools["restart"]["ok"] and "is nowhere in PATH" in tools["restart"]["words"]
    assert tools["restart"]["tool"]["arguments"] == [{"name": "unit", "takes": 'one of "nginx", "ssh"'}]
    assert tools["turn"]["ok"] and tools["turn"]["tool"]["risk"].startswith("it acts")


MISNAMED = """
[access]
identity = "broker"
callers = {rnig = ["bob"]}

[gate.rnig]
rate = "6/minute"

[gate.turn]
ranges = {percnt = [0, 80]}
requires = ["lok"]
only_if = [{tool = "look", args = {nam = "tank"}, path = "level", op = "<", value = 60}]

[task.fix]
tools = ["look", "rnig"]
done_when = [{tool = "lok", path = "level", op = "<", value = 60}, {tool = "look", args = {name = "tnak"}, equals = 1}]
"""


def test_check_names_what_settings_call_by_a_name_that_no_tool_has(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    house = make_house(mosquitto, extra=MISNAMED)
    checked = house.run_command("check", "--config", str(house.config))
    assert checked.returncode == 78
    wrong = [line for line in checked.stdout.splitlines() if line.startswith("WRONG")]
    assert wrong == [
        f"WRONG tool names: {words}"
        for words in (
            "access.callers.rnig: there is no such tool",
            "task.fix.tools: there is no tool 'rnig'",
            "task.fix.done_when: there is no tool 'lok'",
            "task.fix.done_when[1].args.name: look does not take 'tnak': "
            '`name` must be one of "pipe", "tank", got "tnak"',
            "gate.rnig: there is no tool of this name",
            "gate.turn.ranges.percnt: turn has no such parameter; it has percent",
            "gate.turn.requires: there is no tool 'lok'",
            "gate.turn.only_if.args.nam: look has no such parameter; it has name",
            "gate.turn.only_if.args: look needs 'name'",
        )
    ]
    house.start()
    with house.client() as client:
        wait_online(client)
        told = client.status().faults
        assert set(told) == {line.removeprefix("WRONG tool names: ") for line in wrong}, "the daemon says the same"


def test_a_task_that_is_not_achieved_exits_1_and_says_why(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    gave_up = json.dumps({"action": "give_up", "reason": "There is no such valve."})
    with ScriptedEndpoint(script(gave_up)) as endpoint:
        house = make_house(mosquitto, extra=endpoint_table(endpoint.url)).start()
        with house.client() as client:
            wait_online(client)
        done = house.run_command("task", "Turn the moon.")
        assert done.returncode == 1 and "gave_up" in done.stdout and "no such valve" in done.stdout


def test_a_silent_node_and_an_absent_broker_are_said_plainly(
    mosquitto: Mosquitto, make_house: MakeHouse, tmp_path: Path
) -> None:
    nowhere = House(tmp_path, f"mqtt://127.0.0.1:{free_port()}")
    with ThreadPoolExecutor(1) as pool:  # each takes the ten seconds that a person is made to wait
        trying = pool.submit(nowhere.run_command, "call", "look", "name=tank")
        silent = make_house(mosquitto).run_command("status")
        absent = trying.result()
    assert (
        silent.returncode == 1 and "has not answered" in silent.stderr and "no status of such a node" in silent.stderr
    )
    assert absent.returncode == 1 and "cannot be reached" in absent.stderr
    assert absent.stderr.count("\n") == 1, "one line for a person, no log"


def test_with_json_an_error_is_json_too(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    house = make_house(mosquitto).start()
    with house.client() as client:
        wait_online(client)
    for words in (("show", "nothing"), ("cancel", "nothing"), ("task", "x", "--type", "nothing")):
        done = house.run_command(*words, "--json")
        told = json.loads(done.stdout)
        assert done.returncode == 1 and told["ok"] is False, done
        assert told["error"]["code"] in {"unknown_task", "endpoint_unavailable"} and told["error"]["message"]
    none = house.run_command("task", "x", "--steps", "0")
    assert none.returncode == 1 and "limits.steps" in none.stderr
    called = json.loads(house.run_command("call", "look", "name=moon", "--json").stdout)
    assert called["ok"] is False and called["error"]["code"] == "bad_request"


def test_status_is_asked_of_the_node_and_not_of_what_the_broker_kept(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    house = make_house(mosquitto).start()
    with house.client() as client:
        wait_online(client)
        kept = client.status().up_ms
        wait_until(
            lambda: json.loads(house.run_command("status", "--json").stdout)["up_ms"] > kept + 1000, "a newer one"
        )
        assert client.status().up_ms < kept + 1000, "what the broker has is older; it may be said twice at the start"


@pytest.mark.slow
def test_a_task_without_news_says_so_and_what_the_node_says_is_wrong(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    house = make_house(mosquitto, extra=endpoint_table("http://127.0.0.1:9")).start()
    with house.client() as client:
        wait_online(client)
        task_id, _ = client.submit({"goal": "Turn the valve to 30."})
        heard: list[list[str]] = []

        def quiet(seconds: float, faults: list[str]) -> None:
            heard.append(faults)
            client.send("ctl", {"id": "x1", "task": task_id, "do": "cancel"})

        assert client.watch(task_id, None, quiet).outcome == "cancelled"
    assert heard and "endpoint scripted" in heard[0][0]


def test_run_takes_its_file_in_both_spellings(tmp_path: Path) -> None:
    for words in (("--config=nowhere.toml",), ("--config", "nowhere.toml")):
        done = subprocess.run(
            [sys.executable, "-m", "rea_edge", "run", *words], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert (
            done.returncode == 78
            and done.stderr == f"rea-edge: {tmp_path}/nowhere.toml: cannot be read: No such file or directory\n"
        )


def test_a_node_that_is_gone_is_shown_as_offline_and_not_as_up(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    house = make_house(mosquitto).start()
    with house.client() as client:
        wait_online(client)
    house.stop()
    gone = house.run_command("status")
    assert gone.returncode == 1 and "n1 is offline" in gone.stdout and "up " not in gone.stdout


def test_usage_errors_exit_2(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    house = make_house(mosquitto)
    assert house.run_command("nonsense").returncode == 2
    assert house.run_command("task").returncode == 2
    for words in (
        ("task", " "),
        ("task", "x", "--id", "a b"),
        ("cancel", "a b"),
        ("show", "a b"),
        ("show", "me/"),
        ("call", "look/up"),
        ("run", "--config=a", "--config=b"),
    ):
        done = house.run_command(*words)
        assert done.returncode == 2 and "Traceback" not in done.stderr, (words, done.stderr)
    much = house.run_command("task", "x" * 100_000)
    assert much.returncode == 1 and "too_large" in much.stderr
    assert house.run_command("--version").stdout.startswith("rea-edge 0.")
