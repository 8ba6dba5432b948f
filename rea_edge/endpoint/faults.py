"""The names of what a model server can do wrong, and how an error answer is read. No sockets, no httpx.

A kind names what happened, not whose fault it is; `retryable` says whether the same question may be asked again.
"""

import re
import time
from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from rea_edge.endpoint.refusals import refused_member
from rea_edge.errors import EndpointFailed

Kind = Literal[
    "dns", "connect", "tls", "timeout_connect", "timeout_header", "timeout_idle", "timeout_total", "cut", "cancelled",
    "body_cap", "encoding", "redirect", "unauthorized", "not_found", "too_large", "context_overflow", "bad_request",
    "parameter_refused",
    "rate_limited", "server_error", "loading", "not_json", "wrong_shape", "error_in_200", "empty_choices",
]  # fmt: skip

RETRYABLE: Final[frozenset[Kind]] = frozenset({
    "dns", "connect", "timeout_connect", "timeout_header", "timeout_idle", "timeout_total", "cut",
    "rate_limited", "server_error", "loading", "not_json", "error_in_200", "empty_choices",
})  # fmt: skip

SUGGESTIONS: Final[Mapping[Kind, str]] = {
    "dns": "check the host name in the endpoint's url",
    "connect": "check that the model server runs and listens there",
    "tls": "check ca_file, the host name and the server's certificate",
    "redirect": "put the final address into the endpoint's url",
    "unauthorized": "check api_key_file",
    "not_found": "check the endpoint's url (it usually ends in /v1) and model",
    "context_overflow": "lower the prompt or give the server a larger context",
    "loading": "the server is still loading its model",
}

EXCERPT_CHARS: Final = 300
RETRY_AFTER_MAX_S: Final = 3600.0

# What llama.cpp, Ollama, vLLM, OpenAI, LM Studio, TGI and Gemini's adapter say when a prompt does not fit.
_OVERFLOW = re.compile(
    r"exceed_context_size|context_length_exceeded|exceeds? the (available )?context (size|length|window)"
    r"|max(imum)?( model's)? context length|exceeds? (the )?(model'?s? )?(maximum|max|context)[ _](length|window)"
    r"|maximum model length|prompt (is )?too long|maximum number of tokens allowed|max_new_tokens`? must be"
    r"|context (length|window) of only|context overflow|reduce the length of the (messages|prompt|input)",
    re.IGNORECASE,
)
# The sizes that they tell with it: of the context, and of the prompt that did not fit.
_CONTEXT_TOKENS = re.compile(
    r"""n_ctx["']?\s*[:=]\s*(\d+)|context (?:size|length|window)(?: (?:is|of)(?: only)?)? ?\(?(\d+)"""
    r"|maximum model length of (\d+)|> (\d+) maximum|must be <= (\d+)",
    re.IGNORECASE,
)
_PROMPT_TOKENS = re.compile(
    r"""n_prompt_tokens["']?\s*[:=]\s*(\d+)|request \((\d+) tokens\)|prompt \(length (\d+)\)|resulted in (\d+) tokens"""
    r"|too long: (\d+) tokens|\((\d+) in the (?:messages|prompt)|Given: (\d+) .?inputs",
    re.IGNORECASE,
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


class _Error(msgspec.Struct):
    message: msgspec.Raw = msgspec.Raw(b"")
    type: msgspec.Raw = msgspec.Raw(b"")
    code: msgspec.Raw = msgspec.Raw(b"")


class _Body(msgspec.Struct):
    error: msgspec.Raw = msgspec.Raw(b"")


def failed(kind: Kind, message: str, *, retry_after_s: float | None = None) -> EndpointFailed:
    """The exception for `kind`, with its place in the retry table and what may help."""
    return EndpointFailed(
        kind,
        message,
        retryable=kind in RETRYABLE,
        retry_after_s=retry_after_s,
        suggestion=SUGGESTIONS.get(kind, ""),
    )


def refused(status: int, headers: Mapping[str, str], body: bytes) -> EndpointFailed:
    """Read an answer whose status is not 200. `headers` by lower-case name; `body` may be cut or empty."""
    text = excerpt(body)
    kind = _kind_of(status, text)
    parameter = refused_member(body) if kind in ("bad_request", "server_error") else ""
    kind = "parameter_refused" if parameter else kind
    # A quota or an account that is used up: no wait within a task mends it.
    spent = status == 402 or (kind == "rate_limited" and "insufficient_quota" in text)
    error = failed(kind, f"status {status}: {text}" if text else f"status {status}", retry_after_s=_wait_s(headers))
    _note_sizes(error, body)
    error.parameter = parameter
    error.retryable = error.retryable and not spent
    return error


def said_error(body: bytes) -> EndpointFailed | None:
    """The failure inside an answer that came with status 200, or None if `body` has no `error` member."""
    try:
        raw = bytes(msgspec.json.decode(body, type=_Body).error)
    except (msgspec.MsgspecError, RecursionError):
        return None
    if raw in (b"", b"null", b"false", b'""', b"{}"):
        return None
    text = excerpt(body)
    overflow = _OVERFLOW.search(text) is not None
    parameter = "" if overflow else refused_member(body)
    kind: Kind = "context_overflow" if overflow else "parameter_refused" if parameter else "error_in_200"
    error = failed(kind, f"an error in the answer: {text}")
    error.parameter = parameter
    _note_sizes(error, body)
    return error


def _note_sizes(error: EndpointFailed, body: bytes) -> None:
    if error.kind == "context_overflow":
        text = body.decode("utf-8", "replace")
        error.context_tokens, error.prompt_tokens = _size(_CONTEXT_TOKENS, text), _size(_PROMPT_TOKENS, text)


def _size(pattern: re.Pattern[str], text: str) -> int | None:
    found = pattern.search(text)
    digits = next((group for group in found.groups() if group), "") if found else ""
    return int(digits) if 0 < len(digits) < 10 and int(digits) > 0 else None


def excerpt(body: bytes) -> str:
    """The error's own words if `body` is `{"error": ...}`, else its beginning, on one line."""
    text = _words(body) or body[: 4 * EXCERPT_CHARS].decode("utf-8", "replace")
    text = _CONTROL.sub(" ", text).strip()
    return text if len(text) <= EXCERPT_CHARS else text[: EXCERPT_CHARS - 3] + "..."


def _words(body: bytes) -> str:
    try:
        raw = msgspec.json.decode(body, type=_Body).error
        if not bytes(raw).startswith(b"{"):
            return _plain(raw)
        error = msgspec.json.decode(raw, type=_Error)
        code = _plain(error.code) if bytes(error.code).startswith(b'"') else ""  # a number only repeats the status
        parts = (_plain(error.message), _plain(error.type), code)
    except (msgspec.MsgspecError, RecursionError):
        return ""
    return " ".join(part for part in parts if part)


def _plain(raw: msgspec.Raw) -> str:
    text = bytes(raw)
    if text.startswith(b'"'):
        return msgspec.json.decode(text, type=str)
    return "" if text in (b"", b"null") else text[: 4 * EXCERPT_CHARS].decode("utf-8", "replace")


def _kind_of(status: int, text: str) -> Kind:
    match status:
        case 401 | 403:
            return "unauthorized"
        case 402 | 429:
            return "rate_limited"
        case 404:
            return "not_found"
        case 408 | 425:
            return "server_error"
        case 503:
            return "loading"
        case _ if 300 <= status < 400:
            return "redirect"
        case _ if status >= 400 and _OVERFLOW.search(text):
            return "context_overflow"
        case 413:
            return "too_large"
        case _ if 400 <= status < 500:
            return "bad_request"
        case _ if status >= 500:
            return "server_error"
        case _:
            return "wrong_shape"


def _wait_s(headers: Mapping[str, str]) -> float | None:
    text = headers.get("retry-after", "").strip()
    if not text:
        return None
    if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text):
        return min(float(text), RETRY_AFTER_MAX_S)
    then = _instant(text)
    if then is None:
        return None
    # The server's own clock where it tells it: a board's clock may be years off.
    now = _instant(headers.get("date", ""))
    return min(max(then - (time.time() if now is None else now), 0.0), RETRY_AFTER_MAX_S)


def _instant(text: str) -> float | None:
    from email.utils import parsedate_to_datetime  # a whole mail library, for the rare server that sends a date

    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
