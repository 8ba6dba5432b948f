"""A message made shorter for a broker that takes no large ones. Pure: bytes in, bytes out."""

import msgspec

MARK = "cut"  # the key that says so, in what is an object
WHERE = "this broker takes no larger message; ask for the whole by query, or look with rea-edge show --state"


def shorter(payload: bytes, most: int) -> bytes | None:
    """`payload` with its largest parts left out until it has at most `most` bytes; None where that is not enough.

    The small keys of a JSON object stay, which say what it is about; text is cut at its end.
    """
    try:
        value = msgspec.json.decode(payload)
    except msgspec.DecodeError:
        return _text(payload, most)
    if not isinstance(value, dict):
        return None
    value[MARK] = WHERE
    while len(shown := msgspec.json.encode(value)) > most:
        key = max(
            (one for one in value if one != MARK), key=lambda one: len(msgspec.json.encode(value[one])), default=""
        )
        left_out = _left_out(value.get(key))
        if key == "" or left_out == value[key]:
            return None
        value[key] = left_out
    return shown


def _left_out(part: object) -> object:
    match part:
        case str():
            return part[: len(part) // 2]
        case list():
            return part[len(part) // 2 + 1 :]
        case dict():
            return None
        case _:
            return part


def _text(payload: bytes, most: int) -> bytes | None:
    room = most - 3
    return payload[:room].decode(errors="ignore").encode() + b"..." if room > 0 else None
