"""One assistant message read to one decision, or to one precise rejection for the model.

Every form is understood in every protocol; order of trust: refusal, native calls, then the text. Nothing that was not
decided comes out: reasoning, quoted, shown, cut and ambiguous calls are never run, answers that are none never finish.
Pure and total: any message gives a decision or DecisionRejected, in time linear in its length.

The one place that orders the trust between them; the forms themselves are read in the files below.
"""

from collections.abc import Mapping, Sequence

from msgspec import structs

from rea_edge.decision import command
from rea_edge.decision.dialects import LABELS
from rea_edge.decision.found import Piece
from rea_edge.decision.names import Names
from rea_edge.decision.native import Envelope, opened
from rea_edge.decision.notation import Value, read_value
from rea_edge.decision.scan import Scan
from rea_edge.decision.settle import answer_text, call_key, clean, decided, settled
from rea_edge.decision.turn import FORMS, Asked, Turn
from rea_edge.errors import DecisionRejected
from rea_edge.records import Calls, Decision, Finish, GiveUp, Offer

_CUT = frozenset({"length", "max_tokens", "MAX_TOKENS", "model_length", "max_output_tokens"})
_MESSAGE_LENGTH = 600
_RAN_ON = "\n" * 8  # what a model writes that has ended, until it is cut
_INVISIBLE = " \t\r\n\x00\u00a0\u200b\u2060\ufeff"  # around a reply it says nothing
MOST_CALLS = 16  # in one message: limits count questions, and one answer that repeats itself must not be 200 acts


def read(
    message: Mapping[str, object], finish_reason: str | None, offers: Sequence[Offer], protocol: Asked
) -> Decision:
    """Read `choices[0].message` with its `finish_reason`; `offers` are the tools of this turn.

    Raises DecisionRejected with a kind and a short message for the model. `any`: the protocol asked for is not known.
    """
    turn = Turn(protocol, finish_reason in _CUT, Names(offers))
    try:
        return _few(_read(message, finish_reason, offers, turn))
    except DecisionRejected as rejected:
        text = clean(rejected.message)
        raise DecisionRejected(rejected.kind, text[:_MESSAGE_LENGTH]) from None


def _few(decision: Decision) -> Decision:
    if isinstance(decision, Calls) and len(decision.calls) > MOST_CALLS:
        raise DecisionRejected(
            "conflict", f"{len(decision.calls)} calls in one message; at most {MOST_CALLS} are run. Send fewer."
        )
    return decision


def _read(message: Mapping[str, object], finish_reason: str | None, offers: Sequence[Offer], turn: Turn) -> Decision:
    envelope = opened(message) if isinstance(message, Mapping) else Envelope()
    if envelope.refusal:
        return GiveUp(reason=clean(envelope.refusal.strip()))
    text = envelope.text
    if not text.strip() and "</think>" in envelope.reasoning and not envelope.calls:
        text = envelope.reasoning  # a server that put all into reasoning; what follows the closed block counts
    if text.endswith(_RAN_ON):
        turn = structs.replace(turn, ran_on=True)
    text = text.strip(_INVISIBLE)
    if turn.asked == "json":
        text = _unquoted(text)
    scan = Scan(text, turn.names, agreed=turn.asked == "json", react_asked=turn.asked == "react")
    if envelope.calls:
        return _native(envelope, scan, turn)
    if turn.asked == "command":
        return _command(scan, offers, turn)
    decision = settled(scan, turn)
    return decision if decision is not None else _answer(scan, envelope, finish_reason, turn)


def _unquoted(text: str) -> str:
    """A decision that came as a JSON string, with or without its quotes: unwrapped once."""
    bare = text.strip()
    if bare.startswith('{\\"') and bare.endswith("}"):
        bare = f'"{bare}"'
    if not (bare.startswith('"{') and bare.endswith('}"')):
        return text
    read = read_value(bare)
    return read.value if isinstance(read, Value) and isinstance(read.value, str) and read.end == len(bare) else text


def _native(envelope: Envelope, scan: Scan, turn: Turn) -> Decision:
    piece = Piece(0, 0, "markup", envelope.calls)
    decision = decided([piece], turn, scan.thoughts)
    try:
        beside = settled(scan, turn)
    except DecisionRejected:
        beside = None  # a broken copy of the call in the text says nothing against the call itself
    match beside:
        case Finish() | GiveUp():
            raise DecisionRejected("conflict", "A call and a finish came together. Nothing was run: send one of them.")
        case Calls() if isinstance(decision, Calls):
            if not {call_key(call) for call in beside.calls} <= {call_key(call) for call in decision.calls}:
                raise DecisionRejected(
                    "conflict", "The text holds another call than the native one. Nothing was run: send one."
                )
    return decision


def _command(scan: Scan, offers: Sequence[Offer], turn: Turn) -> Decision:
    """A command line; other forms are understood too, where the text is no line of the language."""
    text = answer_text(scan)
    if not text and scan.reasoned:
        raise DecisionRejected("empty", f"Only reasoning came. {FORMS['command']}")
    if turn.cut:
        raise DecisionRejected("truncated", f"The line was cut off. {FORMS['command']}")
    try:
        return command.read_line(_line_of(text), offers)
    except DecisionRejected:
        decision = settled(scan, turn)
        if decision is None:
            raise
        return decision


def _line_of(text: str) -> str:
    """The line in `{"command": "..."}`, the form in which a server without grammars is asked for it; else the text."""
    read = read_value(text) if text.startswith("{") and text.endswith("}") else None
    match read:
        case Value(value={"command": str(line), **rest}, end=end) if not rest and end == len(text):
            return line
    return text


def _answer(scan: Scan, envelope: Envelope, finish_reason: str | None, turn: Turn) -> Decision:
    """A text without any decision: the answer where plain text is one, else what is wrong with it."""
    text = answer_text(scan)
    reasoned = scan.reasoned or bool(envelope.reasoning)
    if turn.cut:
        spent = " in reasoning" if reasoned and not text else ""
        raise DecisionRejected(
            "truncated", f"The reply was cut off at its length limit (max_tokens){spent}. Be shorter."
        )
    if scan.preamble and not text:
        raise DecisionRejected("unparseable", f"The message names no tool to call. {FORMS[turn.asked]}")
    if not text:
        if finish_reason == "content_filter":
            raise DecisionRejected("empty", "The provider's content filter blocked the reply.")
        what = "Only reasoning came, no decision" if reasoned else "The reply is empty"
        raise DecisionRejected("empty", f"{what}. {FORMS[turn.asked]}")
    if finish_reason == "content_filter":
        raise DecisionRejected("truncated", "The provider's content filter cut the reply.")
    if turn.names.find(text) is not None or finish_reason in ("tool_calls", "function_call"):
        raise DecisionRejected("unparseable", f"A tool call was announced but none came. {FORMS[turn.asked]}")
    if text.startswith(("<|", "<｜")) and any(name in text for name in turn.names.offers):
        raise DecisionRejected("unparseable", f"The control tokens around the call are not known. {FORMS[turn.asked]}")
    label = LABELS.match(text)
    if label is not None and label.lastgroup == "thought":
        raise DecisionRejected("unparseable", f"There is only a thought in the reply. {FORMS[turn.asked]}")
    if turn.asked in ("json", "react"):
        ended = scan.broken_object is not None and scan.broken_object.ended
        if ended:
            raise DecisionRejected("truncated", f"The JSON was cut off. {FORMS[turn.asked]}")
        raise DecisionRejected("unparseable", f"There is no decision in the reply. {FORMS[turn.asked]}")
    return Finish(answer=text, thought=clean("\n".join(scan.thoughts)))
