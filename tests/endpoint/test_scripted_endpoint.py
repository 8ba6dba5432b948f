"""The scripted endpoint is a real server: raw HTTP sees what a model server would send."""

import http.client
import json
import threading
from urllib.parse import urlsplit

import pytest

from rea_edge.emulated.endpoint import HIGHEST_PORT, Held, Message, Script, ScriptedEndpoint


def post(server: ScriptedEndpoint, request: Message) -> tuple[int, str]:
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=5)
    try:
        connection.request("POST", "/v1/chat/completions", json.dumps(request))
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def turns(*roles: str) -> list[dict[str, str]]:
    return [{"role": role, "content": "x"} for role in roles]


def test_the_answer_goes_by_the_number_of_assistant_messages_so_a_repeated_question_gets_it_again() -> None:
    with ScriptedEndpoint(["first", "second"]) as server:
        for roles, text in [(("user",), "first"), (("user", "assistant", "user"), "second"), (("user",), "first")]:
            _, body = post(server, {"messages": turns(*roles)})
            assert json.loads(body)["choices"][0]["message"] == {"role": "assistant", "content": text}
        assert post(server, {"messages": turns("assistant", "assistant")})[0] == 500
        assert [len(json.loads(request.body)["messages"]) for request in server.requests] == [1, 3, 1, 2]


def test_a_function_answers_from_the_request() -> None:
    with ScriptedEndpoint(lambda request: f"you said {request['model']}") as server:
        assert "you said m" in post(server, {"model": "m", "messages": []})[1]


@pytest.mark.parametrize("usage", [True, False])
def test_a_stream_ends_with_finish_reason_usage_if_asked_for_and_done(usage: bool) -> None:
    script: Script = [{"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": '{"long": "argument"}'}}]}]
    with ScriptedEndpoint(script) as server:
        _, body = post(server, {"stream": True, "stream_options": {"include_usage": usage}, "messages": []})
    events = [line.removeprefix("data: ") for line in body.split("\n\n") if line]
    assert events.pop() == "[DONE]"
    chunks = [json.loads(event) for event in events]
    if usage:
        assert chunks.pop()["usage"]["completion_tokens"] > 0
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"
    assert [chunk for chunk in chunks if "usage" in chunk] == []


def test_a_held_answer_waits_until_it_is_released() -> None:
    release = threading.Event()
    got: list[tuple[int, str]] = []
    with ScriptedEndpoint([Held("now", release)]) as server:
        asking = threading.Thread(target=lambda: got.append(post(server, {"messages": []})))
        asking.start()
        assert server.wait_for_requests(1, 5.0)
        assert got == []
        release.set()
        asking.join(5)
    assert "now" in got[0][1]


def test_closing_ends_every_answer_and_thread() -> None:
    before = threading.active_count()
    server = ScriptedEndpoint([Held("never", threading.Event())])
    with server:
        connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=5)
        connection.request("POST", "/v1/chat/completions", '{"messages": []}')
        assert server.wait_for_requests(1, 5.0)
        assert server.port < HIGHEST_PORT
    connection.close()
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and thread.daemon:
            thread.join(0.5)
    assert threading.active_count() <= before


@pytest.mark.parametrize(
    ("path", "key"), [("/props", "default_generation_settings"), ("/v1/models", "data"), ("/health", "status")]
)
def test_the_pages_of_a_llama_cpp_server_are_there(path: str, key: str) -> None:
    with ScriptedEndpoint([]) as server:
        connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=5)
        connection.request("GET", path)
        assert key in json.loads(connection.getresponse().read())
        connection.close()
