import os
import shutil
from pathlib import Path

import pytest

from tests.tools.calling import call, refusal

NAMES = ("board_temperature", "board_load", "board_memory", "board_disks", "board_uptime", "board_network")


def read(name: str) -> dict[str, object]:
    found = call("board.py", name, {})
    assert isinstance(found, dict)
    return found


def test_the_uptime_is_the_kernels() -> None:
    hours = read("board_uptime")["hours"]
    assert isinstance(hours, float)
    assert abs(hours * 3600 - float(Path("/proc/uptime").read_text().split()[0])) < 60


def test_the_memory_is_the_kernels() -> None:
    found = read("board_memory")
    assert found["total_mib"] == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
    available, percent = found["available_mib"], found["used_percent"]
    assert isinstance(available, int) and isinstance(percent, float)
    assert available > 0 and 0 <= percent <= 100


def test_the_root_disk_is_listed_with_its_size() -> None:
    disks = read("board_disks")["disks"]
    assert isinstance(disks, list)
    (root,) = [disk for disk in disks if disk["mount"] == "/"]
    assert root["total_mib"] == shutil.disk_usage("/").total >> 20


def test_the_load_counts_the_cores() -> None:
    assert read("board_load")["cores"] == os.cpu_count()


def test_every_network_interface_but_loopback_is_listed() -> None:
    interfaces = read("board_network")["interfaces"]
    assert isinstance(interfaces, list)
    there = set(os.listdir("/sys/class/net")) - {"lo"}
    assert {interface["name"] for interface in interfaces} <= there
    assert len(interfaces) == min(len(there), 32)


def test_absent_thermal_zones_are_an_empty_answer() -> None:
    found = read("board_temperature")
    zones = found["zones"]
    assert isinstance(zones, list)
    if zones:
        assert found["hottest"] == max(zone["celsius"] for zone in zones)
    else:
        assert found == {"hottest": None, "zones": []}


@pytest.mark.parametrize("name", NAMES)
def test_a_reading_is_small_enough_for_a_model(name: str) -> None:
    assert len(str(read(name))) < 4000


# --- sensors one by one, of a simulated board; a real one is read by the same tests above


@pytest.fixture
def board(tmp_path: Path) -> Path:
    files = {
        "sys/class/hwmon/hwmon0/name": "coretemp",
        "sys/class/hwmon/hwmon0/temp1_input": "45500",
        "sys/class/hwmon/hwmon0/temp1_label": "Package id 0",
        "sys/class/hwmon/hwmon0/fan1_input": "1210",
        "sys/class/hwmon/hwmon1/name": "ina219",
        "sys/class/hwmon/hwmon1/in1_input": "12043",
        "sys/class/hwmon/hwmon1/curr1_input": "-250",
        "sys/class/hwmon/hwmon1/power1_input": "3010000",
        "sys/class/hwmon/hwmon1/intrusion0_alarm": "0",
        "sys/class/hwmon/hwmon2/name": "ina219",
        "sys/class/hwmon/hwmon2/in1_input": "5000",
        "sys/class/hwmon/hwmon10/name": "ina219",
        "sys/class/hwmon/hwmon10/in1_input": "3300",
        "sys/class/hwmon/hwmon11/name": "w1_slave_temp",
        "sys/class/hwmon/hwmon11/temp1_input": "1",
        "sys/bus/w1/devices/28-0316a2794fff/temperature": "-1937",
        "sys/bus/w1/devices/w1_bus_master1/w1_master_slaves": "28-0316a2794fff",
        "sys/bus/iio/devices/iio:device0/name": "dht11@4",
        "sys/bus/iio/devices/iio:device0/in_temp_input": "21000",
        "sys/bus/iio/devices/iio:device0/in_humidityrelative_input": "48000",
        "sys/bus/iio/devices/iio:device0/in_pressure_input": "101.325",
        "sys/class/thermal/thermal_zone0/type": "cpu-thermal",
        "sys/class/thermal/thermal_zone0/temp": "51234",
        "proc/uptime": "3600.5 7000.0",
    }
    for name, text in files.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")
    return tmp_path


def sensor(board: Path, name: str, named: str = "") -> object:
    settings = {"REA_TOOL_BOARD_ROOT": str(board), "REA_TOOL_BOARD_SENSORS": named}
    return call("board.py", "board_sensor", {"name": name}, **settings)


@pytest.mark.parametrize(
    ("name", "value", "unit"),
    [
        ("coretemp_package_id_0", 45.5, "C"),
        ("coretemp_fan1", 1210.0, "rpm"),
        ("ina219_in1", 12.043, "V"),
        ("ina219_in1_no2", 5.0, "V"),
        ("ina219_in1_no3", 3.3, "V"),
        ("ina219_curr1", -0.25, "A"),
        ("ina219_power1", 3.01, "W"),
        ("28-0316a2794fff", -1.937, "C"),
        ("dht11_4_temp", 21.0, "C"),
        ("dht11_4_humidityrelative", 48.0, "%"),
        ("dht11_4_pressure", 1013.25, "hPa"),
    ],
)
def test_a_sensor_is_read_by_chip_and_label_in_its_unit(board: Path, name: str, value: float, unit: str) -> None:
    assert sensor(board, name) == {"value": value, "unit": unit}


def test_a_sensor_may_have_a_name_of_the_owners(board: Path) -> None:
    assert sensor(board, "tank", "tank=28-0316a2794fff") == {"value": -1.937, "unit": "C"}


def test_a_sensor_that_is_gone_or_silent_says_so(board: Path) -> None:
    settings = {"REA_TOOL_BOARD_ROOT": str(board), "REA_TOOL_BOARD_SENSORS": "tank=28-000000000000"}
    said = refusal("board.py", "board_sensor", {"name": "tank"}, **settings)
    assert "the sensor 28-000000000000 is not there; there is coretemp_fan1, " in said
    assert "w1_slave" not in said, "a thermometer is there once, by its id"
    (board / "sys/bus/w1/devices/28-0316a2794fff/temperature").write_text("")
    said = refusal("board.py", "board_sensor", {"name": "28-0316a2794fff"}, **settings)
    assert "does not answer" in said and "reads ''" in said


def test_a_board_without_sensors_has_no_such_tool(tmp_path: Path) -> None:
    said = refusal("board.py", "board_sensor", {"name": "x"}, REA_TOOL_BOARD_ROOT=str(tmp_path))
    assert "there is no tool board_sensor" in said


@pytest.mark.parametrize("setting", ["tank", "Tank=28-0", "a=b,a=c", "a=../x"])
def test_a_name_that_is_wrong_is_named_when_the_file_loads(setting: str) -> None:
    said = refusal("board.py", "board_uptime", {}, REA_TOOL_BOARD_SENSORS=setting)
    assert "ValueError: REA_TOOL_BOARD_SENSORS: " in said


def test_all_else_is_read_below_the_same_root(board: Path) -> None:
    settings = {"REA_TOOL_BOARD_ROOT": str(board)}
    assert call("board.py", "board_temperature", {}, **settings) == {
        "hottest": 51.2,
        "zones": [{"name": "cpu", "celsius": 51.2}],
    }
    assert call("board.py", "board_uptime", {}, **settings) == {"hours": 1.0}
    interfaces = call("board.py", "board_network", {}, **settings)
    assert interfaces == {"up": 0, "interfaces": []}
