"""TOML files as plain tables: found, capped, decoded, their relative paths anchored. Checks no value.

Knows only which keys are paths.
"""

import re
from pathlib import Path
from typing import NamedTuple

from rea_edge.errors import ConfigInvalid

# Far more than any configuration; a file that was mixed up with another is refused before it is parsed.
MAX_BYTES = 64 * 1024

_PATHS = frozenset(
    {"state_dir", "password_file", "ca_file", "cert_file", "key_file", "api_key_file", "signing_key_file"}
)
_BARE = re.compile(r"[A-Za-z0-9_-]+")


class Document(NamedTuple):
    """One file and its tables; every path in them is absolute."""

    file: Path
    keys: dict[str, object]


def documents(file: Path) -> tuple[Document, ...]:
    """Read `file`, then `conf.d/*.toml` beside it in the order of their names.

    Raises ConfigInvalid that names the file, and the line where there is one.
    """
    folder = file.parent / "conf.d"
    try:
        parts = sorted(part for part in folder.iterdir() if part.suffix == ".toml") if folder.is_dir() else []
    except OSError as exc:
        raise ConfigInvalid(str(folder), f"cannot be read: {exc.strerror}") from exc
    return tuple(document(part) for part in [file, *parts])


def document(file: Path) -> Document:
    """Read one file. Raises ConfigInvalid as `documents` does."""
    file = file.absolute()
    keys = _tables(file, _text(file))
    _anchor(keys, file.parent)
    return Document(file, keys)


def merged(parts: tuple[Document, ...]) -> dict[str, object]:
    """Lay the files over each other: tables key by key, all else (lists too) whole; the last one wins."""
    whole: dict[str, object] = {}
    for part in parts:
        _lay_over(whole, part.keys)
    return whole


def is_bare(name: str) -> bool:
    """Whether `name` means something shipped with us rather than a path."""
    return _BARE.fullmatch(name) is not None


def short_text(file: Path, max_bytes: int) -> str:
    """Read a small UTF-8 file. Raises ConfigInvalid that names the file, and the line of a bad byte."""
    try:
        with file.open("rb") as opened:
            raw = opened.read(max_bytes + 1)
    except OSError as exc:
        raise ConfigInvalid(str(file), f"cannot be read: {exc.strerror}") from exc
    if len(raw) > max_bytes:
        raise ConfigInvalid(str(file), f"more than {max_bytes} bytes")
    try:
        return raw.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as exc:
        line = exc.object.count(b"\n", 0, exc.start) + 1
        raise ConfigInvalid(str(file), f"not UTF-8 (at line {line})") from None


def _text(file: Path) -> str:
    return short_text(file, MAX_BYTES)


def _tables(file: Path, text: str) -> dict[str, object]:
    import tomllib  # only here: a client that is told all by flags never needs it

    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ConfigInvalid(str(file), "nested too deeply") from None
    except ValueError as exc:
        raise ConfigInvalid(str(file), str(exc)) from None


def _anchor(keys: dict[str, object], folder: Path, above: tuple[str, ...] = ()) -> None:
    for key, value in keys.items():
        match value:
            case str() if key in _PATHS or above in (("secrets",), ("access", "keys")):
                keys[key] = str(folder / value)
            case str() if key == "prompt":
                keys[key] = _named(value, folder)
            case list() if (*above, key) == ("node", "tools"):
                keys[key] = [_named(item, folder) for item in value]
            # No setting lies deeper; what does is refused soon, and must not cost our stack before.
            case dict() if len(above) < 3:
                _anchor(value, folder, (*above, key))
            case list() if len(above) < 3:
                for item in value:
                    if isinstance(item, dict):
                        _anchor(item, folder, (*above, key))


def _named(value: object, folder: Path) -> object:
    return value if not isinstance(value, str) or not value or is_bare(value) else str(folder / value)


def _lay_over(below: dict[str, object], above: dict[str, object]) -> None:
    for key, value in above.items():
        under = below.get(key)
        if isinstance(under, dict) and isinstance(value, dict):
            joined = dict(under)
            _lay_over(joined, value)
            below[key] = joined
        else:
            below[key] = value
