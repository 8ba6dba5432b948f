"""No server, however hostile, holds a question beyond its deadline, and a cancel ends it in every phase at once."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from rea_edge.cancel import Cancel
from rea_edge.emulated.endpoint import Fault, FaultKind, Held, Message, Scripted, ScriptedEndpoint
from rea_edge.errors import EndpointFailed

from .servers import Act, asked, black_hole, delta, endpoint_at, failure, question, raw_server, read_request, stream

SSE_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
LATE_S = 2.0  # how much later than its bound a question may end on a busy machine; what nothing bounds never ends


def dripping(head: bytes, piece: bytes) -> Act:
    def act(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(head)
        while True:
            connection.sendall(piece)
            time.sleep(0.02)

    return act


def silent(connection: socket.socket) -> None:
    connection.recv(1 << 20)
    threading.Event().wait(5)


def flooding(connection: socket.socket) -> None:
    read_request(connection)
    connection.sendall(SSE_HEAD.replace(b"transfer-encoding: chunked", b"connection: close"))
    while True:
        connection.sendall(b": ping\n" * 8000)


@contextmanager
def scripted(fault: FaultKind) -> Iterator[str]:
    with ScriptedEndpoint([Fault(fault, gap_s=0.02)]) as server:
        yield server.url


Place = Callable[[], AbstractContextManager[str]]


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        pytest.param(black_hole, "timeout_connect", id="connect"),
        pytest.param(lambda: scripted("hang_header"), "timeout_header", id="silence"),
        pytest.param(lambda: scripted("drip_header"), "timeout_header", id="headers byte by byte"),
        pytest.param(lambda: scripted("hang_body"), "timeout_total", id="half an answer"),
        pytest.param(lambda: scripted("drip_body"), "timeout_total", id="body byte by byte"),
        pytest.param(lambda: raw_server(dripping(SSE_HEAD, b"1;" + b"x" * 50)), "timeout_header", id="chunk header"),
        pytest.param(lambda: raw_server(dripping(SSE_HEAD, b"2\r\n:\n\r\n")), "timeout_total", id="endless comments"),
    ],
)
def test_a_question_ends_at_its_deadline(place: Place, kind: str) -> None:
    with place() as url:
        begun_s = time.monotonic()
        error = failure(url, seconds=0.6)
        took_s = time.monotonic() - begun_s
    assert error.kind == kind
    assert error.retryable
    assert took_s < 0.6 + LATE_S


def test_connecting_has_a_bound_of_its_own() -> None:
    with black_hole() as url:
        begun_s = time.monotonic()
        assert failure(url, seconds=5, connect_s=0.3).kind == "timeout_connect"
        assert time.monotonic() - begun_s < 0.3 + LATE_S


def test_a_tls_handshake_that_gets_no_answer_ends_with_the_connect_bound() -> None:
    with raw_server(silent) as url:
        begun_s = time.monotonic()
        error = failure(url.replace("http:", "https:"), seconds=5, connect_s=0.4)
        assert error.kind == "timeout_connect"
        assert "TLS" in error.message
        assert time.monotonic() - begun_s < 0.4 + LATE_S  # with the authorities' file, which is read before


def test_silence_within_an_answer_ends_after_idle_s() -> None:
    with scripted("hang_body") as url:
        begun_s = time.monotonic()
        assert failure(url, seconds=5, idle_s=0.3).kind == "timeout_idle"
        assert time.monotonic() - begun_s < 0.3 + LATE_S


def test_the_wait_for_the_first_byte_is_not_idle_time() -> None:
    release = threading.Event()
    with ScriptedEndpoint([Held("late", release)]) as server:
        timer = threading.Timer(0.5, release.set)
        timer.start()
        assert b"late" in bytes(asked(server.url, idle_s=0.2).message)
        timer.join()


def test_a_finished_answer_stands_even_if_the_server_never_ends_its_body() -> None:
    def act(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(stream(delta(content="ok"), delta(finish="stop"), end=b""))
        threading.Event().wait(3)

    with raw_server(act) as url:
        begun_s = time.monotonic()
        assert b"ok" in bytes(asked(url).message)
        assert time.monotonic() - begun_s < 2.0 + LATE_S


@pytest.mark.parametrize(
    "place",
    [
        pytest.param(black_hole, id="connect"),
        pytest.param(lambda: scripted("hang_header"), id="header"),
        pytest.param(lambda: scripted("drip_header"), id="headers byte by byte"),
        pytest.param(lambda: scripted("hang_body"), id="body"),
        pytest.param(lambda: raw_server(flooding), id="flood"),
    ],
)
def test_a_cancel_ends_a_question_within_200_ms(place: Place) -> None:
    with place() as url:
        assert cancelled_after(url) < LATE_S


def test_a_cancel_ends_a_tls_handshake_within_200_ms() -> None:
    with raw_server(silent) as url:
        assert cancelled_after(url.replace("http:", "https:"), "TLS") < LATE_S


def cancelled_after(url: str, doing: str = "") -> float:
    """Seconds from the cancel to the end of the question."""
    cancel = Cancel()
    ended: list[tuple[EndpointFailed, float]] = []
    endpoint = endpoint_at(url, body_cap=1 << 30)

    def ask() -> None:
        try:
            endpoint.ask(question(), seconds=20, cancel=cancel)
        except EndpointFailed as exc:
            ended.append((exc, time.monotonic()))

    asking = threading.Thread(target=ask)
    asking.start()
    time.sleep(0.4)  # into the phase; there is nothing to wait for
    cancelled_s = time.monotonic()
    cancel.cancel()
    asking.join(5)
    endpoint.close()
    assert [(exc.kind, exc.retryable) for exc, _ in ended] == [("cancelled", False)]
    assert doing in ended[0][0].message
    return ended[0][1] - cancelled_s


def test_a_cancel_before_the_question_sends_nothing() -> None:
    cancel = Cancel()
    cancel.cancel()
    with ScriptedEndpoint(["x"]) as server:
        with pytest.raises(EndpointFailed, match="cancelled"):
            endpoint_at(server.url).ask(question(), seconds=5, cancel=cancel)
        assert server.requests == []


def test_one_cancel_does_not_touch_the_next_question() -> None:
    with ScriptedEndpoint(["x"]) as server:
        endpoint = endpoint_at(server.url)
        first = Cancel()
        endpoint.ask(question(), seconds=5, cancel=first)
        first.cancel()
        assert endpoint.ask(question(), seconds=5, cancel=Cancel()).finish_reason == "stop"
        endpoint.close()


def test_two_questions_at_once_have_their_own_bounds_and_cancels() -> None:
    release = threading.Event()
    ended: list[str] = []

    def answer(request: Message) -> Scripted:
        return Held("late", release) if request["messages"] else Held("never", threading.Event())

    def ask(body: bytes, cancel: Cancel) -> None:
        try:
            ended.append(bytes(endpoint.ask(body, seconds=5, cancel=cancel).message).decode())
        except EndpointFailed as exc:
            ended.append(exc.kind)

    with ScriptedEndpoint(answer) as server:
        endpoint = endpoint_at(server.url)
        first = Cancel()
        asking = [
            threading.Thread(target=ask, args=(question(), first)),
            threading.Thread(target=ask, args=(question({"role": "user"}), Cancel())),
        ]
        for thread in asking:
            thread.start()
        assert server.wait_for_requests(2, 5.0)
        first.cancel()
        asking[0].join(1)
        assert ended == ["cancelled"]
        release.set()
        asking[1].join(1)
        assert "late" in ended[1]
        endpoint.close()


@pytest.mark.parametrize("fault", ["hang_header", "hang_body", "drip_body"])
def test_an_abandoned_answer_frees_the_servers_slot(fault: FaultKind) -> None:
    with ScriptedEndpoint([Fault(fault)]) as server:
        assert failure(server.url, seconds=0.3).retryable
        assert server.wait_for_abandoned(1, 1.0)
