"""What readers find in a reply before it is checked: calls as written, answers, refusals, faults, and where they stand.

Holds shapes only. Names and arguments are still as the model wrote them; `calls` checks them, `settle` decides.
"""

from typing import Literal

from msgspec import Struct

from rea_edge.errors import DecisionErrorKind

# markup: a dialect's tags or tokens · bare: a JSON object or Python call without any · decision: our own JSON object
# react: lines with labels · result: what a tool would have said, written by the model itself
Form = Literal["markup", "bare", "decision", "react", "result"]


class RawText(Struct, frozen=True):
    """A value that came as plain text between tags: its parameter's type says what it is. `literal`: it is text."""

    text: str
    literal: bool = False


class Element(Struct, frozen=True):
    """A value whose parts came in tags of their own, in order: an object's keys, or a list's items. `text`: all of it."""

    parts: tuple[tuple[str, "RawText | Element"], ...]
    text: str


class Bare(Struct, frozen=True):
    """Arguments that came as bare text, such as a word after `Action Input:`."""

    text: str


class Positional(Struct, frozen=True):
    """Arguments without names."""

    values: tuple[object, ...]


class Unread(Struct, frozen=True):
    """Arguments that cannot be read. `ended`: the text ended inside them; `key`: the last key before the fault."""

    ended: bool
    key: str = ""


class Absent(Struct, frozen=True):
    """No arguments were written at all."""


class Written(Struct, frozen=True):
    """One call as the model wrote it: `args` is a JSON value or one of the classes above."""

    name: object
    args: object = Absent()


class Said(Struct, frozen=True):
    """A final answer; `label` is how the model marked it, for the message of a conflict."""

    answer: str
    label: str = "finish"
    complete: bool = True


class Quit(Struct, frozen=True):
    reason: str


class Flaw(Struct, frozen=True):
    """Something that was meant as a decision and is none."""

    kind: DecisionErrorKind
    message: str


class Result(Struct, frozen=True):
    """A tool's result that the model wrote itself."""


Found = Written | Said | Quit | Flaw | Result


class Remarks(Struct, frozen=True):
    """What stood beside a decision; it never acts."""

    thought: str = ""
    intent: str = ""
    estimated_cost: str = ""


class Piece(Struct, frozen=True):
    """A part of the reply that is not prose. `shown`: in code marks, a quoted line or mid-sentence, so it is only text.

    `fence` numbers the code fence around it (-1: none). `more`: in this form another call may follow right after it.
    """

    start: int
    end: int
    form: Form
    found: tuple[Found, ...]
    fence: int = -1
    shown: bool = False
    more: bool = False
    remarks: Remarks = Remarks()
