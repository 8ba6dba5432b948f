"""A reply while it is walked: its text, the parts found so far, and what is known about any place in it.

Holds the record and the questions about places; `scan` walks, `reasoning` takes thoughts out, `settle` decides.
"""

import re
from bisect import bisect_left

from msgspec import Struct

from rea_edge.decision import dialects
from rea_edge.decision.found import Form, Found, Piece, Remarks
from rea_edge.decision.names import Names
from rea_edge.decision.notation import Broken

_TAG_LENGTH = 100
_OPENING_TAG = re.compile(r"<(?P<tag>[A-Za-z_][\w:.-]{0,40})>\s*(?:`{3,}\w*\s*)?$")
_CLOSING_TAG = re.compile(r"\s*(?:`{3,}\s*)?</(?P<tag>[A-Za-z_][\w:.-]{0,40})>")


class Fence(Struct):
    """A code fence: `end` is where its closing line begins, or the end of the reply."""

    run: str
    info: str
    start: int
    end: int


class Reply:
    """The parts of a text. Outside pieces, noise and what is gone, between `start` and `end`, everything is prose."""

    def __init__(self, text: str, names: Names) -> None:
        self.text, self.names = text, names
        self.pieces: list[Piece] = []
        self.fences: list[Fence] = []
        self.noise: list[tuple[int, int]] = []  # marks and tokens that say nothing to a person
        self.gone: list[tuple[int, int]] = []  # reasoning: neither read nor shown
        self.thoughts: list[str] = []
        self.reasoned = False  # some reasoning was there
        self.answer_at = -1  # gpt-oss: where a message begins that is addressed to the user
        self.preamble = False  # gpt-oss: a comment to the user that is not the answer
        self.section = False  # a section or list of calls is open, so that a cut reply may have lost some
        self.broken_object: Broken | None = None  # the first JSON that could not be read and looks like no decision
        self.fence = -1  # the fence we are in, by number
        self._turns = [turn.start() for turn in dialects.TURN_END.finditer(text)]
        self._thinks = list(dialects.THINK.finditer(text))
        self._never_closed: set[int] = set()
        self.start, self.end = 0, len(text)
        self.begin(0)
        self.opened = self.start  # where the first thing begins that is no reasoning; `start` moves on with thoughts

    # --- recording

    def begin(self, at: int) -> None:
        """What a person may read begins here, after the tokens that open a turn."""
        lead = dialects.LEAD.match(self.text, at)
        self.start = lead.end() if lead else at

    def mark(self, start: int, end: int) -> int:
        self.noise.append((start, end))
        return end

    def add(
        self,
        start: int,
        end: int,
        form: Form,
        found: tuple[Found, ...],
        *,
        more: bool = False,
        remarks: Remarks | None = None,
    ) -> int:
        """Record a part; a tag of the model's own right around it, such as <decision>, is noise."""
        before = _OPENING_TAG.search(self.text[max(start - _TAG_LENGTH, self.start) : start])
        after = _CLOSING_TAG.match(self.text, end)
        if before and after and before["tag"].lower() == after["tag"].lower():
            self.noise += [(start - len(before[0]), start), after.span()]
        self.pieces.append(Piece(start, end, form, found, self.fence, self.quoted(start), more, remarks or Remarks()))
        return end

    def think(self, text: str) -> None:
        self.reasoned = True
        self.thoughts.append(text.strip())

    def drop_before(self, at: int) -> None:
        """All before was reasoning."""
        self.think(self.text[self.start : at])
        self.pieces, self.fences, self.noise, self.gone = [], [], [], []
        self.fence, self.section, self.broken_object = -1, False, None
        self.begin(at)
        self.opened = self.start

    def over(self, at: int) -> int:
        """The reply ends here, unless all this was reasoning that closes later on; gives where to go on."""
        following = self.next_think(at)
        if following is not None and closes(following):
            return following.start()
        self.end = at
        return at

    # --- places

    def line_start(self, at: int) -> bool:
        """Whether only blanks stand before it on its line."""
        line = max(self.text.rfind("\n", 0, at) + 1, self.start)
        return not self.text[line:at].strip()

    def quoted(self, at: int) -> bool:
        """Whether it stands in a quoted line."""
        line = self.text.rfind("\n", 0, at) + 1
        start = self.text[line : line + 8].lstrip(" \t")
        return start.startswith(">") and not start.startswith(">>>")

    def limit(self) -> int:
        """How far something can reach: to the end of the fence around it, or of the reply."""
        return min(self.fences[self.fence].end, self.end) if self.fence >= 0 else self.end

    def turn_end(self, at: int) -> int:
        """Where text after a label ends at the latest: at a turn's end, a fence's end, or where reasoning closes."""
        end = self.limit()
        turn = bisect_left(self._turns, at)
        end = min(end, self._turns[turn]) if turn < len(self._turns) else end
        thought = self.next_think(at)
        if thought is not None and thought.start() < end and closes(thought) and self.line_start(thought.start()):
            return thought.start()
        return end

    def next_think(self, at: int) -> re.Match[str] | None:
        """The next mark of reasoning, opening or closing."""
        number = bisect_left(self._thinks, at, key=lambda think: think.start())
        return self._thinks[number] if number < len(self._thinks) else None

    def closing(self, wrapper: int, at: int) -> re.Match[str] | None:
        """The wrapper's closing tag that comes next; where there is none, later tags of the kind need not look."""
        if wrapper in self._never_closed:
            return None
        found = dialects.WRAPPER_CLOSE[wrapper].search(self.text, at, self.end)
        if found is None:
            self._never_closed.add(wrapper)
        return found


def closes(think: re.Match[str]) -> bool:
    """Whether a mark of reasoning closes a block."""
    return any(think.groups())
