"""What a server can do is found by asking it, and is not believed before it was seen."""

import json
import socket
import threading
from collections.abc import Callable

import pytest

from rea_edge.cancel import Cancel
from rea_edge.emulated.endpoint import Fault, Message, Script, Scripted, ScriptedEndpoint
from rea_edge.errors import EndpointFailed
from rea_edge.probe import Depth, Profile, probe

from .servers import Act, delta, endpoint_at, listening, raw_server, read_request, reply, says, stream

PROPS = {"default_generation_settings": {"n_ctx": 2048}}


def probed(url: str, seconds: float = 5, depth: Depth = "pages") -> Profile:
    endpoint = endpoint_at(url)
    try:
        return probe(endpoint, seconds=seconds, cancel=Cancel(), depth=depth)
    finally:
        endpoint.close()  # a page that was not waited for leaves a connection


def profile_of(props: object, models: object, model: str = "m") -> Profile:
    """Of a server that has these two pages (None: 404)."""

    def act(connection: socket.socket) -> None:
        while request := read_request(connection):
            page = props if b"GET /props" in request else models
            if page is None:
                connection.sendall(reply(b"", status="404 Not Found"))
            else:
                connection.sendall(reply(json.dumps(page).encode()))

    with raw_server(act) as url:
        return probed(url)


@pytest.mark.parametrize(
    ("props", "models", "expected"),
    [
        pytest.param(PROPS, None, Profile(context_tokens=2048, llama_cpp=True), id="llama.cpp"),
        pytest.param(
            None, {"data": [{"id": "m", "max_model_len": 9900}]}, Profile(context_tokens=9900, served="m"), id="vLLM"
        ),
        pytest.param(
            None,
            {"data": [{"id": "m", "context_length": 9800}]},
            Profile(context_tokens=9800, served="m"),
            id="OpenRouter",
        ),
        pytest.param(
            None,
            {"data": [{"id": "x", "meta": {"n_ctx_train": 9700}}]},
            Profile(context_tokens=9700, served="x"),
            id="one",
        ),
        pytest.param(
            None,
            {"data": [{"id": "x", "context_length": 1000}, {"id": "m", "context_length": 2000}]},
            Profile(context_tokens=2000, served="m"),
            id="the model's own entry",
        ),
        pytest.param(
            None, {"data": [{"id": "x", "context_length": 1000}, {"id": "y"}]}, Profile(), id="not in the list"
        ),
        pytest.param(None, None, Profile(), id="no pages"),
        pytest.param([1], "x", Profile(), id="other shapes"),
        pytest.param(
            {"default_generation_settings": {"n_ctx": True}}, {"data": 5}, Profile(llama_cpp=True), id="no number"
        ),
    ],
)
def test_the_context_size_is_found_where_servers_tell_it(props: object, models: object, expected: Profile) -> None:
    assert profile_of(props, models) == expected


@pytest.mark.parametrize(
    ("page", "name"),
    [
        pytest.param(reply(b"", status="405 Not Allowed"), "", id="not allowed"),
        pytest.param(reply(b"oops", status="500 Error"), "", id="broken"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: 99999999\r\n\r\n", "", id="too large"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n", "", id="cut"),
        pytest.param(reply(b"x", more="content-encoding: gzip\r\n"), "", id="packed"),
        pytest.param(reply(b'{"default_generation_settings":{"n_ctx":10}}'), "", id="a size that no model has"),
        pytest.param(reply(b"", status="503 Loading"), "loading", id="loading"),
        pytest.param(reply(b"", status="429 Slow"), "rate_limited", id="asked for a rest"),
    ],
)
def test_a_page_that_is_not_there_in_any_way_tells_nothing(page: bytes, name: str) -> None:
    with raw_server(says(page)) as url:
        endpoint = endpoint_at(url)
        try:
            assert probe(endpoint, seconds=5, cancel=Cancel()).context_tokens is None
            said = ""
        except EndpointFailed as exc:
            said = exc.kind
        endpoint.close()
    assert said == name


def test_a_key_that_the_list_of_models_refuses_is_told() -> None:
    with raw_server(says(reply(b"", status="401 Key"))) as url, pytest.raises(EndpointFailed, match="401"):
        probed(url)


def test_one_page_that_hangs_costs_a_part_of_the_time_and_two_are_told() -> None:
    def hangs(*pages: bytes) -> Act:
        def act(connection: socket.socket) -> None:
            request = read_request(connection)
            if any(page in request for page in pages):
                threading.Event().wait(3)
            connection.sendall(reply(b'{"data":[{"id":"m","context_length":4000}]}', more="connection: close\r\n"))
            connection.close()

        return act

    with raw_server(hangs(b"GET /props")) as url:
        assert probed(url, 2).context_tokens == 4000
    with raw_server(hangs(b"GET /props", b"GET /v1/models")) as url, pytest.raises(EndpointFailed) as caught:
        probed(url, 2)
    assert caught.value.kind == "timeout_header"


def test_a_person_who_asks_for_all_is_told_what_answers_although_no_page_does() -> None:
    def act(connection: socket.socket) -> None:
        while request := read_request(connection):
            if request.startswith(b"GET"):
                threading.Event().wait(5)
            connection.sendall(stream(delta(content='{"mark": "k7-q2"}', finish="stop")))
            connection.close()

    with raw_server(act) as url:
        assert probed(url, 2, "full").json_schema
    with raw_server(hang) as url, pytest.raises(EndpointFailed, match="gave up"):
        probed(url, 1, "full")


def hang(connection: socket.socket) -> None:
    read_request(connection)
    threading.Event().wait(3)


def calls(*arguments: object, name: str = "report_ready") -> Message:
    return {
        "tool_calls": [
            {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": one}}
            for number, one in enumerate(arguments)
        ]
    }


def found(answers: Script, depth: Depth, *, streams: bool = True, seconds: float = 5) -> tuple[Profile, list[Message]]:
    """The profile of a scripted server, and the chat questions it was asked."""
    with ScriptedEndpoint(answers, context_tokens=777, streams=streams) as server:
        endpoint = endpoint_at(server.url)
        profile = probe(endpoint, seconds=seconds, cancel=Cancel(), depth=depth)
        endpoint.close()
        chats = [json.loads(request.body) for request in server.requests if request.path == "/v1/chat/completions"]
    assert (profile.context_tokens, profile.llama_cpp) == (777, True)
    return profile, chats


@pytest.mark.parametrize(
    ("answer", "native", "parallel"),
    [
        pytest.param(calls('{"ready": true}'), True, False, id="a real call"),
        pytest.param(calls('{"ready": true}', '{"ready": false}'), True, True, id="two in one message"),
        pytest.param({"content": '```json\n{"name": "report_ready"}\n```'}, False, False, id="a call in prose"),
        pytest.param(calls('{"ready": true}', name="other"), False, False, id="another name"),
        pytest.param(calls("{}"), False, False, id="without its argument"),
        pytest.param(calls("{rea"), False, False, id="arguments that are no JSON"),
        pytest.param(Fault("status", status=400), False, False, id="tools refused"),
        pytest.param(Fault("empty_choices"), False, False, id="nothing"),
    ],
)
def test_native_calls_count_only_when_they_came_back(answer: Scripted, native: bool, parallel: bool) -> None:
    profile, (asked,) = found([answer], "brief")
    assert (profile.depth, profile.native, profile.parallel) == ("brief", native, parallel)
    assert asked["stream"] is True
    assert asked["max_tokens"] <= 64


def test_the_form_of_arguments_is_told() -> None:
    assert found([calls('{"ready": true}')], "brief")[0].arguments == "text"
    assert found([calls({"ready": True})], "brief", streams=False)[0].arguments == "object"
    assert found(["x"], "brief")[0].arguments is None


@pytest.mark.parametrize(
    ("content", "kept"),
    [
        pytest.param('{"mark": "k7-q2"}', True, id="the only answer the schema allows"),
        pytest.param('{"mark": "hello"}', False, id="JSON, not by the schema"),
        pytest.param('{"mark": "k7-q2", "more": 1}', False, id="more than the schema allows"),
        pytest.param("Hello!", False, id="prose"),
    ],
)
def test_a_schema_is_honoured_only_where_the_answer_kept_to_it(content: str, kept: bool) -> None:
    def answer(request: Message) -> Scripted:
        return content if "response_format" in request else "x"

    assert found(answer, "full")[0].json_schema == kept


def test_forms_of_tool_choice_that_are_refused_are_not_accepted() -> None:
    def answer(request: Message) -> Scripted:
        return Fault("status", status=400) if request.get("tool_choice") == "required" else calls('{"ready": true}')

    profile, asked = found(answer, "full")
    assert profile.tool_choice == ("auto", "named")
    assert len(asked) == 6


def refusing(*names: str, answer: Scripted = "ok") -> Callable[[Message], Scripted]:
    """A server that refuses the first of these members that a request has, by name, as OpenAI does."""

    def answered(request: Message) -> Scripted:
        for name in names:
            if name in request:
                error = {"message": f"Unsupported parameter: '{name}' is not supported with this model.", "param": name}
                return Fault("status", status=400, body=json.dumps({"error": error}))
        return answer

    return answered


def test_members_that_a_server_refuses_by_name_are_found_and_left_out() -> None:
    profile, asked = found(refusing("max_tokens", "temperature", answer=calls('{"ready": true}')), "brief")
    assert profile.without == ("max_tokens", "temperature")
    assert profile.native, "the question was put again without them"
    assert len(asked) == 3
    assert asked[-1]["max_completion_tokens"] == asked[0]["max_tokens"] and "temperature" not in asked[-1]


def test_each_member_that_a_run_may_send_is_tried_where_all_is_asked() -> None:
    names = ("max_tokens", "stream_options", "temperature", "stop", "grammar", "response_format")
    profile, asked = found(refusing(*names), "full")
    assert profile.without == tuple(sorted(set(names) - {"response_format"}))
    assert not profile.json_schema, "a schema is known to be refused by itself"
    assert len(asked) <= len(names) + 4
    assert found(["ok"], "full")[0].without == ()


def test_a_server_that_refuses_to_stream_is_asked_for_whole_answers() -> None:
    profile, asked = found(refusing("stream"), "brief")
    assert profile.without == ("stream",) and profile.usage
    assert "stream" not in asked[-1] and "stream_options" not in asked[-1]


def test_a_refusal_of_everything_ends() -> None:
    def answer(request: Message) -> Scripted:
        return Fault("status", status=400, body=f"unknown field '{sorted(request)[0]}', unknown field 'temperature'")

    profile, asked = found(answer, "full")
    assert not profile.native and len(asked) < 20


def test_whether_tokens_are_counted_is_told() -> None:
    def act(connection: socket.socket) -> None:
        page = b"GET /props" in read_request(connection)
        connection.sendall(
            reply(json.dumps(PROPS).encode(), more="connection: close\r\n")
            if page
            else stream(delta(content="x", finish="stop"))
        )
        connection.close()

    assert found(["x"], "brief")[0].usage is True
    with raw_server(act) as url:
        endpoint = endpoint_at(url)
        assert probe(endpoint, seconds=5, cancel=Cancel(), depth="brief").usage is False
        endpoint.close()


def test_a_question_that_is_answered_too_late_leaves_its_part_unknown() -> None:
    profile, _ = found([Fault("hang_body")], "brief", seconds=0.5)
    assert (profile.depth, profile.native, profile.usage) == ("pages", False, None)


def test_no_chat_is_sent_unless_asked_for() -> None:
    with ScriptedEndpoint(["x"]) as server:
        endpoint = endpoint_at(server.url)
        assert not probe(endpoint, seconds=5, cancel=Cancel()).native
        endpoint.close()
        assert [request.path for request in server.requests] == ["/props"]


def test_a_server_that_is_not_there_has_no_profile() -> None:
    listener = listening()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    listener.close()
    with pytest.raises(EndpointFailed) as caught:
        probed(url)
    assert caught.value.kind == "connect"
