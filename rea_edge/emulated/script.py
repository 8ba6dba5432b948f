"""What a scripted endpoint is told to say, and how it remembers what it was asked. No sockets of its own."""

import socket
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct

from rea_edge.emulated.completions import Message, role_of

KEPT_REQUESTS: Final = 1_000

FaultKind = Literal[
    "status", "redirect", "refuse_stream",  # refused in order
    "cut_header", "cut_body", "no_finish", "hang_header", "hang_body", "drip_header", "drip_body",  # never whole
    "huge_header", "huge_body", "endless_line", "gzip_bomb",  # too much
    "not_json", "empty_choices", "error_in_200",  # something else
]  # fmt: skip


class Fault(Struct, frozen=True):
    """Misbehave instead of answering. `status` and `headers` are for the kind `status`; drips wait `gap_s`.

    `body` is what `status` sends, what `error_in_200` says, what `refuse_stream` answers to one who does not stream.
    """

    kind: FaultKind
    status: int = 500
    body: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    gap_s: float = 0.05


class Held(Struct, frozen=True):
    """An answer that is given once the test sets `release`."""

    answer: str | Message
    release: threading.Event


Scripted = str | Message | Fault | Held
Script = Sequence[Scripted] | Callable[[Message], Scripted]


class Request(Struct, frozen=True):
    """One request as it arrived. `connection` numbers the connections from 1, `at_s` is monotonic."""

    path: str
    body: bytes
    headers: Mapping[str, str]
    connection: int
    at_s: float


class Book:
    """Requests, connections and broken-off answers of one endpoint, for the threads that serve and the test."""

    def __init__(self) -> None:
        self.closing = threading.Event()
        self.changed = threading.Condition()
        self.requests: deque[Request] = deque(maxlen=KEPT_REQUESTS)
        self.abandoned = 0
        self.connections: set[socket.socket] = set()
        self._opened = 0

    def opened(self, connection: socket.socket) -> int:
        with self.changed:
            self.connections.add(connection)
            self._opened += 1
            return self._opened

    def ended(self, connection: socket.socket) -> None:
        with self.changed:
            self.connections.discard(connection)
            self.changed.notify_all()

    def arrived(self, request: Request) -> None:
        with self.changed:
            self.requests.append(request)
            self.changed.notify_all()

    def gave_up(self) -> None:
        with self.changed:
            self.abandoned += 1
            self.changed.notify_all()

    def shut_all(self) -> None:
        with self.changed:
            for connection in self.connections:
                _shut(connection)


def scripted(script: Script, request: Message) -> Scripted:
    """The answer to `request`: from the function, or from the list by the number of assistant messages."""
    if callable(script):
        return script(request)
    messages = request.get("messages")
    said = sum(1 for message in messages if role_of(message) == "assistant") if isinstance(messages, list) else 0
    if said < len(script):
        return script[said]
    return Fault("status", status=500, body=f"the script has no answer number {said}")


def _shut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # it is closed already
