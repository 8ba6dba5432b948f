"""What a server's pieces come to, over a real connection."""

import json

import pytest

from rea_edge.endpoint.events import EventReader
from rea_edge.errors import EndpointFailed

from .servers import asked, delta, failure, raw_server, reply, says, stream

CALL = {"id": "c1", "type": "function", "function": {"name": "set_fan", "arguments": '{"on": true}'}}


def message_of(body: bytes) -> dict[str, object]:
    with raw_server(says(body)) as url:
        message = json.loads(bytes(asked(url).message))
    assert isinstance(message, dict)
    return message


def calls_of(*deltas: dict[str, object]) -> list[tuple[str, str]]:
    message = message_of(stream(*deltas, delta(finish="tool_calls")))
    return [(call["function"]["name"], call["function"]["arguments"]) for call in message["tool_calls"]]  # type: ignore[attr-defined]


def piece(index: int | None = None, call_id: str | None = None, **function: object) -> dict[str, object]:
    call: dict[str, object] = {"function": function}
    if index is not None:
        call["index"] = index
    if call_id is not None:
        call["id"] = call_id
    return call


def test_pieces_of_content_are_joined_and_the_role_is_kept() -> None:
    body = stream(
        delta(role="assistant", content=None), delta(content="Hel"), delta(content="lo"), delta(finish="stop")
    )
    assert message_of(body) == {"role": "assistant", "content": "Hello"}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        pytest.param({"role": "assistant", "content": "hi"}, {"content": "hi"}, id="text"),
        pytest.param({"content": [{"type": "text", "text": "a"}, {"text": "b"}, "c"]}, {"content": "abc"}, id="parts"),
        pytest.param({"content": None, "tool_calls": [CALL]}, {"content": None, "tool_calls": [CALL]}, id="a call"),
        pytest.param({"content": ""}, {"content": ""}, id="empty text stays"),
        pytest.param({"tool_calls": []}, {"content": None}, id="no call, no text"),
        pytest.param({"content": "", "refusal": "no"}, {"content": "", "refusal": "no"}, id="a refusal"),
        pytest.param(
            {"content": "x", "reasoning_content": "hm"}, {"content": "x", "reasoning_content": "hm"}, id="reasoning"
        ),
        pytest.param(
            {"content": "x", "reasoning": "hm"}, {"content": "x", "reasoning_content": "hm"}, id="vLLM's name"
        ),
        pytest.param(
            {"function_call": {"name": "f", "arguments": "{}"}},
            {"content": None, "function_call": {"name": "f", "arguments": "{}"}},
            id="the old function_call",
        ),
        pytest.param(
            {"content": "x", "audio": {"id": 1}, "annotations": []}, {"content": "x"}, id="others are dropped"
        ),
    ],
)
def test_a_plain_answer_and_a_stream_of_it_give_the_same_message(
    message: dict[str, object], expected: dict[str, object]
) -> None:
    plain = reply(json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode())
    assert message_of(plain) == {"role": "assistant", **expected}
    assert message_of(stream({"choices": [{"delta": message}]}, delta(finish="stop"))) == {
        "role": "assistant",
        **expected,
    }


@pytest.mark.parametrize(
    ("deltas", "calls"),
    [
        pytest.param(
            [[piece(0, "a", name="f", arguments="")], [piece(0, arguments='{"x"')], [piece(0, arguments=":1}")]],
            [("f", '{"x":1}')],
            id="pieces by index",
        ),
        pytest.param(
            [[piece(0, "a", name="f", arguments='{"x":')], [piece(1, "b", name="g", arguments="{}")],
             [piece(0, arguments="1}")]],
            [("f", '{"x":1}'), ("g", "{}")],
            id="two calls, interleaved",
        ),
        pytest.param(
            [[piece(None, "a", name="f", arguments='{"x":')], [piece(None, None, arguments="1}")]],
            [("f", '{"x":1}')],
            id="no index, the id only at first",
        ),
        pytest.param(
            [[piece(None, "a", name="f", arguments='{"x":')], [piece(None, "a", name="f", arguments="1}")]],
            [("f", '{"x":1}')],
            id="no index, id and name repeated with every piece",
        ),
        pytest.param(
            [[piece(None, "a", name="f", arguments="{}")], [piece(None, "b", name="f", arguments="{}")]],
            [("f", "{}"), ("f", "{}")],
            id="whole calls without index",
        ),
        pytest.param(
            [[piece(None, None, name="f", arguments="{}"), piece(None, None, name="g", arguments="{}")]],
            [("f", "{}"), ("g", "{}")],
            id="two whole calls in one delta, no index, no id",
        ),
        pytest.param(
            [[piece(0, "a", name="f", arguments="{}")], [piece(0, "b", name="g", arguments="{}")]],
            [("f", "{}"), ("g", "{}")],
            id="every call under index 0, ids differ",
        ),
        pytest.param(
            [[piece(0, "a", name="f", arguments='{"n":1}')], [piece(0, "a", name="f", arguments='{"n":2}')]],
            [("f", '{"n":1}'), ("f", '{"n":2}')],
            id="whole calls under one index and one id",
        ),
        pytest.param([[piece(0, "a", name="f", arguments={"x": [1]})]], [("f", '{"x": [1]}')], id="an object"),
        pytest.param([[piece(0, "a", name="f", arguments=None)]], [("f", "")], id="arguments null"),
        pytest.param(
            [[piece(0, "a", name="set_", arguments="")], [piece(0, name="fan", arguments="{}")]],
            [("set_fan", "{}")],
            id="a name in pieces",
        ),
    ],
)  # fmt: skip
def test_calls_are_put_together_however_the_server_names_them(
    deltas: list[list[dict[str, object]]], calls: list[tuple[str, str]]
) -> None:
    assert calls_of(*(delta(tool_calls=entries) for entries in deltas)) == calls


@pytest.mark.parametrize(
    ("more", "counts"),
    [
        pytest.param(
            [{"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}], (7, 3), id="usage chunk"
        ),
        pytest.param([{"choices": [], "usage": None}], (None, None), id="usage null"),
        pytest.param(
            [{"choices": [], "timings": {"prompt_n": 5, "cache_n": 100, "predicted_n": 9}}],
            (105, 9),
            id="llama.cpp's timings, with what it had cached",
        ),
        pytest.param(
            [{"choices": [], "timings": {"prompt_n": 5}, "usage": {"prompt_tokens": 6, "completion_tokens": 2}}],
            (6, 2),
            id="usage wins over timings",
        ),
        pytest.param([{"usage": {"prompt_tokens": -1}}], (None, None), id="a negative count is none"),
        pytest.param(
            [{"usage": {"prompt_tokens": 10**18, "completion_tokens": 10**30}}],
            (None, None),
            id="nor is one that no model can reach",
        ),
        pytest.param([], (None, None), id="nothing"),
    ],
)
def test_tokens_are_the_servers_count_or_none(more: list[object], counts: tuple[int | None, int | None]) -> None:
    with raw_server(says(stream(delta(content="x"), delta(finish="length"), *more))) as url:
        answer = asked(url)
    assert (answer.prompt_tokens, answer.completion_tokens) == counts
    assert answer.finish_reason == "length"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(stream(delta(content="ok"), delta(finish="stop"), end=b""), id="no [DONE] after finish_reason"),
        pytest.param(stream(delta(content="ok")), id="[DONE] without finish_reason"),
        pytest.param(stream(delta(content="ok"), end=b"data: [DONE]"), id="no blank line at the end"),
        pytest.param(stream(delta(content="ok")).replace(b"\n\n", b"\r\n\r\n").replace(b"\r\r", b"\r"), id="CRLF"),
        pytest.param(
            stream(delta(content="ok")).replace(b"data: ", b": ping\n\nevent: x\ndata:"), id="comments, events"
        ),
        pytest.param(stream(delta(content="ok"), b'{"choices":[{"index":1,"delta":{"content":"no"}}]}'), id="choice 1"),
        pytest.param(
            stream(delta(content="ok"), end=b"data: [DONE]\n\ndata: <rubbish>\n\n"), id="rubbish after [DONE]"
        ),
        pytest.param(stream(delta(content="ok"), {"choices": []}, {"object": "ping"}), id="chunks without choice"),
        pytest.param(
            stream(delta(content="ok")).replace(b"text/event-stream", b"text/plain"), id="another content type"
        ),
        pytest.param(
            reply(b'\xef\xbb\xbf {"choices":[{"message":{"content":"ok"}}]}', "text/event-stream"),
            id="plain JSON that calls itself a stream",
        ),
    ],
)
def test_a_sloppy_but_whole_answer_is_understood(body: bytes) -> None:
    assert message_of(body)["content"] == "ok"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        pytest.param(stream(delta(content="half"), end=b""), "cut", id="no end"),
        pytest.param(stream(delta(content="half"), end=b'data: {"choi'), "cut", id="half an event"),
        pytest.param(stream(b"{rubbish}"), "not_json", id="an event that is not JSON"),
        pytest.param(stream([1, 2]), "wrong_shape", id="an event that is a list"),
        pytest.param(stream({"choices": [{"delta": {"content": 5}}]}), "wrong_shape", id="content a number"),
        pytest.param(stream(), "empty_choices", id="only [DONE]"),
        pytest.param(stream(delta(content="x"), {"error": {"message": "slot lost"}}), "error_in_200", id="error later"),
        pytest.param(stream(end=b'error: {"message":"old llama.cpp"}\n\n'), "error_in_200", id="an error field"),
        pytest.param(
            stream({"error": {"message": "", "type": "exceed_context_size_error"}}), "context_overflow", id="fit"
        ),
        pytest.param(reply(b"{}"), "wrong_shape", id="no choices"),
        pytest.param(reply(b'{"choices":[{"text":"old"}]}'), "wrong_shape", id="a text completion"),
        pytest.param(
            reply(b'{"choices":[{"text":"old","finish_reason":"stop"}]}'),
            "wrong_shape",
            id="a finished text completion",
        ),
        pytest.param(reply(b'{"choices":[{"message":null,"finish_reason":"stop"}]}'), "wrong_shape", id="no message"),
        pytest.param(reply(b'{"x":' + b"[" * 5000), "not_json", id="deep nesting"),
        pytest.param(reply(b'{"error":"model not loaded"}'), "error_in_200", id="Ollama's error text"),
        pytest.param(reply(b""), "not_json", id="an empty body"),
    ],
)
def test_what_is_no_answer_is_named(body: bytes, kind: str) -> None:
    with raw_server(says(body)) as url:
        assert failure(url).kind == kind


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_events_do_not_depend_on_how_the_bytes_are_cut(size: int) -> None:
    wire = b': hi\n\ndata: {"a":\ndata: 1}\n\nid: 4\ndata:two\n\n\n\ndata: last'
    reader = EventReader(1000)
    events = [event for at in range(0, len(wire), size) for event in reader.feed(wire[at : at + size])]
    assert [*events, *reader.rest()] == [b'{"a":\n1}', b"two", b"last"]


def test_one_event_may_be_as_large_as_the_cap_and_no_larger() -> None:
    assert EventReader(100).feed(b"data: " + b"a" * 92 + b"\n\n") == [b"a" * 92]
    with pytest.raises(EndpointFailed, match="larger than 100"):
        EventReader(100).feed(b"data: " + b"a" * 95)
    with pytest.raises(EndpointFailed, match="larger than 100"):
        EventReader(100).feed(b"data: aaaaaaaa\n" * 20)
