"""Tools by another name, and back."""

import msgspec
import pytest
from msgspec import Raw

from rea_edge import context, decision, opening
from rea_edge.aliases import aliases, ours, renamed_offers, renamed_tools
from rea_edge.records import Call, Calls, Example, Finish, Guard, Offer, Protocol, Tool

LOOK = Call(name="python", args={"x": 1})


def tool(name: str, *examples: Example) -> Tool:
    parameters: dict[str, object] = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
    return Tool(name=name, description="Look.", parameters=parameters, effect="read", examples=examples)


@pytest.mark.parametrize(
    ("names", "wanted", "table"),
    [
        pytest.param(["look", "set_fan"], {}, {}, id="most names stay"),
        pytest.param(["python", "done"], {}, {"python": "python_tool", "done": "done_tool"}, id="words that are taken"),
        pytest.param(["give_up"], {}, {"give_up": "give_up_tool"}, id="with an underscore"),
        pytest.param(["done", "done_tool"], {}, {"done": "done_tool_"}, id="never the name of another tool"),
        pytest.param(["look"], {"look": "see-1"}, {"look": "see-1"}, id="the operator's table"),
        pytest.param(["a", "b"], {"a": "c", "b": "c"}, {"a": "c", "b": "c_"}, id="no two become one"),
        pytest.param(["a", "b"], {"a": "b"}, {"a": "b_"}, id="nor one that is there"),
        pytest.param(["look"], {"other": "x"}, {}, id="a tool that is not offered"),
    ],
)
def test_the_table_holds_what_changes(names: list[str], wanted: dict[str, str], table: dict[str, str]) -> None:
    assert aliases(names, wanted) == table


@pytest.mark.parametrize("protocol", ["native", "json", "react", "command"])
def test_the_model_meets_only_the_other_name(protocol: Protocol) -> None:
    tools = renamed_tools(
        [tool("python", Example(say="Look at 1.", answer="python x=1"), Example(say="At 2.", answer={"x": 2}))],
        {"python": "see"},
    )
    ask = opening.constraint(protocol, tools, llama_cpp=True, commands=1)
    turns = opening.opening(protocol, "RULES", tools, "Look.", {})
    asked = ask + "".join(bytes(turn).decode() for turn in turns)
    assert "python" not in asked and "see" in asked


@pytest.mark.parametrize(
    ("protocol", "content"),
    [
        ("json", '{"action":"tool","tool_name":"see","tool_args":{"x":1}}'),
        ("react", 'Thought: so\nAction: see\nAction Input: {"x": 1}'),
        ("command", "see x=1"),
    ],
)
def test_an_answer_comes_back_in_our_names(protocol: Protocol, content: str) -> None:
    offers = [Offer(name="python", effect="read", parameters=tool("python").parameters)]
    read = decision.read_or_fault({"content": content}, "stop", offers, protocol, {"python": "see"})
    assert isinstance(read, Calls) and read.calls == (LOOK,)


def test_a_native_call_goes_back_by_the_name_that_the_model_used() -> None:
    function = {"name": "see", "arguments": '{"x":1}'}
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "a", "type": "function", "function": function}],
    }
    offers = [Offer(name="python", effect="read", parameters=tool("python").parameters)]
    read = decision.read_or_fault(message, "tool_calls", offers, "native", {"python": "see"})
    assert isinstance(read, Calls) and read.calls == (LOOK,)
    turn = context.assistant_turn(Raw(msgspec.json.encode(message)), read, 1, {"python": "see"})
    assert b'"name":"see"' in bytes(turn) and b"python" not in bytes(turn)


def test_guards_change_on_both_sides_and_ends_not_at_all() -> None:
    seen = Call(name="see", args={"x": 1})
    guard = Guard(read=seen, path="v", op=">", value=1, then=seen)
    assert ours(guard, {"python": "see"}) == Guard(read=LOOK, path="v", op=">", value=1, then=LOOK)
    assert ours(Finish(answer="see"), {"python": "see"}) == Finish(answer="see")
    assert renamed_offers([], {}) == []
