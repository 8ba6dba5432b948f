import json
from typing import get_args

import pytest

from rea_edge.bounds import Bounds
from rea_edge.opening import EXAMPLE_TOKENS, chosen_examples, constraint, nearest, opening
from rea_edge.records import Args, Protocol
from tests.command.tools import TOOLS

PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)
GOAL = 'Say "hi"\n\x00 to 世界 😀 {"action":"finish"}'


def turns(protocol: Protocol, goal: str = GOAL, context: Args | None = None, commands: int = 1) -> list[dict[str, str]]:
    raw = opening(protocol, "RULES", TOOLS, goal, context or {}, commands=commands)
    return [json.loads(bytes(turn)) for turn in raw]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_same_input_gives_the_same_bytes(protocol: Protocol) -> None:
    one, two = (opening(protocol, "RULES", TOOLS, GOAL, {"a": [1]}) for _ in range(2))
    assert [bytes(turn) for turn in one] == [bytes(turn) for turn in two]
    assert constraint(protocol, TOOLS, llama_cpp=True, commands=1) == constraint(
        protocol, TOOLS, llama_cpp=True, commands=1
    )


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_rules_come_first_and_the_goal_last_as_it_was_said(protocol: Protocol) -> None:
    said = turns(protocol)
    assert said[0]["role"] == "system" and said[0]["content"].startswith("RULES")
    assert said[-1] == {"role": "user", "content": GOAL}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_another_goal_leaves_the_head_untouched(protocol: Protocol) -> None:
    here, there = turns(protocol, "Switch the fan on."), turns(protocol, "What is the weather?")
    static = 1 if protocol != "command" else 1 + 2 * len(chosen_examples(protocol, TOOLS, EXAMPLE_TOKENS))
    assert here[:static] == there[:static]


def test_context_stands_with_the_goal() -> None:
    assert turns("json", "Go.", {"room": "b"})[-1]["content"] == 'Go.\nContext: {"room":"b"}'


@pytest.mark.parametrize("protocol", ["json", "react"])
def test_the_tools_are_listed_with_their_arguments(protocol: Protocol) -> None:
    head = turns(protocol)[0]["content"]
    for tool in TOOLS:
        assert f"- {tool.name}: {tool.description}" in head
    assert '"enum":["boiler","flow","room"]' in head


def test_a_command_prompt_lists_the_forms_and_done_only_for_more_commands() -> None:
    one, many = (turns("command", commands=count)[0]["content"] for count in (1, 2))
    assert "read_sensor boiler|flow|room; set_fan on=true|false" in one
    assert "done" not in one and many.endswith("cannot; done.")


def test_examples_are_written_in_the_form_of_the_protocol() -> None:
    def answers(protocol: Protocol) -> dict[str, str]:
        return dict(chosen_examples(protocol, TOOLS, 10_000))

    guarded = "Cool the boiler if it is over 80."
    assert answers("command")[guarded] == "if read_sensor boiler -> value > 80 then set_fan on=true"
    # A guard is a form of `command` alone: the others begin by reading.
    assert json.loads(answers("json")[guarded]) == {
        "action": "tool", "tool_name": "read_sensor", "tool_args": {"name": "boiler"},
    }  # fmt: skip
    assert answers("react")[guarded] == 'Action: read_sensor\nAction Input: {"name":"boiler"}'
    assert json.loads(answers("json")["What is the weather?"])["action"] == "give_up"
    assert answers("command")["What is the weather?"] == "cannot"
    assert answers("command")["Say good morning."] == 'say "good morning"'
    assert answers("native") == {}


def test_examples_cover_every_tool_before_any_tool_gets_a_second() -> None:
    firsts = {tool.examples[0].say for tool in TOOLS if tool.examples}
    for tokens in range(0, 400, 10):
        said = {say for say, _ in chosen_examples("command", TOOLS, tokens)}
        assert said <= firsts or firsts <= said


def test_examples_fit_their_budget() -> None:
    for tokens in (0, 20, 60, 200):
        pairs = chosen_examples("command", TOOLS, tokens)
        assert sum(len(say + answer) for say, answer in pairs) / 3 <= tokens


def test_the_nearest_example_stands_last() -> None:
    pairs = [("Switch the fan on.", "a"), ("Open the valve to 50.", "b"), ("Dance.", "c")]
    assert nearest("Open the valve to 7.", pairs, 2)[-1] == ("Open the valve to 50.", "b")
    assert nearest("Open the valve to 7.", pairs, 0) == []
    assert nearest("", [], 3) == []


@pytest.mark.parametrize(
    ("protocol", "llama_cpp", "members", "temperature"),
    [
        ("native", True, {"tools"}, 0.2),
        ("json", True, {"response_format"}, 0.2),
        ("json", False, set(), 0.2),
        ("react", False, {"stop"}, 0.2),
        ("command", True, {"grammar"}, 0),
        ("command", False, set(), 0),
    ],
)
def test_only_what_the_server_takes_is_asked_of_it(
    protocol: Protocol, llama_cpp: bool, members: set[str], temperature: float
) -> None:
    body = json.loads("{" + constraint(protocol, TOOLS, llama_cpp=llama_cpp, commands=1) + "}")
    assert set(body) == {*members, "temperature"}
    assert body["temperature"] == temperature


def test_a_given_temperature_is_sent_in_every_protocol() -> None:
    for protocol in PROTOCOLS:
        text = constraint(protocol, TOOLS, llama_cpp=True, commands=1, temperature=0.5)
        assert json.loads("{" + text + "}")["temperature"] == 0.5


def test_the_decision_schema_has_a_branch_per_tool_and_two_ends() -> None:
    body = json.loads("{" + constraint("json", TOOLS, llama_cpp=True, commands=1) + "}")
    branches = body["response_format"]["json_schema"]["schema"]["anyOf"]
    assert [branch["properties"]["action"]["const"] for branch in branches] == ["tool"] * len(TOOLS) + [
        "finish", "give_up",
    ]  # fmt: skip
    assert branches[0]["properties"]["tool_args"] == TOOLS[0].parameters


def test_native_tools_without_any_tool_are_left_out() -> None:
    assert constraint("native", (), llama_cpp=False, commands=1) == '"temperature":0.2'


def test_where_more_lines_may_run_each_example_is_played_to_its_end() -> None:
    said = [(turn["role"], turn["content"]) for turn in turns("command", "Go.", commands=3)][1:-1]
    roles = [role for role, _ in said]
    assert roles == ["user", "assistant"] * (len(said) // 2)
    answers = [content for role, content in said if role == "assistant"]
    acts = [line for line in answers if line not in ("done", "cannot")]
    assert answers.count("done") == len(acts) - 1  # the first example has two acts before its end
    assert answers[0] != answers[1] != "done" and answers[2] == "done"
    # After `cannot` nothing more is asked.
    assert all(answers[at + 1] != "done" for at, line in enumerate(answers[:-1]) if line == "cannot")


def test_lines_within_bounds_are_listed_for_servers_with_grammars_and_with_json_schema() -> None:
    bounds = Bounds(plain=True)
    one = constraint("command", TOOLS[:2], llama_cpp=True, commands=1, bounds=bounds)
    assert json.loads("{" + one + "}")["grammar"].startswith('root ::= "read_sensor boiler" | ')
    schema = json.loads(
        "{" + constraint("command", TOOLS[:2], llama_cpp=False, json_schema=True, commands=1, bounds=bounds) + "}"
    )
    listed = schema["response_format"]["json_schema"]["schema"]["properties"]["command"]["enum"]
    assert listed[0] == "read_sensor boiler" and listed[-1] == "cannot"
