"""What follows each failure of a scripted server: alone, and with another endpoint behind it."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Literal

import pytest

from rea_edge import trouble
from rea_edge.cancel import Cancel
from rea_edge.config import Endpoint as Settings
from rea_edge.config.settings import Secret
from rea_edge.emulated.endpoint import Fault, FaultKind, Message, Scripted, ScriptedEndpoint
from rea_edge.endpoints import Endpoints
from rea_edge.errors import EndpointFailed
from rea_edge.probe import Depth, Profile
from tests.endpoint.servers import (
    black_hole,
    delta,
    listening,
    question,
    raw_server,
    read_request,
    reply,
    says,
    stream,
)  # fmt: skip

LATE_S = 2.0  # how much later than its bound a question may end on a busy machine; what nothing bounds never ends
OVERFLOW = "request (6030 tokens) exceeds the available context size (4096 tokens), try increasing it"


class Kept:
    """A cache that outlives the endpoints it is given to."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def get(self, key: str) -> str | None:
        return self.values.get(key)

    def put(self, key: str, value: str) -> None:
        self.values[key] = value


def pages(one: Settings, profile: Profile | None) -> Depth | None:
    return "pages"


@contextmanager
def endpoints(
    *urls: str, kept: Kept | None = None, connect_s: float = 0.3, idle_s: float = 30.0
) -> Iterator[Endpoints]:
    settings = [
        Settings(name=f"e{number}", url=url, model="m", connect_s=connect_s, idle_s=idle_s)
        for number, url in enumerate(urls, 1)
    ]
    made = Endpoints(settings, kept or Kept())
    try:
        yield made
    finally:
        made.close()


def failure(made: Endpoints, seconds: float, name: str = "e1") -> EndpointFailed:
    with pytest.raises(EndpointFailed) as caught:
        made.ask(name, question(), pages, seconds, Cancel())
    return caught.value


@contextmanager
def scripted(answer: Scripted) -> Iterator[str]:
    with ScriptedEndpoint(lambda request: answer) as server:
        yield server.url


@contextmanager
def closed_port() -> Iterator[str]:
    listener = listening()
    port = listener.getsockname()[1]
    listener.close()
    yield f"http://127.0.0.1:{port}/v1"


@contextmanager
def nowhere() -> Iterator[str]:
    yield "http://no-such-host.invalid/v1"


def no_tls(connection: socket.socket) -> None:
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    connection.close()


def fault(kind: FaultKind) -> Callable[[], AbstractContextManager[str]]:
    return lambda: scripted(Fault(kind, gap_s=0.02))


def status(number: int, body: str = "", **headers: str) -> Callable[[], AbstractContextManager[str]]:
    lines = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return lambda: scripted(Fault("status", status=number, body=body, headers=lines))


Then = Literal["over", "anew", "over at once"]

# What the only endpoint's failure comes to. over: asked again until the time is over; anew: for the caller to ask anew.
KINDS = [
    pytest.param(nowhere, "dns", "over", id="dns"),
    pytest.param(closed_port, "connect", "over", id="connect"),
    pytest.param(black_hole, "timeout_connect", "over", id="timeout_connect"),
    pytest.param(lambda: raw_server(no_tls), "tls", "over at once", id="tls"),
    pytest.param(fault("hang_header"), "timeout_header", "anew", id="timeout_header"),
    pytest.param(fault("drip_header"), "timeout_header", "anew", id="drip in the header"),
    pytest.param(fault("hang_body"), "timeout_total", "anew", id="timeout_total"),
    pytest.param(fault("drip_body"), "timeout_total", "anew", id="drip in the body"),
    pytest.param(fault("cut_header"), "cut", "anew", id="cut"),
    pytest.param(fault("cut_body"), "cut", "anew", id="cut in the body"),
    pytest.param(fault("no_finish"), "cut", "anew", id="finish_reason missing"),
    pytest.param(fault("huge_header"), "body_cap", "over at once", id="huge header"),
    pytest.param(fault("huge_body"), "body_cap", "over at once", id="huge body"),
    pytest.param(fault("endless_line"), "body_cap", "over at once", id="endless line"),
    pytest.param(fault("gzip_bomb"), "encoding", "over at once", id="gzip bomb"),
    pytest.param(fault("not_json"), "not_json", "anew", id="not JSON"),
    pytest.param(fault("empty_choices"), "empty_choices", "anew", id="empty choices"),
    pytest.param(fault("error_in_200"), "error_in_200", "anew", id="error in 200"),
    pytest.param(fault("redirect"), "redirect", "over at once", id="redirect"),
    pytest.param(status(400), "bad_request", "over at once", id="400"),
    pytest.param(status(400, "Unsupported parameter: 'temperature'"), "bad_request", "over at once", id="not sent"),
    pytest.param(status(401), "unauthorized", "over at once", id="401"),
    pytest.param(status(404), "not_found", "over at once", id="404"),
    pytest.param(status(413), "too_large", "over at once", id="413"),
    pytest.param(status(429), "rate_limited", "over", id="429"),
    pytest.param(status(429, '{"error":{"code":"insufficient_quota"}}'), "rate_limited", "over at once", id="quota"),
    pytest.param(status(500), "server_error", "anew", id="500"),
    pytest.param(status(502), "server_error", "anew", id="502"),
    pytest.param(status(503), "loading", "over", id="503"),
    pytest.param(status(400, OVERFLOW), "context_overflow", "anew", id="context overflow"),
    pytest.param(status(204), "wrong_shape", "over at once", id="204"),
]  # fmt: skip


def as_tls(kind: str, url: str) -> str:
    return url.replace("http:", "https:") if kind == "tls" else url


@pytest.mark.parametrize(("place", "kind", "then"), KINDS)
def test_the_only_endpoint_is_asked_by_the_rule_and_never_too_long(
    place: Callable[[], AbstractContextManager[str]], kind: str, then: Then
) -> None:
    seconds = 0.8
    with place() as url, endpoints(as_tls(kind, url)) as made:
        began_s = time.monotonic()
        error = failure(made, seconds)
        took_s = time.monotonic() - began_s
    assert error.kind == kind
    assert error.retryable == (then == "anew")
    assert took_s < seconds + LATE_S
    figures = made.figures()["e1"]
    assert isinstance(figures, dict)
    assert figures["failed"][kind] == figures["asked"]
    assert figures["asked"] == 1 or (then == "over" and figures["asked"] <= 3), "no spin"
    assert made.faults()[0].startswith(f"endpoint e1: {kind}: ")


@pytest.mark.parametrize(
    ("answer", "questions"),
    [
        pytest.param(Fault("status", status=401), 1, id="left at once"),
        pytest.param(Fault("status", status=503), 3, id="left after a little patience"),
        pytest.param(Fault("status", status=500), 3, id="asked anew three times"),
    ],
)
def test_with_another_endpoint_behind_it_one_that_fails_is_left_and_new_runs_begin_elsewhere(
    answer: Fault, questions: int
) -> None:
    with ScriptedEndpoint(lambda request: answer) as first, ScriptedEndpoint(["hello"]) as second:
        with endpoints(first.url, second.url) as made:
            while (chosen := made.elsewhere("e1", pages, 6.0, Cancel())) is None:
                assert failure(made, 6.0).retryable
            assert chosen.settings.name == "e2"
            assert made.choose(pages, 5.0, Cancel()).settings.name == "e2"
        assert len(first.requests) == questions


def test_the_wait_that_a_server_asks_for_is_kept() -> None:
    answers: list[Scripted] = [Fault("status", status=429, headers=(("retry-after", "1"),)), "hello"]
    with ScriptedEndpoint(lambda request: answers.pop(0)) as server, endpoints(server.url) as made:
        made.ask("e1", question(), pages, 10.0, Cancel())
        first, second = [request.at_s for request in server.requests]
    assert 1.0 < second - first < 2.0


def test_a_wait_beyond_the_time_that_is_left_ends_the_question_at_once_and_is_kept_for_the_next() -> None:
    with ScriptedEndpoint(lambda request: Fault("status", status=429, headers=(("retry-after", "50"),))) as server:
        with endpoints(server.url) as made:
            began_s = time.monotonic()
            assert failure(made, 5.0).kind == "rate_limited"
            error = failure(made, 5.0)
            assert (error.kind, error.retryable) == ("resting", False) and "rate_limited" in error.message
            assert time.monotonic() - began_s < 5.0
        assert len(server.requests) == 1


def test_a_server_that_comes_back_is_asked_again_and_counts_as_well() -> None:
    answers: list[Scripted] = [Fault("status", status=503), Fault("status", status=503), "hello"]
    with ScriptedEndpoint(lambda request: answers.pop(0)) as server, endpoints(server.url) as made:
        assert b"hello" in bytes(made.ask("e1", question(), pages, 10.0, Cancel()).message)
        assert made.faults() == []
        figures = made.figures()["e1"]
        assert isinstance(figures, dict)
        assert (figures["state"], figures["failed"]["loading"], figures["answered"]) == ("ok", 2, 1)


def test_the_preferred_endpoint_is_chosen_again_once_its_time_has_come() -> None:
    with ScriptedEndpoint(["a"]) as first, ScriptedEndpoint(["b"]) as second:
        with endpoints(first.url, second.url) as made:
            assert made.choose(pages, 5.0, Cancel()).settings.name == "e1"
        first.close()
        with endpoints(first.url, second.url) as made:
            assert made.choose(pages, 5.0, Cancel()).settings.name == "e2"
        with ScriptedEndpoint(["a"], port=first.port) as back, endpoints(back.url, second.url) as made:
            assert made.choose(pages, 5.0, Cancel()).settings.name == "e1"


def test_where_all_are_down_the_failure_names_each_and_comes_in_time() -> None:
    with closed_port() as one, closed_port() as two, endpoints(one, two) as made:
        began_s = time.monotonic()
        with pytest.raises(EndpointFailed) as caught:
            made.choose(pages, 1.5, Cancel())
        assert time.monotonic() - began_s < 1.5 + LATE_S
    assert caught.value.kind in ("connect", "resting")
    assert "e1: " in caught.value.message and "e2: " in caught.value.message


@pytest.mark.parametrize("kind", ["not_json", "cut_body"])
def test_a_server_that_answers_with_rubbish_when_it_is_found_out_is_not_waited_for(kind: FaultKind) -> None:
    with ScriptedEndpoint(lambda request: Fault(kind)) as server, endpoints(server.url) as made:
        began_s = time.monotonic()
        with pytest.raises(EndpointFailed) as caught:
            made.choose(brief, 60.0, Cancel())
        assert time.monotonic() - began_s < 5.0
        assert caught.value.kind in (kind, "cut") and chats(server) == trouble.OPEN_AFTER


def test_a_cancel_ends_a_rest_at_once() -> None:
    cancel = Cancel()
    with closed_port() as url, endpoints(url) as made:
        threading.Timer(0.3, cancel.cancel).start()
        began_s = time.monotonic()
        with pytest.raises(EndpointFailed) as caught:
            made.ask("e1", question(), pages, 30.0, cancel)
        assert caught.value.kind == "cancelled"
        assert time.monotonic() - began_s < 0.3 + LATE_S


def test_an_endpoint_that_is_not_configured_any_more_is_left_for_one_that_is() -> None:
    with ScriptedEndpoint(["a"]) as server, endpoints(server.url) as made:
        assert failure(made, 1.0, "gone").retryable
        chosen = made.elsewhere("gone", pages, 1.0, Cancel())
        assert chosen is not None and chosen.settings.name == "e1"


def test_a_key_that_no_header_can_carry_fails_the_task_and_not_the_daemon() -> None:
    key = Secret("schl\u00fcssel")
    made = Endpoints([Settings(name="e1", url="http://127.0.0.1:9/v1", model="m", api_key=key)], Kept())
    with pytest.raises(EndpointFailed) as caught:
        made.choose(pages, 5.0, Cancel())
    assert "endpoint.e1.api_key" in caught.value.message and "schl" not in caught.value.message
    assert made.faults()[0].startswith("endpoint e1: no_endpoint: ")


# --- what is known of an endpoint


def brief(one: Settings, profile: Profile | None) -> Depth | None:
    return "brief"


def chats(server: ScriptedEndpoint) -> int:
    return sum(request.path.endswith("/chat/completions") for request in server.requests)


def test_what_was_found_out_is_kept_over_restarts_by_url_and_model() -> None:
    kept = Kept()
    with ScriptedEndpoint(["x"]) as server:
        for _ in range(2):
            with endpoints(server.url, kept=kept) as made:
                found = made.choose(brief, 5.0, Cancel()).profile
                assert (found.context_tokens, found.depth) == (4096, "brief")
        assert chats(server) == 1
        other = Endpoints([Settings(name="e1", url=server.url, model="another")], kept)
        other.choose(brief, 5.0, Cancel())
        other.close()
        assert chats(server) == 2


def test_with_nothing_to_find_out_but_pages_no_chat_request_is_sent() -> None:
    with ScriptedEndpoint(["x"]) as server, endpoints(server.url) as made:
        made.choose(pages, 5.0, Cancel())
        assert chats(server) == 0


def test_what_is_known_is_found_out_again_after_a_refusal() -> None:
    def answer(request: Message) -> Scripted:
        return "x" if "tools" in request else Fault("status", status=400)

    with ScriptedEndpoint(answer) as server, endpoints(server.url) as made:
        made.choose(brief, 5.0, Cancel())
        made.choose(brief, 5.0, Cancel())
        assert chats(server) == 1
        failure(made, 1.0)
        made.choose(brief, 5.0, Cancel())
        assert chats(server) == 3


def test_a_server_too_slow_to_be_found_out_is_not_asked_all_of_it_again() -> None:
    with ScriptedEndpoint([Fault("hang_body")]) as server, endpoints(server.url) as made:
        assert made.choose(brief, 0.6, Cancel()).profile.depth == "pages"
        assert made.choose(brief, 0.6, Cancel()).profile.depth == "pages"
        assert chats(server) == 1


def silent_pages(connection: socket.socket) -> None:
    """Answers questions alone."""
    while request := read_request(connection):
        if request.startswith(b"GET"):
            threading.Event().wait(5)
        connection.sendall(stream(delta(content="hello", finish="stop")))
        connection.close()


def test_a_server_that_tells_nothing_of_itself_is_asked_all_the_same_if_there_is_no_other() -> None:
    with raw_server(silent_pages) as url:
        with endpoints(url) as made:
            began_s = time.monotonic()
            assert made.choose(brief, 2.0, Cancel()).profile == Profile()
            assert b"hello" in bytes(made.ask("e1", question(), brief, 2.0, Cancel()).message)
            assert time.monotonic() - began_s < 2.0
            began_s = time.monotonic()
            made.choose(brief, 2.0, Cancel())
            assert time.monotonic() - began_s < 1.0, "it is not tried again"
        with ScriptedEndpoint(["x"]) as other, endpoints(url, other.url) as made:
            assert made.choose(brief, 2.0, Cancel()).settings.name == "e2"
            figures = made.figures()["e1"]
            assert isinstance(figures, dict)
            assert figures["state"] == "open" and figures["retry_in_s"] > 20, "new runs begin where there are answers"


def test_another_model_behind_the_same_name_is_found_out_anew() -> None:
    kept, models, asked = Kept(), ["a", "a", "b"], list[str]()

    def act(connection: socket.socket) -> None:
        while request := read_request(connection):
            if b"GET /props" in request:
                props = {"default_generation_settings": {"n_ctx": 4096}, "model_path": f"/models/{models[0]}.gguf"}
                connection.sendall(reply(json.dumps(props).encode()))
            else:
                asked.append(models[0])
                connection.sendall(stream(delta(content="x", finish="stop")))
                connection.close()

    with raw_server(act) as url:
        while models:
            with endpoints(url, kept=kept) as made:
                assert made.choose(brief, 5.0, Cancel()).profile.served == f"{models[0]}.gguf"
            models.pop(0)
    assert asked == ["a", "b"]


def test_a_server_that_is_another_after_a_restart_is_found_out_anew() -> None:
    kept = Kept()
    with ScriptedEndpoint(["x"]) as server:
        port = server.port
        with endpoints(server.url, kept=kept) as made:
            assert made.choose(brief, 5.0, Cancel()).context_tokens(1) == 4096
    with ScriptedEndpoint(["x"], port=port, context_tokens=16384) as server, endpoints(server.url, kept=kept) as made:
        assert made.choose(brief, 5.0, Cancel()).context_tokens(1) == 16384
        assert made.choose(brief, 5.0, Cancel()).context_tokens(1) == 16384
        assert chats(server) == 1


def test_the_size_told_with_a_refusal_is_in_force_for_later_runs_until_a_restart() -> None:
    kept = Kept()
    body = '{"error":{"message":"exceeds the available context size","n_ctx":1024,"n_prompt_tokens":2000}}'
    with ScriptedEndpoint(lambda request: Fault("status", status=400, body=body)) as server:
        with endpoints(server.url, kept=kept) as made:
            for size in (4096, 1024):
                assert made.choose(pages, 5.0, Cancel()).context_tokens(9999) == size
                error = failure(made, 1.0)
                assert (error.context_tokens, error.prompt_tokens) == (1024, 2000)
        with endpoints(server.url, kept=kept) as made:
            assert made.choose(pages, 5.0, Cancel()).context_tokens(9999) == 4096


# --- a server that reads only part of its prompt


def counting(tokens: int) -> bytes:
    usage = {"choices": [], "usage": {"prompt_tokens": tokens, "completion_tokens": 1}}
    return stream(delta(content="x", finish="stop"), usage)


def counted(prompt_tokens: int, chars: int) -> list[str]:
    """The faults after a prompt of so many characters of which the server counted so many tokens."""
    with raw_server(says(counting(prompt_tokens))) as url, endpoints(url) as made:
        made.ask("e1", question({"role": "user", "content": "word " * (chars // 5)}), pages, 5.0, Cancel())
        return made.faults()


@pytest.mark.parametrize(
    ("prompt_tokens", "chars", "reported"),
    [
        pytest.param(2048, 20_000, True, id="a third of what it must be"),
        pytest.param(5000, 20_000, False, id="as it must be"),
        pytest.param(3500, 20_000, True, id="fewer than its words"),
        pytest.param(4000, 20_000, False, id="one for each word"),
        pytest.param(20, 600, False, id="too short to be judged"),
        pytest.param(0, 20_000, False, id="nothing, as of a prompt in the cache"),
    ],
)
def test_a_server_that_counts_far_fewer_tokens_than_it_was_sent_is_a_fault(
    prompt_tokens: int, chars: int, reported: bool
) -> None:
    faults = counted(prompt_tokens, chars)
    assert bool(faults) == reported
    assert not reported or "truncated" in faults[0]


def test_a_truncation_is_a_fault_until_a_prompt_as_long_was_read_whole() -> None:
    with raw_server(says(counting(100)), says(counting(5000))) as url, endpoints(url) as made:
        body = question({"role": "user", "content": "word " * 3000})
        made.ask("e1", body, pages, 5.0, Cancel())
        assert len(made.faults()) == 1
        made.ask("e1", body, pages, 5.0, Cancel())
        assert made.faults() == []


WORDS = {"role": "user", "content": "word " * 400}
SAID: dict[str, object] = {"role": "assistant", "content": "I go on."}
THOUGHT: dict[str, object] = {"role": "assistant", "content": "hm " * 500}


@pytest.mark.parametrize(
    ("first", "second", "counts", "reported"),
    [
        pytest.param([WORDS], [WORDS, SAID, WORDS], (1200, 1700), False, id="it counts what was added"),
        pytest.param([WORDS], [WORDS, SAID, WORDS], (1200, 1201), True, id="it has reached its end"),
        pytest.param([WORDS], [WORDS, SAID, WORDS], (1200, 1100), True, id="it has dropped the beginning"),
        pytest.param([WORDS], [WORDS, SAID], (1200, 1200), False, id="next to nothing was added"),
        pytest.param([WORDS], [WORDS, THOUGHT, WORDS], (1200, 1201), False, id="a template may drop thoughts"),
        pytest.param([WORDS], [SAID, WORDS, WORDS], (1200, 1201), False, id="another conversation"),
        pytest.param([WORDS, WORDS], [WORDS], (1700, 1200), False, id="a shorter one"),
    ],
)
def test_a_server_that_counts_less_for_more_has_not_read_all_of_it(
    first: list[dict[str, object]], second: list[dict[str, object]], counts: tuple[int, int], reported: bool
) -> None:
    with raw_server(*(says(counting(count)) for count in counts)) as url, endpoints(url) as made:
        for messages in (first, second):
            assert made.faults() == []
            made.ask("e1", question(*messages), pages, 5.0, Cancel())
        assert bool(made.faults()) == reported
