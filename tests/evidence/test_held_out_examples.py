"""What a tool's examples teach about those that are held out: the exam's questions, whatever a model answers to them."""

import pytest

from rea_edge.decision.command import call_line
from rea_edge.exam import Question, held_out, questions
from rea_edge.records import Tool
from tests.evidence.houses import tools_of
from tests.evidence.playing import lines
from tests.forty.tasks import House

ALL = 1000


def right_line(question: Question, tools: tuple[Tool, ...]) -> str | None:
    shapes = {tool.name: tool.parameters for tool in tools}
    if question.call is None:
        return None
    call = call_line(question.call, shapes[question.call.name])
    guard = question.guard
    if guard is None:
        return call
    return f"if {call_line(guard.read, shapes[guard.read.name])} -> {guard.path} {guard.op} {guard.value} then {call}"


@pytest.mark.parametrize(
    ("house", "enough"),
    [
        pytest.param("boiler", 0.9, id="boiler"),
        pytest.param("yard", 0.9, id="yard"),
        pytest.param("greenhouse", 0.8, id="greenhouse"),
        pytest.param("board", 0.6, id="board: a word of its own in each example"),
    ],
)
def test_most_examples_can_be_answered_from_the_others_and_no_other_act_is_offered(house: House, enough: float) -> None:
    tools = tools_of(house)
    reads = {tool.name for tool in tools if tool.effect == "read"}
    asked = questions(tools, ALL)
    answered = 0
    for question in asked:
        offered = lines(question.say, held_out(tools, question.say))
        right = right_line(question, tools)
        assert {line for line in offered if line.split()[0] not in reads} <= {right}, question.say
        answered += right is None or right in offered
    assert answered >= enough * len(asked)
