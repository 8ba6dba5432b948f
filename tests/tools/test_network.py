"""Reachability against real sockets, addresses and routes against a real kernel's and a simulated board's."""

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools.calling import ROOT, RUN, TOOLS, call, refusal

ROUTE = """Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
wlan0\t00000000\t0101A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0
eth0\t00000000\tFE01A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0
eth0\t0001A8C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0
"""
ROUTE6 = f"""{"0" * 32} 00 {"0" * 32} 00 fe800000000000000000000000000001 00000400 00000001 00000000 00450003     eth0
{"0" * 32} 00 {"0" * 32} 00 {"0" * 32} ffffffff 00000001 00000000 00200200       lo
"""
WIRELESS = """Inter-| sta-|   Quality        |   Discarded packets               | Missed | WE
 face | tus | link level noise |  nwid  crypt   frag  retry   misc | beacon | 22
 wlan0: 0000   {link}  {level}  -256        0      0      0      0      0        0
"""


def board(folder: Path, files: dict[str, str]) -> dict[str, str]:
    (folder / "proc/net").mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    return {"REA_TOOL_NETWORK_ROOT": str(folder)}


@pytest.fixture
def listener() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def reach(host: str, **settings: str) -> dict[str, object]:
    found = call("network.py", "reach_host", {"host": host}, **settings)
    assert isinstance(found, dict)
    return found


def test_who_listens_answers_in_little_time(listener: int) -> None:
    found = reach("box", REA_TOOL_NETWORK_HOSTS=f"box=127.0.0.1:{listener}")
    ms = found.pop("ms")
    assert found == {"reachable": True, "why": "answered"}
    assert isinstance(ms, float) and 0 <= ms < 3000


def test_a_port_that_nobody_listens_at_is_refused_and_not_reachable() -> None:
    with socket.socket() as bound:  # it is taken, and nobody listens
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        found = reach("box", REA_TOOL_NETWORK_HOSTS=f"box=127.0.0.1:{port}")
    assert (found["reachable"], found["why"]) == (False, "refused")


def test_a_listener_that_takes_nobody_in_is_silent() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        waiting = []
        try:
            for _ in range(3):  # more than fit: further ones get no answer
                one = socket.socket()
                one.setblocking(False)
                waiting.append(one)
                one.connect_ex(full.getsockname())
            found = reach("box", REA_TOOL_NETWORK_HOSTS=f"box=127.0.0.1:{full.getsockname()[1]}")
        finally:
            for one in waiting:
                one.close()
    assert found == {"reachable": False, "why": "silent", "ms": None}


def test_a_name_that_nobody_knows_is_said_as_that() -> None:
    assert reach("box", REA_TOOL_NETWORK_HOSTS="box=nowhere.invalid:80")["why"] == "unknown_name"


@pytest.mark.parametrize("address", ["127.0.0.1", "[::1]"])
def test_without_a_port_a_host_is_pinged_or_it_says_what_forbids_it(address: str) -> None:
    settings = {"REA_TOOL_NETWORK_HOSTS": f"box={address}"}
    low, high = map(int, Path("/proc/sys/net/ipv4/ping_group_range").read_text().split())
    if low <= os.getegid() <= high:
        assert reach("box", **settings)["reachable"] is True
    else:
        assert "net.ipv4.ping_group_range" in refusal("network.py", "reach_host", {"host": "box"}, **settings)


def test_only_named_hosts_are_reached_and_without_any_it_says_what_to_set() -> None:
    said = refusal("network.py", "reach_host", {"host": "127.0.0.1"}, REA_TOOL_NETWORK_HOSTS="a=1.2.3.4, b=c.d:5")
    assert said == "Unable: '127.0.0.1' is no host that may be reached; there is a, b"
    assert "set REA_TOOL_NETWORK_HOSTS=" in refusal("network.py", "reach_host", {"host": "a"})


@pytest.mark.parametrize("setting", ["a", "a=", "a=b:0", "a=b:70000", "a=b,a=c", "A=b", "a=-b", "a=b/c"])
def test_a_setting_that_is_wrong_is_named_when_the_file_loads(setting: str) -> None:
    said = refusal("network.py", "reach_host", {"host": "a"}, REA_TOOL_NETWORK_HOSTS=setting)
    assert "ValueError: REA_TOOL_NETWORK_HOSTS: " in said


def test_the_route_with_the_least_metric_is_the_way_out(tmp_path: Path) -> None:
    settings = board(tmp_path, {"proc/net/route": ROUTE, "proc/net/ipv6_route": ROUTE6})
    assert call("network.py", "network_route", {}, **settings) == {
        "present": True, "interface": "eth0", "gateway": "192.168.1.254", "metric": 100,
    }  # fmt: skip


def test_a_route_of_ipv6_alone_is_a_way_out_and_the_loopbacks_is_none(tmp_path: Path) -> None:
    settings = board(tmp_path, {"proc/net/ipv6_route": ROUTE6})
    assert call("network.py", "network_route", {}, **settings) == {
        "present": True, "interface": "eth0", "gateway": "fe80::1", "metric": 1024,
    }  # fmt: skip
    alone = board(tmp_path, {"proc/net/ipv6_route": ROUTE6.splitlines()[1] + "\n"})
    assert call("network.py", "network_route", {}, **alone) == {
        "present": False, "interface": None, "gateway": None, "metric": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("link", "level", "wifi"),
    [
        pytest.param("60.", "-50.", {"strength": "good", "dbm": -50}, id="good"),
        pytest.param("60.", "-60.", {"strength": "good", "dbm": -60}, id="good ends at -60"),
        pytest.param("60.", "-61.", {"strength": "fair", "dbm": -61}, id="fair begins below"),
        pytest.param("20.", "-75.", {"strength": "fair", "dbm": -75}, id="fair ends at -75"),
        pytest.param("20.", "-76.", {"strength": "weak", "dbm": -76}, id="weak"),
        pytest.param("20.", "190.", {"strength": "fair", "dbm": -66}, id="an unsigned byte"),
        pytest.param("0", "-256", {"strength": "none", "dbm": None}, id="not connected"),
        pytest.param("0", "0", {"strength": "none", "dbm": None}, id="nothing"),
    ],
)
def test_the_wifi_is_as_strong_as_its_level(tmp_path: Path, link: str, level: str, wifi: dict[str, object]) -> None:
    settings = board(tmp_path, {"proc/net/wireless": WIRELESS.format(link=link, level=level)})
    assert call("network.py", "wifi_signal", {}, **settings) == wifi


def test_a_board_without_wifi_has_none(tmp_path: Path) -> None:
    assert call("network.py", "wifi_signal", {}, **board(tmp_path, {})) == {"strength": "none", "dbm": None}


def test_simulated_addresses_are_those_of_its_file(tmp_path: Path) -> None:
    settings = board(tmp_path, {"addresses": "lo 127.0.0.1/8\neth0 192.168.1.7/24\neth0 fe80::7/64\n"})
    assert call("network.py", "network_addresses", {}, **settings) == {
        "total": 2,
        "addresses": [
            {"interface": "eth0", "address": "192.168.1.7/24"},
            {"interface": "eth0", "address": "fe80::7/64"},
        ],
    }


@pytest.mark.skipif(
    os.geteuid() != 0 or not (shutil.which("ip") and shutil.which("unshare")), reason="needs root, ip and unshare"
)
def test_a_real_kernel_tells_every_address_and_the_way_out() -> None:
    pings = [("reach_host", {"host": host}) for host in ("four", "six", "nobody")]
    words = json.dumps([("network_addresses", {}), ("network_route", {}), ("wifi_signal", {}), *pings])
    script = """
    ip link set lo up && sysctl -q -w net.ipv4.ping_group_range="0 0" || exit 77
    ip link add left type veth peer name right && ip link set left up && ip link set right up || exit 77
    for address in 192.0.2.7/24 192.0.2.8/24; do ip address add $address dev left || exit; done
    ip -6 address add 2001:db8::7/64 dev left nodad || exit
    ip address add 198.51.100.1 peer 198.51.100.2/32 dev right || exit
    ip route add default via 192.0.2.1 metric 50 || exit
    exec "$@"
    """
    hosts = {"REA_TOOL_NETWORK_HOSTS": "four=127.0.0.1,six=[::1],nobody=192.0.2.99"}
    command = [sys.executable, "-c", RUN, str(TOOLS / "network.py"), words]
    done = subprocess.run(
        ["unshare", "--net", "sh", "-c", script, "sh", *command],
        env={"PATH": os.environ["PATH"] + ":/usr/sbin:/sbin", "PYTHONPATH": str(ROOT), **hosts},
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    if done.returncode == 77:
        pytest.skip(f"no interface can be made here: {done.stderr}")
    addresses, route, wifi, four, six, nobody = map(json.loads, done.stdout.splitlines())
    found = {(entry["interface"], entry["address"]) for entry in addresses["addresses"]}
    assert found >= {
        ("left", "192.0.2.7/24"), ("left", "192.0.2.8/24"), ("left", "2001:db8::7/64"), ("right", "198.51.100.1/32"),
    }  # fmt: skip
    assert all(name != "lo" for name, _ in found)
    assert route == {"present": True, "interface": "left", "gateway": "192.0.2.1", "metric": 50}
    assert wifi == {"strength": "none", "dbm": None}
    assert (four["why"], six["why"]) == ("answered", "answered")
    assert nobody["reachable"] is False and nobody["why"] in ("silent", "no_route")
