"""Half surrogate pairs in what a server sends are put together, or replaced; they are no reason to lose an answer."""

import json

import pytest

from rea_edge.endpoint.surrogates import joined, without_halves

from .servers import asked, delta, raw_server, reply, says, stream


@pytest.mark.parametrize(
    ("body", "text"),
    [
        pytest.param(rb'"\ud83d\ude00"', "\U0001f600", id="a whole pair"),
        pytest.param(rb'"a\ud83d"', "a\ufffd", id="the first half"),
        pytest.param(rb'"\uDE00b"', "\ufffdb", id="the second half"),
        pytest.param(rb'"\ude00\ud83d"', "\ufffd\ufffd", id="the wrong way round"),
        pytest.param(rb'"\ud83d\ud83d\ude00"', "\ufffd\U0001f600", id="a half and a pair"),
        pytest.param(rb'"\\ud83d"', r"\ud83d", id="no escape at all"),
        pytest.param(rb'"\\\ud83d"', "\\\ufffd", id="after an escaped backslash"),
        pytest.param(rb'"\u00e9\ud7ff"', "\u00e9\ud7ff", id="others"),
    ],
)
def test_a_half_is_read_and_a_whole_stays(body: bytes, text: str) -> None:
    assert joined(json.loads(without_halves(body))) == text


def events(*pieces: str) -> bytes:
    return stream(*(json.dumps(delta(content=piece)).encode() for piece in pieces), delta(finish="stop"))


def test_a_pair_that_is_cut_between_two_events_is_whole_again() -> None:
    with raw_server(says(events("Hot \ud83d", "\udd25!"))) as url:
        assert json.loads(bytes(asked(url).message))["content"] == "Hot \U0001f525!"


def test_half_a_pair_does_not_cost_the_answer() -> None:
    choice = {"message": {"content": "Hot \ud83d", "tool_calls": [{"function": {"name": "x", "arguments": "\udd25"}}]}}
    with raw_server(says(reply(json.dumps({"choices": [choice]}).encode()))) as url:
        message = json.loads(bytes(asked(url).message))
    assert message["content"] == "Hot \ufffd"
    assert message["tool_calls"][0]["function"]["arguments"] == "\ufffd"
