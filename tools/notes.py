"""Short notes that outlive restarts: written one at a time, found again by their words.

One file of JSON lines, $REA_TOOL_NOTES_FILE, else `notes.jsonl` in the folder that the host names in $REA_STATE_DIR.
A note is on the disk before its tool says so; a line that a power cut left half is dropped; a call that is run again
writes nothing twice. Above $REA_TOOL_NOTES_KIB (256) the older half goes, by a new file put in the old one's place.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TypedDict

from msgspec import Meta

from rea_edge.tool import request_id, tool

LONGEST_NOTE = 500  # characters; a note is a sentence or two, a model pays for each that it finds
MOST_FOUND = 10
LAST_AT = 253_402_300_800  # the year 10000, which no clock of ours says
LARGEST_KIB = 4096  # the whole file is read at each call

Text = Annotated[str, Meta(min_length=1, max_length=LONGEST_NOTE)]
Most = Annotated[int, Meta(ge=1, le=MOST_FOUND)]


class Entry(TypedDict):
    """A line of the file; `id` is the request that wrote it, `at` unix time by the board's clock."""

    id: str
    at: float
    text: str


class Note(TypedDict):
    text: str
    at: str


class Found(TypedDict):
    found: int
    notes: list[Note]


class Written(TypedDict):
    kept: int


@tool(
    effect="idempotent",
    timeout_s=5.0,
    examples=[
        ('Note: "the filter was cleaned".', {"text": "the filter was cleaned"}),
        ('Make a note: "the boiler leaks".', {"text": "the boiler leaks"}),
        ('Write a note that says "the key hangs in the shed".', {"text": "the key hangs in the shed"}),
        ("Forget the note about the key.", "cannot"),
    ],
)
def write_note(text: Text) -> Written:
    """Keep a short note; gives how many notes are kept now."""
    path = _file()
    with _locked(path):
        entries = _entries(path)
        mine = request_id()
        if mine and any(entry["id"] == mine for entry in entries):
            return {"kept": len(entries)}
        entry: Entry = {"id": mine, "at": round(time.time(), 3), "text": text}
        return {"kept": _added(path, entries, entry)}


@tool(
    effect="read",
    timeout_s=5.0,
    examples=[
        ('Which notes speak of the "filter"?', {"words": "filter"}),
        ('Search the notes for "boiler".', {"words": "boiler"}),
        ('Look for "key" in the notes.', {"words": "key"}),
        ("Read my mail.", "cannot"),
    ],
)
def search_notes(words: Annotated[str, Meta(max_length=100)], most: Most = 5) -> Found:
    """Find the newest notes that hold all of some words; without words the newest of all."""
    path = _file()
    with _locked(path):
        entries = _entries(path)
    wanted = words.casefold().split()
    # The order of the file, not of the clock: a board's clock may jump.
    hits = [entry for entry in reversed(entries) if all(word in entry["text"].casefold() for word in wanted)]
    return {"found": len(hits), "notes": [{"text": hit["text"], "at": _said(hit["at"])} for hit in hits[:most]]}


# --- the file


def _file() -> Path:
    named = os.environ.get("REA_TOOL_NOTES_FILE")
    if named:
        return Path(named).resolve()  # the owner's word, and may be a link
    state = os.environ.get("REA_STATE_DIR")
    if not state:
        raise RuntimeError("there is no place for notes: set REA_TOOL_NOTES_FILE, or run under rea-edge")
    return Path(state) / "notes.jsonl"


def _cap() -> int:
    said = os.environ.get("REA_TOOL_NOTES_KIB", "256")
    if not said.isdecimal() or not 1 <= int(said) <= LARGEST_KIB:
        raise RuntimeError(f"REA_TOOL_NOTES_KIB={said!r} is not a number of KiB from 1 to {LARGEST_KIB}")
    return int(said) * 1024


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    # The lock has a file of its own: the notes' file is replaced when it is cut.
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.with_name(path.name + ".lock"), "a", opener=_no_link) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _entries(path: Path) -> list[Entry]:
    """Every whole line; what a power cut or a stranger left is passed over."""
    try:
        with open(path, "rb", opener=_no_link) as file:
            lines = file.read().split(b"\n")
    except FileNotFoundError:
        return []
    return [entry for line in lines if (entry := _entry(line)) is not None]


def _entry(line: bytes) -> Entry | None:
    try:
        match json.loads(line):
            case {"id": str(id), "at": float() | int() as at, "text": str(text)} if 0 <= at < LAST_AT:
                return {"id": id, "at": at, "text": text}
    except (ValueError, RecursionError):
        return None
    return None


def _added(path: Path, entries: list[Entry], entry: Entry) -> int:
    """Write one more, and give how many there are then."""
    line = _line(entry)
    size = path.stat().st_size if path.exists() else 0
    if size + len(line) > _cap():
        entries = [*_newest(entries, _cap() // 2 - len(line)), entry]
        _replace(path, b"".join(map(_line, entries)))
        return len(entries)
    _append(path, line)
    return len(entries) + 1


def _line(entry: Entry) -> bytes:
    return json.dumps(entry, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def _newest(entries: list[Entry], room: int) -> list[Entry]:
    kept: list[Entry] = []
    for entry in reversed(entries):
        room -= len(_line(entry))
        if room < 0:
            break
        kept.append(entry)
    return kept[::-1]


def _append(path: Path, line: bytes) -> None:
    fresh = not path.exists()
    with open(path, "a+b", opener=_no_link) as file:
        end = file.seek(0, os.SEEK_END)
        if end:
            file.seek(end - 1)
            # Half a line from a power cut: the next note begins a line of its own.
            line = line if file.read(1) == b"\n" else b"\n" + line
        file.write(line)
        file.flush()
        os.fsync(file.fileno())
    if fresh:
        _sync_folder(path)


def _replace(path: Path, body: bytes) -> None:
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    with open(fresh, "xb", opener=_no_link) as file:
        file.write(body)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    _sync_folder(path)


def _sync_folder(path: Path) -> None:
    # A new name is on the disk only when its folder is.
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _no_link(name: str, flags: int) -> int:
    # Every tool writes into the folder: a link that one of them has put there leads to what only this one may write.
    return os.open(name, flags | os.O_NOFOLLOW, 0o666)


def _said(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
