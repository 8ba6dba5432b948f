"""Which parts of a reply are meant, and which are only shown: in code, in quotes, in a sentence, or after a made-up result.

Holds what counts; one decision of what counts is made in `settle`. Reads no text itself beyond asking what stands around.
"""

import re
from collections.abc import Sequence

from msgspec import structs

from rea_edge.decision.found import Flaw, Found, Piece, Result, Written
from rea_edge.decision.notation import Value, read_calls, skip
from rea_edge.decision.prose import Prose
from rea_edge.decision.scan import Scan
from rea_edge.decision.shapes import read_calls_value
from rea_edge.decision.tagged import unclear
from rea_edge.decision.turn import FORMS, Turn
from rea_edge.errors import DecisionRejected

_FEW_WORDS = 2
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")  # scripts without blanks between words
_WIDE_PER_WORD = 2
_NEAR = 80
_FORBIDS = re.compile(
    r"(?:\b(?:do not|don['’]t|never|won['’]t|(?:will|would|must|should|shall|can) ?not|refuse to)\s+(?:\w+\s+){0,2}?"
    r"(?:run|send|call|execute|use|do|invoke|issue)\b|(?:不要|不会|不能|不得|不应|不该|切勿|请勿|拒绝|别)\S{0,4}?(?:执行|运行|调用|发送|使用))"
    r"[^.,;!?。，；！？\n]{0,40}\s*\Z",
    re.IGNORECASE,
)
_QUOTES = tuple("\"'“”„‘’«»")
# What a line may end with before a call: it announces or ends something.
_LEADS = tuple(':：.!?。！？>*-–—=→)）]`"”')
_PY_CALL = re.compile(r"(?P<name>[^\W\d][\w.-]{0,80})(?P<gap>\s*)[(（]")


def meant(scan: Scan, turn: Turn) -> list[Piece]:
    """The parts that count, in order, up to the first result that the model made up; raises DecisionRejected."""
    return _before_fiction(_counting(scan, Prose(scan), turn))


def _counting(scan: Scan, prose: Prose, turn: Turn) -> list[Piece]:
    """Leave out what is only shown. In native and any, a call without markup counts only as the last thing."""
    kept = [piece for piece in scan.pieces if piece.start < scan.end and not _shown(piece, scan, prose, turn)]
    _alike(kept, scan)
    free = turn.asked == "json"
    for piece in kept:
        doubtful = _runs_on(piece, scan, prose, turn) or _forbidden(piece, scan)
        if piece.form in ("bare", "decision") and doubtful:
            raise DecisionRejected(
                "unparseable", f"It is not certain that the call or decision is meant. {FORMS[turn.asked]}"
            )
        if piece.form not in ("bare", "decision") or free or any(isinstance(item, Flaw) for item in piece.found):
            continue
        if prose.between(piece.end, _fiction(piece.end, scan)):
            hint = "Send the call alone, as the last thing." if has_call(piece) else "Send the decision alone."
            raise DecisionRejected(
                "unparseable", f"A call or decision with text after it is not run. {hint} {FORMS[turn.asked]}"
            )
    if not kept:
        kept = _whole_call(scan, turn)
    return kept


def _alike(kept: Sequence[Piece], scan: Scan) -> None:
    """Of several calls in fences of their own only the last would count; nothing tells it from those before it."""
    fenced = [piece for piece in scan.pieces if piece.fence >= 0 and piece.form == "bare" and has_call(piece)]
    if any(piece in kept for piece in fenced) and any(piece.found != fenced[0].found for piece in fenced):
        raise DecisionRejected("conflict", "Several different calls in fences. Nothing was run: send one.")


def _shown(piece: Piece, scan: Scan, prose: Prose, turn: Turn) -> bool:
    if piece.shown or _quoted(piece, scan):
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
    return not (asked and (fence.info.startswith("json") or not prose.between(scan.opened, fence.start)))


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


def _forbidden(piece: Piece, scan: Scan) -> bool:
    """Whether the words right before it say not to do it ("Do not send this:")."""
    return _FORBIDS.search(scan.text[max(piece.start - _NEAR, scan.start) : piece.start]) is not None


def _quoted(piece: Piece, scan: Scan) -> bool:
    """In quotation marks, and something else on its line."""
    text, start, end = scan.text, piece.start, piece.end
    if start == scan.start or text[start - 1] not in _QUOTES or text[end : end + 1] not in _QUOTES:
        return False
    line_end = text.find("\n", end)
    line = text[text.rfind("\n", 0, start) + 1 : start - 1] + text[end + 1 : line_end if line_end >= 0 else scan.end]
    return bool(line.strip())


def _runs_on(piece: Piece, scan: Scan, prose: Prose, turn: Turn) -> bool:
    """A call at the end of an unfinished sentence ("I will not run {...}"), or Python code after a text."""
    if piece.fence >= 0:
        example = scan.fences[piece.fence].info in ("python", "py")
        return example and turn.asked != "json" and prose.between(scan.opened, scan.fences[piece.fence].start)
    line = max(scan.text.rfind("\n", 0, piece.start) + 1, scan.start)
    if not prose.between(line, piece.start):
        return False
    before = scan.text[line : piece.start].rstrip()
    words = len(before.split()) + len(_WIDE.findall(before)) // _WIDE_PER_WORD
    return words > _FEW_WORDS and not before.endswith(_LEADS)


def _whole_call(scan: Scan, turn: Turn) -> list[Piece]:
    """A reply that is Python calls of offered tools and nothing else: one, or several with a comma or a line between."""
    text = scan.text[scan.start : scan.end].strip()
    found: list[Found] = []
    at = 0
    while at < len(text) and not scan.pieces:
        call = _PY_CALL.match(text, at)
        if call is None or turn.names.find(call["name"]) is None:
            return []
        read = read_calls(text, at)
        if isinstance(read, Value):
            found += read_calls_value(read.value)
            at = skip(text, read.end)
            at = skip(text, at + 1) if text[at : at + 1] in (",", ";") else at
        elif call["gap"] or not (read.ended or text.endswith((")", "）"))):
            return []
        else:
            return [Piece(scan.start, scan.end, "bare", (unclear(call["name"], read),))]
    return [Piece(scan.start, scan.end, "bare", tuple(found), more=True)] if found else []


def _before_fiction(pieces: Sequence[Piece]) -> list[Piece]:
    """A result that the model wrote itself ends the reply, and of several ReAct actions the first one stands."""
    kept: list[Piece] = []
    acted = False
    for piece in pieces:
        acted = acted or bool(kept) and has_call(kept[-1])
        if any(isinstance(item, Result) for item in piece.found):
            items = tuple(item for item in piece.found if not isinstance(item, Result))
            if items and not (acted and piece.form == "react"):
                kept.append(structs.replace(piece, found=items))
            if acted or items:
                return kept
        elif not (piece.form == "react" and acted and has_call(piece) and any(p.form == "react" for p in kept)):
            kept.append(piece)
    return kept


def has_call(piece: Piece) -> bool:
    return any(isinstance(item, Written | Flaw) for item in piece.found)
