"""A finish is not believed: what is sent back, and above all what is not."""

import msgspec
import pytest

from rea_edge.loop import next_effect
from rea_edge.outcome import incomplete
from rea_edge.records import Ask, Decision, Finish, Run
from tests.decision.cases import cases, expect
from tests.test_loop import BROKEN, HOT, READ, answer, call, end_of, ready, returned


def fault(text: str, thought: str = "", run: Run | None = None) -> str:
    return incomplete(run or ready(least=0), Finish(answer=text, thought=thought)) or ""


# The real ones are of Qwen2.5-Coder 1.5B and SmolLM2 135M on llama.cpp.
GOOD = [
    "71.5",
    "42 %",
    "It is 71.5 C",
    "yes",
    "The light level is below 100, so the lamp has been turned on.",
    "The CPU temperature is measured by the CPU temperature sensor.",
    "CPU temperature: 25.0000000000000001",
    "The boiler is at 71.5 °C. Would you like me to turn the fan on?",
    "The pump is off. Let me know if you need anything else.",
    "The pump is off. I will keep it that way.",
    "I will turn the fan on when the boiler is over 60.",
    "The boiler is at 45, so I will not turn the fan on.",
    "I could not read the sensor: the device does not answer.",
    "No tool can open a garage door.",
    "Is it hot? Yes: 71.5 °C.",
    "Sensors:\n- boiler 71.5\n- tank 12",
    "The valve is in position A",
    "It does what it was asked to",
    "Let me summarize: all three sensors answer.",
    "水箱液位 63%，无需补水。",
    "温度为 71.5 度",
    "如果温度过高，我会打开风扇。",
    "他说“好”，然后走了。",
]


@pytest.mark.parametrize("text", GOOD)
def test_a_good_answer_passes(text: str) -> None:
    assert fault(text) == ""


def finishes() -> list[str]:
    """The answers that the corpus of dialects reads as a finish, but for the one that is a promise."""
    found = [expect(case) for case in cases() if "promise" not in str(case["id"])]
    return [str(outcome["answer"]) for outcome in found if outcome["decision"] == "finish"]


@pytest.mark.parametrize("text", finishes())
def test_no_finish_of_the_corpus_is_sent_back_for_its_words(text: str) -> None:
    assert fault(text) == ""


@pytest.mark.parametrize(
    "thought",
    [
        "I need to call read_sensor to know the temperature. It is 71.5, so I can answer.",
        "I do not need to call read_sensor again.",
        "I will use read_sensor's value in the answer.",
        "I will use the read_sensor result to answer.",
        "I called read_sensor and it said 71.5.",
        "If it were hot I would call set_fan.",
        "The next step is to answer.",
        "I will give the answer now.",
        "无需再次调用 read_sensor，可以回答。",
        "",
    ],
)
def test_a_thought_that_announces_nothing_passes(thought: str) -> None:
    assert fault("It is 71.5 C.", thought) == ""


@pytest.mark.parametrize(
    ("thought", "tool"),
    [
        pytest.param("I will call read_sensor now.", "read_sensor", id="plain"),
        pytest.param("The boiler is hot. Next, I need to call the tool `set_fan`.", "set_fan", id="after another"),
        pytest.param("Let me use the read sensor tool", "read_sensor", id="without the underscore"),
        pytest.param("We must first run sound_alarm with name=all.", "sound_alarm", id="with arguments"),
        pytest.param(
            "To read the CPU temperature, I need to call the read_sensor function with the argument cpu_temp.",
            "read_sensor",
            id="recorded",
        ),
        pytest.param("我需要调用 read_sensor 工具。", "read_sensor", id="chinese"),
    ],
)
def test_a_thought_that_announces_a_call_while_the_message_finishes_is_sent_back(thought: str, tool: str) -> None:
    assert f"announces a call of {tool}" in fault("It is 71.5 C.", thought)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("I will read the indoor sensor now.", "announces an act", id="corpus: a promise without a call"),
        pytest.param("The boiler is hot. I'm going to turn the fan on.", "announces an act", id="a promise at the end"),
        pytest.param("Sure! Let me check the boiler.", "announces an act", id="let me"),
        pytest.param("好的，我来读取温度。", "announces an act", id="chinese promise"),
        pytest.param("Would you like me to turn on the fan?", "only asks", id="asks leave"),
        pytest.param("Please provide the name of the sensor.", "only asks", id="begs"),
        pytest.param("I need more information. Which sensor do you mean?", "only asks", id="begs and asks"),
        pytest.param("请提供传感器名称。", "only asks", id="chinese"),
        pytest.param("The sensors are:", "breaks off", id="a list that never comes"),
        pytest.param("The boiler is at 71.5 and the", "breaks off", id="in the middle of a sentence"),
        pytest.param("The boiler is at 71.5,", "breaks off", id="after a comma"),
        pytest.param("Run:\n```sh\nuptime", "breaks off", id="an open fence"),
        pytest.param("温度为 71.5，", "breaks off", id="chinese comma"),
        pytest.param(" \n", "is empty", id="empty"),
    ],
)
def test_an_answer_that_is_none_is_sent_back(text: str, said: str) -> None:
    assert said in fault(text)


def test_where_no_tool_is_on_offer_asking_back_is_an_answer() -> None:
    run = ready(least=0)
    assert run.begun is not None
    bare = msgspec.structs.replace(run, begun=msgspec.structs.replace(run.begun, offers=()))
    assert fault("Which city do you mean?", run=bare) == ""


def test_new_evidence_between_two_early_finishes_gives_the_second_its_own_chance() -> None:
    early: Decision = Finish(answer="I will read the sensor.")
    run = returned(answer(answer(ready(), early), call(READ)), HOT)
    run = answer(run, early)
    assert isinstance(next_effect(run), Ask)
    assert end_of(answer(run, early)).outcome == "gave_up"


def test_a_failure_between_two_early_finishes_is_no_new_evidence() -> None:
    early: Decision = Finish(answer="It is 20 C.")
    run = returned(answer(answer(ready(), early), call(READ)), BROKEN)
    assert end_of(answer(run, early)).outcome == "gave_up"
