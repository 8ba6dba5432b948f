"""How a scripted endpoint serves one connection: reads requests, answers or misbehaves as its script says."""

import json
import select
import socket
import ssl
import time
import zlib
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from typing import Final

from rea_edge.emulated.completions import Message, completion, events, first_event
from rea_edge.emulated.script import Book, Fault, Held, Request, Script, Scripted, scripted

LARGEST_REQUEST_BYTES: Final = 4 * 1024 * 1024
_LOOK_EVERY_S: Final = 0.02
_BLOCK: Final = b"a" * 65_536


class ScriptedServer(ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(
        self, port: int, script: Script, book: Book, *, model: str, context_tokens: int, streams: bool
    ) -> None:
        self.script = script
        self.book = book
        self.model = model
        self.context_tokens = context_tokens
        self.streams = streams
        super().__init__(("127.0.0.1", port), _Handler)

    def shutdown_request(self, request: socket.socket | tuple[bytes, socket.socket]) -> None:
        super().shutdown_request(request)
        if isinstance(request, socket.socket):
            self.book.ended(request)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: ScriptedServer
    connection: socket.socket

    def setup(self) -> None:
        self._number = self.server.book.opened(self.request)
        super().setup()

    def handle(self) -> None:
        try:
            super().handle()
        except OSError:
            self.close_connection = True  # reset, or a TLS handshake that the client refused

    def finish(self) -> None:
        try:
            super().finish()
        except OSError:
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Keep standard error quiet."""

    def do_GET(self) -> None:
        server = self.server
        self._arrived(b"")
        entry = {"id": server.model, "object": "model", "meta": {"n_ctx_train": server.context_tokens}}
        pages: dict[str, Message] = {
            "/health": {"status": "ok"},
            "/props": {"default_generation_settings": {"n_ctx": server.context_tokens}, "total_slots": 1},
            "/v1/models": {"object": "list", "data": [entry]},
        }
        page = pages.get(self.path.partition("?")[0])
        if page is None:
            return self._send_error_body(404, "not found", "not_found_error")
        return self._send_json(200, page)

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        if length > LARGEST_REQUEST_BYTES:
            self.close_connection = True
            return self._send_error_body(413, "request too large", "invalid_request_error")
        body = self.rfile.read(length)
        self._arrived(body)
        request = _decoded(body)
        if self.path.partition("?")[0] != "/v1/chat/completions":
            return self._send_error_body(404, "not found", "not_found_error")
        if request is None:
            return self._send_error_body(400, "the body is not a JSON object", "invalid_request_error")
        try:
            return self._perform(scripted(self.server.script, request), request)
        except OSError:
            self.close_connection = True
            if not self.server.book.closing.is_set():
                self.server.book.gave_up()

    def _arrived(self, body: bytes) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.book.arrived(Request(self.path, body, headers, self._number, time.monotonic()))

    def _perform(self, answer: Scripted, request: Message) -> None:
        match answer:
            case Held(answer=later, release=release):
                while not release.is_set():
                    self._pause(_LOOK_EVERY_S)
                self._answer(later, request)
            case Fault(kind="status"):
                self._send(answer.status, answer.body.encode(), answer.headers)
            case Fault():
                self._misbehave(answer, request)
            case _:
                self._answer(answer, request)

    def _answer(self, answer: str | Message, request: Message) -> None:
        message: Message = dict(answer) if isinstance(answer, dict) else {"content": answer}
        if not (request.get("stream") and self.server.streams):
            return self._send_json(200, completion(message, request, self.server.model))
        self._begin_stream()
        for event in events(message, request, self.server.model):
            self._send_chunk(event)
        return self._send_chunk(b"")

    def _misbehave(self, fault: Fault, request: Message) -> None:
        match fault.kind:
            case "redirect":
                self._send(307, b"", (("location", "http://127.0.0.1:9/elsewhere?key=secret"),))
            case "refuse_stream" if not request.get("stream"):
                self._answer(fault.body, request)
            case "refuse_stream":
                self._send_error_body(400, "streaming is not supported", "invalid_request_error")
            case "not_json":
                self._send(200, b"<html>a proxy's page</html>", (("content-type", "text/html"),))
            case "empty_choices":
                self._send_json(200, {"object": "chat.completion", "choices": []})
            case "error_in_200":
                self._send_json(200, {"error": {"message": fault.body or "out of memory", "code": 500}})
            case "no_finish":
                self._begin_stream()
                self._send_chunk(first_event(self.server.model))
                self._send_chunk(b"")
            case _:
                self._break_off(fault)
                self.close_connection = True

    def _break_off(self, fault: Fault) -> None:
        """Faults after which the connection is of no use."""
        match fault.kind:
            case "hang_header":
                self._hang()
            case "drip_header":
                self._drip(b"HTTP/1.1 200 OK\r\nx-drip: ", fault.gap_s)
            case "huge_header":
                self.wfile.write(b"HTTP/1.1 200 OK\r\nx-huge: ")
                self._flood(_BLOCK)
            case "gzip_bomb":
                self._send_head("application/json", ("content-encoding", "gzip"))
                pack = zlib.compressobj(wbits=31)
                for _ in range(1024):
                    self.wfile.write(pack.compress(bytes(1_048_576)))
            case "huge_body":
                self._send_head("application/json")
                self.wfile.write(b'{"choices":[{"message":{"content":"')
                self._flood(_BLOCK)
            case "endless_line":
                self._send_head("text/event-stream")
                self.wfile.write(b"data: ")
                self._flood(_BLOCK)
            case "drip_body":
                self._send_head("text/event-stream")
                self._drip(b"data: ", fault.gap_s)
            case "hang_body":
                self._begin_stream()
                self._send_chunk(first_event(self.server.model))
                self._hang()
            case "cut_body":
                self._begin_stream()
                self._send_chunk(first_event(self.server.model))

    def _hang(self) -> None:
        while True:
            self._pause(1.0)

    def _drip(self, head: bytes, gap_s: float) -> None:
        for at in range(len(head)):
            self.wfile.write(head[at : at + 1])
            self._pause(gap_s)
        while True:
            self.wfile.write(b"a")
            self._pause(gap_s)

    def _flood(self, block: bytes) -> None:
        while not self.server.book.closing.is_set():
            self.wfile.write(block)

    def _pause(self, seconds: float) -> None:
        """Wait, but raise as soon as the client or the server goes."""
        until_s = time.monotonic() + seconds
        while (left_s := until_s - time.monotonic()) > 0:
            if self.server.book.closing.wait(min(left_s, _LOOK_EVERY_S)):
                raise ConnectionAbortedError("the scripted endpoint is closing")
            if isinstance(self.connection, ssl.SSLSocket) or not select.select([self.connection], [], [], 0)[0]:
                continue
            if not self.connection.recv(1, socket.MSG_PEEK):
                raise ConnectionAbortedError("the client has closed its connection")

    def _begin_stream(self) -> None:
        self._send_head("text/event-stream", ("transfer-encoding", "chunked"))

    def _send_head(self, content_type: str, *headers: tuple[str, str]) -> None:
        self.send_response(200)
        self.send_header("content-type", content_type)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()

    def _send_chunk(self, piece: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))

    def _send_json(self, status: int, value: Message) -> None:
        self._send(status, json.dumps(value).encode(), (("content-type", "application/json"),))

    def _send_error_body(self, status: int, message: str, kind: str) -> None:
        self._send_json(status, {"error": {"code": status, "message": message, "type": kind}})

    def _send(self, status: int, body: bytes, headers: Sequence[tuple[str, str]]) -> None:
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _decoded(body: bytes) -> Message | None:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
