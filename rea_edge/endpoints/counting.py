"""Whether a server has read all of a prompt, told by its own count of tokens. Sends nothing and knows no endpoint.

A tokenizer makes at least one token of each word and of each run of signs (measured: 1.0 to 2.4 of them, far more in
Chinese), whatever the text. So a smaller count is certain: nothing is guessed from averages.
"""

import re
from hashlib import blake2b
from typing import Final

import msgspec
from msgspec import Raw, Struct

LEAST: Final = 150  # of a text that is long enough to be judged
MARGIN: Final = 0.9  # for a tokenizer that joins what none that was looked at does
GROWN: Final = 64  # tokens at least, of what a longer prompt must count more
_UNIT: Final = re.compile(r"\w+|[^\w\s]{2,}")


class _Message(Struct):
    role: str = ""
    content: str | None = None


class _Body(Struct):
    messages: list[Raw]


class _Seen(Struct, frozen=True):
    """The question before: how many messages, which ones, what they were counted as."""

    messages: int
    digest: bytes
    tokens: int


class Reckoning:
    """The counts of one server. Belongs to one thread at a time."""

    def __init__(self) -> None:
        self._before: _Seen | None = None
        self._shortest = 0  # prompt, in least tokens, that was not read whole
        self.fault = ""  # until a prompt as long was read whole

    def take(self, body: bytes, counted: int) -> bool:
        """Look at a question with the server's count of it; False where it has not read all of it."""
        messages = msgspec.json.decode(body, type=_Body).messages
        least = _least(messages)
        missing = self._missing(messages, least, counted)
        self._before = _Seen(len(messages), _digest(messages), counted)
        if missing:
            self._shortest = min(least, self._shortest or least)
            self.fault = (
                f"truncated: {missing}, so it reads only part of what it is sent: give it a larger context, or lower"
                " context_tokens"
            )
        elif least >= self._shortest:
            self.fault, self._shortest = "", 0
        return not missing

    def _missing(self, messages: list[Raw], least: int, counted: int) -> str:
        if least >= LEAST and counted < least * MARGIN:
            return f"it counted {counted} tokens of a prompt that has at least {least}"
        before = self._before
        if before is None or len(messages) <= before.messages or _digest(messages[: before.messages]) != before.digest:
            return ""
        # What a model said may be left out by its template: its thoughts are, in later turns.
        added = _least(messages[before.messages :], told=True) * MARGIN - _least(messages, told=False)
        if added >= GROWN and counted - before.tokens < added:
            return f"it counted {counted - before.tokens} tokens for what was added, which has at least {added:.0f}"
        return ""


def _least(messages: list[Raw], *, told: bool | None = None) -> int:
    """The fewest tokens that these can be; `told`: of those that the model was told, or that it said."""
    read = [msgspec.json.decode(message, type=_Message) for message in messages]
    wanted = (one for one in read if told is None or told == (one.role != "assistant"))
    return sum(1 for one in wanted for _ in _UNIT.finditer(one.content or ""))


def _digest(messages: list[Raw]) -> bytes:
    return blake2b(b"".join(bytes(message) for message in messages), digest_size=16).digest()
