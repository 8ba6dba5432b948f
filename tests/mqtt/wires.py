"""Counterparties that misbehave below MQTT: a proxy that stalls, and a listener that plays a script. No assertions."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Self

from tests.brokers import free_port


class Listener:
    """Calls `play(conn)` in a thread for each connection; `with` ends all of it."""

    def __init__(self, play: Callable[[socket.socket], None]) -> None:
        self.connections = 0
        self._play = play
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        for _ in range(20):
            self.port = free_port()
            self._server = socket.socket()
            try:
                self._server.bind(("127.0.0.1", self.port))
                break
            except OSError:
                self._server.close()
        self._server.listen()

    @property
    def url(self) -> str:
        return f"mqtt://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._spawn(self._take)
        return self

    def __exit__(self, *_args: object) -> None:
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for conn in list(self._open):
            self.shut(conn)
        for thread in list(self._threads):
            thread.join(5.0)

    def track(self, conn: socket.socket) -> None:
        self._open.append(conn)

    def shut(self, conn: socket.socket) -> None:
        with suppress(OSError):
            conn.shutdown(socket.SHUT_RDWR)
        conn.close()

    def _spawn(self, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=target, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _take(self) -> None:
        with suppress(OSError):
            while True:
                conn, _ = self._server.accept()
                self.connections += 1
                self.track(conn)
                self._spawn(lambda conn=conn: self._run(conn))  # type: ignore[misc]

    def _run(self, conn: socket.socket) -> None:
        with suppress(OSError):
            self._play(conn)
        self.shut(conn)


class Proxy(Listener):
    """Passes bytes to a broker. After `stall()` the connections there are swallow everything, end of file too."""

    def __init__(self, target_port: int) -> None:
        super().__init__(self._join)
        self._target_port = target_port
        self._stalled: set[socket.socket] = set()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []

    def stall(self) -> None:
        for pair in self._pairs:
            self._stalled.update(pair)

    def _join(self, client: socket.socket) -> None:
        broker = socket.create_connection(("127.0.0.1", self._target_port))
        self.track(broker)
        self._pairs.append((client, broker))
        self._spawn(lambda: self._pass(broker, client))
        self._pass(client, broker)

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while chunk := source.recv(65536):
                if source not in self._stalled:
                    sink.sendall(chunk)
        if source not in self._stalled:
            self.shut(sink)


def read_packet(conn: socket.socket) -> tuple[int, bytes]:
    """The first byte and the body of the next MQTT packet (bodies below 16 KiB)."""
    first = _exactly(conn, 1)[0]
    length, shift = 0, 0
    while True:
        digit = _exactly(conn, 1)[0]
        length |= (digit & 0x7F) << shift
        shift += 7
        if digit < 0x80:
            return first, _exactly(conn, length)


def _exactly(conn: socket.socket, size: int) -> bytes:
    got = b""
    while len(got) < size:
        chunk = conn.recv(size - len(got))
        if not chunk:
            raise ConnectionError("closed")
        got += chunk
    return got
