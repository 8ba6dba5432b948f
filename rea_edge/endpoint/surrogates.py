r"""Half surrogate pairs in a server's JSON: `\ud83d` in one event, `\ude00` in the next, or one of them alone. Pure.

Servers written in JavaScript cut text between the halves, and strict JSON readers refuse either. A half is read as a
character of plane 16, which nobody uses, until the text is whole.
"""

import re

_STAND_IN = 0x100000
_ESCAPE = re.compile(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u(?P<half>[dD][89a-fA-F][0-9a-fA-F]{2})"
)
_PAIR = re.compile("([\U0010d800-\U0010dbff])([\U0010dc00-\U0010dfff])")
_HALF = re.compile("[\U0010d800-\U0010dfff]")


def without_halves(body: bytes) -> bytes:
    """JSON that a strict reader takes, where half pairs were what it refused."""
    if b"\\u" not in body:
        return body

    def told(found: re.Match[bytes]) -> bytes:
        half = found["half"]
        return found[0] if half is None else chr(_STAND_IN + int(half, 16)).encode()

    return _ESCAPE.sub(told, body)


def joined(text: str) -> str:
    """Text that was put together from such pieces: whole pairs are characters again, what is left of one is U+FFFD."""
    return _HALF.sub("\ufffd", _PAIR.sub(_character, text))


def _character(found: re.Match[str]) -> str:
    high, low = (ord(half) - _STAND_IN for half in found.groups())
    return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))
