"""A real Mosquitto that runs with the shipped access files, and logins that talk to it."""

import os
import queue
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Self

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from tests.brokers import answers, free_port, mosquitto_program, wait_until

SHIPPED = Path(__file__).parents[2] / "rea_edge/_data/mosquitto"
NODES = ("boiler-1", "boiler-2")
PEOPLE = ("ann", "bob", "mallory")
DEADLINE_S = 5.0


class Doors:
    """The broker as shipped; only its paths and ports are of the test, and bob's block is taken out of comment."""

    def __init__(self, folder: Path, *, logins: bool = True) -> None:
        self.folder = folder
        self.nodes = 0
        self.people = 0
        self._process: subprocess.Popen[bytes] | None = None
        for file in SHIPPED.iterdir():
            shutil.copy(file, folder)
        rules = folder / "people.acl"
        rules.write_text(rules.read_text().replace("#user bob", "user bob").replace("#topic read", "topic read"))
        if logins:
            self._add_logins("nodes.passwd", NODES)
            self._add_logins("people.passwd", PEOPLE)

    def __enter__(self) -> Self:
        for _ in range(5):
            if self._runs():
                return self
        raise RuntimeError(f"mosquitto does not start: {(self.folder / 'log').read_text(errors='replace')[-2000:]}")

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(DEADLINE_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def _add_logins(self, file: str, names: tuple[str, ...]) -> None:
        program = shutil.which("mosquitto_passwd")
        if program is None:
            assert not os.environ.get("CI"), "mosquitto_passwd must be installed in CI"
            pytest.skip("NOT CHECKED: mosquitto_passwd is not installed")
        for name in names:
            subprocess.run([program, "-b", str(self.folder / file), name, f"{name}'s"], check=True, timeout=30)

    def _runs(self) -> bool:
        self.nodes = free_port()
        self.people = next(port for port in iter(free_port, 0) if port != self.nodes)
        text = (SHIPPED / "mosquitto.conf").read_text()
        for shipped, ours in {
            "/etc/mosquitto/rea-edge": str(self.folder),
            "/var/lib/mosquitto/": f"{self.folder}/",
            "listener 1883 ": f"listener {self.nodes} ",
            "listener 1884 ": f"listener {self.people} ",
        }.items():
            assert shipped in text
            text = text.replace(shipped, ours)
        # As root it would become the user `mosquitto`, who cannot read the folder of a test.
        text += "user root\n" if os.geteuid() == 0 else ""
        (self.folder / "run.conf").write_text(text)
        with (self.folder / "log").open("wb") as log:
            self._process = subprocess.Popen([mosquitto_program(), "-c", str(self.folder / "run.conf")], stderr=log)
        until_s = time.monotonic() + DEADLINE_S
        while time.monotonic() < until_s and self._process.poll() is None:
            if answers(self.nodes) and answers(self.people):
                return True
            time.sleep(0.01)
        self.__exit__()
        return False


class Login:
    """One connection of somebody. `seen` are the (topic, payload) that arrived and nobody waited for yet."""

    def __init__(
        self,
        port: int,
        name: str | None,
        protocol: str,
        *,
        password: str | None = None,
        client_id: str = "",
        persistent: bool = False,
        will: str | None = None,
    ) -> None:
        self.seen: queue.Queue[tuple[str, str]] = queue.Queue()
        self.connected: ReasonCode | None = None
        self.session_present = False
        self.ended = False
        self._acks: dict[int, ReasonCode] = {}
        self._subscribed: set[int] = set()
        v5 = protocol == "5"
        clean = None if v5 else not persistent
        version = MQTTProtocolVersion.MQTTv5 if v5 else MQTTProtocolVersion.MQTTv311
        self.client = mqtt.Client(
            CallbackAPIVersion.VERSION2,
            client_id=client_id,
            clean_session=clean,
            protocol=version,
            reconnect_on_failure=False,
        )
        self.client.on_connect = self._on_connect
        self.client.on_disconnect = self._on_disconnect
        self.client.on_message = self._on_message
        self.client.on_publish = self._on_publish
        self.client.on_subscribe = self._on_subscribe
        if name is not None:
            self.client.username_pw_set(name, f"{name}'s" if password is None else password)
        if will is not None:
            self.client.will_set(will, "will", qos=1, retain=True)
        self._connect(port, v5, persistent)

    def _connect(self, port: int, v5: bool, persistent: bool) -> None:
        if v5:
            properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]  # paho's own
            properties.SessionExpiryInterval = 3600 if persistent else 0
            self.client.connect("127.0.0.1", port, clean_start=not persistent, properties=properties)
        else:
            self.client.connect("127.0.0.1", port)
        self.client.loop_start()
        wait_until(lambda: self.connected is not None or self.ended, "an answer to CONNECT")

    @property
    def refused(self) -> bool:
        return self.connected is None or self.connected.is_failure

    def subscribe(self, *filters: str) -> Self:
        """Returns when the broker has answered. It grants filters of whose messages it then delivers none."""
        for one in filters:
            _, mid = self.client.subscribe(one, qos=1)
            assert mid is not None
            wait_until(partial(self._subscribed.__contains__, mid), f"an answer to SUBSCRIBE {one}")
        return self

    def publish(self, topic: str, payload: str, *, retain: bool = False) -> ReasonCode:
        """Returns the broker's acknowledgement; in 3.1.1 that says Success for what was denied, too."""
        sent = self.client.publish(topic, payload, qos=1, retain=retain)
        wait_until(lambda: sent.mid in self._acks, f"an acknowledgement of {topic}")
        return self._acks[sent.mid]

    def until(self, payload: str) -> list[str]:
        """Wait for this payload; give the topics of all that came up to it, that one included."""
        topics: list[str] = []
        until_s = time.monotonic() + DEADLINE_S
        while True:
            try:
                topic, got = self.seen.get(timeout=max(0.0, until_s - time.monotonic()))
            except queue.Empty:
                pytest.fail(f"waited {DEADLINE_S} s in vain for {payload!r}; came: {topics}")
            topics.append(topic)
            if got == payload:
                return topics

    def cut(self) -> None:
        """Lose the connection without a word, as a crash does: the broker sends the will."""
        sock = self.client.socket()
        assert isinstance(sock, socket.socket)
        sock.shutdown(socket.SHUT_RDWR)
        wait_until(lambda: self.ended, "the end of the connection")

    def leave(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()

    def _on_connect(
        self, _client: object, _data: object, flags: mqtt.ConnectFlags, code: ReasonCode, _: object
    ) -> None:
        self.session_present = flags.session_present
        self.connected = code

    def _on_disconnect(self, *_: object) -> None:
        self.ended = True

    def _on_message(self, _client: object, _data: object, message: mqtt.MQTTMessage) -> None:
        self.seen.put((message.topic, message.payload.decode()))

    def _on_publish(self, _client: object, _data: object, mid: int, code: ReasonCode, _: object) -> None:
        self._acks[mid] = code

    def _on_subscribe(self, _client: object, _data: object, mid: int, *_: object) -> None:
        self._subscribed.add(mid)


Join = Callable[..., Login]


@pytest.fixture(scope="session")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    with Doors(tmp_path_factory.mktemp("doors")) as doors:
        yield doors


@pytest.fixture
def join(doors: Doors, protocol: str) -> Iterator[Join]:
    """Log somebody in at the door that is theirs (`door=` says otherwise); all leave at the end."""
    logins: list[Login] = []

    def joined(name: str | None, *, door: str = "", protocol: str = protocol, **how: object) -> Login:
        port = doors.nodes if (door or ("nodes" if name in NODES else "people")) == "nodes" else doors.people
        logins.append(Login(port, name, protocol, **how))  # type: ignore[arg-type]  # passed on as they come
        return logins[-1]

    yield joined
    for login in logins:
        login.leave()
