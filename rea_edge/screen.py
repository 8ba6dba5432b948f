"""How tasks, tools and status are shown to a person: colours and live lines on a terminal, plain text when piped."""

import os
import sys
from collections.abc import Iterable, Mapping
from typing import TextIO

import msgspec

from rea_edge.wire import NodeStatus, TaskEvent, TaskState

_COLOURS = {"dim": "2", "bold": "1", "green": "32", "red": "31", "yellow": "33", "cyan": "36"}
_WIDTH = 400  # characters of one value; the journal has the whole


class Screen:
    """Where lines go. Colours only on a terminal, and never where NO_COLOR is set."""

    def __init__(self, out: TextIO | None = None) -> None:
        self.out = out or sys.stdout
        self._colour = self.out.isatty() and "NO_COLOR" not in os.environ

    def say(self, text: str = "") -> None:
        print(text, file=self.out, flush=True)

    def paint(self, text: str, colour: str) -> str:
        return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m" if self._colour else text

    def label(self, word: str, text: str, colour: str = "cyan") -> str:
        return f"  {self.paint(f'{word + chr(58):<13}', colour)}{text}"


class Steps:
    """A task as it goes: each event once, with its step and the seconds since the first."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._step = -1
        self._silence = ("", 0.0)  # what was said of it last, and from which second on it is said again

    def show(self, event: TaskEvent, seconds: float | None = None, at: str = "") -> None:
        self._head(event, seconds, at)
        for line in event_lines(self._screen, event):
            self._screen.say(line)

    def quiet(self, seconds: float, faults: list[str]) -> None:
        """Say that there is no news yet, and what the node says is wrong with it."""
        why = f": {_short('; '.join(faults))}" if faults else ""
        said, again_s = self._silence
        if why == said and seconds < again_s:
            return
        self._silence = (why, 2 * seconds)
        self._screen.say(self._screen.paint(f"  no news after {seconds:.0f} s{why}", "dim"))

    def _head(self, event: TaskEvent, seconds: float | None, at: str) -> None:
        if event.step == self._step or event.kind == "end":
            return
        self._step = event.step
        when = f"{seconds:.1f} s" if seconds is not None else at
        self._screen.say(self._screen.paint(f"step {event.step}  {when}".rstrip(), "bold"))


def event_lines(screen: Screen, event: TaskEvent) -> Iterable[str]:
    """One event as lines: Thought, Action and Args, Observation, or a note."""
    cost = _cost(event)
    match event.kind:
        case "thought":
            yield screen.label("Thought", _short(event.text) or screen.paint("(none)", "dim")) + screen.paint(
                cost, "dim"
            )
        case "call":
            yield screen.label("Action", f"{event.tool}") + screen.paint(cost, "dim")
            yield screen.label("Args", _short(_json(event.args)))
        case "result":
            yield screen.label("Observation", _short(event.text), "green") + screen.paint(cost, "dim")
        case "check":
            yield screen.label("Not accepted", _short(event.text), "yellow") + screen.paint(cost, "dim")
        case "note":
            yield screen.label("Note", _short(event.text), "yellow") + screen.paint(cost, "dim")
        case "end":
            yield screen.label("End", _short(event.text), "bold")


def verdict(screen: Screen, state: TaskState) -> str:
    """How a task ended, in one or two lines: what code knows first, the answer last."""
    colour = "green" if state.outcome == "achieved" else "red"
    usage = state.usage
    tokens = f"{'about ' if usage.estimated else ''}{usage.tokens} tokens"
    cost = f", cost {usage.cost:g}" if usage.cost else ""
    head = f"{screen.paint(str(state.outcome), colour)}  ({usage.steps} steps, {tokens}, {usage.seconds:.1f} s{cost})"
    why = [part for part in (state.limit and f"limit: {state.limit}", state.error, state.reason) if part]
    lines = [head, *([f"  why: {'; '.join(why)}"] if why else [])]
    lines += [f"  did: {item.tool} {_json(item.args)} -> {item.result}" for item in state.done]
    return "\n".join([*lines, harmless(state.answer or "")])


def status_lines(screen: Screen, node: str, status: NodeStatus) -> Iterable[str]:
    colour = {"online": "green", "degraded": "yellow", "offline": "red"}[status.state]
    yield f"{node} is {screen.paint(status.state, colour)}  (rea-edge {status.version})"
    up = "" if status.state == "offline" else f"up {status.up_ms / 1000:.0f} s, "
    yield f"  {up}session {status.session}, state {status.epoch or '-'}"
    for limit, one in status.budgets.items():
        yield f"  {limit}: {one.left} of {one.of} left, renewed in {one.renewed_in_s / 3600:.1f} h at the latest"
    for fault in status.faults:
        yield f"  {screen.paint('fault', 'yellow')}: {fault}"


def table(rows: Iterable[Mapping[str, object]], keys: tuple[str, ...]) -> Iterable[str]:
    """Rows as aligned columns under their keys."""
    cells = [[_cell(row.get(key)) for key in keys] for row in rows]
    widths = [max(len(key), *(len(line[place]) for line in cells), 0) for place, key in enumerate(keys)]
    for line in [list(keys), *cells]:
        yield "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()


def _cell(value: object) -> str:
    return "-" if value is None else value if isinstance(value, str) else _json(value)


def _cost(event: TaskEvent) -> str:
    parts = [f"{event.ms} ms"] if event.ms is not None else []
    if event.tokens:
        about = "about " if event.tokens.get("estimated") else ""
        parts.append(f"{about}{event.tokens.get('in', 0)}+{event.tokens.get('out', 0)} tokens")
    return f"  ({', '.join(parts)})" if parts else ""


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def harmless(text: str) -> str:
    """Text of a model or a tool without what a terminal would obey; line breaks and tabs stay."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "\ufffd" for letter in text)


def _short(text: str) -> str:
    line = " ".join(harmless(text).split())
    return line if len(line) <= _WIDTH else f"{line[:_WIDTH]}... ({len(line) - _WIDTH} more)"
