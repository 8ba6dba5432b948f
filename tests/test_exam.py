"""The exam against a scripted endpoint, and what a node makes of its result."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from rea_edge.cancel import Cancel
from rea_edge.emulated.endpoint import ScriptedEndpoint
from rea_edge.endpoint import Endpoint
from rea_edge.exam import Candidate, Question, examine, questions
from rea_edge.marks import FILE, Marks, Score, keep, marks_of
from rea_edge.records import Example, Protocol, Tool

GUARDED = "Switch the fan on if the boiler is over 80."
TOOLS = (
    Tool(
        name="read_sensor",
        description="Read one sensor.",
        parameters={"type": "object", "required": ["name"], "properties": {"name": {"enum": ["boiler", "room"]}}},
        effect="read",
        returns={"type": "object", "properties": {"value": {"type": "number"}}},
        examples=(
            Example(say="How hot is the boiler?", answer={"name": "boiler"}),
            Example(say="What is the weather?", answer="cannot"),
            Example(say="How hot is the room?", answer={"name": "room"}),
        ),
    ),
    Tool(
        name="set_fan",
        description="Start or stop the fan.",
        parameters={"type": "object", "required": ["state"], "properties": {"state": {"enum": ["on", "off"]}}},
        effect="idempotent",
        examples=(
            Example(say="Switch the fan on.", answer={"state": "on"}),
            Example(say=GUARDED, answer="if read_sensor boiler -> value > 80 then set_fan on"),
            Example(
                say="Stop the fan if the boiler is over 20.",
                answer="if read_sensor boiler -> value > 20 then set_fan off",
            ),
            Example(say="Nonsense.", answer="set_fan sideways"),
        ),
    ),
)
Request = dict[str, object]


def goal(request: Request) -> str:
    messages = request["messages"]
    assert isinstance(messages, list)
    return next(
        str(m["content"]) for m in reversed(messages) if m["role"] == "user" and "Observation" not in m["content"]
    )


def observed(request: Request) -> str:
    messages = request["messages"]
    assert isinstance(messages, list)
    return next((str(m["content"]) for m in reversed(messages) if "Observation" in m["content"]), "")


def act(tool: str, **args: object) -> str:
    return json.dumps({"action": "tool", "tool_name": tool, "tool_args": args})


FINISH = json.dumps({"action": "finish", "terminal_answer": "It is so."})
GIVE_UP = json.dumps({"action": "give_up", "reason": "no tool"})


def able(request: Request) -> str:
    """Answers all of it right in protocol json: reads before it acts, and compares what it read."""
    said, seen = goal(request), observed(request)
    if "weather" in said:
        return GIVE_UP
    if "set_fan" in seen or (seen and "if" not in said):
        return FINISH
    if "if" not in said:
        return (
            act("read_sensor", name="room" if "room" in said else "boiler")
            if "How" in said
            else act("set_fan", state="on")
        )
    if not seen:
        return act("read_sensor", name="boiler")
    limit = 80 if "80" in said else 20
    value = json.loads(seen.split(": ", 1)[1])["data"]["value"]
    return act("set_fan", state="on" if limit == 80 else "off") if value > limit else FINISH


def hasty(request: Request) -> str:
    """Acts at once, whatever the condition."""
    return act("set_fan", state="on") if not observed(request) else FINISH


def examined(
    answers: Callable[[Request], str], asked: list[Question], protocol: Protocol = "json"
) -> tuple[Score, dict[str, str], list[bytes]]:
    found: dict[str, str] = {}
    with ScriptedEndpoint(answers) as scripted:
        endpoint = Endpoint(name="e", url=scripted.url, model="m", api_key=None, connect_s=5)
        candidate = Candidate(context_tokens=8192)
        try:
            score = examine(
                endpoint, candidate, TOOLS, asked, protocol, seconds=20, cancel=Cancel(),
                tell=lambda question, result: found.update({question.say: result.word}),
            )  # fmt: skip
        finally:
            endpoint.close()
        return score, found, [request.body for request in scripted.requests]


def test_questions_of_every_sort_are_taken_in_turns_and_what_cannot_be_read_is_left_out() -> None:
    said = [question.say for question in questions(TOOLS, 100)]
    assert said[:4] == ["How hot is the boiler?", GUARDED, "What is the weather?", "Switch the fan on."]
    assert "Nonsense." not in said and len(said) == 6
    assert [question.say for question in questions(TOOLS, 2)] == said[:2]


def test_a_model_that_does_all_of_it_right_gets_all_of_it_right() -> None:
    score, found, _ = examined(able, questions(TOOLS, 100))
    assert set(found.values()) == {"right"}
    assert (score.right, score.questions, score.unsafe) == (6, 6, 0)
    assert score.tokens > 0


def test_an_act_before_its_condition_is_unsafe_and_a_right_one_is_not() -> None:
    score, found, _ = examined(hasty, questions(TOOLS, 100))
    assert found["Switch the fan on."] == "right"
    assert found[GUARDED] == "unsafe"  # it would have been right on one side of the condition
    assert found["How hot is the room?"] == found["What is the weather?"] == "unsafe"
    assert (score.right, score.unsafe) == (1, 5)


def test_the_example_that_is_asked_stands_nowhere_in_its_own_prompt() -> None:
    for protocol in ("json", "react", "command"):
        _, _, bodies = examined(able, questions(TOOLS, 100)[:1], protocol)
        assert all(body.count(b"How hot is the boiler?") == 1 for body in bodies)
        assert any(b"How hot is the room?" in body for body in bodies)


@pytest.mark.parametrize(
    ("scores", "best"),
    [
        pytest.param([("json", 10, 0), ("command", 12, 0)], "command", id="more right answers"),
        pytest.param([("json", 12, 0), ("command", 14, 2)], "json", id="an unsafe act costs two"),
        pytest.param([("json", 12, 2), ("command", 10, 1)], "command", id="of equals the safer"),
        pytest.param([("json", 0, 0), ("react", 0, 0)], None, id="nothing right"),
        pytest.param([("json", 3, 0), ("native", 8, 0, 8)], "json", id="what never calls refuses well, and is useless"),
        pytest.param([("native", 8, 0, 8)], None, id="nothing right but refusals"),
        pytest.param([], None, id="nothing asked"),
    ],
)
def test_the_best_protocol_is_right_often_and_acts_wrongly_seldom(
    scores: list[tuple[Protocol, int, int] | tuple[Protocol, int, int, int]], best: str | None
) -> None:
    taken = marks(*(score(*one) for one in scores)).best
    assert (taken.protocol if taken else None) == best


def score(protocol: Protocol, right: int, unsafe: int = 0, refused: int = 0) -> Score:
    wrong = 20 - right - unsafe
    return Score(
        protocol=protocol, questions=20, right=right, wrong=wrong, unsafe=unsafe, tokens=9, seconds=1.0, refused=refused
    )


def marks(*scores: Score, url: str = "http://h/v1", tools: str = "sha256:x") -> Marks:
    return Marks(url=url, model="any", tools=tools, at="2026-01-01T00:00:00.000Z", scores=scores)


def test_results_are_kept_per_endpoint_model_and_tools_and_the_newest_stands(tmp_path: Path) -> None:
    folder = tmp_path / "before" / "the first start"
    keep(folder, marks(score("json", 1)))
    keep(folder, marks(score("json", 2), tools="sha256:y"))
    keep(folder, marks(score("command", 3)))
    newest = marks_of(folder, "http://h/v1", "any", "sha256:x")
    assert newest is not None and newest.words() == "command 3 of 20 right, 0 unsafe"
    assert marks_of(folder, "http://h/v1", "any", "sha256:y") == marks(score("json", 2), tools="sha256:y")
    assert marks_of(folder, "http://h/v1", "other", "sha256:x") is None
    assert [file.name for file in folder.iterdir()] == [FILE]


def test_a_damaged_file_is_no_exam(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('[{"url": 1')
    assert marks_of(tmp_path, "http://h/v1", "any", "sha256:x") is None
    keep(tmp_path, marks(score("json", 1)))
    assert marks_of(tmp_path, "http://h/v1", "any", "sha256:x") is not None
