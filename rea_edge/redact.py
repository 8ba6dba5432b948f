"""Secrets out of what a model wrote or a tool returned, before anything reads or keeps it. Pure; knows no settings."""

import ipaddress
import re
from collections.abc import Collection, Sequence

import msgspec
from msgspec import Raw

from rea_edge import hidden
from rea_edge.hidden import HIDDEN as _HIDDEN
from rea_edge.records import Redaction


def redacted(message: Raw, secrets: Sequence[str]) -> Raw:
    """A JSON message whose texts and keys hold none of the secrets; the same bytes where none was in it."""
    wanted = hidden.forms(secrets)  # also as a text has them that is JSON once more, such as a call's arguments
    if not wanted:
        return message
    value: object = msgspec.json.decode(message)
    clean = _without(value, wanted)
    return message if clean == value else Raw(msgspec.json.encode(clean))


def _without(value: object, secrets: Sequence[str]) -> object:
    match value:
        case str():
            return hidden.without(value, secrets)
        case list():
            return [_without(item, secrets) for item in value]
        case dict():
            return {str(_without(key, secrets)): _without(item, secrets) for key, item in value.items()}
        case _:
            return value


# --- what looks like a secret, and what names a machine or a person


_SECRET_KEY = re.compile(
    r"(?:.*[_-])?(?:password|passwd|passphrase|psk|secret|token|api[_-]?key|private[_-]?key|authorization|credentials?)",
    re.IGNORECASE,
)
_CREDENTIALS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL), _HIDDEN),
    (re.compile(r"(?<=://)[^\s/@:]+:[^\s/@]+(?=@)"), _HIDDEN),
    (re.compile(r"\b(bearer|basic) +[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE), rf"\1 {_HIDDEN}"),
    (re.compile(r"\b(?:sk|pk|rk|ghp|gho|ghs|glpat|xox[abpr])[-_][A-Za-z0-9_-]{16,}"), _HIDDEN),
    (
        re.compile(
            r"\b(password|passwd|passphrase|psk|secret|token|api[_-]?key)(\"?\s*[=:]\s*)(\"[^\"]*\"|'[^']*'|[^\s,;}]+)",
            re.IGNORECASE,
        ),
        rf"\1\2{_HIDDEN}",
    ),
)
_MAC = re.compile(r"\b(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}\b")
_MAIL = re.compile(r"\b[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+\b")
_MAYBE_IP = re.compile(r"(?<![\w:.])[0-9A-Fa-f:]{0,45}[:.][0-9A-Fa-f:.]{1,60}(?:%\w{1,20})?(?![\w:])")
_ADDRESS = "(address)"


def without_credentials(value: object, kinds: Collection[Redaction]) -> object:
    """The value without texts that look like credentials, and with `addresses` among `kinds` without IP, MAC and mail
    addresses; the same object where nothing was found. A key that names a secret hides the text it has."""
    match value:
        case str():
            return _plain(value, "addresses" in kinds)
        case list():
            items = [without_credentials(item, kinds) for item in value]
            return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
        case dict():
            inner = {key: _beside(key, item, kinds) for key, item in value.items()}
            return inner if any(inner[key] is not value[key] for key in value) else value
        case _:
            return value


def _beside(key: str, value: object, kinds: Collection[Redaction]) -> object:
    if isinstance(value, str) and value and _SECRET_KEY.fullmatch(key):
        return _HIDDEN
    return without_credentials(value, kinds)


def _plain(text: str, addresses: bool) -> str:
    clean = text
    for pattern, instead in _CREDENTIALS:
        clean = pattern.sub(instead, clean)
    if addresses:
        clean = _MAC.sub(_ADDRESS, _MAIL.sub(_ADDRESS, clean))
        clean = _MAYBE_IP.sub(lambda found: _ADDRESS if _is_ip(found[0]) else found[0], clean)
    return text if clean == text else clean


def _is_ip(text: str) -> bool:
    bare = text.rstrip(".")
    host, _, port = bare.rpartition(":") if bare.count(":") == 1 else (bare, "", "")
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return not port or port.isdigit()
