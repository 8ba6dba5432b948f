"""What goals speak for, over the shipped boiler tools: whatever a model answers, it answers one of these lines."""

import time

import pytest

from rea_edge import evidence
from rea_edge.bounds import Asked, Bounds
from rea_edge.decision.bounded import check
from rea_edge.decision.command import read_line
from rea_edge.errors import DecisionRejected
from rea_edge.evidence.words import numbers, words
from rea_edge.records import Calls, Example, Malformed, Offer, Tool
from tests.evidence import playing
from tests.evidence.houses import tools_of


def boiler() -> tuple[Tool, ...]:
    return tools_of("boiler")


def lines(goal: str, tools: tuple[Tool, ...] | None = None, commands: int = 1) -> set[str]:
    return playing.lines(goal, tools or boiler(), commands)


def acts(goal: str, commands: int = 1) -> set[str]:
    return {line for line in lines(goal, commands=commands) if not line.startswith("read_")}


@pytest.mark.parametrize(
    ("goal", "offered"),
    [
        pytest.param("Switch the pump off now!", {"set_pump off"}, id="a value by its own word"),
        pytest.param("Stop the pump.", {"set_pump off"}, id="a value by a word that another tool's examples teach"),
        pytest.param("Put the valve at 45 percent.", {"set_valve percent=45"}, id="a number of the goal"),
        pytest.param("Open the valve halfway.", {"set_valve percent=50"}, id="a number that a word stands for"),
        pytest.param(
            "If the room is above 26, start the fan.",
            {"if read_sensor room -> value > 26 then set_fan on"},
            id="a condition",
        ),
        pytest.param(
            "Open the valve to 75 percent if the room is under 19.",
            {"if read_sensor room -> value < 19 then set_valve percent=75"},
            id="each number in its place",
        ),
        pytest.param(
            "If the boiler is over 60 then start the fan.",
            {"if read_sensor boiler -> value > 60 then set_fan on"},
            id="a then that ends the condition",
        ),
        pytest.param(
            "If the boiler is over 60 degrees turn the fan on, please.",
            {"if read_sensor boiler -> value > 60 then set_fan on"},
            id="a condition that ends without a mark",
        ),
        pytest.param(
            "If the boiler is over 60 C, start the fan.",
            {"if read_sensor boiler -> value > 60 then set_fan on"},
            id="a unit that the tool lists is no second thing to compare",
        ),
        pytest.param(
            "Close the valve if the pressure is above 1.5 bar.",
            {"if read_sensor pressure -> value > 1.5 then set_valve percent=0"},
            id="another one",
        ),
        pytest.param(
            "Stop the fan if the boiler is cooler than 50.",
            {"if read_sensor boiler -> value < 50 then set_fan off"},
            id="a comparison that means the same everywhere",
        ),
        pytest.param(
            "Open the valve to 20 if the boiler is at least 20.",
            {"if read_sensor boiler -> value >= 20 then set_valve percent=20"},
            id="the same number twice",
        ),
        pytest.param("Shut the valve.", {"set_valve percent=0"}, id="a word that means the same everywhere"),
        pytest.param("The room is cold, please start the pump.", {"set_pump on"}, id="a reason before an order"),
        pytest.param(
            "Start the fan when the boiler pressure is over 3.",
            {"if read_sensor pressure -> value > 3 then set_fan on"},
            id="the thing named last before the comparison is compared",
        ),
    ],
)
def test_an_act_that_the_goal_speaks_for_is_offered_and_no_other(goal: str, offered: set[str]) -> None:
    assert acts(goal) == offered


@pytest.mark.parametrize(
    "goal",
    [
        pytest.param("Turn on the television.", id="a device that no tool has"),
        pytest.param("Turn it on.", id="no device"),
        pytest.param("Close the window.", id="a word for a value, and no device"),
        pytest.param("Do something with the valve.", id="no value"),
        pytest.param("Close the valve a little.", id="a word that may mean another number"),
        pytest.param("Open the valve to 300 percent.", id="a value out of range"),
        pytest.param("Turn the pump on in 5 minutes.", id="a number that no call takes"),
        pytest.param("Turn the pump on tomorrow.", id="not now"),
        pytest.param("Don't turn the pump on.", id="a negation"),
        pytest.param("Turn the pump on unless the boiler is over 60.", id="an exception"),
        pytest.param("Turn the pump on and the fan off.", id="two acts, one line"),
        pytest.param("Turn the pump on if it is raining.", id="a condition without a comparison"),
        pytest.param("Start the pump when the boiler passes 80.", id="a comparison that no example shows"),
pytest.param("Stop the fan if the boiler nears 50.", id="a verb that by chance goes with one comparison"),
        pytest.param("Turn the fan on if the boiler is over 140 fahrenheit.", id="a unit that no reading has"),
        pytest.param("Turn the fan on if the outside temperature is over 10.", id="a condition with a word nobody taught"),
        pytest.param("Turn the fan on if the boiler is over 60 for 5 minutes.", id="a condition with more numbers"),
        pytest.param("Start the pump if the boiler is over 60, and the fan.", id="what is it that has the condition"),
        pytest.param("If the boiler is over 60, start the fan and the pump.", id="two acts under a condition"),
        pytest.param("If the boiler is over 60, turn the fan on, else turn it off.", id="two ways of a condition"),
        pytest.param("If the boiler is over 60 turn the fan on, otherwise off.", id="otherwise"),
        pytest.param("Turn on the fan and call Bob.", id="an act and something else"),
        pytest.param("Turn on the fan, water the lawn.", id="something else behind a comma"),
        pytest.param("Turn off the pump and the boiler.", id="a reading's thing is nothing to act on"),
        pytest.param("Turn off the pump and tell me the temperature of the boiler.", id="an act and a reading, one line"),
        pytest.param("Sound the alarm for 2 minutes.", id="a unit that the tool has not"),
        pytest.param("Set the valve to 20 degrees.", id="a unit of another tool"),
        pytest.param("Open the valve to at least 20.", id="a value that is not said exactly"),
        pytest.param("Open the valve by 20 percent.", id="a value counted from where it is"),
        pytest.param("Set the valve to 20 and 30.", id="two values"),
        pytest.param("Turn the fan off and on.", id="two words for values"),
        pytest.param("Stop the fan from turning on.", id="a value by its word and another one meant"),
        pytest.param("Turn on the fan on the other boiler.", id="another one of its kind"),
        pytest.param("Turn the fan on at 20:30.", id="a time"),
        pytest.param("The fan is on.", id="how things are"),
        pytest.param("Turn the fan on if the boiler is over 60 and the room under 20.", id="two conditions, one line"),
        pytest.param("Turn the fan on if the boiler is not over 60.", id="a negated comparison"),
        pytest.param("Turn the fan on if it is over 60.", id="nothing that is compared"),
        pytest.param("Turn the fan on if the boiler is over 60 and it is dark.", id="half a condition"),
        pytest.param("Is the pump on?", id="a question about a device"),
    ],
)  # fmt: skip
def test_no_act_is_offered_for_what_the_goal_does_not_say_for_certain(goal: str) -> None:
    assert acts(goal) == set()


def test_a_reading_needs_a_word_of_its_tool() -> None:
    assert lines("How cold is the room?") == {"read_sensor room"}
    assert lines("What will the weather be?") == set()


def test_a_reading_is_no_answer_to_an_order() -> None:
    assert lines("Stop the fan if the boiler nears 50.") == set()
    assert lines("Water the lawn if the boiler is over 50.") == set()
    assert lines("Is the boiler over 80?") == {"read_sensor boiler"}


@pytest.mark.parametrize(
    ("goal", "offered"),
    [
        pytest.param(
            "Turn the pump on, set the valve to 20.", {"set_pump on", "set_valve percent=20"}, id="several devices"
        ),
        pytest.param("Turn the pump on and the fan off.", {"set_pump on", "set_fan off"}, id="each with its own value"),
        pytest.param(
            "Turn off the pump and the fan.", {"set_pump off", "set_fan off"}, id="a value said once for both"
        ),
        pytest.param("Close the valve, then open it to 20.", {"set_valve percent=0", "set_valve percent=20"}, id="it"),
        pytest.param(
            "If the boiler is over 60, start the fan and open the valve to 20.",
            {
                "if read_sensor boiler -> value > 60 then set_fan on",
                "if read_sensor boiler -> value > 60 then set_valve percent=20",
            },
            id="several acts under one condition",
        ),
        pytest.param("Turn the pump on and the fan off and call Bob.", set(), id="not all of it is known"),
        pytest.param("Start the pump and if the boiler is over 60, start the fan.", set(), id="half under a condition"),
        pytest.param("Set the valve to 10, to 20, to 30 and to 40.", set(), id="more than there are lines"),
    ],
)
def test_in_several_lines_each_act_that_is_asked_for_is_offered_or_none(goal: str, offered: set[str]) -> None:
    assert acts(goal, commands=3) == offered


@pytest.mark.parametrize(
    "goal",
    [
        pytest.param("fan on, " * 4000, id="orders"),
        pytest.param("1 " * 16000, id="numbers"),
        pytest.param("if the boiler is over 1 " * 1300, id="conditions"),
        pytest.param("Turn the fan on if the boiler is over " + "9" * 32000, id="one number"),
        pytest.param("Turn the fan on if the boiler is over " + "9" * 400, id="one number, not so long"),
        pytest.param("如果锅炉" * 8000, id="a script without blanks"),
    ],
)
def test_a_long_goal_orders_nothing_and_is_heard_in_short_time(goal: str) -> None:
    began_s = time.process_time()
    kept, bounds = evidence.narrowed(goal, boiler(), 3)
    assert not bounds.acts and all(tool.effect == "read" for tool in kept)
    assert evidence.condition_of(goal, boiler()) is None
    assert time.process_time() - began_s < 1.0


def test_why_nothing_may_act_is_said() -> None:
    _, bounds = evidence.narrowed("If the boiler is over 60, start the fan and the pump.", boiler(), 1)
    assert bounds.why == "the goal asks for 2 commands, and one may run (commands of the task type)"
    _, bounds = evidence.narrowed("Wiggle the valve.", boiler(), 1)
    assert "do not say for certain" in bounds.why


def test_a_tool_without_examples_is_named_by_its_name() -> None:
    bell = Tool(name="ring_bell", description="Ring.", parameters={}, effect="once")
    assert lines("Ring the bell.", (bell,)) == {"ring_bell"}
    assert lines("Ring the phone.", (bell,)) == {
        "ring_bell"
    }  # one word of a name is enough where nothing else is known
    assert lines("Call the phone.", (bell,)) == set()


@pytest.mark.parametrize(
    ("shape", "answers", "goal", "line"),
    [
        pytest.param(
            {"type": "boolean"}, {"Start the mill.": True, "Stop the mill.": False}, "Please stop the mill.",
            "set_mill speed=false", id="yes or no",
        ),
        pytest.param(
            {"type": "number", "minimum": 0, "maximum": 9}, {"Set the mill to 3.": 3}, "Set the mill to 2.5.",
            "set_mill speed=2.5", id="a decimal number",
        ),
        pytest.param(
            {"type": "number"}, {"Set the mill to 3.": 3}, "Set the mill to 2.", "set_mill speed=2", id="a whole one"
        ),
        pytest.param(
            {"enum": [1, 2, 5]}, {"Set the mill to 1.": 1}, "Set the mill to 5.", "set_mill speed=5", id="few numbers"
        ),
    ],
)  # fmt: skip
def test_a_value_of_each_sort_is_offered_alone(
    shape: dict[str, object], answers: dict[str, object], goal: str, line: str
) -> None:
    examples = tuple(Example(say=say, answer={"speed": value}) for say, value in answers.items())
    parameters = {"type": "object", "required": ["speed"], "properties": {"speed": shape}}
    mill = Tool(name="set_mill", description="Mill.", parameters=parameters, effect="once", examples=examples)
    assert lines(goal, (mill,)) == {line}
    offers, bounds = playing.heard(goal, (mill,))
    assert isinstance(playing.read(line, offers, bounds), Calls)
    assert isinstance(playing.read("set_mill speed=true", offers, bounds), Malformed)


def test_a_script_without_blanks_is_heard_by_pairs_of_characters() -> None:
    shape = {"type": "object", "required": ["state"], "properties": {"state": {"enum": ["on", "off"]}}}
    examples = (
        Example(say="打开水泵", answer={"state": "on"}),
        Example(say="关闭水泵", answer={"state": "off"}),
        Example(say="把水泵关闭", answer={"state": "off"}),
    )
    pump = Tool(name="set_pump", description="水泵", parameters=shape, effect="idempotent", examples=examples)
    assert lines("请打开水泵", (pump,)) == {"set_pump on"}
    assert lines("请打开风扇", (pump,)) == set()
    assert lines("不要打开水泵", (pump,)) == set()


@pytest.mark.parametrize(
    ("goal", "offered"),
    [
        pytest.param("如果锅炉高于60度，就打开水泵", 'if read_sensor "锅炉" -> value > 60 then set_pump on', id="over"),
        pytest.param(
            "如果房间不高于20度，关闭水泵", 'if read_sensor "房间" -> value <= 20 then set_pump off', id="not over"
        ),
        pytest.param("如果锅炉没有超过60度，就打开水泵", None, id="a negation nobody knows"),
        pytest.param("如果锅炉超过60度，就打开水泵，否则关闭", None, id="otherwise"),
        pytest.param("如果锅炉超过60度并且房间低于20度，就打开水泵", None, id="two conditions"),
        pytest.param("打开水泵，然后关闭", None, id="two acts"),
    ],
)
def test_conditions_are_heard_in_a_script_without_blanks(goal: str, offered: str | None) -> None:
    state = {"type": "object", "required": ["state"], "properties": {"state": {"enum": ["on", "off"]}}}
    name = {"type": "object", "required": ["name"], "properties": {"name": {"enum": ["锅炉", "房间"]}}}
    pump = Tool(
        name="set_pump",
        description="水泵",
        parameters=state,
        effect="idempotent",
        examples=(
            Example(say="打开水泵", answer={"state": "on"}),
            Example(say="关闭水泵", answer={"state": "off"}),
            Example(say="如果锅炉超过80度，就打开水泵", answer='if read_sensor "锅炉" -> value > 80 then set_pump on'),
        ),
    )
    sensor = Tool(
        name="read_sensor",
        description="读取温度",
        parameters=name,
        effect="read",
        returns={"type": "object", "properties": {"value": {"type": "number"}}},
        examples=(
            Example(say="锅炉的温度是多少？", answer={"name": "锅炉"}),
            Example(say="房间有多热？", answer={"name": "房间"}),
        ),
    )
    assert {line for line in lines(goal, (sensor, pump)) if "set_pump" in line} == ({offered} if offered else set())


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("set_fan on", id="an act without the condition"),
        pytest.param("if read_sensor boiler -> value < 60 then set_fan on", id="the other comparison"),
        pytest.param("if read_sensor boiler -> value > 70 then set_fan on", id="another number"),
        pytest.param("if read_sensor boiler -> unit == 60 then set_fan on", id="another place"),
    ],
)
def test_a_line_outside_the_bounds_is_refused_also_without_a_grammar(line: str) -> None:
    kept, bounds = evidence.narrowed("Turn the fan on if the boiler is over 60.", boiler(), 1)
    offers = [Offer.of(tool) for tool in kept]
    with pytest.raises(DecisionRejected):
        check(read_line(line, offers), bounds, offers)


def test_values_outside_the_bounds_are_refused_by_the_offers_themselves() -> None:
    kept, _ = evidence.narrowed("Set the valve to 45.", boiler(), 1)
    offers = [Offer.of(tool) for tool in kept]
    with pytest.raises(DecisionRejected):
        read_line("set_valve percent=46", offers)
    with pytest.raises(DecisionRejected):
        read_line("set_pump on", offers)


def test_only_an_act_that_is_asked_for_may_run_whatever_tools_are_offered() -> None:
    bounds = Bounds(plain=True, acts=(Asked("open", {"n": 2}),))
    offers = [Offer(name="open", effect="once", parameters={"properties": {"n": {"type": "integer"}}})]
    check(read_line("open n=2", offers), bounds, offers)
    for line in ("open n=3", "open"):
        with pytest.raises(DecisionRejected):
            check(read_line(line, offers), bounds, offers)


def test_words_and_numbers_are_found_in_any_text() -> None:
    assert words("Don't, 20C!") == {"do", "not", "c"}
    assert numbers("From -3 to 4.5, and 20C; v2") == (-3.0, 4.5, 20.0)
