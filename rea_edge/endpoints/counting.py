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
    """A question: how many messages, which ones, the least tokens of what the model was told and of what it said."""

    messages: int = 0
    digest: bytes = b""
    told: int = 0
    said: int = 0
    counted: int = 0

    @property
    def least(self) -> int:
        return self.told + self.said


class Reckoning:
    """The counts of one server. Belongs to one thread at a time."""

    def __init__(self) -> None:
        self._before = _Seen()
        self._shortest = 0  # prompt, in least tokens, that was not read whole
        self.fault = ""  # until a prompt as long was read whole

    def take(self, body: bytes, counted: int) -> bool:
        """Look at a question with the server's count of it; False where it has not read all of it."""
        messages = msgspec.json.decode(body, type=_Body).messages
        before = self._before
        if len(messages) < before.messages or _digest(messages[: before.messages]) != before.digest:
            before = _Seen()
        seen = self._before = _seen(messages, before, counted)
        missing = _missing(seen, before)
        if missing:
            self._shortest = min(seen.least, self._shortest or seen.least)
            self.fault = (
                f"truncated: {missing}, so it reads only part of what it is sent: give it a larger context, or lower"
                " context_tokens"
            )
        elif seen.least >= self._shortest:
            self.fault, self._shortest = "", 0
        return not missing


def _seen(messages: list[Raw], before: _Seen, counted: int) -> _Seen:
    """This question, which goes on from that one: only what was added is looked at."""
    told, said = before.told, before.said
    for message in messages[before.messages :]:
        one = msgspec.json.decode(message, type=_Message)
        least = len(_UNIT.findall(one.content or ""))
        if one.role == "assistant":
            said += least
        else:
            told += least
    return _Seen(len(messages), _digest(messages), told, said, counted)


def _missing(seen: _Seen, before: _Seen) -> str:
    if seen.least >= LEAST and seen.counted < seen.least * MARGIN:
        return f"it counted {seen.counted} tokens of a prompt that has at least {seen.least}"
    # What a model said may be left out by its template: its thoughts are, in later turns.
    added, more = (seen.told - before.told) * MARGIN - seen.said, seen.counted - before.counted
    if before.messages and added >= GROWN and more < added:
        return f"it counted {more} tokens for what was added, which has at least {added:.0f}"
    return ""


def _digest(messages: list[Raw]) -> bytes:
    return blake2b(b"".join(bytes(message) for message in messages), digest_size=16).digest()
