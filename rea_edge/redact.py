"""Secrets out of what a model wrote, before anything reads or keeps it. Pure; knows no settings."""

from collections.abc import Sequence

import msgspec
from msgspec import Raw

LEAST = 8  # characters: a shorter secret may be a word that tools are called with
_HIDDEN = "***"


def redacted(message: Raw, secrets: Sequence[str]) -> Raw:
    """A JSON message whose texts and keys hold none of the secrets; the same bytes where none was in it."""
    wanted = sorted({secret for secret in secrets if len(secret) >= LEAST}, key=len, reverse=True)
    # Also inside a text that is JSON once more, such as a call's arguments: there a secret may be escaped.
    wanted += [inner for secret in wanted if (inner := msgspec.json.encode(secret).decode()[1:-1]) != secret]
    value: object = msgspec.json.decode(message)
    clean = _without(value, wanted)
    return message if clean == value else Raw(msgspec.json.encode(clean))


def _without(value: object, secrets: Sequence[str]) -> object:
    match value:
        case str():
            for secret in secrets:
                value = value.replace(secret, _HIDDEN)
            return value
        case list():
            return [_without(item, secrets) for item in value]
        case dict():
            return {str(_without(key, secrets)): _without(item, secrets) for key, item in value.items()}
        case _:
            return value
