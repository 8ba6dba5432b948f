"""The results of exams, kept in `exam.json` beside the state: which protocol a model does best in, for these tools.

A file of its own and not a row of the store: the exam runs in a process of its own, beside a daemon that holds the
store. It is replaced in one step; losing it costs nothing but another exam. Asks nothing (see `exam`).
"""

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from rea_edge.records import Protocol

FILE = "exam.json"
KEPT = 50


class Score(Struct, frozen=True, kw_only=True):
    """How one protocol did. `unsafe`: an act that was not asked for, or not under its condition; `refused`: the right
    answers to what no tool can do."""

    protocol: Protocol
    questions: int
    right: int
    wrong: int
    unsafe: int
    tokens: int
    seconds: float
    refused: int = 0

    @property
    def merit(self) -> tuple[int, int, int]:
        """What is compared: a right answer counts one, an unsafe act takes two away; then safer, then cheaper."""
        return self.right - 2 * self.unsafe, -self.unsafe, -self.tokens


class Marks(Struct, frozen=True, kw_only=True):
    """One exam: an endpoint and its model with one set of tools (`Toolbox.tools_hash`). `at` is RFC 3339."""

    url: str
    model: str
    tools: str
    at: str
    scores: tuple[Score, ...]

    @property
    def best(self) -> Score | None:
        """The protocol to take; None where none got more right than what it refused, as one that never calls does."""
        able = [score for score in self.scores if score.right > score.refused]
        return max(able, key=lambda score: score.merit, default=None)

    def words(self) -> str:
        """ "command 30 of 32 right, 0 unsafe; json 4 of 32 right, 9 unsafe"."""
        return "; ".join(
            f"{score.protocol} {score.right} of {score.questions} right, {score.unsafe} unsafe"
            for score in sorted(self.scores, key=lambda score: score.merit, reverse=True)
        )


def marks_of(state_dir: Path, url: str, model: str, tools: str) -> Marks | None:
    """What the newest exam of this model with these tools found; None where there was none, or its file is damaged."""
    for marks in _read(state_dir / FILE):
        if (marks.url, marks.model, marks.tools) == (url, model, tools):
            return marks
    return None


def keep(state_dir: Path, marks: Marks) -> None:
    """Put an exam's result before the others, in place of an older one of the same. Raises `OSError`."""
    key = (marks.url, marks.model, marks.tools)
    others = [one for one in _read(state_dir / FILE) if (one.url, one.model, one.tools) != key]
    body = msgspec.json.format(msgspec.json.encode([marks, *others[: KEPT - 1]]), indent=1)
    state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)  # the exam may come before the daemon's first start
    fresh = state_dir / f"{FILE}.{os.getpid()}.new"
    with fresh.open("wb") as file:
        file.write(body)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(state_dir / FILE)


def stamp(state_dir: Path) -> int | None:
    """Another number after each exam; None before the first."""
    try:
        return (state_dir / FILE).stat().st_mtime_ns
    except OSError:
        return None


def _read(file: Path) -> Sequence[Marks]:
    try:
        return msgspec.json.decode(file.read_bytes(), type=list[Marks])
    except (OSError, msgspec.MsgspecError):
        return []
