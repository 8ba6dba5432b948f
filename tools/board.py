"""The board this node runs on, as the kernel tells it in /proc and /sys: read only, no subprocess.

Hardware that is absent gives an empty list or null, never an error: a virtual machine has no thermal zones.
"""

import fcntl
import os
import socket
import struct
from pathlib import Path
from typing import TypedDict

from rea_edge.tool import tool

MOST_DISKS = 16
MOST_INTERFACES = 32
SIOCGIFADDR = 0x8915  # asks the kernel for the IPv4 address of an interface


class Zone(TypedDict):
    name: str
    celsius: float


class Temperatures(TypedDict):
    hottest: float | None
    zones: list[Zone]


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
    text: str


class Interface(TypedDict):
    name: str
    state: str
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
    seconds = float(Path("/proc/uptime").read_text().split()[0])
    days, minutes = int(seconds // 86_400), int(seconds // 60)
    return {"hours": round(seconds / 3600, 2), "text": f"{days} d {minutes // 60 % 24} h {minutes % 60} min"}


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


def _sorted(folder: str, pattern: str) -> list[Path]:
    return sorted(Path(folder).glob(pattern), key=lambda path: (len(path.name), path.name))


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
    return {"name": _text(folder / "type") or folder.name, "celsius": round(int(millidegrees) / 1000, 1)}


def _meminfo() -> dict[str, int]:
    pairs = (line.split(":", 1) for line in (_text(Path("/proc/meminfo")) or "").splitlines() if ":" in line)
    return {key: int(rest.split()[0]) for key, rest in pairs if rest.split() and rest.split()[0].isdecimal()}


def _mounts() -> list[tuple[str, str]]:
    """Mount point and kind of each file system that stands on a device, each device once, the root first."""
    seen: dict[str, tuple[str, str]] = {}
    for line in (_text(Path("/proc/self/mounts")) or "").splitlines():
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
    return {
        "name": folder.name,
        "state": _text(folder / "operstate") or "unknown",
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
    for line in (_text(Path("/proc/net/if_inet6")) or "").splitlines():
        digits, _, _, scope, _, name = line.split()
        if name == interface and scope == "00":
            return socket.inet_ntop(socket.AF_INET6, bytes.fromhex(digits))
    return None


def _percent(part: int, whole: int) -> float:
    return round(100.0 * part / whole, 1) if whole else 0.0
