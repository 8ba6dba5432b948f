import os
import shutil
from pathlib import Path

import pytest

from tests.tools.calling import call

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
