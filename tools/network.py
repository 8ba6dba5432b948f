"""How the board is connected: named hosts that answer, its addresses, its way out, its Wi-Fi. It changes nothing.

$REA_TOOL_NETWORK_HOSTS names the hosts: "broker=10.0.0.2:1883,router=192.168.1.1,shop=[2001:db8::1]:443"; with a port
a TCP connection is tried, without one an ICMP echo, which the kernel allows to groups in `net.ipv4.ping_group_range`.
Nothing else is ever reached. $REA_TOOL_NETWORK_ROOT stands for / of a simulated board: its /proc/net is read there, and
a file `addresses` with lines such as "eth0 192.168.1.7/24" stands for the kernel's own answer.
"""

import os
import re
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypedDict

from rea_edge.tool import tool

MOST_HOSTS = 32
MOST_ADDRESSES = 32
REACH_S = 3.0
HOST = re.compile(
    r"([a-z][a-z0-9_]{0,30})=(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9](?:[A-Za-z0-9.-]{0,200})))(?::([0-9]{1,5}))?"
)


class Place(NamedTuple):
    address: str
    port: int | None


def hosts_of(said: str) -> dict[str, Place]:
    """The hosts by name. Raises ValueError, which is a fault of this file that names the setting."""
    found: dict[str, Place] = {}
    for part in filter(None, (part.strip() for part in said.split(","))):
        match = HOST.fullmatch(part)
        port = int(match[4]) if match and match[4] else None
        if match is None or match[1] in found or not (port is None or 0 < port < 65536):
            raise ValueError(f"REA_TOOL_NETWORK_HOSTS: {part!r} is not name=host or name=host:port, each name once")
        found[match[1]] = Place(match[2] or match[3], port)
    if len(found) > MOST_HOSTS:
        raise ValueError(f"REA_TOOL_NETWORK_HOSTS: {len(found)} hosts; at most {MOST_HOSTS}")
    return found


HOSTS = hosts_of(os.environ.get("REA_TOOL_NETWORK_HOSTS", ""))
FIRST = next(iter(HOSTS), "router")

if TYPE_CHECKING:
    Host = str
else:  # an enumeration where it can be one: a model then cannot miss it
    Host = Literal[tuple(HOSTS)] if HOSTS else str

Why = Literal["answered", "refused", "silent", "no_route", "unknown_name"]
Strength = Literal["none", "weak", "fair", "good"]


class Reached(TypedDict):
    """`why` "refused": the host answered, that nobody listens there."""

    reachable: bool
    why: Why
    ms: float | None


class Address(TypedDict):
    interface: str
    address: str


class Addresses(TypedDict):
    total: int
    addresses: list[Address]


class Route(TypedDict):
    """`present` without a gateway: a way out without a router, as over a modem."""

    present: bool
    interface: str | None
    gateway: str | None
    metric: int | None


class Wifi(TypedDict):
    """`dbm` is null where there is no Wi-Fi, or it is not connected."""

    strength: Strength
    dbm: int | None


class Unable(Exception):
    """It cannot be found out; the text says what to do."""


@tool(
    effect="read",
    timeout_s=8.0,
    p95_s=REACH_S + 1.0,  # as long as a host that is silent takes
    examples=[
        (f"Is the {FIRST} reachable?", {"host": FIRST}),
        (f"Does the {FIRST} answer?", {"host": FIRST}),
        (f"Ping the {FIRST}.", {"host": FIRST}),
        ("Scan the network.", "cannot"),
    ],
)
def reach_host(host: Host) -> Reached:
    """Find out whether a named host answers, and how fast."""
    if host not in HOSTS:
        known = ", ".join(HOSTS) or 'none: set REA_TOOL_NETWORK_HOSTS="router=192.168.1.1:80" for the daemon'
        raise Unable(f"{host!r} is no host that may be reached; there is {known}")
    place = HOSTS[host]
    try:
        kind, _, _, _, where = socket.getaddrinfo(place.address, place.port or 0, type=socket.SOCK_STREAM)[0]
    except (socket.gaierror, UnicodeError):
        return {"reachable": False, "why": "unknown_name", "ms": None}
    began_s = time.monotonic()
    why = _why(kind, where, ping=place.port is None)
    ms = round((time.monotonic() - began_s) * 1000, 1)
    return {"reachable": why == "answered", "why": why, "ms": ms if why in ("answered", "refused") else None}


@tool(
    effect="read",
    timeout_s=5.0,
    examples=[
        ("Which addresses does the board have?", {}),
        ("What are all IP addresses here?", {}),
        ("List the addresses of every interface.", {}),
    ],
)
def network_addresses() -> Addresses:
    """List all IPv4 and IPv6 addresses of the board, each with its interface."""
    root = _root()
    found = list(_simulated(root) if root else _from_kernel())
    outside = [address for address in found if address["interface"] != "lo"]
    return {"total": len(outside), "addresses": outside[:MOST_ADDRESSES]}


@tool(
    effect="read",
    timeout_s=5.0,
    examples=[
        ("Is there a default route?", {}),
        ("What is the gateway?", {}),
        ("Which interface leads out?", {}),
    ],
)
def network_route() -> Route:
    """Read the board's default route: over which interface and gateway it reaches the world."""
    routes = sorted([*_routes4(), *_routes6()], key=lambda route: route["metric"] or 0)
    return routes[0] if routes else {"present": False, "interface": None, "gateway": None, "metric": None}


@tool(
    effect="read",
    timeout_s=5.0,
    examples=[
        ("How strong is the Wi-Fi?", {}),
        ("Is the wireless signal weak?", {}),
        ("What is the WLAN signal in dBm?", {}),
    ],
)
def wifi_signal() -> Wifi:
    """Read how strong the board's Wi-Fi is, in dBm: -50 is good, below -75 weak."""
    levels = [level for line in _lines("proc/net/wireless")[2:] if (level := _level(line)) is not None]
    if not levels:
        return {"strength": "none", "dbm": None}
    dbm = max(levels)
    return {"strength": "weak" if dbm < -75 else "fair" if dbm < -60 else "good", "dbm": dbm}


# --- reaching


def _why(kind: int, where: tuple[object, ...], *, ping: bool) -> Why:
    try:
        if ping:
            _echo(kind, str(where[0]))
        else:
            with socket.create_connection((str(where[0]), int(str(where[1]))), REACH_S):
                pass
    except ConnectionRefusedError:
        return "refused"
    except TimeoutError:
        return "silent"
    except PermissionError as exc:
        raise Unable("this user may not send ICMP (net.ipv4.ping_group_range): give the host a port") from exc
    except OSError:
        return "no_route"
    return "answered"


def _echo(kind: int, address: str) -> None:
    """One ICMP echo and its answer; the kernel fills in id and checksum and hands us no others. Raises TimeoutError."""
    six = kind == socket.AF_INET6
    protocol = socket.IPPROTO_ICMPV6 if six else socket.IPPROTO_ICMP
    with socket.socket(kind, socket.SOCK_DGRAM, protocol) as ping:
        ping.settimeout(REACH_S)
        ping.connect((address, 0))
        ping.send(struct.pack("!BBHHH", 128 if six else 8, 0, 0, 0, 1) + b"rea-edge")
        ping.recv(1024)


# --- what the kernel tells


def _root() -> Path | None:
    named = os.environ.get("REA_TOOL_NETWORK_ROOT")
    return Path(named) if named else None


def _lines(file: str) -> list[str]:
    """The lines of a kernel file; none where the kernel does not have it."""
    with suppress(OSError):
        return ((_root() or Path("/")) / file).read_text(errors="replace").splitlines()
    return []


def _routes4() -> Iterator[Route]:
    for line in _lines("proc/net/route")[1:]:
        match line.split():
            case [name, "00000000", gateway, flags, _, _, metric, "00000000", *_] if int(flags, 16) & 1:
                address = socket.inet_ntoa(struct.pack("<I", int(gateway, 16)))
                yield _route(name, address if int(flags, 16) & 2 else None, int(metric))


def _routes6() -> Iterator[Route]:
    for line in _lines("proc/net/ipv6_route"):
        match line.split():
            # A reject route of the loopback stands there too, where there is no way out.
            case [target, "00", _, _, gateway, metric, _, _, flags, name] if name != "lo" and int(flags, 16) & 1:
                if not int(target, 16):
                    address = socket.inet_ntop(socket.AF_INET6, bytes.fromhex(gateway))
                    yield _route(name, address if int(flags, 16) & 2 else None, int(metric, 16))


def _route(name: str, gateway: str | None, metric: int) -> Route:
    return {"present": True, "interface": name, "gateway": gateway, "metric": metric}


def _level(line: str) -> int | None:
    """The level of "wlan0: 0000   60.  -50.  -256 ...", where it is one of a connection."""
    match line.split():
        case [name, _, _, level, *_] if name.endswith(":"):
            with suppress(ValueError):
                dbm = int(float(level))
                # Some drivers give it as an unsigned byte.
                dbm = dbm - 256 if dbm > 63 else dbm
                return dbm if -110 <= dbm < 0 else None
    return None


def _simulated(root: Path) -> Iterator[Address]:
    for line in (root / "addresses").read_text().splitlines():
        interface, address = line.split()
        yield {"interface": interface, "address": address}


def _from_kernel() -> Iterator[Address]:
    """Every address by netlink (RTM_GETADDR), as `ip address` does. Numbers are those of linux/rtnetlink.h."""
    names = dict(socket.if_nameindex())
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        kernel.settimeout(REACH_S)
        kernel.bind((0, 0))
        kernel.send(struct.pack("=IHHII4BI", 24, 22, 0x301, 1, 0, 0, 0, 0, 0, 0))
        while True:
            block = kernel.recv(65536)
            for kind, body in _messages(block):
                if kind in (2, 3):  # an error, the end
                    return
                yield from _addressed(body, names)


def _messages(block: bytes) -> Iterator[tuple[int, bytes]]:
    while len(block) >= 16:
        length, kind = struct.unpack_from("=IH", block)
        yield kind, block[16:length]
        block = block[(max(16, length) + 3) & ~3 :]


def _addressed(body: bytes, names: dict[int, str]) -> Iterator[Address]:
    family, bits, _, _, index = struct.unpack_from("=4BI", body)
    inner, found = body[8:], dict[int, bytes]()
    while len(inner) >= 4:
        length, kind = struct.unpack_from("=HH", inner)
        found[kind] = inner[4:length]
        inner = inner[(max(4, length) + 3) & ~3 :]
    # Local (2) is ours where address (1) is the peer's, as on a point-to-point link.
    if address := found.get(2) or found.get(1):
        yield {"interface": names.get(index, "?"), "address": f"{socket.inet_ntop(family, address)}/{bits}"}
