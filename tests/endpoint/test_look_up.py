"""A name server that does not answer holds nothing up. Needs namespaces of its own, where resolv.conf is ours."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

# Brings loopback up, takes the name server's port and never answers on it.
PROGRAM = """
import fcntl, socket, struct, subprocess, sys, threading, time
from rea_edge.cancel import Cancel
from rea_edge.endpoint import Endpoint
from rea_edge.errors import EndpointFailed
subprocess.run(["mount", "--bind", sys.argv[1], "/etc/resolv.conf"], check=True)
name_server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
fcntl.ioctl(name_server, 0x8914, struct.pack("16sh14x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP
name_server.bind(("127.0.0.1", 53))
endpoint = Endpoint(name="a", url="http://model.example/v1", model="m", connect_s=float(sys.argv[2]))
cancel = Cancel()
if sys.argv[3] != "never":
    threading.Timer(float(sys.argv[3]), cancel.cancel).start()
for _ in range(3):
    begun_s = time.monotonic()
    try:
        endpoint.ask(b"{}", seconds=30, cancel=cancel)
    except EndpointFailed as exc:
        print(exc.kind, round(time.monotonic() - begun_s, 2), threading.active_count())
"""


def failures(tmp_path: Path, connect_s: float, cancel_after_s: float | None) -> list[tuple[str, float, int]]:
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-rmn", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no namespaces here: a silent name server is NOT TESTED")
    conf = tmp_path / "resolv.conf"
    conf.write_text("nameserver 127.0.0.1\noptions timeout:5 attempts:1\n")
    after = "never" if cancel_after_s is None else str(cancel_after_s)
    command = [unshare, "-rmn", sys.executable, "-c", PROGRAM, str(conf), str(connect_s), after]
    env = {"PYTHONPATH": ":".join(sys.path), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return [(kind, float(took), int(count)) for kind, took, count in map(str.split, done.stdout.splitlines())]


def test_a_silent_name_server_is_waited_for_no_longer_than_connect_s_with_one_thread_in_all(tmp_path: Path) -> None:
    seen = failures(tmp_path, 0.5, None)
    assert [kind for kind, _, _ in seen] == ["dns"] * 3
    assert max(took for _, took, _ in seen[1:]) < 0.7  # the first one imports httpx
    assert [threads for _, _, threads in seen] == [2, 2, 2]


def test_a_cancel_ends_a_look_up_within_200_ms(tmp_path: Path) -> None:
    seen = failures(tmp_path, 20.0, 1.0)
    assert [kind for kind, _, _ in seen] == ["cancelled"] * 3
    assert 0.5 < seen[0][1] < 1.2
