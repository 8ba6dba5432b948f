"""The figures of design section 8, in one run, each against its floor: `python -m tests.bench.figures`.

Prints idle RSS and PSS, peak in a 10-step task, CPU to ready and CPU per step. The machine may be busy: CPU seconds
and ratios are what to read, taken as medians over rounds in which floor and daemon take turns. Exit 1 if a figure
that has a bound is past it.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rea_edge.client import Client
from rea_edge.config import Broker
from rea_edge.config.client import Client as ClientSettings
from rea_edge.emulated.broker import Broker as EmulatedBroker
from rea_edge.emulated.endpoint import ScriptedEndpoint
from rea_edge.memory import shared_fairly_mib

ROOT = Path(__file__).resolve().parent.parent.parent
COMPILED = os.path.join(tempfile.gettempdir(), f"rea-edge-bench-{os.getuid()}")  # one run fills it, the next finds it
STEPS = 10
ONLINE_S = 60.0
FLOOR = "import httpx, msgspec, paho.mqtt.client, sqlite3"
HOLD = FLOOR + "; import sys; print('ready', flush=True); sys.stdin.read()"
BARE = """
import sqlite3, sys, resource, time, httpx
url, steps, file = sys.argv[1], int(sys.argv[2]), sys.argv[3]
db = sqlite3.connect(file, isolation_level=None)
db.execute('pragma journal_mode=wal'); db.execute('pragma synchronous=full'); db.execute('create table t (b blob)')
client = httpx.Client(trust_env=False, verify=False)
body = {'model': 'any', 'messages': [{'role': 'user', 'content': 'x' * 2000}], 'stream': True}
def step():
    client.post(url + '/chat/completions', json=body).raise_for_status()
    for _ in range(2):
        db.execute('begin immediate'); db.execute('insert into t values (?)', (b'x' * 800,)); db.execute('commit')
for _ in range(5): step()
before = resource.getrusage(resource.RUSAGE_SELF)
for _ in range(steps):
    step()
    time.sleep(0.01)  # a step waits for its tool and the next answer: a tight loop would measure warm caches
after = resource.getrusage(resource.RUSAGE_SELF)
print((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / steps)
"""


def status_kib(pid: int, key: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1])
    return 0


def cpu_s(pid: int) -> float:
    """User and system seconds of all threads so far, in scheduler time where the kernel gives it."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


def below(pid: int) -> list[int]:
    found = [
        int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
    ]
    return found + [deeper for child in found for deeper in below(child)]


def as_installed() -> dict[str, str]:
    """The environment of a process that finds its files compiled, as an installation has them: where this one writes
    none (PYTHONDONTWRITEBYTECODE), a checkout would be compiled anew at each start."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": COMPILED}


@contextmanager
def daemon(node: str, broker: str, endpoint: str, folder: Path) -> Iterator[int]:
    config = folder / "config.toml"
    config.write_text(
        f'[node]\nid = "{node}"\nstate_dir = "{folder / "state"}"\ntools = ["boiler"]\n[broker]\nurl = "{broker}"\n'
        f'[[endpoint]]\nurl = "{endpoint}"\nprotocol = "json"\ncontext_tokens = 8192\n[limits]\nsteps = 100\ntokens = 10000000\n',
    )  # fmt: skip
    environ = {**as_installed(), "REA_TOOL_BOILER_FILE": str(folder / "boiler.json"), "MALLOC_ARENA_MAX": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "rea_edge", "run", "--config", str(config)],
        cwd=ROOT, env=environ, stdin=subprocess.DEVNULL, stderr=(folder / "log").open("wb"),
    )  # fmt: skip
    try:
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def script(request: dict[str, object]) -> str:
    """Nine calls, each another than the ones before, then the answer: told by the assistant's turns."""
    messages = request["messages"]
    assert isinstance(messages, list)
    done = sum(message["role"] == "assistant" for message in messages)
    if done < STEPS - 1:
        sensor = ("boiler", "flow", "room", "pressure", None)[done % 5]
        name, args = ("read_sensor", {"name": sensor}) if sensor else ("set_valve", {"percent": 50})
        return json.dumps({"action": "tool", "tool_name": name, "tool_args": args})
    return json.dumps({"action": "finish", "terminal_answer": "The boiler is warm."})


def floor_once() -> tuple[float, float, float]:
    """CPU seconds, RSS and PSS (MiB) of a process with only the imports."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD], env=as_installed(), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout and process.stdin
    process.stdout.readline()
    found = cpu_s(process.pid), status_kib(process.pid, "VmRSS") / 1024, shared_fairly_mib([process.pid])
    process.stdin.close()
    process.wait(10)
    return found


def bare_once(url: str, folder: Path) -> float:
    """CPU seconds of one bare POST (answered in the same stream) and two commits, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", BARE, url, "50", str(folder / f"bare-{time.monotonic_ns()}.db")],
        env=as_installed(), capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    return float(done.stdout)


class Daemon:
    """What one daemon costs: to ready, idle, and in tasks of ten steps."""

    def __init__(self, broker: EmulatedBroker, endpoint: ScriptedEndpoint) -> None:
        # A name of its own: a daemon that another run left behind may still look for its broker on this port.
        node = f"bench-{os.urandom(3).hex()}"
        with tempfile.TemporaryDirectory() as name, daemon(node, broker.url, endpoint.url, Path(name)) as pid:
            settings = ClientSettings(broker=Broker(url=broker.url), node=node, who="bench")
            with Client(settings, silent_s=20.0) as client:
                end_s = time.monotonic() + ONLINE_S
                while (status := client.status()).state != "online":
                    assert time.monotonic() < end_s, status.faults
                    time.sleep(0.01)
                self.ready_cpu_s = cpu_s(pid)
                self.idle_rss = status_kib(pid, "VmRSS") / 1024
                self.idle_pss = shared_fairly_mib((pid, *below(pid)))
                self._task(client)  # the first question loads the HTTP client
                before = cpu_s(pid)
                for _ in range(5):
                    self._task(client)
                self.step_cpu_s = (cpu_s(pid) - before) / 5 / STEPS
                self.peak = status_kib(pid, "VmHWM") / 1024
                self.after_rss = status_kib(pid, "VmRSS") / 1024

    def _task(self, client: Client) -> None:
        task_id, _ = client.submit({"goal": "How warm is it?"})
        state = client.watch(task_id, None)
        assert state.outcome == "achieved", state


def installed_mib() -> float:
    """This package and its dependencies as they lie in site-packages, compiled files included."""
    import importlib.metadata as metadata

    names = ("httpx", "httpcore", "h11", "anyio", "idna", "certifi", "msgspec", "paho-mqtt", "typing_extensions")
    total = sum(file.stat().st_size for file in (ROOT / "rea_edge").rglob("*") if file.is_file())
    for name in names:
        try:
            files = metadata.files(name) or []
        except metadata.PackageNotFoundError:
            continue
        total += sum(path.stat().st_size for file in files if (path := Path(str(file.locate()))).is_file())
    return total / (1 << 20)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    floors, daemons, bares = [], [], []
    with ScriptedEndpoint(script) as endpoint, tempfile.TemporaryDirectory() as name:
        for number in range(rounds + 1):
            print(f"round {number} of {rounds}" if number else "warming up", file=sys.stderr, flush=True)
            floors.append(floor_once())
            # A new state at a broker that knows the node is a lost one, and such a node is never online.
            with EmulatedBroker() as broker:
                daemons.append(Daemon(broker, endpoint))
            bares.append(bare_once(endpoint.url, Path(name)))
    del floors[0], daemons[0], bares[0]  # they compiled their files
    middle = statistics.median
    floor_cpu, floor_rss, floor_pss = (middle(row[place] for row in floors) for place in range(3))
    bare = middle(bares)
    rows = [
        ("idle RSS of the daemon, MiB", middle(one.idle_rss for one in daemons), floor_rss, min(1.3 * floor_rss, 36.0)),
        ("idle PSS of daemon, host and keepers, MiB", middle(one.idle_pss for one in daemons), floor_pss, 44.0),
        ("peak in 10-step tasks, MiB", middle(one.peak for one in daemons), floor_rss, 56.0),
        ("CPU to ready, ms", 1e3 * middle(one.ready_cpu_s for one in daemons), 1e3 * floor_cpu, 2e3 * floor_cpu),
        ("CPU per step, ms", 1e3 * middle(one.step_cpu_s for one in daemons), 1e3 * bare, 3e3 * bare),
        ("installed, MiB", installed_mib(), 0.0, 8.0),
    ]
    print(f"{'figure (medians)':44} {'daemon':>8} {'floor':>8} {'ratio':>6} {'bound':>8}")
    for words, value, floor, bound in rows:
        ratio = f"{value / floor:.2f}" if floor else "-"
        mark = "" if value <= bound else "  PAST ITS BOUND"
        print(f"{words:44} {value:8.2f} {floor:8.2f} {ratio:>6} {bound:8.2f}{mark}")
    print(
        "floor: a process with `import httpx, msgspec, paho.mqtt.client, sqlite3`; per step: the same exchange by bare httpx + 2 commits"
    )
    return 0 if all(value <= bound for _, value, _, bound in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
