"""Two systemds for the tests of `services`: one that is played, and the real one as a user's manager of its own.

Both know the same units; each test runs against both. The real one needs root, and takes no part in the machine's
systemd or control groups: it has mounts, processes and a control group of its own, and ends with its namespace.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PLAYED = Path(__file__).with_name("played_systemd.py")
MANAGER = "/usr/lib/systemd/systemd"
UNITS = {
    "sleeper": "[Service]\nExecStart=/bin/sleep 1000\n",
    "wrong": "[Service]\nType=oneshot\nExecStart=/bin/false\n",
    "errand": "[Service]\nType=oneshot\nExecStart=/bin/true\n",
    "slow": "[Service]\nType=oneshot\nExecStart=/bin/sleep 1000\n",
    "masked": None,
}
BOOT = """
mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system && mount -t proc proc /proc || exit
mount -t tmpfs tmpfs /sys/fs/cgroup
if [ "$V1" ]; then
    mkdir /sys/fs/cgroup/systemd && mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
else
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
fi || exit
# Not as process 1: that would be the system.
/usr/lib/systemd/systemd --user --log-target=console --unit=basic.target; exit
"""


class Absent(Exception):
    """No real systemd can be started here; the text says why."""


@contextmanager
def played(folder: Path) -> Iterator[dict[str, str]]:
    """Programs that answer like systemctl and journalctl. Gives the settings that name them."""
    settings = {}
    for name in ("systemctl", "journalctl"):
        program = folder / name
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {PLAYED} {name} {folder}/units.json "$@"\n')
        program.chmod(0o755)
        settings[f"REA_TOOL_SERVICES_{name.upper()}"] = str(program)
    yield settings


@contextmanager
def real(folder: Path) -> Iterator[dict[str, str]]:
    """A user's systemd with the units. Gives the settings that reach it. Raises Absent."""
    if os.geteuid() != 0 or not Path(MANAGER).exists() or shutil.which("unshare") is None:
        raise Absent("it needs root, systemd and unshare")
    with tempfile.TemporaryDirectory(prefix="sd", dir="/tmp") as short, own_control_group() as group:
        runtime = Path(short)  # a socket's path has to be short
        write_units(runtime / "units")
        log = (folder / "systemd.log").open("wb")
        process = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--cgroup", "--fork", "--kill-child", "sh", "-c", BOOT],
            env={
                "PATH": os.environ["PATH"], "HOME": short, "XDG_RUNTIME_DIR": short, "V1": "1" if group[1] else "",
                "SYSTEMD_UNIT_PATH": f"{runtime}/units:/usr/lib/systemd/user",
            },
            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            preexec_fn=lambda: (group[0] / "cgroup.procs").write_text(str(os.getpid())) and None,
        )  # fmt: skip
        try:
            yield reached(runtime, folder, process)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
            log.close()


def write_units(folder: Path) -> None:
    folder.mkdir()
    for name, text in UNITS.items():
        if text is None:
            (folder / f"{name}.service").symlink_to("/dev/null")
        else:
            (folder / f"{name}.service").write_text(text)


def reached(runtime: Path, folder: Path, process: "subprocess.Popen[bytes]") -> dict[str, str]:
    """The settings by which it is reached, once it answers: systemd talks to processes of its own namespace only."""
    program = folder / "systemctl"
    end = time.monotonic() + 20
    while process.poll() is None and time.monotonic() < end:
        inside = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        if inside:
            enter = f"nsenter --target {inside[0]} --pid --mount"
            program.write_text(f'#!/bin/sh\nXDG_RUNTIME_DIR={runtime} exec {enter} systemctl --user "$@"\n')
            program.chmod(0o755)
            asked = subprocess.run([program, "show", "--property", "Version"], capture_output=True, check=False)
            if asked.returncode == 0:
                return {"REA_TOOL_SERVICES_SYSTEMCTL": str(program)}
        time.sleep(0.05)
    raise Absent((folder / "systemd.log").read_text()[-300:] or "it does not start in namespaces here")


@contextmanager
def own_control_group() -> Iterator[tuple[Path, bool]]:
    """A control group below the root, and whether it is one of version 1; taken away at the end, with all below it."""
    v1 = Path("/sys/fs/cgroup/systemd")
    above = v1 if v1.is_dir() else Path("/sys/fs/cgroup")
    try:
        group = Path(tempfile.mkdtemp(prefix="rea-edge-test-", dir=above))
    except OSError as exc:
        raise Absent(f"no control group can be made: {exc}") from exc
    try:
        yield group, v1.is_dir()
    finally:
        end = time.monotonic() + 10
        while group.exists() and time.monotonic() < end:
            for folder, _, _ in os.walk(group, topdown=False):
                try:
                    os.rmdir(folder)
                except OSError:
                    time.sleep(0.02)
