"""Files within folders that the node's owner names: listed, read, and their last lines. Nothing is ever written.

$REA_TOOL_FILES_FOLDERS names them: "logs=/var/log,data=/srv/data". A path is walked part by part from its folder and
no part of it may be a symbolic link, so that none leads out; a hard link is a file like any other, and only who may
read a file can make one (`fs.protected_hardlinks`). The folders are known when this file loads, so Landlock also shows
these tools nothing else. Only plain files are opened.
"""

import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from msgspec import Meta

from rea_edge.tool import tool

MOST_ENTRIES = 100
MOST_BYTES = 8192  # of one answer; a model reads on from `next`
TAIL_BYTES = 8192  # how far back from the end lines are looked for
MOST_FOLDERS = 16


def folders_of(said: str) -> dict[str, str]:
    """The folders by name. Raises ValueError, which is a fault of this file that names the setting."""
    found: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in said.split(","))):
        name, _, folder = part.partition("=")
        if not re.fullmatch(r"[a-z][a-z0-9_]{0,30}", name) or not os.path.isabs(folder) or name in found:
            raise ValueError(f"REA_TOOL_FILES_FOLDERS: {part!r} is not name=/absolute/folder, each name once")
        found[name] = folder
    if len(found) > MOST_FOLDERS:
        raise ValueError(f"REA_TOOL_FILES_FOLDERS: {len(found)} folders; at most {MOST_FOLDERS}")
    return found


FOLDERS = folders_of(os.environ.get("REA_TOOL_FILES_FOLDERS", ""))
FIRST = next(iter(FOLDERS), "logs")
# Without folders nothing is opened, and on a kernel without Landlock the tools can still say what to set.
SANDBOX: Mapping[str, object] | None = {"read": sorted(FOLDERS.values()), "network": False} if FOLDERS else None

if TYPE_CHECKING:
    Folder = str
else:  # an enumeration where it can be one: a model then cannot miss it
    Folder = Literal[tuple(FOLDERS)] if FOLDERS else str

Kind = Literal["file", "folder", "link", "other"]
Inside = Annotated[str, Meta(min_length=1, max_length=500)]


class Entry(TypedDict):
    name: str
    kind: Kind
    bytes: int


class Listing(TypedDict):
    total: int
    entries: list[Entry]


class Piece(TypedDict):
    """`text` is null where `content` is binary; `next` is where the rest begins, null at the end."""

    content: Literal["text", "binary"]
    bytes: int
    text: str | None
    next: int | None


class Tail(TypedDict):
    content: Literal["text", "binary"]
    bytes: int
    lines: list[str]


class NotAllowed(Exception):
    """A path that these tools do not follow; the text says why."""


@tool(
    effect="read",
    timeout_s=5.0,
    sandbox=SANDBOX,
    examples=[
        (f"Which files are in {FIRST}?", {"folder": FIRST}),
        (f"List the folder {FIRST}.", {"folder": FIRST}),
        (f'What is in "old" of {FIRST}?', {"folder": FIRST, "path": "old"}),
        ("Delete the old files.", "cannot"),
    ],
)
def list_files(folder: Folder, path: Annotated[str, Meta(max_length=500)] = "") -> Listing:
    """List a folder, or one inside it: names, kinds and sizes."""
    with _opened(folder, path, os.O_DIRECTORY) as opened:
        names = sorted(os.listdir(opened))
        entries = [entry for name in names[:MOST_ENTRIES] if (entry := _entry(opened, name)) is not None]
    return {"total": len(names), "entries": entries}


@tool(
    effect="read",
    timeout_s=5.0,
    sandbox=SANDBOX,
    examples=[
        (f'Read the file "readme.txt" in {FIRST}.', {"folder": FIRST, "path": "readme.txt"}),
        (f'Show "notes.txt" of {FIRST}.', {"folder": FIRST, "path": "notes.txt"}),
        (f'What does "limits.conf" in {FIRST} say?', {"folder": FIRST, "path": "limits.conf"}),
        ("Write a file.", "cannot"),
    ],
)
def read_file(folder: Folder, path: Inside, start: Annotated[int, Meta(ge=0)] = 0) -> Piece:
    """Read up to 8 KiB of a text file, from a byte on; `next` is where the rest begins."""
    with _opened(folder, path) as opened:
        size = os.fstat(opened).st_size
        block = os.pread(opened, MOST_BYTES + 1, start)
    skipped = _rest_of_letter(block) if start else 0
    more = len(block) > MOST_BYTES
    text, used = _text(block[skipped:MOST_BYTES], more)
    if text is None:
        return {"content": "binary", "bytes": size, "text": None, "next": None}
    return {"content": "text", "bytes": size, "text": text, "next": start + skipped + used if more else None}


@tool(
    effect="read",
    timeout_s=5.0,
    sandbox=SANDBOX,
    examples=[
        (f'Show the last lines of "messages" in {FIRST}.', {"folder": FIRST, "path": "messages"}),
        (f'Show the last 5 lines of "syslog" in {FIRST}.', {"folder": FIRST, "path": "syslog", "lines": 5}),
        (f'What is at the end of "boiler.log" in {FIRST}?', {"folder": FIRST, "path": "boiler.log"}),
        ("Empty the log.", "cannot"),
    ],
)
def tail_file(folder: Folder, path: Inside, lines: Annotated[int, Meta(ge=1, le=100)] = 20) -> Tail:
    """Read the last lines of a text file."""
    with _opened(folder, path) as opened:
        size = os.fstat(opened).st_size
        start = max(0, size - TAIL_BYTES)
        block = os.pread(opened, TAIL_BYTES, start)
    if start:
        # The first line there is most likely the rest of one.
        block = block.partition(b"\n")[2] or block[_rest_of_letter(block) :]
    text, _ = _text(block, cut=False)
    if text is None:
        return {"content": "binary", "bytes": size, "lines": []}
    return {"content": "text", "bytes": size, "lines": text.splitlines()[-lines:]}


# --- never outside


@contextmanager
def _opened(folder: str, path: str, kind: int = 0) -> Iterator[int]:
    """A descriptor of what the path names: of a folder where `kind` is O_DIRECTORY, else of a plain file."""
    if folder not in FOLDERS:
        known = ", ".join(FOLDERS) or 'none: set REA_TOOL_FILES_FOLDERS="logs=/var/log" for the daemon'
        raise NotAllowed(f"{folder!r} is no folder that may be read; there is {known}")
    parts = _parts(path)
    # The folder itself is the owner's word, and may be a link.
    found = os.open(FOLDERS[folder], os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for at, part in enumerate(parts):
            inner = _step(found, part, kind if at == len(parts) - 1 else os.O_DIRECTORY, path)
            os.close(found)
            found = inner
        if not kind and not parts:
            raise NotAllowed(f"{path!r} names no file")
        yield found
    finally:
        os.close(found)


def _parts(path: str) -> list[str]:
    parts = path.split("/") if path else []
    if any(part in ("", ".", "..") for part in parts):
        raise NotAllowed(f"{path!r} is not a plain path inside the folder, such as old/messages.1")
    return parts


def _step(above: int, name: str, kind: int, path: str) -> int:
    """Open one part of a path. What is neither folder nor plain file is not even opened: a device may act on that."""
    mode = os.stat(name, dir_fd=above, follow_symlinks=False).st_mode
    if stat.S_ISLNK(mode):
        raise NotAllowed(f"{path!r} leads over a symbolic link, {name!r}, which is not followed")
    if not (stat.S_ISDIR(mode) if kind else stat.S_ISREG(mode)):
        raise NotAllowed(f"{name!r} in {path!r} is no {'folder' if kind else 'plain file'}")
    opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | kind, dir_fd=above)
    if stat.S_IFMT(os.fstat(opened).st_mode) != stat.S_IFMT(mode):
        os.close(opened)
        raise NotAllowed(f"{name!r} in {path!r} was changed meanwhile")
    return opened


def _entry(above: int, name: str) -> Entry | None:
    try:
        found = os.stat(name, dir_fd=above, follow_symlinks=False)
    except FileNotFoundError:
        return None
    kinds: dict[int, Kind] = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link"}
    shown = os.fsencode(name).decode("utf-8", "replace")
    return {"name": shown, "kind": kinds.get(stat.S_IFMT(found.st_mode), "other"), "bytes": found.st_size}


def _text(block: bytes, cut: bool) -> tuple[str | None, int]:
    """The text of a block and how many bytes it is, None where it is no text. `cut`: its last character may be half."""
    if b"\0" in block:
        return None, 0
    for short in range(4 if cut else 1):
        try:
            body = block[: len(block) - short]
            return body.decode(), len(body)
        except UnicodeDecodeError:
            continue
    return None, 0


def _rest_of_letter(block: bytes) -> int:
    """How many bytes in front belong to a character of UTF-8 that begins before."""
    return next((at for at, byte in enumerate(block[:3]) if byte & 0xC0 != 0x80), min(3, len(block)))
