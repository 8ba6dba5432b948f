"""The decision corpus as cases, and how an outcome is compared with what a case expects."""

import json
from collections.abc import Mapping
from io import StringIO
from pathlib import Path

from rea_edge import decide
from rea_edge.records import Offer

CORPUS = Path(__file__).parent / "corpus"
TOOLS = CORPUS / "tools.json"
Case = dict[str, object]
Outcome = Mapping[str, object]


def cases() -> list[Case]:
    lines = (CORPUS / "decisions.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def offers() -> dict[str, Offer]:
    return decide.read_tools(TOOLS, StringIO())


def outcome(case: Case, known: Mapping[str, Offer]) -> Outcome:
    return decide.outcome_of_line(json.dumps(case), known)


def told(
    text: str, known: Mapping[str, Offer], *, protocol: str = "any", reason: str = "stop", tools: object = None
) -> Outcome:
    """The outcome of a plain text reply."""
    message = {"role": "assistant", "content": text}
    return outcome({"message": message, "finish_reason": reason, "protocol": protocol, "tools": tools}, known)


def same(first: object, second: object) -> bool:
    """Equal as JSON values: 1 is not true, 6 equals 6.0."""
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(same(first[key], second[key]) for key in first)
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(same, first, second))
    return isinstance(first, bool) == isinstance(second, bool) and first == second


def fits(got: Outcome, expected: Outcome) -> bool:
    if got["decision"] != expected["decision"]:
        return False
    match expected:
        case {"decision": "tool", "calls": calls}:
            return same(got["calls"], calls)
        case {"decision": "finish", "answer": answer}:
            return str(got["answer"]).strip() == str(answer).strip()
        case {"decision": "give_up", "reason_contains": part}:
            return str(part).lower() in str(got["reason"]).lower()
        case {"error_kind": kind, "must_mention": list(mentions)}:
            message = str(got["message"]).lower()
            return got["error_kind"] == kind and all(
                any(word.lower() in message for word in str(item).split("|")) for item in mentions
            )
    return False


def message_of(case: Case) -> dict[str, object]:
    message = case["message"]
    assert isinstance(message, dict)
    return message


def text_of(case: Case) -> str:
    content = message_of(case).get("content")
    return content if isinstance(content, str) else ""


def expect(case: Case) -> Outcome:
    expected = case["expect"]
    assert isinstance(expected, dict)
    return expected


def allowed(case: Case) -> list[Outcome]:
    accepted = case.get("accept", [])
    assert isinstance(accepted, list)
    return [expect(case), *accepted]
