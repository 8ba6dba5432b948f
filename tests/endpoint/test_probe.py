"""What a server can do is found by asking it, and is not believed before it was seen."""

import json
import socket

import pytest

from rea_edge.cancel import Cancel
from rea_edge.emulated.endpoint import Fault, Message, Scripted, ScriptedEndpoint
from rea_edge.errors import EndpointFailed
from rea_edge.probe import Profile, probe

from .servers import endpoint_at, listening, raw_server, read_request, reply

PROPS = {"default_generation_settings": {"n_ctx": 2048}}


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
        endpoint = endpoint_at(url)
        try:
            return probe(endpoint, seconds=5, cancel=Cancel())
        finally:
            endpoint.close()


@pytest.mark.parametrize(
    ("props", "models", "expected"),
    [
        pytest.param(PROPS, None, Profile(context_tokens=2048, llama_cpp=True), id="llama.cpp"),
        pytest.param(None, {"data": [{"id": "m", "max_model_len": 99}]}, Profile(context_tokens=99), id="vLLM"),
        pytest.param(None, {"data": [{"id": "m", "context_length": 98}]}, Profile(context_tokens=98), id="OpenRouter"),
        pytest.param(None, {"data": [{"id": "x", "meta": {"n_ctx_train": 97}}]}, Profile(context_tokens=97), id="one"),
        pytest.param(
            None,
            {"data": [{"id": "x", "context_length": 1}, {"id": "m", "context_length": 2}]},
            Profile(context_tokens=2),
            id="the model's own entry",
        ),
        pytest.param(None, {"data": [{"id": "x", "context_length": 1}, {"id": "y"}]}, Profile(), id="not in the list"),
        pytest.param(None, None, Profile(), id="no pages"),
        pytest.param([1], "x", Profile(), id="other shapes"),
        pytest.param(
            {"default_generation_settings": {"n_ctx": True}}, {"data": 5}, Profile(llama_cpp=True), id="no number"
        ),
    ],
)
def test_the_context_size_is_found_where_servers_tell_it(props: object, models: object, expected: Profile) -> None:
    assert profile_of(props, models) == expected


def calls(name: str, arguments: str) -> Message:
    return {"tool_calls": [{"id": "a", "type": "function", "function": {"name": name, "arguments": arguments}}]}


@pytest.mark.parametrize(
    ("answer", "native"),
    [
        pytest.param(calls("report_ready", '{"ready": true}'), True, id="a real call"),
        pytest.param({"content": '```json\n{"name": "report_ready"}\n```'}, False, id="a call in prose"),
        pytest.param(calls("other", '{"ready": true}'), False, id="another name"),
        pytest.param(calls("report_ready", "{}"), False, id="without its argument"),
        pytest.param(calls("report_ready", "{rea"), False, id="arguments that are no JSON"),
        pytest.param(Fault("status", status=400), False, id="tools refused"),
        pytest.param(Fault("empty_choices"), False, id="nothing"),
    ],
)
def test_native_calls_count_only_when_one_came_back(answer: Scripted, native: bool) -> None:
    with ScriptedEndpoint([answer], context_tokens=777) as server:
        endpoint = endpoint_at(server.url)
        profile = probe(endpoint, seconds=5, cancel=Cancel(), chat=True)
        endpoint.close()
        asked = json.loads(server.requests[-1].body)
    assert profile == Profile(context_tokens=777, llama_cpp=True, native=native)
    assert asked["stream"] is True
    assert asked["max_tokens"] <= 64


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
        probe(endpoint_at(url), seconds=5, cancel=Cancel())
    assert caught.value.kind == "connect"
