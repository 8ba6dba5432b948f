"""Counterparties for the endpoint's tests: raw servers for what HTTP libraries refuse to send. Loopback only."""

import json
import random
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rea_edge.cancel import Cancel
from rea_edge.emulated.endpoint import HIGHEST_PORT, LOWEST_PORT
from rea_edge.endpoint import Endpoint
from rea_edge.errors import EndpointFailed
from rea_edge.records import Answer

Act = Callable[[socket.socket], None]


def listening(backlog: int = 16) -> socket.socket:
    for left in range(50, 0, -1):
        opened = socket.socket()
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            opened.bind(("127.0.0.1", random.randrange(LOWEST_PORT, HIGHEST_PORT)))
            opened.listen(backlog)
            return opened
        except OSError:
            opened.close()
            if left == 1:
                raise
    raise AssertionError


@contextmanager
def raw_server(*acts: Act) -> Iterator[str]:
    """The n-th connection is given to the n-th act, the last one to all that follow. Gives the base url."""
    listener = listening()
    opened: list[socket.socket] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            act = acts[min(len(opened), len(acts) - 1)]
            opened.append(connection)
            threading.Thread(target=performed, args=(act, connection), daemon=True).start()

    def performed(act: Act, connection: socket.socket) -> None:
        try:
            act(connection)
        except OSError:
            return

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for connection in opened:
            connection.close()
        thread.join(2)


@contextmanager
def black_hole() -> Iterator[str]:
    """A port whose queue of connections is full: whoever connects hears nothing."""
    listener = listening(0)
    waiting = [socket.socket() for _ in range(4)]
    try:
        for client in waiting:
            client.setblocking(False)
            client.connect_ex(listener.getsockname())
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    finally:
        for client in waiting:
            client.close()
        listener.close()


def read_request(connection: socket.socket) -> bytes:
    """One whole request, or what came of it."""
    seen = b""
    while b"\r\n\r\n" not in seen:
        piece = connection.recv(65536)
        if not piece:
            return seen
        seen += piece
    head, _, body = seen.partition(b"\r\n\r\n")
    length = next((int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0)
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def says(reply: bytes, *, close: bool = True) -> Act:
    """Read one request, send these bytes."""

    def act(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(reply)
        if close:
            connection.close()
        else:
            connection.recv(1)

    return act


def reply(body: bytes, content_type: str = "application/json", status: str = "200 OK", more: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {len(body)}\r\n{more}\r\n"
    return head.encode() + body


def stream(*payloads: object, end: bytes = b"data: [DONE]\n\n") -> bytes:
    """A body of events, one for each payload (bytes go as they are), without a length: it ends with the connection."""
    events = b"".join(
        b"data: " + (item if isinstance(item, bytes) else json.dumps(item).encode()) + b"\n\n" for item in payloads
    )
    return b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n" + events + end


def delta(finish: str | None = None, **members: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": members, "finish_reason": finish}]}


def question(*messages: dict[str, object]) -> bytes:
    body = {"model": "m", "messages": list(messages), "stream": True, "stream_options": {"include_usage": True}}
    return json.dumps(body).encode()


def endpoint_at(url: str, **settings: object) -> Endpoint:
    return Endpoint(name="local", url=url, model="m", **settings)  # type: ignore[arg-type]  # by keyword, as the test says


def asked(url: str, *, seconds: float = 5.0, **settings: object) -> Answer:
    endpoint = endpoint_at(url, **settings)
    try:
        return endpoint.ask(question(), seconds=seconds, cancel=Cancel())
    finally:
        endpoint.close()


def failure(url: str, *, seconds: float = 5.0, **settings: object) -> EndpointFailed:
    """The failure that a question to `url` ends with; an answer is an error of the test."""
    try:
        answer = asked(url, seconds=seconds, **settings)
    except EndpointFailed as exc:
        return exc
    raise AssertionError(f"an answer came: {bytes(answer.message)!r}")
