"""A daemon as a process of its own, with a folder, tools and a sender: what the end-to-end tests are built on."""

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from rea_edge.client import Client
from rea_edge.config import Broker, Secret
from rea_edge.config.client import Client as ClientSettings
from rea_edge.emulated.endpoint import ScriptedEndpoint
from tests.brokers import wait_until

ROOT = Path(__file__).resolve().parent.parent.parent

TOOLS = '''
"""Tools whose effects can be counted from outside: each leaves a line in a ledger."""
import os, time
from pathlib import Path
from typing import Annotated, Literal
from msgspec import Meta
from rea_edge.tool import request_id, tool

LEDGER = Path(os.environ["REA_TOOL_LEDGER"])


def note(word):
    with LEDGER.open("a") as file:
        file.write(f"{word} {request_id()}\\n")
        file.flush()
        os.fsync(file.fileno())


@tool(effect="read", device="sensor", examples=[("Look at the tank.", {"name": "tank"})])
def look(name: Literal["tank", "pipe"]) -> dict[str, float]:
    """Read a level in percent."""
    return {"level": 71.5 if name == "tank" else 12.0}


@tool(effect="idempotent", device="valve")
def turn(percent: Annotated[int, Meta(ge=0, le=100)]) -> dict[str, int]:
    """Turn the valve."""
    note("turn")
    return {"percent": percent}


@tool(effect="once", device="bell", timeout_s=20.0)
def ring(seconds: float = 0.0) -> dict[str, bool]:
    """Ring the bell."""
    note("ring")
    time.sleep(seconds)
    return {"rang": True}


@tool(effect="read", device="slow", timeout_s=30.0)
def doze(seconds: float) -> str:
    """Sleep for a while."""
    note(f"doze-{os.getpid()}")
    time.sleep(seconds)
    return "rested"


@tool(effect="once", device="broken")
def fail() -> str:
    """Always fails."""
    raise OSError("no such device")
'''


class House:
    """One node. `start` runs its daemon, `kill` is SIGKILL; the folder and the topics stay the same between."""

    def __init__(
        self,
        folder: Path,
        broker_url: str,
        *,
        protocol: str = "auto",
        extra: str = "",
        node: str = "n1",
        root: str | None = None,
    ) -> None:
        self.folder = folder
        self.root = root or f"t{secrets.token_hex(4)}/v1"
        self.node = node
        self.ledger_file = folder / "ledger"
        self.log = folder / "daemon.log"
        self._broker = broker_url
        self._protocol = protocol
        self._process: subprocess.Popen[bytes] | None = None
        self._under: tuple[str, ...] = ()
        (folder / "devices.py").write_text(TOOLS)
        self.config = folder / "config.toml"
        self.config.write_text(
            f'[node]\nid = "{self.node}"\nstate_dir = "{folder / "state"}"\ntools = ["{folder / "devices.py"}"]\n'
            f'[broker]\nurl = "{broker_url}"\nroot = "{self.root}"\nprotocol = "{protocol}"\nreconnect_min_s = 0.1\n'
            f'{extra}\n',
        )  # fmt: skip

    @property
    def pid(self) -> int:
        """Of the daemon itself, also where it was started under another command."""
        process = self._process
        assert process is not None
        if not self._under:
            return process.pid
        wait_until(lambda: process.poll() is not None or _daemon_under(process.pid), "it is started", 10)
        return _daemon_under(process.pid) or process.pid

    @property
    def alive(self) -> bool:
        assert self._process is not None
        return self._process.poll() is None

    def start(self, *under: str, **environ: str) -> Self:
        """Run the daemon; `under` is a command that runs it, such as strace."""
        self._under = under
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*under, sys.executable, "-m", "rea_edge", "run", "--config", str(self.config)],
                cwd=ROOT,
                env={**os.environ, "REA_TOOL_LEDGER": str(self.ledger_file), **environ},
                stdin=subprocess.DEVNULL,
                stderr=log,
            )
        return self

    def kill(self) -> None:
        assert self._process is not None
        if self.alive:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self, seconds: float = 40.0) -> int:
        """SIGTERM; gives the exit code."""
        assert self._process is not None
        os.kill(self.pid, signal.SIGTERM)
        return self._process.wait(seconds)

    def wait(self, seconds: float) -> int:
        assert self._process is not None
        return self._process.wait(seconds)

    def close(self) -> None:
        if self._process is not None:
            self.kill()

    @contextmanager
    def client(
        self, who: str = "me", *, silent_s: float = 15.0, approver: bool = False, key: str | None = None
    ) -> Iterator[Client]:
        """`key`: hex digits to sign with."""
        broker = Broker(url=self._broker, root=self.root, protocol="auto", reconnect_min_s=0.1)
        settings = ClientSettings(broker=broker, node=self.node, who=who, signing_key=Secret(key) if key else None)
        with Client(settings, silent_s=silent_s, approver=approver) as client:
            yield client

    def run_command(self, *words: str, who: str = "me") -> subprocess.CompletedProcess[str]:
        """A command line as a person types it."""
        return subprocess.run(
            [sys.executable, "-m", "rea_edge", *words],
            cwd=ROOT,
            env={**os.environ, "REA_EDGE_BROKER": self._broker, "REA_EDGE_ROOT": self.root, "REA_EDGE_NODE": self.node, "REA_EDGE_WHO": who, "REA_TOOL_LEDGER": str(self.ledger_file)},
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    def ledger(self, word: str = "") -> list[str]:
        text = self.ledger_file.read_text() if self.ledger_file.exists() else ""
        return [line for line in text.splitlines() if line.startswith(word)]


def _daemon_under(pid: int) -> int | None:
    """That process or its child, whichever is a daemon of ours, once it has become one."""
    with suppress(OSError):  # either may end meanwhile
        for one in (str(pid), *Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
            words = Path(f"/proc/{one}/cmdline").read_bytes().split(b"\0")
            if words[1:4] == [b"-m", b"rea_edge", b"run"]:
                return int(one)
    return None


def wait_online(client: Client, seconds: float = 15.0) -> None:
    wait_until(lambda: client.status().state == "online", "the node is online", seconds)


def endpoint_table(url: str, protocol: str = "json", **limits: object) -> str:
    """The part of a configuration that names a scripted endpoint, and limits."""
    lines = [f"{key} = {value}" for key, value in limits.items()]
    return "\n".join(
        [
            f'[[endpoint]]\nname = "scripted"\nurl = "{url}"\nprotocol = "{protocol}"\ncontext_tokens = 8192',
            "[limits]",
            *lines,
        ]
    )


def call(tool: str, /, **args: object) -> str:
    return json.dumps({"action": "tool", "tool_name": tool, "tool_args": args})


def finish(answer: str) -> str:
    return json.dumps({"action": "finish", "terminal_answer": answer})


def turns_so_far(request: dict[str, object]) -> int:
    """How many answers the model has already given in this conversation."""
    messages = request["messages"]
    assert isinstance(messages, list)
    return sum(message["role"] == "assistant" for message in messages)


def script(*answers: str) -> Callable[[dict[str, object]], str]:
    """Answers by the number of turns; the last one stands for all that follow."""
    return lambda request: answers[min(turns_so_far(request), len(answers) - 1)]


def questions(endpoint: ScriptedEndpoint) -> list[bytes]:
    """The bodies of the chat requests, oldest first (a daemon also asks an endpoint what it is)."""
    return [request.body for request in endpoint.requests if request.path.endswith("/chat/completions")]


def wait_for_questions(endpoint: ScriptedEndpoint, count: int, seconds: float = 10.0) -> None:
    wait_until(lambda: len(questions(endpoint)) >= count, f"{count} questions are asked", seconds)


def median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def timed(act: Callable[[], object]) -> float:
    began_s = time.monotonic()
    act()
    return time.monotonic() - began_s
