"""Services as systemd tells them, against a systemd that is played and, the same tests, a real one."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools import systemds
from tests.tools.calling import ROOT, RUN, TOOLS, call, refusal, results, start

UNITS = "sleeper,wrong,errand.service,slow,masked,nosuch,other:look"


@pytest.fixture(scope="module", params=["played", "real"])
def settings(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder = tmp_path_factory.mktemp(request.param)
    try:
        with (systemds.played if request.param == "played" else systemds.real)(folder) as named:
            yield {**named, "REA_TOOL_SERVICES_UNITS": UNITS}
    except systemds.Absent as exc:
        pytest.skip(f"no systemd can be started here: {exc}")


@pytest.fixture
def played(tmp_path: Path) -> Iterator[dict[str, str]]:
    with systemds.played(tmp_path) as named:
        yield {**named, "REA_TOOL_SERVICES_UNITS": UNITS}


def on(settings: dict[str, str], name: str, unit: str) -> dict[str, object]:
    found = call("services.py", name, {"unit": unit}, **settings)
    assert isinstance(found, dict)
    return found


def refused(settings: dict[str, str], name: str, unit: str) -> str:
    return refusal("services.py", name, {"unit": unit}, **settings)


def test_a_service_is_started_seen_running_and_stopped(settings: dict[str, str]) -> None:
    assert on(settings, "service_start", "sleeper") == {"unit": "sleeper", "state": "active"}
    found = on(settings, "service_status", "sleeper")
    seconds = found.pop("for_s")
    assert isinstance(seconds, int) and 0 <= seconds < 30
    assert isinstance(found.pop("memory_mib"), float | None)
    assert found == {"state": "active", "running": True, "at_boot": "static", "restarts": 0}
    assert on(settings, "service_stop", "sleeper")["state"] == "inactive"
    assert on(settings, "service_status", "sleeper") == {
        "state": "inactive", "running": False, "at_boot": "static", "restarts": 0, "for_s": None, "memory_mib": None,
    }  # fmt: skip


def test_a_restart_begins_the_service_anew(settings: dict[str, str]) -> None:
    assert on(settings, "service_restart", "sleeper")["state"] == "active"
    assert on(settings, "service_restart", "sleeper")["state"] == "active"
    assert on(settings, "service_stop", "sleeper")["state"] == "inactive"


def test_a_service_that_fails_to_start_says_so_in_systemds_words(settings: dict[str, str]) -> None:
    assert "Job for wrong.service failed" in refused(settings, "service_start", "wrong")
    assert on(settings, "service_status", "wrong")["state"] == "failed"


def test_of_what_runs_once_and_ends_nobody_says_that_it_is_not_running(settings: dict[str, str]) -> None:
    assert on(settings, "service_start", "errand.service")["state"] == "inactive"
    assert on(settings, "service_status", "errand.service")["running"] is None


def test_a_unit_that_is_not_there_or_masked_is_named(settings: dict[str, str]) -> None:
    for name in ("service_status", "service_start", "service_stop", "service_restart"):
        assert refused(settings, name, "nosuch") == (
            "Failed: nosuch.service cannot be used: its unit file is not-found"
        )
    assert "its unit file is masked" in refused(settings, "service_start", "masked")
    assert on(settings, "service_status", "masked")["at_boot"] == "masked"


def test_a_start_that_takes_too_long_is_left_to_systemd(settings: dict[str, str]) -> None:
    said = refused(settings, "service_start", "slow")
    assert said == "Failed: slow.service is not there yet after 8 s; systemd goes on: look at its status"
    on(settings, "service_stop", "slow")


@pytest.mark.parametrize("unit", ["other", "mosquitto", "-h", "--help", "sleeper.service", "*", ""])
def test_what_may_not_be_named_or_only_looked_at_is_never_touched(settings: dict[str, str], unit: str) -> None:
    for name in ("service_start", "service_stop", "service_restart"):
        assert "is no unit that may be named here; there is sleeper, wrong, errand.service, " in refused(
            settings, name, unit
        )


def test_the_log_gives_time_level_and_text_of_the_latest_lines(played: dict[str, str], tmp_path: Path) -> None:
    lines = [
        {"__REALTIME_TIMESTAMP": "1700000000123456", "PRIORITY": "6", "MESSAGE": "first", "__CURSOR": "s=1"},
        {"__REALTIME_TIMESTAMP": "1700000001000000", "PRIORITY": "3", "MESSAGE": "x" * 400},
        {"__REALTIME_TIMESTAMP": "1700000002000000", "PRIORITY": "9", "MESSAGE": [104, 195, 182, 255]},
        {"__REALTIME_TIMESTAMP": "1700000003000000", "MESSAGE": None},
    ]
    (tmp_path / "units.json").write_text(json.dumps({"journal": {"sleeper.service": lines}}))
    found = call("services.py", "service_log", {"unit": "sleeper", "lines": 3}, **played)
    assert found == {
        "lines": [
            {"at": "2023-11-14T22:13:21Z", "level": "err", "text": "x" * 299 + "…"},
            {"at": "2023-11-14T22:13:22Z", "level": "info", "text": "hö\ufffd"},
            {"at": "2023-11-14T22:13:23Z", "level": "info", "text": "(too large to show)"},
        ]
    }


def test_a_log_that_may_not_be_read_is_an_error_and_an_empty_one_is_not(played: dict[str, str], tmp_path: Path) -> None:
    assert on(played, "service_log", "sleeper") == {"lines": []}
    (tmp_path / "units.json").write_text(json.dumps({"journal": {"unreadable": True}}))
    said = refused(played, "service_log", "sleeper")
    assert "insufficient permissions" in said and "systemd-journal" in said


@pytest.mark.skipif(shutil.which("journalctl") is None, reason="needs journalctl")
def test_the_real_journalctl_takes_the_same_words(played: dict[str, str], tmp_path: Path) -> None:
    program = tmp_path / "real"
    program.write_text(f'#!/bin/sh\nexec journalctl --directory {tmp_path} "$@"\n')
    program.chmod(0o755)
    settings = {**played, "REA_TOOL_SERVICES_JOURNALCTL": str(program)}
    assert on(settings, "service_log", "sleeper") == {"lines": []}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for a control group")
def test_the_nodes_own_unit_is_looked_at_and_never_stopped(played: dict[str, str]) -> None:
    with systemds.own_control_group() as (group, _):
        (group / "sleeper.service").mkdir()
        inside = f'echo $$ > {group}/sleeper.service/cgroup.procs; exec "$@"'
        for name, words in (("service_status", '"state": "inactive"'), ("service_stop", "is this node itself")):
            calls = json.dumps([(name, {"unit": "sleeper"})])
            command = ["sh", "-c", inside, "sh", sys.executable, "-c", RUN, str(TOOLS / "services.py"), calls]
            clean = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **played}
            done = subprocess.run(command, env=clean, capture_output=True, text=True, timeout=30, check=False)
            assert words in done.stdout + done.stderr


def test_a_program_that_is_not_there_is_named(played: dict[str, str]) -> None:
    settings = {**played, "REA_TOOL_SERVICES_SYSTEMCTL": "/nowhere/systemctl"}
    said = refused(settings, "service_status", "sleeper")
    assert said.startswith("Failed: /nowhere/systemctl cannot be run: No such file") and "REA_TOOL_SERVICES" in said


def test_without_units_each_call_says_what_to_set() -> None:
    for name in ("service_status", "service_start", "service_log"):
        assert 'set REA_TOOL_SERVICES_UNITS="' in refusal("services.py", name, {"unit": "nginx"})


@pytest.mark.parametrize("setting", ["-nginx", "nginx,nginx", "a b", "nginx:stop;", "$(reboot)", "a/b"])
def test_a_setting_that_is_wrong_is_named_when_the_file_loads(setting: str) -> None:
    said = refusal("services.py", "service_status", {"unit": "nginx"}, REA_TOOL_SERVICES_UNITS=setting)
    assert "ValueError: REA_TOOL_SERVICES_UNITS: " in said


def test_calls_side_by_side_give_each_its_own(settings: dict[str, str]) -> None:
    names = ("service_status", "service_stop")
    started = [start("services.py", [(name, {"unit": "sleeper"})], **settings) for name in names]
    assert [len(results(process)) for process in started] == [1, 1]
