"""A simulated device on a broker: its thread, its connection, its power. What it says is its `Appliance`'s."""

import heapq
import itertools
import selectors
import socket
import threading
import time
from types import TracebackType
from typing import Self

from rea_edge.emulated.devices.appliance import Appliance, Said
from rea_edge.emulated.devices.line import Line
from rea_edge.emulated.packets import (
    Connack,
    Connect,
    Disconnect,
    Pingreq,
    Pingresp,
    Puback,
    Publish,
    Suback,
    Subscribe,
    Wanted,
)

KEEPALIVE_S = 30
PATIENCE_S = 30.0
AGAIN_S = 0.2
LAST_PACKET_ID = 65_535


class Powered:
    """An appliance that has power: `with Powered(Tasmota("pump"), broker.url) as device:`.

    `start` returns when it is online and hears. `cut` takes its power: the broker finds out and says its will.
    `stop` lets it say farewell. A broker that goes away is tried again until then.
    """

    def __init__(
        self, appliance: Appliance, url: str, *, username: str | None = None, password: bytes | None = None
    ) -> None:
        self.appliance = appliance
        self._url = url
        self._login = (username, password)
        self._lock = threading.Lock()  # of what is due: any thread may have the device say something
        self._due: list[tuple[float, int, Said]] = []
        self._order = itertools.count()
        self._thread: threading.Thread | None = None
        self._off = threading.Event()
        self._online = threading.Event()
        self._farewell = True
        self._packet_id = 0
        self._asked_s = 0.0

    def start(self) -> Self:
        """Give it power. Raises TimeoutError where it does not come online."""
        if self._thread is not None:
            raise RuntimeError(f"{self.appliance.client_id} has power already")
        self._off.clear()
        self._online.clear()
        self._farewell = True
        self._wake, self._woken = socket.socketpair()
        self._thread = threading.Thread(target=self._live, name=self.appliance.client_id, daemon=True)
        self._thread.start()
        if not self._online.wait(PATIENCE_S):
            self.cut()
            raise TimeoutError(f"{self.appliance.client_id} does not come online at {self._url}")
        return self

    def stop(self) -> None:
        """Let it say farewell and disconnect; harmless where it has no power."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._off.set()
        self._wake.send(b"\0")
        thread.join()
        self._wake.close()
        self._woken.close()
        with self._lock:
            self._due.clear()

    def cut(self) -> None:
        """Take its power away, in the middle of whatever it does."""
        self._farewell = False
        self.stop()

    def say(self, *said: Said) -> None:
        """Have it say something of its own accord; it must have power."""
        now_s = time.monotonic()
        with self._lock:
            for one in said:
                heapq.heappush(self._due, (now_s + one.after_s, next(self._order), one))
        self._wake.send(b"\0")

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # --- its thread

    def _live(self) -> None:
        while not self._off.is_set():
            try:
                line = Line.to(self._url, self._introduction())
            except OSError:
                self._off.wait(AGAIN_S)
                continue
            try:
                self._converse(line)
            except OSError:
                self._off.wait(AGAIN_S)
            finally:
                line.close()

    def _introduction(self) -> Connect:
        will = self.appliance.will
        return Connect(
            self.appliance.client_id,
            4,
            True,
            KEEPALIVE_S,
            None if will is None else Publish(will.topic, will.payload, will.qos, will.retain),
            *self._login,
        )

    def _converse(self, line: Line) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(line.sock, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while not self._off.is_set():
                for key, _ in selector.select(self._until_due_s()):
                    if key.fileobj is self._woken:
                        self._woken.recv(4096)
                    else:
                        self._hear(line)
                self._say_due(line)
        if self._farewell:
            for said in self.appliance.farewells():
                self._publish(line, said)
            line.send(Disconnect())

    def _until_due_s(self) -> float:
        with self._lock:
            first_s = self._due[0][0] if self._due else float("inf")
        return max(0.0, min(first_s, self._asked_s + KEEPALIVE_S / 2) - time.monotonic())

    def _hear(self, line: Line) -> None:
        for packet in line.receive():
            match packet:
                case Connack(code=0):
                    self._asked_s = time.monotonic()
                    wanted = tuple(Wanted(one, self.appliance.qos) for one in self.appliance.filters)
                    line.send(Subscribe(self._next_id(), wanted))
                case Connack():
                    raise ConnectionError(f"the broker refused it with code {packet.code}")
                case Suback():
                    for said in self.appliance.births():
                        self._publish(line, said)
                    line.send(Pingreq())  # its answer says that the broker has them
                case Pingresp():
                    self._online.set()
                case Publish():
                    if packet.qos:
                        line.send(Puback(packet.packet_id))
                    self.say(*self.appliance.take(packet.topic, packet.payload))

    def _say_due(self, line: Line) -> None:
        now_s = time.monotonic()
        with self._lock:
            due = []
            while self._due and self._due[0][0] <= now_s:
                due.append(heapq.heappop(self._due)[2])
        for said in due:
            self._publish(line, said)
        if now_s - self._asked_s >= KEEPALIVE_S / 2:
            self._asked_s = now_s
            line.send(Pingreq())

    def _publish(self, line: Line, said: Said) -> None:
        packet_id = self._next_id() if said.qos else 0
        line.send(Publish(said.topic, said.payload, said.qos, said.retain, packet_id=packet_id))

    def _next_id(self) -> int:
        self._packet_id = self._packet_id % LAST_PACKET_ID + 1
        return self._packet_id
