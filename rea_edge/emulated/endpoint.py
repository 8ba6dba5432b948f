"""A scripted model server: real HTTP/1.1 on loopback, answers from a list or a function, and faults on demand.

For tests, the demo and users who test their own tools. It knows no model, checks no key and never leaves loopback.
"""

import random
import ssl
import threading
from types import TracebackType
from typing import Final

from rea_edge.emulated.completions import Message
from rea_edge.emulated.script import Book, Fault, FaultKind, Held, Request, Script, Scripted
from rea_edge.emulated.serving import ScriptedServer

__all__ = ["Fault", "FaultKind", "Held", "Message", "Request", "Script", "Scripted", "ScriptedEndpoint"]

HIGHEST_PORT: Final = 32_000  # above are the ports that the kernel gives to outgoing connections
LOWEST_PORT: Final = 20_000
_PORT_TRIES: Final = 50
_CLOSE_S: Final = 5.0


class ScriptedEndpoint:
    """An OpenAI-compatible server that says what it is told to. Use as a context manager.

    `answers` is a list, indexed by the number of assistant messages in the request (so that a repeated question gets
    the same answer), or a function from the decoded request to an answer. `streams=False` ignores `stream: true`.
    """

    def __init__(
        self,
        answers: Script,
        *,
        port: int = 0,
        model: str = "scripted",
        context_tokens: int = 4096,
        streams: bool = True,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._book = Book()
        self._scheme = "http" if tls is None else "https"
        for left in range(1 if port else _PORT_TRIES, 0, -1):
            try:
                self._server = ScriptedServer(
                    port or random.randrange(LOWEST_PORT, HIGHEST_PORT),
                    answers,
                    self._book,
                    model=model,
                    context_tokens=context_tokens,
                    streams=streams,
                )
                break
            except OSError:
                if left == 1:
                    raise
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), name="scripted-endpoint", daemon=True
        )

    def __enter__(self) -> "ScriptedEndpoint":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self.port}/v1"

    @property
    def requests(self) -> list[Request]:
        """The newest requests, oldest first."""
        with self._book.changed:
            return list(self._book.requests)

    @property
    def abandoned(self) -> int:
        """How many answers broke off because the client closed its connection."""
        with self._book.changed:
            return self._book.abandoned

    def wait_for_requests(self, count: int, seconds: float) -> bool:
        """Whether `count` requests have arrived within `seconds`."""
        with self._book.changed:
            return self._book.changed.wait_for(lambda: len(self._book.requests) >= count, seconds)

    def wait_for_abandoned(self, count: int, seconds: float) -> bool:
        with self._book.changed:
            return self._book.changed.wait_for(lambda: self._book.abandoned >= count, seconds)

    def drop_connections(self) -> None:
        """Close every connection, kept ones too, as a server does that restarts."""
        self._book.shut_all()

    def close(self) -> None:
        """Stop listening, end every answer and every thread."""
        self._book.closing.set()
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join(_CLOSE_S)
        self._server.server_close()
        self.drop_connections()
        with self._book.changed:
            self._book.changed.wait_for(lambda: not self._book.connections, _CLOSE_S)
