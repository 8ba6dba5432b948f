"""Brokers for tests, as a pytest plugin: the emulated one, and a real Mosquitto as a child process.

Fixtures: `broker` (each test runs once per kind), `mosquitto` (the real one only), `protocol` ("5", "3.1.1").
Holds no clients and no assertions about messages.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal, Protocol, Self

import pytest

from rea_edge.emulated.broker import Broker

INSTALL = "mosquitto is not installed: these tests need it (Debian: apt-get install mosquitto)"
START_S = 10.0
Kind = Literal["emulated", "mosquitto"]


class AnyBroker(Protocol):
    """What a test may expect of either kind. State that is to survive a restart survives `stop` and `start`."""

    @property
    def kind(self) -> Kind: ...

    @property
    def port(self) -> int: ...

    @property
    def url(self) -> str: ...

    def start(self) -> object: ...

    def stop(self) -> None: ...


class Emulated(Broker):
    kind: Kind = "emulated"


class Mosquitto:
    """A real broker with its files in `folder`. The port stays the same over restarts.

    `head` lines of configuration come first (such as `per_listener_settings true`), `extra` lines last.
    """

    kind: Kind = "mosquitto"

    def __init__(
        self,
        folder: Path,
        *,
        head: Sequence[str] = (),
        extra: Sequence[str] = (),
        allow_anonymous: bool = True,
        program: str | None = None,
    ) -> None:
        self.port = 0
        self.folder = folder
        self.log = folder / "mosquitto.log"
        self._head = head
        self._extra = extra
        self._allow_anonymous = allow_anonymous
        self._program = program or mosquitto_program()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"mqtt://127.0.0.1:{self.port}"

    def start(self) -> Self:
        """Run it; clients can connect when this returns. A first start looks for a free port until one works."""
        attempts = 1 if self.port else 5
        for _ in range(attempts):
            port = self.port or free_port()
            if self._runs_on(port):
                self.port = port
                return self
        raise RuntimeError(f"mosquitto does not start: {self.log.read_text(errors='replace')[-2000:]}")

    def stop(self) -> None:
        """End it in order (SIGTERM): it saves its state. Returns when the port refuses; harmless where it is ended."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once (SIGKILL): what it had not saved is gone. Returns when the port refuses."""
        self._end(signal.SIGKILL)

    def _runs_on(self, port: int) -> bool:
        config = self.folder / "mosquitto.conf"
        config.write_text("\n".join([*self._head, *self._lines(port), *self._extra, ""]))
        with self.log.open("ab") as log:
            seen = log.tell()
            self._process = subprocess.Popen([self._program, "-c", str(config)], stdout=log, stderr=log)
        until_s = time.monotonic() + START_S
        while time.monotonic() < until_s and self._process.poll() is None:
            # Its own word first: the port could be answered by somebody else while ours gives up.
            if b" running" in self.log.read_bytes()[seen:] and answers(port):
                return True
            time.sleep(0.005)
        self.kill()
        return False

    def _lines(self, port: int) -> list[str]:
        lines = [
            f"listener {port} 127.0.0.1",
            f"allow_anonymous {str(self._allow_anonymous).lower()}",
            "persistence true",
            f"persistence_location {self.folder}/",
            "set_tcp_nodelay true",
            "max_queued_messages 0",
            "log_dest stderr",
        ]
        # Started by root it would become the user `mosquitto`, who cannot read the folder of a test.
        return [*lines, "user root"] if os.geteuid() == 0 else lines

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(number)
        try:
            process.wait(5.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if self.port:
            wait_until(lambda: not answers(self.port), f"port {self.port} refuses")


def mosquitto_program() -> str:
    """The path of mosquitto. Without it the test is skipped, loudly; where `CI` is set it fails."""
    found = shutil.which("mosquitto", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if found is not None:
        return found
    if os.environ.get("CI"):
        pytest.fail(INSTALL)
    pytest.skip(INSTALL)


def free_port() -> int:
    """A loopback port that is free now and below those the system gives to clients, so that it stays free."""
    # Two test processes at once must not walk the same way.
    start = (os.getpid() * 7919 + time.monotonic_ns() // 1000) % 12_000
    for step in range(500):
        port = 20_000 + (start + step * 13) % 12_000
        with socket.socket() as sock:
            # As brokers do: connections of an earlier broker that are still closing are no obstacle.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                sock.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
    raise RuntimeError("no free port on loopback")


def answers(port: int) -> bool:
    """Whether something accepts connections there."""
    try:
        socket.create_connection(("127.0.0.1", port), 1.0).close()
    except OSError:
        return False
    return True


def wait_until(condition: Callable[[], object], what: str, seconds: float = 5.0) -> None:
    """Return as soon as the condition holds; fail the test, saying what did not happen, after `seconds`."""
    until_s = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until_s:
            pytest.fail(f"waited {seconds} s in vain: {what}")
        time.sleep(0.002)


@pytest.fixture(params=["emulated", "mosquitto"])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AnyBroker]:
    """A running broker; a test that uses it runs once with each kind."""
    if request.param == "emulated":
        with Emulated() as emulated:
            yield emulated
    else:
        yield from _mosquitto_in(tmp_path)


@pytest.fixture
def mosquitto(tmp_path: Path) -> Iterator[Mosquitto]:
    """A running Mosquitto, for what the emulated broker cannot show (such as being killed)."""
    yield from _mosquitto_in(tmp_path)


# For what is ours alone to do, whatever broker carries it, and takes long: the second one with the slow tests.
MAINLY_ON_MOSQUITTO = pytest.mark.parametrize(
    "broker", ["mosquitto", pytest.param("emulated", marks=pytest.mark.slow)], indirect=True
)
ONCE_ON_EACH = pytest.mark.parametrize(
    ("broker", "protocol"),
    [
        ("mosquitto", "5"),
        ("emulated", "3.1.1"),
        pytest.param("mosquitto", "3.1.1", marks=pytest.mark.slow),
        pytest.param("emulated", "5", marks=pytest.mark.slow),
    ],
    indirect=True,
)


@pytest.fixture(params=["5", "3.1.1"])
def protocol(request: pytest.FixtureRequest) -> str:
    """The MQTT version that clients of the test speak."""
    version: str = request.param
    return version


def _mosquitto_in(folder: Path) -> Iterator[Mosquitto]:
    (folder / "mosquitto").mkdir()
    running = Mosquitto(folder / "mosquitto")
    try:
        yield running.start()
    finally:
        running.kill()
