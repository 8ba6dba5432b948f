"""The board this node runs on, as the kernel tells it in /proc and /sys: read only, no subprocess.

Hardware that is absent gives an empty list or null, never an error: a virtual machine has no thermal zones. Sensors that
the kernel has when this file loads can be read one by one: hwmon (by chip and label), 1-wire thermometers on a GPIO
(by id), and IIO (a DHT22 on a GPIO, a BME280); one that is plugged in later is there after the next start.
$REA_TOOL_BOARD_SENSORS="tank=28-0316a2794ff,case=nct6775_systin" gives them names of your own. $REA_TOOL_BOARD_ROOT
stands for / of a simulated board: its /proc and /sys are read there.
"""

import fcntl
import os
import re
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypedDict, get_args

from rea_edge.tool import tool

MOST_DISKS = 16
MOST_INTERFACES = 32
MOST_SENSORS = 48
SIOCGIFADDR = 0x8915  # asks the kernel for the IPv4 address of an interface
ROOT = Path(os.environ.get("REA_TOOL_BOARD_ROOT", "/"))

# Words from a list where any text would do: these mislead no model, and call for no person's yes before an act.
Part = Literal["cpu", "gpu", "pkg", "soc", "core", "ddr", "nvme", "bat", "wifi", "pmic", "acpi", "board", "other"]
LinkState = Literal["up", "dormant", "testing", "notpresent", "lowerlayerdown", "down", "unknown"]
Unit = Literal["C", "%", "V", "A", "W", "rpm", "hPa"]
HWMON: dict[str, tuple[float, Unit]] = {  # what the kernel's number is divided by
    "temp": (1e3, "C"), "humidity": (1e3, "%"), "in": (1e3, "V"), "curr": (1e3, "A"), "power": (1e6, "W"), "fan": (1, "rpm"),
}  # fmt: skip
IIO: dict[str, tuple[float, Unit]] = {"temp": (1e3, "C"), "humidityrelative": (1e3, "%"), "pressure": (0.1, "hPa")}


class Sensor(NamedTuple):
    """A file of the kernel, what its number is divided by, and what it is then."""

    file: Path
    divisor: float
    unit: Unit


class Missing(Exception):
    """A sensor that is not there, or does not answer; the text says which are."""


class Zone(TypedDict):
    name: Part
    celsius: float


class Temperatures(TypedDict):
    hottest: float | None
    zones: list[Zone]


class Reading(TypedDict):
    value: float
    unit: Unit


class Load(TypedDict):
    one_minute: float
    five_minutes: float
    fifteen_minutes: float
    cores: int
    percent: float


class Memory(TypedDict):
    total_mib: int
    available_mib: int
    used_percent: float
    swap_used_mib: int


class Disk(TypedDict):
    mount: str
    kind: str
    total_mib: int
    free_mib: int
    used_percent: float


class Disks(TypedDict):
    fullest_percent: float | None
    disks: list[Disk]


class Uptime(TypedDict):
    hours: float


class Interface(TypedDict):
    name: str
    state: LinkState
    address: str | None
    received_mib: int
    sent_mib: int


class Interfaces(TypedDict):
    up: int
    interfaces: list[Interface]


@tool(
    effect="read",
    timeout_s=5.0,
    examples=[
        ("How hot is the board?", {}),
        ("What is the CPU temperature?", {}),
        ("Is the processor too warm?", {}),
    ],
)
def board_temperature() -> Temperatures:
    """Read the temperatures of the board's thermal zones in C."""
    zones = [zone for folder in _sorted("/sys/class/thermal", "thermal_zone*") if (zone := _zone(folder)) is not None]
    return {"hottest": max((zone["celsius"] for zone in zones), default=None), "zones": zones}


@tool(
    effect="read",
    timeout_s=5.0,
    examples=[
        ("How busy is the board?", {}),
        ("What is the load?", {}),
        ("Is the CPU overloaded?", {}),
    ],
)
def board_load() -> Load:
    """Read how busy the processor is: load averages, number of cores, load of one minute in percent of the cores."""
    one, five, fifteen = os.getloadavg()
    cores = os.cpu_count() or 1
    return {
        "one_minute": round(one, 2),
        "five_minutes": round(five, 2),
        "fifteen_minutes": round(fifteen, 2),
        "cores": cores,
        "percent": round(100.0 * one / cores, 1),
    }


@tool(
    effect="read",
    timeout_s=5.0,
    examples=[
        ("How much memory is free?", {}),
        ("How much RAM is used?", {}),
        ("Is the board short of memory?", {}),
    ],
)
def board_memory() -> Memory:
    """Read how much memory the board has and how much of it is available."""
    kib = _meminfo()
    total, available = kib.get("MemTotal", 0), kib.get("MemAvailable", kib.get("MemFree", 0))
    return {
        "total_mib": total // 1024,
        "available_mib": available // 1024,
        "used_percent": _percent(total - available, total),
        "swap_used_mib": (kib.get("SwapTotal", 0) - kib.get("SwapFree", 0)) // 1024,
    }


@tool(
    effect="read",
    timeout_s=5.0,
    examples=[
        ("How full is the disk?", {}),
        ("How much disk space is left?", {}),
        ("Is there room on the SD card?", {}),
    ],
)
def board_disks() -> Disks:
    """Read how full each mounted disk is."""
    disks = [disk for mount, kind in _mounts() if (disk := _disk(mount, kind)) is not None][:MOST_DISKS]
    return {"fullest_percent": max((disk["used_percent"] for disk in disks), default=None), "disks": disks}


@tool(
    effect="read",
    timeout_s=5.0,
    examples=[
        ("How long has the board been up?", {}),
        ("When was the last reboot?", {}),
        ("What is the uptime?", {}),
    ],
)
def board_uptime() -> Uptime:
    """Read how long the board has been running since it was started."""
    return {"hours": round(float(_at("/proc/uptime").read_text().split()[0]) / 3600, 2)}


@tool(
    effect="read",
    timeout_s=5.0,
    examples=[
        ("Is the network up?", {}),
        ("What is the IP address of the board?", {}),
        ("Which network interfaces are there?", {}),
    ],
)
def board_network() -> Interfaces:
    """Read the network interfaces: whether each is up, its address, and how much it has received and sent."""
    interfaces = [_interface(folder) for folder in _sorted("/sys/class/net", "*") if folder.name != "lo"]
    kept = interfaces[:MOST_INTERFACES]
    return {"up": sum(interface["state"] == "up" for interface in kept), "interfaces": kept}


# --- reading what may be absent


def _at(path: str) -> Path:
    return ROOT / path.lstrip("/")


def _sorted(folder: str, pattern: str) -> list[Path]:
    return sorted(_at(folder).glob(pattern), key=lambda path: (len(path.name), path.name))


def _text(path: Path) -> str | None:
    """The text of a kernel file, or None: zones that sleep and links that are down refuse to be read."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return None


def _number(path: Path) -> int:
    text = _text(path)
    return int(text) if text and text.lstrip("-").isdecimal() else 0


def _zone(folder: Path) -> Zone | None:
    millidegrees = _text(folder / "temp")
    if millidegrees is None or not millidegrees.lstrip("-").isdecimal():
        return None
    said = (_text(folder / "type") or "").lower()
    part: Part = next((part for part in get_args(Part) if part in said), "other")
    return {"name": part, "celsius": round(int(millidegrees) / 1000, 1)}


def _meminfo() -> dict[str, int]:
    pairs = (line.split(":", 1) for line in (_text(_at("/proc/meminfo")) or "").splitlines() if ":" in line)
    return {key: int(rest.split()[0]) for key, rest in pairs if rest.split() and rest.split()[0].isdecimal()}


def _mounts() -> list[tuple[str, str]]:
    """Mount point and kind of each file system that stands on a device, each device once, the root first."""
    seen: dict[str, tuple[str, str]] = {}
    for line in (_text(_at("/proc/self/mounts")) or "").splitlines():
        device, mount, kind, *_ = line.split()
        if device.startswith("/dev/") or mount == "/":
            seen.setdefault(device, (_unescaped(mount), kind))
    return sorted(seen.values(), key=lambda pair: pair[0])


def _unescaped(mount: str) -> str:
    # The kernel writes blanks and backslashes of a path as octal escapes.
    for octal, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        mount = mount.replace(octal, char)
    return mount


def _disk(mount: str, kind: str) -> Disk | None:
    try:
        found = os.statvfs(mount)
    except OSError:
        return None
    total, free = found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize
    if total == 0:
        return None
    return {
        "mount": mount,
        "kind": kind,
        "total_mib": total >> 20,
        "free_mib": free >> 20,
        "used_percent": _percent(total - free, total),
    }


def _interface(folder: Path) -> Interface:
    said = _text(folder / "operstate")
    return {
        "name": folder.name,
        "state": next((state for state in get_args(LinkState) if state == said), "unknown"),
        "address": _address(folder.name),
        "received_mib": _number(folder / "statistics" / "rx_bytes") >> 20,
        "sent_mib": _number(folder / "statistics" / "tx_bytes") >> 20,
    }


def _address(interface: str) -> str | None:
    """The IPv4 address, else a global IPv6 address, else None."""
    return _ipv4(interface) or _ipv6(interface)


def _ipv4(interface: str) -> str | None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        try:
            answer = fcntl.ioctl(any_socket, SIOCGIFADDR, struct.pack("256s", interface.encode()[:15]))
        except OSError:
            return None
    return socket.inet_ntoa(answer[20:24])


def _ipv6(interface: str) -> str | None:
    for line in (_text(_at("/proc/net/if_inet6")) or "").splitlines():
        digits, _, _, scope, _, name = line.split()
        if name == interface and scope == "00":
            return socket.inet_ntop(socket.AF_INET6, bytes.fromhex(digits))
    return None


def _percent(part: int, whole: int) -> float:
    return round(100.0 * part / whole, 1) if whole else 0.0


# --- sensors one by one


def sensors_found() -> dict[str, Sensor]:
    """The sensors of the board by chip and label, in the words of a tool's argument."""
    found: dict[str, Sensor] = {}
    for name, sensor in [*_hwmon(), *_one_wire(), *_iio()]:
        plain = re.sub(r"[^a-z0-9-]+", "_", name.lower()).strip("_") or "sensor"
        while plain in found:  # two chips of one kind
            head, _, number = plain.rpartition("_no")
            plain = f"{head}_no{int(number) + 1}" if head and number.isdecimal() else f"{plain}_no2"
        found[plain] = sensor
    return found


def names_of(said: str) -> dict[str, str]:
    """What the settings call a sensor. Raises ValueError, which is a fault of this file that names the setting."""
    found: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in said.split(","))):
        match = re.fullmatch(r"([a-z][a-z0-9_]{0,30})=([a-z0-9_-]{1,80})", part)
        if match is None or match[1] in found:
            raise ValueError(f"REA_TOOL_BOARD_SENSORS: {part!r} is not name=sensor, each name once")
        found[match[1]] = match[2]
    return found


def _hwmon() -> Iterator[tuple[str, Sensor]]:
    for folder in _sorted("/sys/class/hwmon", "hwmon*"):
        chip = _text(folder / "name") or folder.name
        for file in sorted(folder.glob("*_input")):
            what = file.name.removesuffix("_input")
            kind = HWMON.get(what.rstrip("0123456789"))
            if kind is not None and chip != "w1_slave_temp":  # those are found by their ids
                yield f"{chip}_{_text(folder / f'{what}_label') or what}", Sensor(file, *kind)


def _one_wire() -> Iterator[tuple[str, Sensor]]:
    for folder in _sorted("/sys/bus/w1/devices", "??-????????????"):
        if (folder / "temperature").exists():
            yield folder.name, Sensor(folder / "temperature", 1e3, "C")


def _iio() -> Iterator[tuple[str, Sensor]]:
    for folder in _sorted("/sys/bus/iio/devices", "iio:device*"):
        for what, kind in IIO.items():
            if (folder / f"in_{what}_input").exists():
                yield f"{_text(folder / 'name') or 'iio'}_{what}", Sensor(folder / f"in_{what}_input", *kind)


NAMED = names_of(os.environ.get("REA_TOOL_BOARD_SENSORS", ""))
NAMES = tuple(dict.fromkeys([*NAMED, *sensors_found()]))[:MOST_SENSORS]

if TYPE_CHECKING:
    Name = str
elif NAMES:
    Name = Literal[NAMES]

if NAMES:  # a board without sensors has no such tool

    @tool(
        effect="read",
        timeout_s=5.0,
        examples=[
            (f"What does the sensor {NAMES[0]} say?", {"name": NAMES[0]}),
            (f"Read the sensor {NAMES[-1]}.", {"name": NAMES[-1]}),
            (f"Show me {NAMES[0]}.", {"name": NAMES[0]}),
        ],
    )
    def board_sensor(name: Name) -> Reading:
        """Read one sensor of the board: a temperature, humidity, voltage, current, power, pressure or fan speed."""
        found = sensors_found()
        sensor = found.get(NAMED.get(name, name))
        if sensor is None:
            raise Missing(f"the sensor {NAMED.get(name, name)} is not there; there is {', '.join(found) or 'none'}")
        said = _text(sensor.file)
        try:
            return {"value": round(float(said or "") / sensor.divisor, 3), "unit": sensor.unit}
        except ValueError as exc:
            raise Missing(f"the sensor {name} does not answer: {sensor.file} reads {said!r}") from exc
