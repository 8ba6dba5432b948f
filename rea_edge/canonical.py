"""JSON as one exact form (RFC 8785), the hash of a request's body, and the strict reading of JSON from outside.

Holds no request and no topic: which keys make a body is the mailbox's to know. Reads nothing but its arguments.
"""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping

# Objects and arrays inside each other. Far above any request, far below Python's own stack.
MAX_DEPTH = 64
# The longest integer below the largest double has 309 digits; more is refused before it costs time.
_MAX_INTEGER_CHARACTERS = 310


def canonical(value: object) -> bytes:
    """Give `value` as the bytes of RFC 8785: the same value always gives the same bytes.

    Takes None, bool, int, float, str, lists, tuples and mappings with string keys. Every number is written as the
    double nearest to it, as any JavaScript sender does: integers beyond 2**53 may so lose their last digits, and
    bodies that differ only there are the same body. (Refusing them instead would refuse our own output: 1e20 is
    written with 21 digits.) Raises ValueError for NaN, infinities, integers beyond a double, half surrogates,
    other types, and values nested deeper than MAX_DEPTH (or containing themselves).
    """
    return "".join(_pieces(value, 0)).encode()


def body_hash(keys: Mapping[str, object]) -> str:
    """Name a body: `sha256:` and the hex digest of its canonical form. Raises ValueError as `canonical` does."""
    return "sha256:" + hashlib.sha256(canonical(keys)).hexdigest()


def parse(payload: bytes) -> object:
    """Read one JSON value, strictly; `canonical` accepts whatever comes out.

    A byte order mark is dropped. Raises ValueError with a sentence for the sender for anything else than JSON in
    UTF-8: a key that occurs twice in one object (at any depth), NaN and infinities by any spelling, numbers beyond
    a double, half surrogates, nesting deeper than MAX_DEPTH. The caller limits the length.
    """
    try:
        text = payload.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as exc:
        raise ValueError(f"not UTF-8 at byte {exc.start}") from None
    try:
        value: object = json.loads(
            text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_float, parse_int=_int
        )
    except RecursionError:
        raise ValueError(f"nested deeper than {MAX_DEPTH}") from None
    except json.JSONDecodeError as exc:
        raise ValueError(f"not JSON: {exc}") from None
    _check(value, 0)
    return value


def _pieces(value: object, depth: int) -> Iterator[str]:
    match value:
        case None:
            yield "null"
        case bool():
            yield "true" if value else "false"
        case int() | float():
            yield _number(value)
        case str():
            yield _string(value)
        case Mapping():
            yield from _members(value, _deeper(depth))
        case list() | tuple():
            yield from _items(value, _deeper(depth))
        case _:
            raise ValueError(f"a {type(value).__name__} is not JSON")


def _deeper(depth: int) -> int:
    if depth == MAX_DEPTH:
        raise ValueError(f"nested deeper than {MAX_DEPTH}")
    return depth + 1


def _items(items: list[object] | tuple[object, ...], depth: int) -> Iterator[str]:
    yield "["
    for position, item in enumerate(items):
        if position:
            yield ","
        yield from _pieces(item, depth)
    yield "]"


def _members(members: Mapping[object, object], depth: int) -> Iterator[str]:
    # Sorted by UTF-16 units, not code points: an emoji sorts before U+FB33, as in JavaScript.
    named = sorted((_units(key), _string(str(key)), value) for key, value in members.items())
    yield "{"
    for position, (_, name, value) in enumerate(named):
        yield f"{',' if position else ''}{name}:"
        yield from _pieces(value, depth)
    yield "}"


def _units(key: object) -> bytes:
    if not isinstance(key, str):
        raise ValueError(f"the key {key!r} is not a string")
    return _whole(key).encode("utf-16-be")


def _string(text: str) -> str:
    # The standard encoder escapes exactly what RFC 8785 escapes, and in the same spelling.
    return json.dumps(_whole(text), ensure_ascii=False)


def _whole(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as exc:
        raise ValueError(f"half a surrogate pair, \\u{ord(text[exc.start]):04x}, in a string") from None
    return text


def _number(value: float) -> str:
    """Write a number as ECMAScript's Number::toString does, from the shortest digits that Python finds."""
    number = _double(value)
    if number == 0:
        return "0"
    mantissa, _, exponent = repr(abs(number)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    written = whole + fraction
    digits = written.lstrip("0")
    # The value is 0.DIGITS times ten to the power of `point`.
    point = len(whole) + int(exponent or 0) - (len(written) - len(digits))
    return ("-" if number < 0 else "") + _placed(digits.rstrip("0"), point)


def _placed(digits: str, point: int) -> str:
    count = len(digits)
    if count <= point <= 21:
        return digits + "0" * (point - count)
    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"0.{'0' * -point}{digits}"
    rest = f".{digits[1:]}" if count > 1 else ""
    return f"{digits[0]}{rest}e{point - 1:+d}"


def _double(value: float) -> float:
    try:
        number = float(value)
    except OverflowError:
        raise ValueError("an integer beyond the range of a double") from None
    if not math.isfinite(number):
        raise ValueError(f"{number} is not JSON")
    return number


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {json.dumps(key)} occurs twice")
        found[key] = value
    return found


def _constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"the number {text[:20]} is beyond the range of a double")
    return number


def _int(text: str) -> int:
    number = int(text) if len(text) <= _MAX_INTEGER_CHARACTERS else 10**400
    try:
        float(number)
    except OverflowError:
        raise ValueError(f"the number {text[:20]}... is beyond the range of a double") from None
    return number


def _check(value: object, depth: int) -> None:
    match value:
        case str():
            _whole(value)
        case list():
            inner = _deeper(depth)
            for item in value:
                _check(item, inner)
        case dict():
            inner = _deeper(depth)
            for key, item in value.items():
                _whole(key)
                _check(item, inner)
