"""Goals thrown together from the words that tools and rules know: hearing them never fails, and one line is one act."""

import random

import pytest

from rea_edge import evidence
from rea_edge.decision.command import call_line
from rea_edge.evidence import words as known
from rea_edge.evidence.words import words
from rea_edge.records import Call
from tests.evidence.houses import tools_of
from tests.evidence.playing import lines
from tests.forty.tasks import TOOLS, House

GOALS = 40
CLOSED = sorted(
    word
    for some in (known.COMMON, known.IF, known.HELD_BACK, known.BESIDES, known.RELATIVE, known.PRONOUN, known.STATES)
    for word in some
)
MARKS = ["", "", "", ",", ".", " and", " then", " if"]
NUMBERS = ["20", "0", "-5", "20.5", "1e3", "7", "300", "20%", "5 minutes", "999999999999999999999"]


def goal(house: House, chance: random.Random) -> str:
    taught = [one.say.split() for tool in tools_of(house) for one in tool.examples]
    said: list[str] = []
    while len(said) < 9:
        sentence = chance.choice(taught)
        at = chance.randrange(len(sentence))
        said += sentence[at : at + chance.randrange(1, 6)]
        said.append(chance.choice(CLOSED) if chance.random() < 0.3 else chance.choice(NUMBERS))
    return " ".join(f"{word.strip('.')}{chance.choice(MARKS)}" for word in said)


@pytest.mark.parametrize("house", TOOLS)
def test_any_goal_is_heard_and_one_line_offers_one_act_at_most(house: House) -> None:
    chance = random.Random(house)
    tools = tools_of(house)
    reads = {tool.name for tool in tools if tool.effect == "read"}
    for _ in range(GOALS):
        said = goal(house, chance)
        acts = {line for line in lines(said, tools) if line.split()[0] not in reads}
        assert len(acts) <= 1, (said, acts)
        lines(said, tools, commands=3)
        evidence.condition_of(said, tools)
        assert words(said)


@pytest.mark.parametrize("house", TOOLS)
def test_what_an_example_says_is_offered_as_it_answers(house: House) -> None:
    tools = tools_of(house)
    for tool in tools:
        for one in tool.examples:
            if one.answer != "cannot":
                answer = (
                    one.answer
                    if isinstance(one.answer, str)
                    else call_line(Call(name=tool.name, args=one.answer), tool.parameters)
                )
                assert lines(one.say.replace(".", "!"), tools) == {answer}, one.say
