"""The endpoint client: one question, one answer or one named failure, within bounds. No retries, no choice of server.

A chat is always streamed, since a closed stream frees the server's slot where a closed plain request does not;
a server that ignores that and sends one JSON answer is understood as well.
"""

import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

import msgspec

from rea_edge.cancel import Cancel
from rea_edge.endpoint.assembly import Assembly
from rea_edge.endpoint.bounds import Exchange
from rea_edge.endpoint.events import EventReader
from rea_edge.endpoint.faults import failed, refused, said_error
from rea_edge.errors import ConfigInvalid, EndpointFailed
from rea_edge.records import Answer

if TYPE_CHECKING:
    from rea_edge.endpoint.network import Network, Response

# A token costs about 270 bytes on the wire as an event, so a stream may be larger than the message it carries.
STREAM_CAPS: Final = 16
ERROR_CAP_BYTES: Final = 16_384
AFTERWARDS_S: Final = 2.0  # for usage and [DONE] once the answer is finished, for the words of an error
END_S: Final = 0.2  # for the end of the body after [DONE], which lets the connection be kept

_DONE: Final = b"[DONE]"


class Endpoint:
    """One model server. Thread-safe; nothing is opened, and httpx is not imported, before the first question.

    `url` is the base (it usually ends in `/v1`); `connect_s` covers look-up, connect and TLS; `idle_s` is the longest
    silence once a body has begun; `body_cap` bounds one message and one event in bytes. Raises `ConfigInvalid` for a
    url or key that cannot be used. Neither key nor userinfo is ever part of a message or of `repr`.
    """

    def __init__(
        self,
        *,
        name: str,
        url: str,
        model: str,
        api_key: str | None = None,
        connect_s: float = 5.0,
        idle_s: float = 30.0,
        body_cap: int = 262_144,
        ca_file: str | None = None,
    ) -> None:
        self.name = name
        self.model = model
        self._base, userinfo = _split(name, url)
        self._connect_s = connect_s
        self._idle_s = idle_s
        self._body_cap = body_cap
        self._ca_file = ca_file
        self._secrets, authorization = _credentials(name, api_key, userinfo)
        self._headers = {
            "user-agent": "rea-edge",
            "accept": "text/event-stream, application/json",
            "accept-encoding": "identity",
            "content-type": "application/json",
            **authorization,
        }
        self._lock = threading.Lock()
        self._network: Network | None = None

    def __repr__(self) -> str:
        return f"Endpoint({self.name!r}, {urlunsplit(self._base._replace(query=''))!r}, {self.model!r})"

    def ask(self, body: bytes, *, seconds: float, cancel: Cancel) -> Answer:
        """POST a chat completion (`body` is the whole JSON request) and give the message it comes to.

        Raises `EndpointFailed`, whose kinds are listed in `faults`, at the latest `seconds` from now.
        """
        with self._exchange("POST", "chat/completions", body, seconds, cancel) as (response, exchange):
            return _read_answer(response, exchange, self._body_cap)

    def get(self, path: str, *, seconds: float, cancel: Cancel) -> object:
        """GET JSON under the same bounds: `/props` is below the url's parent, `models` below the url itself."""
        with self._exchange("GET", path, b"", seconds, cancel) as (response, _):
            return _read_json(response, self._body_cap)

    def close(self) -> None:
        with self._lock:
            if self._network is not None:
                self._network.close()
                self._network = None

    @contextmanager
    def _exchange(
        self, method: str, path: str, body: bytes, seconds: float, cancel: Cancel
    ) -> Iterator[tuple["Response", Exchange]]:
        try:
            bounds = Exchange(seconds=seconds, connect_s=self._connect_s, idle_s=self._idle_s, cancel=cancel)
            with bounds as exchange:
                network = self._opened()
                exchange.check()
                with network.send(exchange, method, self._url(path), self._headers, body) as response:
                    _refuse_unless_good(response, exchange, self._body_cap)
                    yield response, exchange
        except EndpointFailed as exc:
            raise self._named(exc) from exc.__cause__

    def _opened(self) -> "Network":
        from rea_edge.endpoint.network import Network

        with self._lock:
            if self._network is None:
                self._network = Network(https=self._base.scheme == "https", ca_file=self._ca_file)
            return self._network

    def _url(self, path: str) -> str:
        base = self._base.path.rstrip("/")
        if path.startswith("/"):
            base = base.rpartition("/")[0]
        return urlunsplit(self._base._replace(path=f"{base}/{path.lstrip('/')}"))

    def _named(self, exc: EndpointFailed) -> EndpointFailed:
        message = exc.message
        for secret in self._secrets:  # a server may quote the key that it refuses
            message = message.replace(secret, "***")
        return EndpointFailed(
            exc.kind,
            f"{self.name}: {message}",
            retryable=exc.retryable,
            retry_after_s=exc.retry_after_s,
            suggestion=exc.suggestion,
            context_tokens=exc.context_tokens,
            prompt_tokens=exc.prompt_tokens,
            parameter=exc.parameter,
        )


def _split(name: str, url: str) -> tuple[SplitResult, str]:
    """The base without userinfo or fragment, and the userinfo."""
    place = f"endpoint.{name}.url"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as exc:
        raise ConfigInvalid(place, "cannot be read as a URL") from exc
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise ConfigInvalid(place, "needs the form http://HOST:PORT/v1 or https://HOST/v1")
    userinfo, _, host = parts.netloc.rpartition("@")
    return parts._replace(netloc=host, fragment=""), userinfo


def _credentials(name: str, api_key: str | None, userinfo: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """What must never be shown, and the header that carries it. A key wins over userinfo."""
    user, _, password = (unquote(part) for part in userinfo.partition(":"))
    basic = b64encode(f"{user}:{password}".encode()).decode()
    key = (api_key or "").strip()
    if not key.isascii() or not key.isprintable():
        raise ConfigInvalid(f"endpoint.{name}.api_key", "holds characters that no header can carry")
    secrets = tuple(secret for secret in (key, userinfo, password, userinfo and basic) if secret)
    if key:
        return secrets, {"authorization": f"Bearer {key}"}
    return secrets, {"authorization": f"Basic {basic}"} if userinfo else {}


def _refuse_unless_good(response: "Response", exchange: Exchange, cap: int) -> None:
    headers = response.headers
    encoding = headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", ""):
        raise failed("encoding", f"the answer is encoded as {encoding[:40]!r} although identity was asked for")
    if response.status != 200:
        exchange.hurry(AFTERWARDS_S)
        raise refused(response.status, headers, _beginning(response))
    length = headers.get("content-length", "")
    if length.isdecimal() and int(length) > cap * STREAM_CAPS:
        raise failed("body_cap", f"the answer announces {length} bytes")


def _beginning(response: "Response") -> bytes:
    """The first bytes of an error's body. That it breaks off is no news: the status has said enough."""
    body = bytearray()
    try:
        for chunk in response.chunks():
            body += chunk
            if len(body) >= ERROR_CAP_BYTES:
                break
    except EndpointFailed as exc:
        if exc.kind == "cancelled":
            raise
    return bytes(body[:ERROR_CAP_BYTES])


def _read_json(response: "Response", cap: int) -> object:
    body = _capped(response.chunks(), cap)
    error = said_error(body)
    if error is not None:
        raise error
    try:
        return msgspec.json.decode(body)
    except (msgspec.MsgspecError, RecursionError) as exc:
        raise failed("not_json", f"the answer is not JSON: {exc}") from exc


def _read_answer(response: "Response", exchange: Exchange, cap: int) -> Answer:
    chunks = response.chunks()
    begun = _begun(chunks)
    kind = response.headers.get("content-type", "")
    assembly = Assembly(cap)
    if begun[:1] in (b"{", b"[") or not ("event-stream" in kind or begun.startswith((b"data:", b"event:", b":"))):
        assembly.take(_capped(chunks, cap, begun), stream=False)
    else:
        _read_stream(chunks, begun, exchange, assembly, cap)
    return assembly.answer()


def _begun(chunks: Iterator[bytes]) -> bytes:
    """Enough of the body to tell a stream from a plain answer."""
    begun = b""
    for chunk in chunks:
        begun = (begun + chunk).removeprefix(b"\xef\xbb\xbf").lstrip()
        if len(begun) >= len(b"event:"):
            break
    return begun


def _capped(chunks: Iterator[bytes], cap: int, begun: bytes = b"") -> bytes:
    body = bytearray(begun)
    for chunk in chunks:
        body += chunk
        if len(body) > cap:
            break
    if len(body) > cap:
        raise failed("body_cap", f"the answer is larger than {cap} bytes")
    return bytes(body)


def _read_stream(chunks: Iterator[bytes], begun: bytes, exchange: Exchange, assembly: Assembly, cap: int) -> None:
    """Read events to the end. Once the answer has said that it is finished, nothing that follows can spoil it."""
    reader = EventReader(cap)
    room = cap * STREAM_CAPS
    try:
        for chunk in chain((begun,), chunks):
            room -= len(chunk)
            if room < 0:
                raise failed("body_cap", f"the stream is larger than {cap * STREAM_CAPS} bytes")
            for payload in reader.feed(chunk):
                _take(payload, exchange, assembly)
        _take_rest(reader, exchange, assembly)
    except EndpointFailed as exc:
        if exc.kind == "cancelled" or not assembly.finished:
            raise
    if not assembly.finished:
        raise failed("cut", "the stream ended before its answer was finished")


def _take(payload: bytes, exchange: Exchange, assembly: Assembly) -> None:
    if assembly.done:
        return
    if payload.strip() == _DONE:
        assembly.done = True
        exchange.hurry(END_S)
        return
    assembly.take(payload, stream=True)
    if assembly.finished:
        exchange.hurry(AFTERWARDS_S)


def _take_rest(reader: EventReader, exchange: Exchange, assembly: Assembly) -> None:
    try:
        for payload in reader.rest():
            _take(payload, exchange, assembly)
    except EndpointFailed as exc:
        if exc.kind != "not_json":
            raise
        # Half an event at the end of the body: the stream was cut, which the caller says.
