"""A secret that a model writes is kept nowhere."""

import msgspec
import pytest
from msgspec import Raw

from rea_edge.redact import redacted

KEY = 'sk-"4f\\9q'


@pytest.mark.parametrize(
    "message",
    [
        pytest.param({"content": f"the key is {KEY}!"}, id="in a text"),
        pytest.param({KEY: "x"}, id="as a key"),
        pytest.param(
            {"tool_calls": [{"function": {"arguments": msgspec.json.encode({"k": KEY}).decode()}}]}, id="escaped"
        ),
        pytest.param({"content": [{"text": KEY * 3}]}, id="in parts, three times"),
    ],
)
def test_a_secret_is_hidden_wherever_it_stands(message: dict[str, object]) -> None:
    hidden = bytes(redacted(Raw(msgspec.json.encode(message)), ["other-secret", KEY])).decode()
    assert "***" in hidden and "4f" not in hidden


def test_a_message_without_secrets_keeps_its_bytes() -> None:
    message = Raw(b'{ "content" : "nothing" }')
    assert redacted(message, [KEY, ""]) is message


def test_a_word_too_short_to_be_a_secret_hides_nothing() -> None:
    message = Raw(b'{"content":"a ball"}')
    assert redacted(message, ["a", "ball"]) is message
