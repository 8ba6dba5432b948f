"""From what a reply holds to one decision: what counts, what is only shown, what conflicts, and what to tell the model.

Holds the principles of one decision a turn; reads no text itself beyond asking whether prose stands somewhere.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from rea_edge.decision import calls
from rea_edge.decision.found import Flaw, Found, Piece, Quit, Remarks, Result, Said, Written
from rea_edge.decision.names import Names
from rea_edge.decision.notation import Value, read_calls, skip
from rea_edge.decision.scan import Scan
from rea_edge.decision.shapes import read_calls_value
from rea_edge.errors import DecisionErrorKind, DecisionRejected
from rea_edge.records import Call, Calls, Decision, Finish, GiveUp

Asked = Literal["native", "json", "react", "command", "any"]
FORMS: dict[Asked, str] = {
    "native": "Call a tool natively, or answer in plain text.",
    "any": "Call a tool natively, or answer in plain text.",
    "json": 'Answer with one JSON object: {"action": "tool", "tool_name": ..., "tool_args": {...}}, '
    'or "finish" with "terminal_answer", or "give_up" with "reason".',
    "react": "Write Thought:, then either Action: and Action Input: (a JSON object), or Final Answer:.",
    "command": "Answer with one command line.",
}
_WORST: tuple[DecisionErrorKind, ...] = (
    "truncated",
    "conflict",
    "unparseable",
    "unknown_tool",
    "invalid_args",
    "empty",
)


_FEW_WORDS = 2
# What a line may end with before a call: it announces or ends something.
_LEADS = tuple(':：.!?。！？>*-–—=→)）]`"”')
_NEXT_CALL = re.compile(
    r"(?:\s*<[^<>\[\]{}]*>)*\s*(?:[;,]\s*|[<\[][^<>\[\]{}]*|\][\]<>\[\w/ =\"]{0,120}|>{1,3}[\w.]*\s*)?"
)


class Turn(Struct, frozen=True):
    """How the reply was asked for and how it ended. `cut`: the server stopped it at a length."""

    asked: Asked
    cut: bool
    names: Names


class Prose:
    """Where a person would read something: outside parts, marks and reasoning."""

    def __init__(self, scan: Scan) -> None:
        self.text = scan.text
        spans = [(piece.start, piece.end) for piece in scan.pieces if not piece.shown] + scan.noise + scan.gone
        self.starts: list[int] = []
        self.ends: list[int] = []
        at = scan.start
        for first, last in [*sorted(spans), (scan.end, scan.end)]:
            if first > at and _said(self.text[at:first]):
                self.starts.append(at)
                self.ends.append(min(first, scan.end))
            at = max(at, last)

    def between(self, start: int, end: int) -> bool:
        number = bisect_right(self.ends, start)
        while number < len(self.starts) and self.starts[number] < end:
            if _said(self.text[max(start, self.starts[number]) : min(end, self.ends[number])]):
                return True
            number += 1
        return False


def _said(text: str) -> bool:
    return bool(text.strip(" \t\r\n\ufeff\u200b`~;"))


def settled(scan: Scan, turn: Turn) -> Decision | None:
    """The decision that a text holds, or None where it holds none; raises DecisionRejected."""
    pieces = _counting(scan, Prose(scan), turn)
    pieces = _before_fiction(pieces)
    if turn.cut and any(_has_call(piece) for piece in pieces) and (scan.section or _cut_between(scan, pieces[-1])):
        raise DecisionRejected("truncated", "The reply was cut off and a call may be missing. Send it whole.")
    if not pieces:
        return None
    return decided(pieces, turn, scan.thoughts)


def _cut_between(scan: Scan, last: Piece) -> bool:
    """The reply was cut where the next of several calls would begin: right after one, or inside the next tag."""
    fenced = last.fence >= 0 and scan.fences[last.fence].end < len(scan.text)
    return last.more and not fenced and _NEXT_CALL.fullmatch(scan.text, last.end) is not None


def decided(pieces: Sequence[Piece], turn: Turn, thoughts: Sequence[str] = ()) -> Decision:
    """One decision from the parts that count; they are not empty."""
    remarks = next((piece.remarks for piece in pieces if piece.remarks != Remarks()), Remarks())
    thought = remarks.thought or "\n".join(text for text in thoughts if text)
    found = [item for piece in pieces for item in piece.found]
    written, said = [item for item in found if isinstance(item, Written)], _distinct(found)
    flaws = [item for item in found if isinstance(item, Flaw)]
    if (written or flaws) and said or len(said) > 1:
        _conflict(written, said)
    if flaws:
        worst = min(flaws, key=lambda flaw: _WORST.index(flaw.kind))
        raise DecisionRejected(worst.kind, worst.message)
    match said:
        case [Said(answer=answer, complete=complete)]:
            if turn.cut and not complete:
                raise DecisionRejected("truncated", "The answer was cut off. Give it whole, and shorter.")
            if not answer.strip():
                raise DecisionRejected(
                    "empty", f"The answer (`terminal_answer`, Final Answer) is empty. {FORMS[turn.asked]}"
                )
            return Finish(answer=clean(answer.strip()), thought=clean(thought))
        case [Quit(reason=reason)]:
            return GiveUp(reason=clean(reason), thought=clean(thought))
    return Calls(
        calls=_calls(pieces, turn),
        thought=clean(thought),
        intent=clean(remarks.intent),
        estimated_cost=clean(remarks.estimated_cost),
    )


def clean(text: str) -> str:
    """Half surrogate pairs cannot be encoded; they become the replacement character."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


# --- which parts count


def _counting(scan: Scan, prose: Prose, turn: Turn) -> list[Piece]:
    """Leave out what is only shown. In native and any, a call without markup counts only as the last thing."""
    kept = [piece for piece in scan.pieces if piece.start < scan.end and not _shown(piece, scan, prose, turn)]
    _alike(kept, scan)
    free = turn.asked == "json"
    for piece in kept:
        if piece.form in ("bare", "decision") and _runs_on(piece, scan, prose, turn):
            raise DecisionRejected(
                "unparseable", f"It is not certain that the call or decision is meant. {FORMS[turn.asked]}"
            )
        if piece.form not in ("bare", "decision") or free or any(isinstance(item, Flaw) for item in piece.found):
            continue
        if prose.between(piece.end, _fiction(piece.end, scan)):
            hint = "Send the call alone, as the last thing." if _has_call(piece) else "Send the decision alone."
            raise DecisionRejected(
                "unparseable", f"A call or decision with text after it is not run. {hint} {FORMS[turn.asked]}"
            )
    if not kept:
        kept = _whole_call(scan, turn)
    return kept


def _alike(kept: Sequence[Piece], scan: Scan) -> None:
    """Of several calls in fences of their own only the last would count; nothing tells it from those before it."""
    fenced = [piece for piece in scan.pieces if piece.fence >= 0 and piece.form == "bare" and _has_call(piece)]
    if any(piece in kept for piece in fenced) and any(piece.found != fenced[0].found for piece in fenced):
        raise DecisionRejected("conflict", "Several different calls in fences. Nothing was run: send one.")


def _shown(piece: Piece, scan: Scan, prose: Prose, turn: Turn) -> bool:
    if piece.shown:
        return True
    told = 0 <= scan.answer_at <= piece.start and prose.between(scan.answer_at, piece.start)
    if told and piece.form in ("markup", "bare") and turn.asked != "json":
        return True  # in the middle of a message that is addressed to the user
    if piece.fence >= 0 and _explained(piece, scan, prose, turn):
        if scan.fences[piece.fence].info.startswith(("tool_", "py")):
            raise DecisionRejected(
                "unparseable", f"A call with text after it is not run. Send it alone. {FORMS[turn.asked]}"
            )
        return True
    return piece.form in ("bare", "decision") and _mid_sentence(piece, scan, prose)


def _explained(piece: Piece, scan: Scan, prose: Prose, turn: Turn) -> bool:
    """In a fence that more prose follows. A decision object in a JSON fence is what protocol json asked for."""
    fence = scan.fences[piece.fence]
    if not prose.between(fence.end, _fiction(fence.end, scan)):
        return False
    asked = turn.asked == "json" and piece.form == "decision"
    return not (asked and (fence.info.startswith("json") or not prose.between(scan.start, fence.start)))


def _fiction(at: int, scan: Scan) -> int:
    """Where the first result begins that the model wrote itself; all from there on says nothing."""
    return next((piece.start for piece in scan.pieces if piece.form == "result" and piece.start >= at), scan.end)


def _mid_sentence(piece: Piece, scan: Scan, prose: Prose) -> bool:
    line = scan.text.rfind("\n", 0, piece.start) + 1
    line_end = scan.text.find("\n", piece.end)
    before = prose.between(max(line, scan.start), piece.start)
    after = prose.between(piece.end, min(line_end if line_end >= 0 else scan.end, scan.end))
    if before and scan.thought_line[0] <= piece.start < scan.thought_line[1]:
        return True
    return before and after


def _runs_on(piece: Piece, scan: Scan, prose: Prose, turn: Turn) -> bool:
    """A call at the end of an unfinished sentence ("I will not run {...}"), or Python code after a text."""
    if piece.fence >= 0:
        example = scan.fences[piece.fence].info in ("python", "py")
        return example and turn.asked != "json" and prose.between(scan.start, scan.fences[piece.fence].start)
    line = max(scan.text.rfind("\n", 0, piece.start) + 1, scan.start)
    if not prose.between(line, piece.start):
        return False
    before = scan.text[line : piece.start].rstrip()
    return len(before.split()) > _FEW_WORDS and not before.endswith(_LEADS)


def answer_text(scan: Scan) -> str:
    """The reply as an answer: without reasoning and control tokens; code, tags and quotes stay."""
    kept, at = [], scan.start
    for first, last in sorted(scan.gone):
        if last > at:
            kept.append(scan.text[at : max(at, first)])
            at = last
    kept.append(scan.text[at : max(at, scan.end)])
    text = clean("".join(kept).strip())
    for tag in ("response", "answer"):  # around the answer of a model that has thought (Granite, Ernie, Hunyuan)
        if scan.reasoned and text.startswith(f"<{tag}>") and text.endswith(f"</{tag}>"):
            return text[len(tag) + 2 : -len(tag) - 3].strip()
    return text


def _whole_call(scan: Scan, turn: Turn) -> list[Piece]:
    """A reply that is one Python call of an offered tool and nothing else."""
    text = scan.text[scan.start : scan.end].strip()
    name = text.partition("(")[0]
    if not text.endswith((")", "）")) or turn.names.find(name) is None or scan.pieces:
        return []
    read = read_calls(text)
    if not isinstance(read, Value) or skip(text, read.end) < len(text):
        return []
    return [Piece(scan.start, scan.end, "bare", read_calls_value(read.value))]


def _before_fiction(pieces: Sequence[Piece]) -> list[Piece]:
    """A result that the model wrote itself ends the reply, and of several ReAct actions the first one stands."""
    kept: list[Piece] = []
    acted = False
    for piece in pieces:
        acted = acted or bool(kept) and _has_call(kept[-1])
        if any(isinstance(item, Result) for item in piece.found):
            items = tuple(item for item in piece.found if not isinstance(item, Result))
            if items and not (acted and piece.form == "react"):
                kept.append(Piece(piece.start, piece.end, piece.form, items, remarks=piece.remarks))
            if acted or items:
                return kept
        elif not (piece.form == "react" and acted and _has_call(piece) and any(p.form == "react" for p in kept)):
            kept.append(piece)
    return kept


def _has_call(piece: Piece) -> bool:
    return any(isinstance(item, Written | Flaw) for item in piece.found)


# --- one decision a turn


def _distinct(found: Iterable[Found]) -> list[Said | Quit]:
    ends: list[Said | Quit] = []
    for item in found:
        if isinstance(item, Said | Quit) and not any(_text(item) == _text(end) for end in ends[:3]):
            ends.append(item)
    return ends[:3]


def _text(end: Said | Quit) -> tuple[bool, str]:
    return (True, end.answer.strip()) if isinstance(end, Said) else (False, end.reason.strip())


def _conflict(written: Sequence[Written], ends: Sequence[Said | Quit]) -> None:
    parts = [f"a call of `{item.name}`" for item in written[:1] if isinstance(item.name, str)]
    parts += [f"an answer ({item.label})" if isinstance(item, Said) else "give_up" for item in ends]
    raise DecisionRejected(
        "conflict", f"One decision a turn, but there are {' and '.join(parts)}. Nothing was run: send one."
    )


def _calls(pieces: Sequence[Piece], turn: Turn) -> tuple[Call, ...]:
    groups = [tuple(item for item in piece.found if isinstance(item, Written)) for piece in pieces]
    read = [checked_all(group, turn) for group in groups if group]
    if len(read) == 1:
        return tuple(read[0])
    if all(piece.form == "markup" for piece in pieces):
        return tuple({call_key(call): call for group in read for call in group}.values())
    first = [call_key(call) for call in read[0]]
    if all([call_key(call) for call in other] == first for other in read[1:]):
        return tuple(read[0])
    names = ", ".join(f"`{call.name}`" for group in read[:3] for call in group[:2])
    raise DecisionRejected("conflict", f"Several different calls in one reply ({names}). Nothing was run: send one.")


def checked_all(written: Iterable[Written], turn: Turn) -> list[Call]:
    """Check a batch: all or none. The rejection that is raised is the gravest one."""
    good: list[Call] = []
    bad: list[DecisionRejected] = []
    for item in written:
        for one in calls.unfolded(item, turn.names):
            try:
                good.append(calls.checked(one, turn.names, cut=turn.cut))
            except DecisionRejected as rejected:
                bad.append(rejected)
    if bad:
        raise min(bad, key=lambda rejected: _WORST.index(rejected.kind))
    return good


def call_key(call: Call) -> str:
    """The same text for the same call, so that repeats can be found."""
    return call.name + json.dumps(call.args, sort_keys=True)
