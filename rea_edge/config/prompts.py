"""Where the decision rules of a task type are: shipped ones by protocol and language, or a file of the user's."""

from pathlib import Path

import rea_edge
from rea_edge.config.document import is_bare
from rea_edge.records import Protocol

_FOLDER = Path(rea_edge.__file__).resolve().parent / "prompts"


def prompt_file(prompt: str | None, protocol: Protocol) -> Path:
    """The text for this protocol. `prompt` is a language (`zh`), the name of a shipped text, a path, or None."""
    if prompt is None:
        return _FOLDER / f"{protocol}.txt"
    if not is_bare(prompt):
        return Path(prompt)
    spoken = _FOLDER / f"{protocol}.{prompt}.txt"
    return spoken if spoken.is_file() else _FOLDER / f"{prompt}.txt"


def fits_every_protocol(prompt: str | None) -> bool:
    """Whether there is a text for whatever protocol a run may come to."""
    return prompt is None or prompt in languages()


def languages() -> tuple[str, ...]:
    """What `prompt` takes beside English."""
    return tuple(sorted({file.suffixes[0][1:] for file in _FOLDER.glob("*.*.txt")}))


def shipped_prompts() -> tuple[str, ...]:
    """Every bare name that `prompt` takes."""
    return tuple(sorted({*languages(), *(file.stem for file in _FOLDER.glob("*.txt") if "." not in file.stem)}))
