"""One client for life: what is sent, what is kept, what is never shown."""

import json
import shutil
import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rea_edge.cancel import Cancel
from rea_edge.emulated.endpoint import Fault, ScriptedEndpoint
from rea_edge.endpoint.bounds import Exchange
from rea_edge.endpoint.sockets import Address, connected
from rea_edge.errors import ConfigInvalid, EndpointFailed

from .servers import asked, black_hole, endpoint_at, failure, listening, question, raw_server, read_request, reply

OK = reply(b'{"choices":[{"message":{"content":"ok"},"finish_reason":"stop"}]}')


def test_questions_share_one_connection() -> None:
    with ScriptedEndpoint(["a" * 100]) as server:
        endpoint = endpoint_at(server.url)
        for _ in range(5):
            endpoint.ask(question(), seconds=5, cancel=Cancel())
        endpoint.get("/props", seconds=5, cancel=Cancel())
        assert {request.connection for request in server.requests} == {1}
        endpoint.close()


def test_a_kept_connection_that_the_server_closed_is_replaced_unnoticed() -> None:
    with ScriptedEndpoint(["x"]) as server:
        endpoint = endpoint_at(server.url)
        endpoint.ask(question(), seconds=5, cancel=Cancel())
        server.drop_connections()
        assert endpoint.ask(question(), seconds=5, cancel=Cancel()).finish_reason == "stop"
        assert [request.connection for request in server.requests] == [1, 2]
        endpoint.close()


def test_a_kept_connection_that_breaks_under_the_question_is_replaced_once() -> None:
    def once_then_close(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(OK)
        read_request(connection)  # the second question, which goes unanswered
        connection.close()

    def again(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(OK)
        connection.recv(1)

    with raw_server(once_then_close, again) as url:
        endpoint = endpoint_at(url)
        for _ in range(2):
            assert endpoint.ask(question(), seconds=5, cancel=Cancel()).finish_reason == "stop"
        endpoint.close()


def test_a_new_connection_that_breaks_is_not_tried_again() -> None:
    with ScriptedEndpoint([Fault("cut_header")]) as server:
        assert failure(server.url).kind == "cut"
        assert len(server.requests) == 1


def test_the_body_goes_out_byte_for_byte_with_identity_asked_for() -> None:
    body = b'{"messages": [],   "stream": true, "x": "\xc3\xa9"}'
    with ScriptedEndpoint(["x"]) as server:
        endpoint = endpoint_at(server.url + "/")
        endpoint.ask(body, seconds=5, cancel=Cancel())
        endpoint.close()
        sent = server.requests[0]
    assert sent.body == body
    assert sent.path == "/v1/chat/completions"
    assert sent.headers["accept-encoding"] == "identity"
    assert "authorization" not in sent.headers


def test_environment_proxies_are_ignored() -> None:
    program = (
        "from tests.endpoint.servers import asked; from rea_edge.emulated.endpoint import ScriptedEndpoint\n"
        "with ScriptedEndpoint(['direct']) as server: print(bytes(asked(server.url).message).decode())"
    )
    proxy = "http://127.0.0.1:9"
    env = {"HTTP_PROXY": proxy, "http_proxy": proxy, "ALL_PROXY": proxy, "PYTHONPATH": ":".join(sys.path)}
    assert "direct" in output_of(program, env)


def test_httpx_is_not_imported_before_the_first_question() -> None:
    program = (
        "import sys; from rea_edge.endpoint import Endpoint\n"
        "Endpoint(name='a', url='http://127.0.0.1:9/v1', model='m'); assert 'httpx' not in sys.modules"
    )
    output_of(program, {"PYTHONPATH": ":".join(sys.path)})


def output_of(program: str, env: dict[str, str]) -> str:
    """What a Python process of its own prints; it must end well."""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("prefix", "key", "header"),
    [
        pytest.param("", "sk-abcdef", "Bearer sk-abcdef", id="a key"),
        pytest.param("user:p%40ss@", None, "Basic dXNlcjpwQHNz", id="userinfo"),
        pytest.param("user:p%40ss@", "sk-abcdef\n", "Bearer sk-abcdef", id="the key wins, its line end is cut"),
    ],
)
def test_secrets_are_sent_and_never_shown(prefix: str, key: str | None, header: str) -> None:
    quoted = "Incorrect key provided: sk-abcdef for user:p%40ss, p@ss, dXNlcjpwQHNz"
    with ScriptedEndpoint([Fault("status", status=401, body=quoted)]) as server:
        url = server.url.replace("http://", f"http://{prefix}")
        endpoint = endpoint_at(url + "?api-key=query-secret", api_key=key)
        with pytest.raises(EndpointFailed) as caught:
            endpoint.ask(question(), seconds=5, cancel=Cancel())
        endpoint.close()
        assert server.requests[0].headers["authorization"] == header
        assert server.requests[0].path == "/v1/chat/completions?api-key=query-secret"
    assert "Incorrect key provided" in caught.value.message
    shown = repr(endpoint) + str(endpoint) + str(caught.value) + repr(caught.value) + caught.value.suggestion
    secrets = ["query-secret", *(["sk-abcdef"] if key else []), *(["p%40ss", "p@ss", "dXNlcjpwQHNz"] if prefix else [])]
    assert [secret for secret in secrets if secret in shown] == []
    assert "local" in shown


def test_a_key_that_no_header_can_carry_is_refused_without_being_shown() -> None:
    with pytest.raises(ConfigInvalid) as caught:
        endpoint_at("http://127.0.0.1:9/v1", api_key="sk-abc\ndef")
    assert "sk-abc" not in str(caught.value)


def test_a_name_is_looked_up() -> None:
    with ScriptedEndpoint(["x"]) as server:  # listens on 127.0.0.1 only; localhost may come to ::1 first
        assert asked(server.url.replace("127.0.0.1", "localhost")).finish_reason == "stop"


def test_the_next_address_is_tried_when_one_refuses_or_is_silent() -> None:
    closed = listening()
    refusing = closed.getsockname()
    closed.close()
    with black_hole() as url, ScriptedEndpoint([]) as server:
        silent = ("127.0.0.1", int(url.rpartition(":")[2].partition("/")[0]))
        addresses: list[Address] = [(socket.AF_INET, at) for at in (refusing, silent, ("127.0.0.1", server.port))]
        with Exchange(seconds=5, connect_s=0.6, idle_s=1, cancel=Cancel()) as exchange:
            exchange.enter("look_up")
            exchange.enter("connect")
            opened = connected(addresses, "name", 1, exchange)
        assert opened.getpeername() == ("127.0.0.1", server.port)
        opened.close()


@pytest.mark.parametrize("at", [17, -1])
def test_a_large_body_is_not_taken_for_headers_however_the_bytes_arrive(at: int) -> None:
    text = b"a" * 200_000
    whole = OK.replace(b"ok", text).replace(b"content-length", b"connection: close\r\nx-length")
    cut = at if at > 0 else whole.index(b"\r\n\r\n") + 4

    def act(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(whole[:cut])
        time.sleep(0.1)  # so that the client reads the two parts one by one
        connection.sendall(whole[cut:])
        connection.close()

    with raw_server(act) as url:
        assert text in bytes(asked(url).message)


def test_cookies_are_not_kept() -> None:
    seen: list[bytes] = []

    def act(connection: socket.socket) -> None:
        for _ in range(2):
            seen.append(read_request(connection))
            connection.sendall(OK.replace(b"content-type", b"set-cookie: a=b\r\ncontent-type"))

    with raw_server(act) as url:
        endpoint = endpoint_at(url)
        for _ in range(2):
            endpoint.ask(question(), seconds=5, cancel=Cancel())
        endpoint.close()
    assert len(seen) == 2
    assert b"cookie" not in seen[1].lower()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for 127.0.0.1 with its key in one file."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed: TLS is NOT TESTED")
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    key = path.with_suffix(".key")
    command = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
               "-keyout", str(key), "-out", str(path), "-days", "2", "-subj", "/CN=test",
               "-addext", "subjectAltName=IP:127.0.0.1"]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True, timeout=30)
    path.write_text(path.read_text() + key.read_text())
    return path


def tls_server(certificate: Path) -> ScriptedEndpoint:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return ScriptedEndpoint(["secret hello" * 1000], tls=context)


def test_tls_with_the_operators_own_authority_works_and_is_kept(certificate: Path) -> None:
    with tls_server(certificate) as server:
        endpoint = endpoint_at(server.url, ca_file=str(certificate))
        for _ in range(2):
            assert b"secret hello" in bytes(endpoint.ask(question(), seconds=5, cancel=Cancel()).message)
        assert [request.connection for request in server.requests] == [1, 1]
        endpoint.close()


def test_an_unknown_certificate_is_refused_before_a_byte_of_the_question(certificate: Path) -> None:
    with tls_server(certificate) as server:
        error = failure(server.url, api_key="sk-abcdef")
        assert (error.kind, error.retryable) == ("tls", False)
        assert "certificate" in error.message
        assert server.requests == []


def test_a_certificate_of_another_host_is_refused(certificate: Path) -> None:
    with tls_server(certificate) as server:
        error = failure(server.url.replace("127.0.0.1", "localhost"), ca_file=str(certificate))
        assert error.kind == "tls"


def test_https_to_a_plain_server_and_a_missing_ca_file_are_named_tls(tmp_path: Path) -> None:
    with ScriptedEndpoint(["x"]) as server:
        url = server.url.replace("http:", "https:")
        assert failure(url).kind == "tls"
        assert failure(url, ca_file=str(tmp_path / "absent.pem")).kind == "tls"


def test_get_reads_json_below_the_url_or_its_parent() -> None:
    with ScriptedEndpoint([]) as server:
        endpoint = endpoint_at(server.url)
        assert endpoint.get("/health", seconds=5, cancel=Cancel()) == {"status": "ok"}
        assert json.dumps(endpoint.get("models", seconds=5, cancel=Cancel())).startswith('{"object"')
        with pytest.raises(EndpointFailed, match="404"):
            endpoint.get("props", seconds=5, cancel=Cancel())
        endpoint.close()
