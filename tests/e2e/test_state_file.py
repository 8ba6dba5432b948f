"""check --state and export: what a person can learn from a state file, and save of a damaged one."""

import json
import shutil
import subprocess
from pathlib import Path

from rea_edge.emulated.endpoint import ScriptedEndpoint
from tests.brokers import Mosquitto
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import House, call, endpoint_table, finish, script, wait_online

KEY = "sk-0123456789-secret"


def lines(done: "subprocess.CompletedProcess[str]") -> list[dict[str, object]]:
    return [json.loads(line) for line in done.stdout.splitlines()]


def filled_house(make_house: MakeHouse, mosquitto: Mosquitto, endpoint: ScriptedEndpoint) -> House:
    house = make_house(mosquitto)
    key = house.folder / "key"
    key.write_text(KEY)
    table = endpoint_table(endpoint.url).replace("[limits]", f'api_key_file = "{key}"\n[limits]')
    house.config.write_text(house.config.read_text() + table)
    house.start()
    with house.client() as client:
        wait_online(client)
        client.submit({"id": "t1", "goal": f"Look at the tank; the key is {KEY}."})
        assert client.watch("t1", None).outcome == "achieved"
        assert client.ask("call", {"id": "c1", "args": {"name": "pipe"}}, "look").ok
        return house


def test_a_state_is_checked_and_exported_whole_and_when_it_is_damaged(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    with ScriptedEndpoint(script(call("look", name="tank"), finish("It is 71.5."))) as endpoint:
        house = filled_house(make_house, mosquitto, endpoint)
    state = house.folder / "state"
    busy = house.run_command("check", "--state", str(state))
    assert busy.returncode == 75 and f"process {house.pid}" in busy.stderr
    with house.client() as client:
        assert client.ask("call", {"args": {"name": "pipe"}}, "look").ok, "the daemon still has its lock, and goes on"
    assert house.stop() == 0

    whole = house.run_command("check", "--state", str(state))
    assert whole.returncode == 0 and "1 ended tasks" in whole.stdout and "WRONG" not in whole.stdout
    export = house.run_command("export", "--state", str(state), "--config", str(house.config))
    assert (export.returncode, export.stderr) == (0, "")
    told = lines(export)
    assert told[0]["type"] == "state"
    (task,) = [line for line in told if line.get("id") == "t1"]
    assert (task["who"], task["outcome"]) == ("me", "achieved")
    assert task["request"]["goal"] == "Look at the tank; the key is ***."  # type: ignore[index]  # JSON
    kinds = [line["event"]["kind"] for line in told if line["type"] == "event" and line["row"] == task["row"]]  # type: ignore[index]
    assert kinds[0] == "begun" and kinds[-1] == "ended" and len(kinds) == task["seq"]
    assert KEY not in export.stdout

    (state / "state.db").write_bytes(damaged(state / "state.db"))
    wrong = house.run_command("check", "--state", str(state), "--json")
    assert wrong.returncode == 74 and json.loads(wrong.stdout)["wrong"]
    house.start()
    with house.client() as client:
        client.data("query", {}, "status")
        assert house.stop() == 0
    rescued = house.run_command("export", "--state", str(state / "broken-1"), "--config", str(house.config))
    assert rescued.returncode == 74
    assert "it was set aside" in rescued.stderr
    assert [line for line in lines(rescued) if line.get("id") == "t1"], rescued.stderr
    assert all(line.get("carved") for line in lines(rescued)[1:])
    lost = house.run_command("check", "--state", str(state))
    assert lost.returncode == 0 and "lost and not released" in lost.stdout and "broken-1" in lost.stdout


def damaged(file: Path) -> bytes:
    """Its head is gone."""
    content = file.read_bytes()
    return bytes(4096) + content[4096:]


def test_without_a_configuration_it_is_said_that_secrets_are_not_hidden(
    mosquitto: Mosquitto, make_house: MakeHouse, tmp_path: Path
) -> None:
    house = make_house(mosquitto).start()
    with house.client() as client:
        wait_online(client)
    assert house.stop() == 0
    shutil.copy(house.folder / "state" / "state.db", tmp_path / "copy.db")
    done = house.run_command("export", "--state", str(tmp_path / "copy.db"), "--config", str(tmp_path / "none.toml"))
    assert done.returncode == 0 and "none is hidden" in done.stderr
    assert house.run_command("check", "--state", str(tmp_path / "copy.db")).returncode == 0
    missing = house.run_command("check", "--state", str(tmp_path / "nowhere"), "--json")
    assert missing.returncode == 74 and json.loads(missing.stdout)["error"]["code"] == "store_failed"
