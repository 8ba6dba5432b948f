"""httpx under our bounds: every wait of a connection belongs to an `Exchange`, whatever the server does.

The only file that imports httpx and httpcore; loaded at the first question. Their exceptions end here.
Our sockets do not block: each read, write, connect and handshake is tried, then waited for in `Exchange.wait_for`,
which knows the deadline and hears a cancel. httpx's own time limits are per wait, so a slow drip outlives them.
"""

import select
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import httpcore
import httpx

from rea_edge.endpoint.bounds import Exchange
from rea_edge.endpoint.faults import failed, refused
from rea_edge.endpoint.sockets import Names, connected, tried
from rea_edge.errors import EndpointFailed

Current = Callable[[], Exchange]

_KEEP_CONNECTION_S = 30.0
_REDIRECTS = range(300, 400)


class Network:
    """One httpx client for life, over connections that obey the exchange of the thread that uses them."""

    def __init__(self, *, https: bool, ca_file: str | None) -> None:
        self._here = threading.local()
        self._client = httpx.Client(
            transport=_Transport(self._current, _tls_context(ca_file) if https else None),
            follow_redirects=False,
            trust_env=False,
            timeout=None,  # `Exchange` bounds every wait
        )

    @contextmanager
    def send(
        self, exchange: Exchange, method: str, url: str, headers: dict[str, str], body: bytes
    ) -> Iterator["Response"]:
        """The answer once its headers are there; its connection is closed at the end unless it was read whole."""
        self._here.exchange = exchange
        try:
            response = self._client.send(self._request(method, url, headers, body), stream=True)
            exchange.enter("begin")
            try:
                yield Response(response, exchange)
            finally:
                response.close()
        finally:
            del self._here.exchange

    def close(self) -> None:
        self._client.close()

    def _request(self, method: str, url: str, headers: dict[str, str], body: bytes) -> httpx.Request:
        try:
            return self._client.build_request(method, url, headers=headers, content=body)
        except httpx.InvalidURL as exc:
            raise failed("dns", f"no such host: {exc}") from exc

    def _current(self) -> Exchange:
        exchange = self._here.exchange
        assert isinstance(exchange, Exchange)
        return exchange


class Response:
    """Status, headers by lower-case name, and the raw body as it comes."""

    def __init__(self, response: httpx.Response, exchange: Exchange) -> None:
        self.status = response.status_code
        self.headers: dict[str, str] = dict(response.headers)
        self._response = response
        self._exchange = exchange

    def chunks(self) -> Iterator[bytes]:
        for chunk in self._response.iter_raw():
            self._exchange.enter("body")
            yield chunk


class _Transport(httpx.BaseTransport):
    def __init__(self, current: Current, tls: ssl.SSLContext | None) -> None:
        self._current = current
        self._pool = httpcore.ConnectionPool(
            ssl_context=tls,
            # No limit, because waiting for a connection of the pool could not be cancelled; lanes are few.
            max_connections=None,
            max_keepalive_connections=2,
            keepalive_expiry=_KEEP_CONNECTION_S,
            network_backend=_Backend(current),
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        exchange = self._current()
        with _translated(exchange):
            response = self._first_answer(request, exchange)
        headers = [(name, value) for name, value in response.headers if name.lower() != b"set-cookie"]
        if response.status in _REDIRECTS:
            # Refused here: httpx reads the address of a redirect also when it does not follow it.
            response.close()
            raise _redirected(response.status, headers)
        return httpx.Response(response.status, headers=headers, stream=_Body(response, exchange))

    def close(self) -> None:
        self._pool.close()

    def _first_answer(self, request: httpx.Request, exchange: Exchange) -> httpcore.Response:
        while True:
            try:
                return self._pool.handle_request(_for_httpcore(request))
            except (httpcore.NetworkError, httpcore.ProtocolError):
                # A kept connection that the server closed meanwhile. Each such failure takes one kept connection
                # away, so this ends; a question asked twice costs a server time and nothing else.
                if not exchange.untouched:
                    raise


class _Body(httpx.SyncByteStream):
    def __init__(self, response: httpcore.Response, exchange: Exchange) -> None:
        self._response = response
        self._exchange = exchange

    def __iter__(self) -> Iterator[bytes]:
        with _translated(self._exchange):
            yield from self._response.iter_stream()

    def close(self) -> None:
        self._response.close()


class _Backend(httpcore.NetworkBackend):
    def __init__(self, current: Current) -> None:
        self._current = current
        self._names = Names()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        exchange = self._current()
        exchange.enter("look_up")
        addresses = self._names.addresses(host, port, exchange)
        exchange.enter("connect")
        opened = connected(addresses, host, port, exchange)
        exchange.enter("header")
        return _Stream(opened, self._current)


class _Stream(httpcore.NetworkStream):
    def __init__(self, connected: socket.socket, current: Current) -> None:
        self._socket = connected
        self._current = current

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        exchange = self._current()
        try:
            most = exchange.read_bytes(max_bytes)
            chunk = tried(lambda: self._socket.recv(most), self._socket, exchange, select.POLLIN)
        except OSError as exc:
            exchange.received(0)
            raise httpcore.ReadError(exc) from exc
        exchange.received(len(chunk))
        return chunk

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        exchange = self._current()
        rest = memoryview(buffer)
        try:
            while rest:
                rest = rest[tried(lambda: self._socket.send(rest), self._socket, exchange, select.POLLOUT) :]  # noqa: B023
        except OSError as exc:
            raise httpcore.WriteError(exc) from exc

    def close(self) -> None:
        self._socket.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        exchange = self._current()
        exchange.enter("tls")
        try:
            tls = ssl_context.wrap_socket(self._socket, server_hostname=server_hostname, do_handshake_on_connect=False)
            self._socket = tls
            tried(tls.do_handshake, tls, exchange, select.POLLIN)
        except ssl.SSLCertVerificationError as exc:
            self.close()
            raise failed("tls", f"the certificate of {server_hostname!r}: {exc.verify_message}") from exc
        except (OSError, ValueError) as exc:
            self.close()
            raise failed("tls", f"no TLS with {server_hostname!r}: {exc}") from exc
        except EndpointFailed:
            self.close()
            raise
        exchange.enter("header")
        return self

    def get_extra_info(self, info: str) -> object:
        if info == "is_readable":
            poll = select.poll()
            poll.register(self._socket, select.POLLIN)
            return bool(poll.poll(0))
        return None


@contextmanager
def _translated(exchange: Exchange) -> Iterator[None]:
    try:
        yield
    except (httpcore.NetworkError, httpcore.ProtocolError) as exc:
        if exchange.ended_by_server:
            raise failed("cut", "the server closed the connection before the answer was whole") from exc
        raise failed("wrong_shape", f"the answer is not HTTP: {exc}") from exc


def _redirected(status: int, headers: list[tuple[bytes, bytes]]) -> EndpointFailed:
    to = next((value for name, value in headers if name.lower() == b"location"), b"")
    # Without its query, which may hold a secret.
    return refused(status, {}, b"to " + to.partition(b"?")[0] if to else b"")


def _for_httpcore(request: httpx.Request) -> httpcore.Request:
    url = request.url
    return httpcore.Request(
        method=request.method,
        url=httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
        headers=request.headers.raw,
        content=request.read(),
    )


def _tls_context(ca_file: str | None) -> ssl.SSLContext:
    """Real verification: by `ca_file` alone, else by the system's authorities, else by those that httpx brings."""
    try:
        if ca_file is not None:
            return ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as exc:
        raise failed("tls", f"ca_file {ca_file!r} cannot be used: {exc}") from exc
    paths = ssl.get_default_verify_paths()
    if paths.cafile or paths.capath:
        return ssl.create_default_context()
    return httpx.create_ssl_context(trust_env=False)
