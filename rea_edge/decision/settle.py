"""From what a reply holds to one decision: what conflicts, what was cut, and what to tell the model.

Holds the principles of one decision a turn; which parts of the reply count is said by `meant`.
"""

import json
import re
from collections.abc import Iterable, Sequence

from rea_edge.decision import calls
from rea_edge.decision.found import Flaw, Found, Piece, Quit, Remarks, Said, Written
from rea_edge.decision.meant import has_call, meant
from rea_edge.decision.scan import Scan
from rea_edge.decision.turn import FORMS, Turn
from rea_edge.errors import DecisionErrorKind, DecisionRejected
from rea_edge.records import Call, Calls, Decision, Finish, GiveUp

_WORST: tuple[DecisionErrorKind, ...] = (
    "truncated",
    "conflict",
    "unparseable",
    "unknown_tool",
    "invalid_args",
    "empty",
)
_CODE_MARK = re.compile("`+")
_NEXT_CALL = re.compile(
    r"(?:\s*<[^<>\[\]{}]*>[a-z]{0,9})*\s*(?:[;,]\s*|[<\[][^<>\[\]{}]*|\][\]<>\[\w/ =\"]{0,120}|>{1,3}[\w.]*\s*)?"
)


def settled(scan: Scan, turn: Turn) -> Decision | None:
    """The decision that a text holds, or None where it holds none; raises DecisionRejected."""
    pieces = meant(scan, turn)
    acts = [piece for piece in pieces if has_call(piece)]
    if (
        turn.cut
        and acts
        and (scan.section or _cut_between(scan, pieces[-1]) or any(_in_code(scan, act, turn) for act in acts))
    ):
        raise DecisionRejected("truncated", "The reply was cut off and a call may be missing. Send it whole.")
    if not pieces:
        return None
    return decided(pieces, turn, scan.thoughts)


def _in_code(scan: Scan, piece: Piece, turn: Turn) -> bool:
    """In a fence, or in code marks that are open: what was cut off might have said that it is an example."""
    line = scan.text.rfind("\n", 0, piece.start) + 1
    fenced = piece.fence >= 0 and turn.asked != "json" and not turn.ran_on
    return fenced or len(_CODE_MARK.findall(scan.text, line, piece.start)) % 2 == 1


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
