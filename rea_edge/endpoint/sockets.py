"""Name look-up, connecting and waiting on plain or TLS sockets, bounded by an `Exchange`. Knows no HTTP and no httpx.

The sockets do not block: each operation is tried, then waited for where a cancel is heard.
"""

import errno
import os
import select
import socket
import ssl
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Final, TypeVar

from rea_edge.endpoint.bounds import Exchange
from rea_edge.endpoint.faults import failed

SocketAddress = tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]
Address = tuple[socket.AddressFamily, SocketAddress]
T = TypeVar("T")

# A server whose power goes says nothing: the kernel asks, so that a wait for the first byte ends in half a minute.
_PROBE_IDLE_S: Final = 15
_PROBE_EVERY_S: Final = 5
_PROBES: Final = 3


class Names:
    """Name look-ups, each in a thread of its own because getaddrinfo cannot be stopped; one per name at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: dict[tuple[str, int], Future[list[Address]]] = {}

    def addresses(self, host: str, port: int, exchange: Exchange) -> list[Address]:
        try:
            with suppress(socket.gaierror):  # a name, then, and no address
                return _addresses(host, port, socket.AI_NUMERICHOST)
            return self._answer(host, port, exchange)
        except (OSError, UnicodeError, RuntimeError) as exc:  # RuntimeError: no thread could be started
            raise failed("dns", f"no address for {host!r}: {exc}") from exc

    def _answer(self, host: str, port: int, exchange: Exchange) -> list[Address]:
        future = self._look_up(host, port)
        future.add_done_callback(lambda _: exchange.wake.set())
        while not future.done():
            exchange.wait_for(None)
        return future.result()

    def _look_up(self, host: str, port: int) -> Future[list[Address]]:
        with self._lock:
            future = self._under_way.get((host, port))
            if future is None:
                future = Future()
                threading.Thread(target=self._run, args=(host, port, future), name="look-up", daemon=True).start()
                self._under_way[host, port] = future  # the thread needs the lock to take it out again
            return future

    def _run(self, host: str, port: int, future: Future[list[Address]]) -> None:
        try:
            addresses = _addresses(host, port, 0)
        except (OSError, UnicodeError) as exc:
            self._forget(host, port)
            future.set_exception(exc)
        else:
            self._forget(host, port)
            future.set_result(addresses)

    def _forget(self, host: str, port: int) -> None:
        with self._lock:
            del self._under_way[host, port]


def tried(operation: Callable[[], T], on: socket.socket, exchange: Exchange, events: int) -> T:
    """The value of a non-blocking operation, waiting as often as it asks to. TLS may read where we write."""
    while True:
        exchange.check()
        try:
            return operation()
        except ssl.SSLWantReadError:
            wanted = select.POLLIN
        except ssl.SSLWantWriteError:
            wanted = select.POLLOUT
        except BlockingIOError:
            wanted = events
        exchange.wait_for(on.fileno(), wanted)


def connected(addresses: list[Address], host: str, port: int, exchange: Exchange) -> socket.socket:
    """The first address that takes a connection; each gets a fair share of the time, so that a silent one is passed."""
    why = "no address"
    for left in range(len(addresses), 0, -1):
        family, address = addresses[-left]
        try:
            opened = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        except OSError as exc:  # no IPv6 in this kernel, or no descriptor left
            why = str(exc)
            continue
        try:
            code = _connect_code(opened, address, exchange, exchange.connect_left_s() / left if left > 1 else None)
            if code == 0:
                _tune(opened)
                return opened
        except BaseException:
            opened.close()
            raise
        opened.close()
        why = os.strerror(code)
    raise failed("connect", f"no connection to {host}:{port}: {why}")


def _connect_code(opened: socket.socket, address: SocketAddress, exchange: Exchange, at_most_s: float | None) -> int:
    code = opened.connect_ex(address)
    if code != errno.EINPROGRESS:
        return code
    if not exchange.wait_for(opened.fileno(), select.POLLOUT, at_most_s=at_most_s):
        return errno.ETIMEDOUT
    return opened.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)


def _tune(opened: socket.socket) -> None:
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _PROBE_IDLE_S)
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _PROBE_EVERY_S)
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _PROBES)


def _addresses(host: str, port: int, flags: int) -> list[Address]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    return [(family, address) for family, _, _, _, address in found]
