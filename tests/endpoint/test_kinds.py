"""Every failure has a name, and says whether asking again is of use."""

import json

import pytest

from rea_edge.emulated.endpoint import Fault, FaultKind, ScriptedEndpoint
from rea_edge.errors import ConfigInvalid

from .servers import asked, endpoint_at, failure, listening, raw_server, says, stream

LLAMA_OVERFLOW = json.dumps({
    "error": {
        "code": 400,
        "message": "request (6030 tokens) exceeds the available context size (4096 tokens), try increasing it",
        "type": "exceed_context_size_error",
        "n_prompt_tokens": 6030,
        "n_ctx": 4096,
    }
})  # fmt: skip


@pytest.mark.parametrize(
    ("status", "body", "kind", "retryable"),
    [
        pytest.param(401, "", "unauthorized", False, id="401"),
        pytest.param(403, "", "unauthorized", False, id="403"),
        pytest.param(402, '{"error":{"message":"Insufficient Balance"}}', "rate_limited", False, id="402"),
        pytest.param(404, "", "not_found", False, id="404"),
        pytest.param(408, "", "server_error", True, id="408"),
        pytest.param(413, "", "too_large", False, id="413"),
        pytest.param(429, "", "rate_limited", True, id="429"),
        pytest.param(429, '{"error":{"code":"insufficient_quota"}}', "rate_limited", False, id="429 for good"),
        pytest.param(400, '{"error":{"message":"bad grammar"}}', "bad_request", False, id="400"),
        pytest.param(422, "", "bad_request", False, id="422"),
        pytest.param(500, "", "server_error", True, id="500"),
        pytest.param(502, "<html>", "server_error", True, id="502"),
        pytest.param(503, '{"error":{"message":"Loading model"}}', "loading", True, id="503"),
        pytest.param(204, "", "wrong_shape", False, id="204"),
        pytest.param(400, LLAMA_OVERFLOW, "context_overflow", False, id="overflow: llama.cpp"),
        pytest.param(400, "This model's maximum context length is 4096 tokens. However, you requested 5000",
                     "context_overflow", False, id="overflow: OpenAI, vLLM"),
        pytest.param(400, '{"error":{"code":"context_length_exceeded"}}', "context_overflow", False,
                     id="overflow: its code"),
        pytest.param(400, "The decoder prompt (length 5) is longer than the maximum model length of 4",
                     "context_overflow", False, id="overflow: newer vLLM"),
        pytest.param(400, "the input length exceeds the context length", "context_overflow", False,
                     id="overflow: Ollama"),
        pytest.param(400, "prompt too long; exceeded max context length by 12 tokens", "context_overflow", False,
                     id="overflow: newer Ollama"),
        pytest.param(413, "prompt is too long: 9 tokens > 8 maximum", "context_overflow", False,
                     id="overflow: with 413"),
        pytest.param(500, "the request exceeds the available context size", "context_overflow", False,
                     id="overflow: older llama.cpp"),
        pytest.param(400, "unknown parameter: context_length", "bad_request", False, id="not every context overflows"),
    ],
)  # fmt: skip
def test_a_status_has_a_name(status: int, body: str, kind: str, retryable: bool) -> None:
    with ScriptedEndpoint([Fault("status", status=status, body=body)]) as server:
        error = failure(server.url)
    assert (error.kind, error.retryable) == (kind, retryable)
    assert str(status) in error.message


@pytest.mark.parametrize(
    ("body", "context_tokens", "prompt_tokens"),
    [
        pytest.param(LLAMA_OVERFLOW, 4096, 6030, id="llama.cpp"),
        pytest.param("request (6030 tokens) exceeds the available context size (4096 tokens)", 4096, 6030,
                     id="llama.cpp, in words"),
        pytest.param("This model's maximum context length is 4096 tokens. However, your messages resulted in 5000 tokens",
                     4096, 5000, id="OpenAI"),
        pytest.param("This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4500 in the"
                     " messages, 500 in the completion)", 4096, 4500, id="vLLM"),
        pytest.param("The decoder prompt (length 5) is longer than the maximum model length of 4", 4, 5, id="newer vLLM"),
        pytest.param("prompt too long; exceeded max context length by 12 tokens", None, None, id="Ollama tells neither"),
        pytest.param("prompt is too long: 9 tokens > 8 maximum", 8, 9, id="Anthropic's words"),
        pytest.param("exceeds the available context size (99999999999999999999)", None, None, id="no such size"),
    ],
)  # fmt: skip
def test_an_overflow_tells_the_size_of_the_context_and_of_the_prompt(
    body: str, context_tokens: int | None, prompt_tokens: int | None
) -> None:
    with ScriptedEndpoint([Fault("status", status=400, body=body)]) as server:
        error = failure(server.url)
    assert (error.kind, error.context_tokens, error.prompt_tokens) == (
        "context_overflow",
        context_tokens,
        prompt_tokens,
    )


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("redirect", "redirect"), ("refuse_stream", "parameter_refused"), ("cut_header", "cut"), ("cut_body", "cut"),
        ("no_finish", "cut"), ("huge_header", "body_cap"), ("huge_body", "body_cap"), ("endless_line", "body_cap"),
        ("gzip_bomb", "encoding"), ("not_json", "not_json"), ("empty_choices", "empty_choices"),
        ("error_in_200", "error_in_200"),
    ],
)  # fmt: skip
def test_a_misbehaving_server_has_a_name(fault: FaultKind, kind: str) -> None:
    with ScriptedEndpoint([Fault(fault)]) as server:
        assert failure(server.url).kind == kind


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        pytest.param((("retry-after", "7"),), 7.0, id="seconds"),
        pytest.param((("retry-after", "99999999"),), 3600.0, id="at most an hour"),
        pytest.param(
            (("retry-after", "Wed, 21 Oct 2015 07:28:30 GMT"), ("date", "Wed, 21 Oct 2015 07:28:00 GMT")),
            30.0,
            id="a date, by the server's own clock",
        ),
        pytest.param((("retry-after", "Wed, 21 Oct 2015 07:28:30 GMT"),), 0.0, id="a date that has passed"),
        pytest.param((("retry-after", "soon"),), None, id="rubbish"),
        pytest.param((), None, id="nothing"),
    ],
)
def test_the_wait_that_a_server_asks_for_is_read(headers: tuple[tuple[str, str], ...], wait_s: float | None) -> None:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
    with raw_server(says(f"HTTP/1.1 429 Slow\r\ncontent-length: 0\r\n{lines}\r\n".encode())) as url:
        assert failure(url).retry_after_s == wait_s


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        pytest.param(b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "wrong_shape", id="another protocol"),
        pytest.param(b"", "cut", id="nothing at all"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-le", "cut", id="half a header"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{}", "cut", id="less than announced"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n", "body_cap", id="too much announced"),
        pytest.param(b"HTTP/1.1 302 Found\r\nlocation: http://[bad\r\n\r\n", "redirect", id="a broken redirect"),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n" * 9000, "body_cap", id="endless interim answers"),
    ],
)
def test_what_is_not_an_http_answer_is_named(reply: bytes, kind: str) -> None:
    with raw_server(says(reply)) as url:
        assert failure(url).kind == kind


def test_a_closed_port_is_named_connect_at_once() -> None:
    listener = listening()
    port = listener.getsockname()[1]
    listener.close()
    error = failure(f"http://127.0.0.1:{port}/v1")
    assert (error.kind, error.retryable) == ("connect", True)
    assert f"127.0.0.1:{port}" in error.message


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 70 + ".invalid", "exa mple.invalid"])
def test_a_name_without_address_is_named_dns(host: str) -> None:
    assert failure(f"http://{host}/v1", seconds=10).kind == "dns"


@pytest.mark.parametrize("url", ["", "localhost:8080", "ftp://x/v1", "http:///v1", "http://h:99999/v1", "http://h:0/"])
def test_a_url_that_cannot_be_used_is_the_operators(url: str) -> None:
    with pytest.raises(ConfigInvalid, match=r"endpoint\.local\.url"):
        endpoint_at(url)


def test_a_message_larger_than_the_cap_is_refused_and_one_below_is_not() -> None:
    text = "a" * 1000
    with ScriptedEndpoint([text]) as server:
        assert b"a" * 1000 in bytes(asked(server.url, body_cap=1100).message)
        assert failure(server.url, body_cap=900).kind == "body_cap"
    with ScriptedEndpoint([text], streams=False) as server:
        assert failure(server.url, body_cap=900).kind == "body_cap"


def test_a_stream_may_be_larger_than_the_message_it_carries_but_not_endless() -> None:
    pings = b": ping\n\n" * 3000
    with raw_server(says(stream({"choices": [{"delta": {"content": "x"}}]}, end=pings + b"data: [DONE]\n\n"))) as url:
        assert asked(url, body_cap=2000)
    with raw_server(says(stream(end=pings * 2))) as url:
        assert failure(url, body_cap=2000).kind == "body_cap"
