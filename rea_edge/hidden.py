"""Known secrets out of what somebody wrote, in every form that programs write them in. Pure; knows no settings.

Imports nothing of ours, for the tool host and its keepers use it too.
"""

from collections.abc import Iterable, Sequence

from msgspec import json

LEAST = 8  # characters: a shorter secret may be a word that tools are called with
HIDDEN = "***"
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def forms(secrets: Iterable[str]) -> list[str]:
    """Each secret as it is, in JSON, in Python's own notation and in a URL; the longest first."""
    found: set[str] = set()
    for secret in secrets:
        if len(secret) >= LEAST:
            escaped = "".join(one if one < "\x80" else _escaped(one) for one in _inner(secret))
            found |= {secret, _inner(secret), escaped, repr(secret)[1:-1], _in_url(secret, ""), _in_url(secret, "/")}
    return sorted(found, key=len, reverse=True)


def without(text: str, hidden: Sequence[str]) -> str:
    """The text with each of these forms made unreadable."""
    for form in hidden:
        text = text.replace(form, HIDDEN)
    return text


def uncut(body: bytes, hidden: Sequence[str], *, front: bool = False, back: bool = False) -> bytes:
    """The same of bytes; `front`, `back`: where they were cut off, what a cut has left there of a form goes too."""
    parts = [form.encode("utf-8", "replace") for form in hidden]
    for part in parts:
        body = body.replace(part, HIDDEN.encode())
    if back:
        left = max((size for part in parts for size in range(1, len(part)) if body.endswith(part[:size])), default=0)
        body = body[: len(body) - left]
    if front:
        left = max((size for part in parts for size in range(1, len(part)) if body.startswith(part[-size:])), default=0)
        body = body[left:]
    return body


def _inner(text: str) -> str:
    return json.encode(text).decode()[1:-1]


def _escaped(one: str) -> str:
    units = one.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _in_url(text: str, kept: str) -> str:
    return "".join(
        one if one in _PLAIN or one in kept else "".join(f"%{byte:02X}" for byte in one.encode()) for one in text
    )
