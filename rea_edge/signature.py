"""The signature of a request: HMAC-SHA256 by a person's key over what is asked and the topic it is asked on. Pure.

What is signed is one JSON object in the form of RFC 8785, `{"request": {...}, "topic": "..."}`: the request without its
`sig`, and the whole topic, so that nothing can be moved to another node, root, person, kind of request or tool. Holds
no key and no time: how old a signed request may be is `signers`' to say.
"""

from collections.abc import Mapping

from rea_edge.canonical import canonical

PREFIX = "hmac-sha256:"
_LENGTH = len(PREFIX) + 64
KEY_BYTES = 16  # the least; 32 is what SHA-256 can use
KEY_ADVICE = "make one with `openssl rand -hex 32`"


def key_of(text: str) -> bytes:
    """Read a key as it stands in a file: hex digits. Raises ValueError with what is expected, never with the key."""
    try:
        key = bytes.fromhex(text)
    except ValueError:
        raise ValueError(f"expected hex digits and nothing else: {KEY_ADVICE}") from None
    if len(key) < KEY_BYTES:
        raise ValueError(f"expected at least {2 * KEY_BYTES} hex digits, got {2 * len(key)}: {KEY_ADVICE}")
    return key


def signature(key: bytes, topic: str, keys: Mapping[str, object]) -> str:
    """The `sig` of a request with these keys on this topic. Raises ValueError for what has no one exact form."""
    import hmac  # here and below: a node whose people have no keys never needs it

    return PREFIX + hmac.digest(key, _message(topic, keys), "sha256").hex()


def is_signed(key: bytes, topic: str, keys: Mapping[str, object]) -> bool:
    """Whether `sig` among these keys is right. What cannot be signed is not."""
    import hmac

    given = keys.get("sig")
    if not isinstance(given, str) or len(given) != _LENGTH:
        return False  # a flood of unsigned requests costs no hashing
    try:
        right = signature(key, topic, keys)
    except ValueError:
        return False
    # As bytes: compare_digest refuses texts beyond ASCII.
    return hmac.compare_digest(given.encode("utf-8", "replace"), right.encode())


def _message(topic: str, keys: Mapping[str, object]) -> bytes:
    _need_exact(keys)
    return canonical({"request": {name: value for name, value in keys.items() if name != "sig"}, "topic": topic})


def _need_exact(value: object) -> None:
    """Refuse integers that a double does not hold: in RFC 8785 another integer is written the same."""
    match value:
        case bool():
            return
        case int():
            if abs(value) > 2**53 and not _is_double(value):
                raise ValueError(f"the integer {str(value)[:20]} cannot be signed: no double is equal to it")
        case list() | tuple():
            for item in value:
                _need_exact(item)
        case Mapping():
            for item in value.values():
                _need_exact(item)


def _is_double(value: int) -> bool:
    try:
        return int(float(value)) == value
    except OverflowError:
        return False
