import json
import os
import time
from pathlib import Path

import pytest

from tests.tools.calling import call, results, start


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "new folder" / "boiler.json"


def room(file: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads(file.read_text())
    return found


def act(file: Path, tool: str, request: str = "rabc-1", /, **args: object) -> object:
    return call("boiler.py", tool, dict(args), REA_TOOL_BOILER_FILE=str(file), REA_REQUEST_ID=request)


def aged(file: Path, seconds: float) -> None:
    """Let time pass in the room by moving its last moment back."""
    was = room(file)
    at = was["at"]
    assert isinstance(at, float)
    file.write_text(json.dumps({**was, "at": at - seconds}))


def value(file: Path, name: str) -> float:
    reading = act(file, "read_sensor", name=name)
    assert isinstance(reading, dict)
    return float(reading["value"])


def test_a_new_room_is_hot_enough_to_need_its_fan(file: Path) -> None:
    assert act(file, "read_sensor", name="boiler") == {"value": 72.0, "unit": "C"}
    assert act(file, "read_sensor", name="pressure") == {"value": 1.9, "unit": "bar"}


@pytest.mark.parametrize(
    ("tool", "args", "key", "kept"),
    [
        ("set_pump", {"state": "on"}, "pump", "on"),
        ("set_fan", {"state": "on"}, "fan", "on"),
        ("set_valve", {"percent": 85}, "valve", 85),
    ],
)
def test_an_act_is_in_the_file_with_its_request_id(
    file: Path, tool: str, args: dict[str, object], key: str, kept: object
) -> None:
    assert act(file, tool, "rxyz-7", **args) == args
    found = room(file)
    assert found[key] == kept and found["count"] == {tool: 1}
    journal = found["journal"]
    assert isinstance(journal, list) and len(journal) == 1
    entry = journal[0]
    assert (entry["tool"], entry["args"], entry["request_id"]) == (tool, args, "rxyz-7")
    assert abs(entry["at"] - time.time()) < 30


def test_reading_leaves_no_effect(file: Path) -> None:
    act(file, "read_sensor", name="room")
    assert room(file)["journal"] == [] and room(file)["count"] == {}


def test_the_fan_cools_the_boiler_as_time_passes(file: Path) -> None:
    act(file, "set_fan", state="on")
    aged(file, 120)
    cooler = value(file, "boiler")
    assert 50 < cooler < 65
    act(file, "set_fan", state="off")
    aged(file, 600)
    assert value(file, "boiler") > cooler + 5


def test_the_open_valve_warms_the_room(file: Path) -> None:
    act(file, "set_valve", percent=100)
    aged(file, 3600)
    assert value(file, "room") > 30


def test_a_clock_that_was_set_back_changes_nothing(file: Path) -> None:
    act(file, "set_fan", state="on")
    aged(file, -100_000)
    assert value(file, "boiler") == 72.0


def test_acts_side_by_side_are_all_counted(file: Path) -> None:
    calls: list[tuple[str, dict[str, object]]] = [("sound_alarm", {"seconds": 1})] * 20
    environment = {"REA_TOOL_BOILER_FILE": str(file), "REA_REQUEST_ID": "r-1"}
    for process in [start("boiler.py", calls, **environment) for _ in range(3)]:
        assert len(results(process)) == 20
    assert room(file)["count"] == {"sound_alarm": 60}


def test_a_killed_act_never_leaves_half_a_file(file: Path) -> None:
    act(file, "set_valve", percent=1)
    process = start("boiler.py", [("set_valve", {"percent": 2})] * 1500, REA_TOOL_BOILER_FILE=str(file))
    assert process.stdout is not None
    process.stdout.readline()
    process.kill()
    process.wait()
    process.stdout.close()
    assert room(file)["valve"] == 2
    assert act(file, "set_valve", percent=3) == {"percent": 3}


def test_the_journal_keeps_the_latest_and_counts_all(file: Path) -> None:
    calls: list[tuple[str, dict[str, object]]] = [("sound_alarm", {"seconds": 1 + at % 60}) for at in range(230)]
    results(start("boiler.py", calls, REA_TOOL_BOILER_FILE=str(file)))
    found = room(file)
    assert found["count"] == {"sound_alarm": 230}
    assert isinstance(found["journal"], list) and len(found["journal"]) == 200


def test_without_a_named_file_the_room_is_in_the_state_folder(tmp_path: Path) -> None:
    call("boiler.py", "set_pump", {"state": "on"}, REA_STATE_DIR=str(tmp_path))
    assert sorted(os.listdir(tmp_path)) == ["boiler.json", "boiler.json.lock"]
