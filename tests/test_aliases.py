"""Tools by another name, and back."""

import msgspec
import pytest
from msgspec import Raw

from rea_edge import context, decision, opening
from rea_edge.aliases import aliases, in_their_names, ours, renamed_offers, renamed_tools
from rea_edge.loop import apply, start
from rea_edge.records import (
    Answered,
    Begun,
    Call,
    Calls,
    Criterion,
    Event,
    Example,
    Fault,
    Finish,
    Guard,
    Job,
    Offer,
    Protocol,
    Refused,
    Returned,
    Run,
    Tool,
)
from tests.test_loop import HOT, asked, begun

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


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param(
            "python acts, and this request may only read", "see acts, and this request may only read", id="first"
        ),
        pytest.param("not allowed; allowed: a, python, b", "not allowed; allowed: a, see, b", id="in a list"),
        pytest.param(
            "turn requires python first: call that", "turn requires see first: call that", id="where one comes"
        ),
        pytest.param("a result of python {} with x == 1", "a result of see {} with x == 1", id="of a criterion"),
        pytest.param("write it in python, by hand", "write it in python, by hand", id="a word of every day"),
        pytest.param(
            "the device of set_fan was not free", "the device of blow was not free", id="no word of every day"
        ),
        pytest.param("then set_fan_2 was run", "then set_fan_2 was run", id="part of another name"),
    ],
)
def test_what_we_say_of_tools_is_said_in_the_names_of_the_model(text: str, told: str) -> None:
    assert in_their_names(text, {"python": "see", "set_fan": "blow"}) == told
    assert in_their_names(text, {}) == text


NAMED = {"read_sensor": "see", "set_fan": "blow", "sound_alarm": "python_tool"}
READ = Call(name="read_sensor", args={"name": "boiler"})
BUSY = Fault(fault="busy", message="the device of read_sensor was not free within 5 s")
OWN = Fault(fault="tool_error", message="OSError: read_sensor.sock is gone")
GATE = "set_fan acts, and this request may only read (mode query)"


def told_of(run: Run) -> str:
    """What the model is yet to be told, and nothing that it has said itself."""
    return b"".join(bytes(turn) for turn in context.told_turns(run)).decode()


def going(begun: Begun, *events: Event) -> Run:
    """A run whose tools go by other names, after a question and these."""
    run = asked(apply(start("rtest-1", Job(goal="goal")), msgspec.structs.replace(begun, aliases=NAMED)))
    for event in events:
        run = apply(run, event)
    return run


def decided(*calls: Call) -> Answered:
    turn = Raw(b'{"role":"assistant","content":"x"}')
    read = Calls(calls=calls) if calls else Finish(answer="All is well.", thought="I will call blow now.")
    return Answered(step=1, turn=turn, decision=read, prompt_tokens=1, completion_tokens=1, seconds=0.0)


@pytest.mark.parametrize(
    ("protocol", "events", "said"),
    [
        pytest.param("json", [decided(Call(name="set_fan", args={})), Refused(n=1, reason=GATE)], "blow acts", id="gate"),
        pytest.param("json", [decided(READ), Returned(n=1, result=BUSY, seconds=0.0)], "device of see", id="busy"),
        pytest.param("command", [decided(READ), Returned(n=1, result=BUSY, seconds=0.0)], "see failed", id="a line failed"),
        pytest.param("command", [decided(READ), Returned(n=1, result=HOT, seconds=0.0)], "see boiler: value", id="a line"),
    ],
)  # fmt: skip
def test_a_model_reads_only_the_names_that_it_was_offered(protocol: Protocol, events: list[Event], said: str) -> None:
    told = told_of(going(begun(protocol, commands=4), *events))
    assert said in told
    assert not any(name in told for name in NAMED)


def test_what_a_tool_says_itself_is_told_as_it_is() -> None:
    assert "read_sensor.sock is gone" in told_of(going(begun(), decided(READ), Returned(n=1, result=OWN, seconds=0.0)))


def test_a_criterion_is_told_by_the_name_of_the_model() -> None:
    wanted = Criterion(tool="set_fan", args={}, path="on", op="==", value=True)
    run = going(
        msgspec.structs.replace(begun(), done_when=(wanted,)), decided(READ), Returned(n=1, result=HOT, seconds=0.0)
    )
    told = told_of(apply(asked(run), decided()))
    assert "a result of blow with on == true" in told and "set_fan" not in told


def test_a_thought_that_announces_a_call_by_the_models_name_is_met() -> None:
    assert "announces a call of blow" in told_of(going(begun(least=0), decided()))
