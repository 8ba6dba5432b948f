"""A person's key from its file: hex digits, on one line, that nobody else may read. Signs nothing."""

import os
import stat
from pathlib import Path

from rea_edge.config.document import short_text
from rea_edge.config.settings import Secret
from rea_edge.errors import ConfigInvalid
from rea_edge.signature import key_of

_MAX_BYTES = 1024
_CREDENTIALS = Path("/run/credentials")  # systemd's, also for who is started otherwise: `check` at a shell


def signing_key(file: Path, place: str, credentials: Path | None = None) -> Secret:
    """The key as hex digits. `credentials` is systemd's folder, which guards its files by itself.

    Raises ConfigInvalid that names the place and the file, and never shows what stands in it.
    """
    try:
        text = short_text(file, _MAX_BYTES).strip()
        if not {credentials, _CREDENTIALS} & set(file.parents):
            _need_private(file)
        key_of(text)
    except ConfigInvalid as exc:
        raise ConfigInvalid(place, str(exc)) from exc
    except ValueError as exc:
        raise ConfigInvalid(place, f"{file}: {exc}") from exc
    return Secret(text)


def signing_keys(files: dict[str, Path], credentials: Path | None) -> dict[str, Secret]:
    """The keys of all people who have one. Two with the same key could not be told apart."""
    found: dict[str, Secret] = {}
    for name, file in files.items():
        key = signing_key(file, f"access.keys.{name}", credentials)
        for other, known in found.items():
            if key_of(known.reveal()) == key_of(key.reveal()):
                raise ConfigInvalid(
                    f"access.keys.{name}", f"{file} holds the key of {other}: each needs one of his own"
                )
        found[name] = key
    return found


def _need_private(file: Path) -> None:
    try:
        mode = stat.S_IMODE(os.stat(file).st_mode)
    except OSError as exc:
        raise ConfigInvalid(str(file), f"cannot be read: {exc.strerror}") from exc
    if mode & 0o077:
        raise ConfigInvalid(
            str(file), f"others may read or write it (mode {mode:04o}): chmod 600, owned by who reads it"
        )
