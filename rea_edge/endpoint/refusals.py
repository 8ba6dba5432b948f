"""Which member of a request a server's refusal names. Reads words only: no sockets, no exceptions of ours.

A name counts where a word of refusal stands near it, so that neither a value that is too large (the name stays) nor an
echo of the whole request is taken for one.
"""

import re
from typing import Final

import msgspec

LOOK_BYTES: Final = 4096

# As servers write them, and what the request calls it.
_NAMES: Final = {
    "max_completion_tokens": "max_completion_tokens",
    "max_tokens": "max_tokens",
    "stream_options": "stream_options",
    "temperature": "temperature",
    "response_format": "response_format",
    "response format": "response_format",
    "json_schema": "response_format",
    "structured output": "response_format",
    "structured outputs": "response_format",
    "tool_choice": "tool_choice",
    "parallel_tool_calls": "parallel_tool_calls",
    "grammar": "grammar",
    "streaming": "stream",
}
_QUOTED: Final = ("stream", "stop")  # words of every day: only in quotes
_NAME: Final = rf"(?<![\w.])(?:{'|'.join(_NAMES)})(?!\w)|(?<=['\"`])(?:{'|'.join(_QUOTED)})(?=['\"`])"
_REFUSES: Final = (
    r"unsupported|not (?:currently |yet )?support|n't support|unrecogni[sz]ed|unknown|unexpected|not recogni[sz]ed"
    r"|extra (?:inputs|fields|propert)|extra_forbidden|not (?:permitted|allowed|available|valid here)|unavailable"
    r"|no longer|deprecated|additional propert"
)
_NEAR: Final = 48  # characters between the name and the word
_BEFORE = re.compile(rf"(?:{_REFUSES})[^\n]{{0,{_NEAR}}}?(?P<name>{_NAME})", re.IGNORECASE)
_AFTER = re.compile(rf"(?P<name>{_NAME})[^\n]{{0,{_NEAR}}}?(?:{_REFUSES})", re.IGNORECASE)


class _Error(msgspec.Struct):
    param: str | None = None
    code: str | int | None = None


class _Body(msgspec.Struct):
    error: _Error


def refused_member(body: bytes) -> str:
    """The name that an error's body refuses, as a request has it; empty where it names none."""
    text = body[:LOOK_BYTES].decode("utf-8", "replace").replace('\\"', '"')
    if not re.search(_REFUSES, text, re.IGNORECASE):
        return ""
    if told := _told(body):
        return told
    found = [match for match in (_BEFORE.search(text), _AFTER.search(text)) if match]
    if not found:
        return ""
    name = min(found, key=lambda match: match.start("name"))["name"].lower()
    return _NAMES.get(name, name)


def _told(body: bytes) -> str:
    """What OpenAI's servers say apart from their words: `param`, perhaps with a path below it."""
    try:
        param = msgspec.json.decode(body, type=_Body).error.param or ""
    except (msgspec.MsgspecError, RecursionError):
        return ""
    name = re.split(r"[.\[]", param)[0]
    return _NAMES.get(name, name if name in _QUOTED else "")
