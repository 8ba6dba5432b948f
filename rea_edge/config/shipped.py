"""Where the tool files of a configuration are, shipped ones included. Loads none of them."""

from collections.abc import Iterator
from pathlib import Path

import rea_edge
from rea_edge.config.document import is_bare
from rea_edge.config.settings import Settings
from rea_edge.errors import ConfigInvalid

_SUFFIXES = (".py", ".toml")


def tool_files(settings: Settings) -> tuple[Path, ...]:
    """Give every tool file once, in the order of `node.tools`; a folder gives its files by name.

    In a folder only `.py` and `.toml` count, and none whose name begins with `_` or a dot. A path that leads to
    nothing is given as it is: its loading then fails, by name, and the daemon goes on without it. Raises
    ConfigInvalid for a bare name that is not shipped.
    """
    found: dict[Path, None] = {}
    for index, entry in enumerate(settings.node.tools):
        if is_bare(entry):
            found[_shipped(entry, f"node.tools[{index}]")] = None
        else:
            found |= dict.fromkeys(_files(Path(entry)))
    return tuple(found)


def shipped_names() -> tuple[str, ...]:
    """The bare names that `node.tools` takes."""
    return tuple(sorted({file.stem for folder in _folders() for file in _files(folder) if file.is_file()}))


def _shipped(name: str, place: str) -> Path:
    for folder in _folders():
        for suffix in _SUFFIXES:
            file = folder / (name + suffix)
            if file.is_file():
                return file
    raise ConfigInvalid(place, f"{name!r} is not shipped ({', '.join(shipped_names())}); a file needs a / or a suffix")


def _folders() -> tuple[Path, ...]:
    # Installed, tools lie inside the package; in a checkout beside it.
    package = Path(rea_edge.__file__).resolve().parent
    beside = package.parent / "tools"
    in_checkout = (package.parent / "pyproject.toml").is_file()
    return (*((beside,) if in_checkout else ()), package / "_data" / "tools")


def _files(path: Path) -> Iterator[Path]:
    try:
        inside = sorted(path.iterdir())
    except OSError:
        # A file; or nothing, or a folder that may not be read: whoever loads it says so.
        yield path
        return
    for file in inside:
        if file.suffix in _SUFFIXES and not file.name.startswith(("_", ".")) and file.is_file():
            yield file
