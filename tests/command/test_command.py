import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rea_edge import decision
from rea_edge.decision.command import call_line, read_line
from rea_edge.errors import DecisionRejected
from rea_edge.records import Call, Calls, Decision, Finish, GiveUp, Guard
from rea_edge.telling import answer_from, answer_from_guard
from tests.command.tools import OFFERS


def one(name: str, /, **args: object) -> Calls:
    return Calls(calls=(Call(name=name, args=args),))


def guard(op: str, value: int | float | str, *, path: str = "value", read: str = "boiler") -> Guard:
    reading, act = Call(name="read_sensor", args={"name": read}), Call(name="set_fan", args={"on": True})
    return msgspec.convert(
        {"kind": "guard", "read": reading, "path": path, "op": op, "value": value, "then": act},
        Guard,
        from_attributes=True,
    )


@pytest.mark.parametrize(
    ("line", "decision"),
    [
        pytest.param("read_sensor boiler", one("read_sensor", name="boiler"), id="a bare enum"),
        pytest.param("read_sensor name=boiler", one("read_sensor", name="boiler"), id="an enum with its key"),
        pytest.param('read_sensor "boiler"', one("read_sensor", name="boiler"), id="an enum as a JSON string"),
        pytest.param("  set_fan   on=true \n", one("set_fan", on=True), id="blanks are free"),
        pytest.param("set_valve percent=0", one("set_valve", percent=0), id="an integer at its bound"),
        pytest.param('set_valve percent="50"', one("set_valve", percent=50), id="a lossless coercion"),
        pytest.param("say hello", one("say", text="hello"), id="a bare text"),
        pytest.param("say 12", one("say", text="12"), id="a text that looks like a number"),
        pytest.param("say true", one("say", text="true"), id="a text that looks like a boolean"),
        pytest.param('say "then -> x=1"', one("say", text="then -> x=1"), id="the language's own marks inside a text"),
        pytest.param('say "caf\\u00e9 \\"x\\""', one("say", text='café "x"'), id="escapes"),
        pytest.param("say hi volume=-0.5", one("say", text="hi", volume=-0.5), id="an optional number"),
        pytest.param("say volume=1e-2 text=hi", one("say", text="hi", volume=0.01), id="any order, an exponent"),
        pytest.param("ping", one("ping"), id="no arguments"),
        pytest.param(
            'odd mode="7" level=2 list="[1,2]"', one("odd", mode="7", level=2, list=[1, 2]), id="a list as a string"
        ),
        pytest.param("set_fan on=true\nset_fan on=true", one("set_fan", on=True), id="the same line twice is one"),
        pytest.param("set_fan on=true on=true", one("set_fan", on=True), id="the same value twice is one"),
        pytest.param("done", Finish(answer=""), id="done"),
        pytest.param("Cannot.", GiveUp(reason="the model found no command that fits the goal"), id="cannot"),
        pytest.param("if read_sensor boiler -> value > 60 then set_fan on=true", guard(">", 60), id="a guard"),
        pytest.param("if read_sensor boiler -> value <= -1.5 then set_fan on=true", guard("<=", -1.5), id="a decimal"),
        pytest.param(
            'if read_sensor boiler -> unit == "C" then set_fan on=true', guard("==", "C", path="unit"), id="a text"
        ),
        pytest.param(
            'if read_sensor boiler -> a.0.b-c != "7" then set_fan on=true',
            guard("!=", "7", path="a.0.b-c"),
            id="a path",
        ),
    ],
)
def test_a_line_of_the_language_is_read(line: str, decision: Decision) -> None:
    assert read_line(line, OFFERS) == decision


@pytest.mark.parametrize(
    ("line", "kind", "mention"),
    [
        pytest.param("", "empty", "one command line", id="nothing"),
        pytest.param(" \r\n ", "empty", "one command line", id="blanks"),
        pytest.param("set_fan on=true\nset_fan on=false", "conflict", "one command line", id="two lines"),
        pytest.param("set_pump on=true", "unknown_tool", "read_sensor, set_fan", id="no such tool"),
        pytest.param("read_sensors boiler", "unknown_tool", "read_sensors", id="a near name is not guessed"),
        pytest.param("I will switch on the fan.", "unparseable", "one command line", id="prose"),
        pytest.param("set_fan(on=true)", "unparseable", "one command line", id="another notation"),
        pytest.param("say hello world", "invalid_args", "two values", id="a text of two words unquoted"),
        pytest.param('say "hello', "unparseable", "quote", id="a string cut off"),
        pytest.param('say "a"b', "unparseable", "quote", id="something behind a string"),
        pytest.param("read_sensor attic", "invalid_args", "boiler", id="not in the enum"),
        pytest.param("read_sensor", "invalid_args", "name", id="a missing argument"),
        pytest.param("set_fan true", "invalid_args", "key=value", id="a boolean may not stand bare"),
        pytest.param("set_fan on=yes", "invalid_args", "on", id="no guess at yes"),
        pytest.param("set_valve percent=101", "invalid_args", "percent", id="over the bound"),
        pytest.param("set_valve percent=50.5", "invalid_args", "percent", id="no rounding"),
        pytest.param("set_fan on=true speed=3", "invalid_args", "speed", id="a stray argument"),
        pytest.param("set_fan on=true on=false", "invalid_args", "two values", id="two values for one key"),
        pytest.param("set_valve percent=1 percent=true", "invalid_args", "percent", id="1 is not true"),
        pytest.param(f"set_valve percent={'9' * 5000}", "invalid_args", "percent", id="a number nobody means"),
        pytest.param("say hi volume=1e999", "invalid_args", "volume", id="infinity"),
        pytest.param('say "\\u0000"', "invalid_args", "text", id="a control character"),
        pytest.param('say "\\ud800"', "unparseable", "quote", id="half a surrogate"),
        pytest.param(
            "if set_fan on=true -> on == true then ping", "invalid_args", "only reads", id="a guard that acts"
        ),
        pytest.param("if read_sensor boiler -> value > 60", "unparseable", "command line", id="half a guard"),
        pytest.param("if read_sensor boiler > 60 then set_fan on=true", "unparseable", "command line", id="no path"),
        pytest.param(
            "if read_sensor boiler -> value => 6 then set_fan on=true", "unparseable", "command line", id="no operator"
        ),
        pytest.param(
            f"if ping -> {'a' * 41} > 6 then set_fan on=true", "invalid_args", "path", id="a path over 40 characters"
        ),
        pytest.param("if ping -> a..b > 6 then set_fan on=true", "invalid_args", "path", id="an empty key"),
        pytest.param("if ping -> a > 6 then set_fan on=true done", "invalid_args", "key=value", id="more behind it"),
        pytest.param("if ping -> a > 6 then nothing on=true", "unknown_tool", "nothing", id="an unknown act"),
        pytest.param("if", "unparseable", "command line", id="the bare word if"),
        pytest.param("-> > ==", "unparseable", "command line", id="marks alone"),
    ],
)
def test_what_is_no_line_is_refused_with_a_reason(line: str, kind: str, mention: str) -> None:
    with pytest.raises(DecisionRejected) as refused:
        read_line(line, OFFERS)
    assert refused.value.kind == kind
    assert mention in refused.value.message
    assert len(refused.value.message) < 400


@given(st.text(max_size=200) | st.text(alphabet='if then read_sensor set_fan->on=true"\\ \n<>=!.0123', max_size=200))
def test_any_text_gives_a_decision_or_a_refusal(text: str) -> None:
    try:
        decision = read_line(text, OFFERS)
    except DecisionRejected:
        return
    assert isinstance(decision, Calls | Guard | Finish | GiveUp)


@given(st.text().filter(lambda text: not any(ord(char) < 32 or 127 <= ord(char) < 160 for char in text)))
def test_any_clean_text_survives_being_written_and_read(text: str) -> None:
    call = Call(name="say", args={"text": text})
    parameters = next(offer.parameters for offer in OFFERS if offer.name == "say")
    assert read_line(call_line(call, parameters), OFFERS) == Calls(calls=(call,))


def test_a_long_line_is_read_in_linear_time() -> None:
    for line in ('say "' + "\\" * 200_000, "if " * 70_000, "a" * 200_000, "say" + " x=1" * 50_000, "\n" * 200_000):
        with pytest.raises(DecisionRejected):
            read_line(line, OFFERS)


@pytest.mark.parametrize(
    ("call", "value", "answer"),
    [
        pytest.param(
            Call(name="read_sensor", args={"name": "boiler"}),
            {"value": 45.0, "unit": "C"},
            "read_sensor boiler: value is 45, unit is C",
            id="an object",
        ),
        pytest.param(
            Call(name="set_fan", args={"on": True}), {"on": True}, "set_fan on=true: on is true", id="a boolean"
        ),
        pytest.param(Call(name="set_fan", args={"on": True}), None, "set_fan on=true was run", id="no value"),
        pytest.param(Call(name="ping", args={}), 3.25, "ping: 3.25", id="a number"),
        pytest.param(Call(name="ping", args={}), [1, {"a": None}], 'ping: [1,{"a":null}]', id="a list"),
        pytest.param(
            Call(name="say", args={"text": "a b", "volume": 1}), "ok", 'say text="a b" volume=1: ok', id="a text"
        ),
    ],
)
def test_the_answer_says_what_the_call_gave(call: Call, value: object, answer: str) -> None:
    assert answer_from(call, value) == answer


def test_an_answer_is_cut_to_a_length() -> None:
    assert len(answer_from(Call(name="ping", args={}), ["x" * 10_000])) == 500


@pytest.mark.parametrize(
    ("condition", "value", "acted", "answer"),
    [
        pytest.param(
            guard(">", 60), {"value": 45.0}, None, "boiler.value is 45, not over 60: set_fan was not run", id="false"
        ),
        pytest.param(
            guard(">", 60),
            {"value": 72.5},
            "set_fan on=true: on is true",
            "boiler.value is 72.5, over 60: set_fan on=true: on is true",
            id="true",
        ),
        pytest.param(
            guard("<", 5), {"value": 5}, None, "boiler.value is 5, not under 5: set_fan was not run", id="border"
        ),
    ],
)
def test_the_answer_of_a_guard_cites_the_reading(
    condition: Guard, value: object, acted: str | None, answer: str
) -> None:
    assert answer_from_guard(condition, value, acted) == answer


@pytest.mark.parametrize("value", [{}, {"value": "hot"}, {"value": None}, {"value": True}, [], 72, None])
def test_a_guard_with_nothing_to_compare_says_that_nothing_ran(value: object) -> None:
    said = answer_from_guard(guard(">", 60), value, None)
    assert said.endswith("set_fan was not run") and "not over" not in said


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ('{"command": "read_sensor boiler"}', one("read_sensor", name="boiler")),
        ('\n{"command":"set_fan on=true"}\n', one("set_fan", on=True)),
        ('{"command": "cannot"}', GiveUp(reason="the model found no command that fits the goal")),
    ],
)
def test_a_line_in_the_object_that_a_json_schema_asks_for_is_read(content: str, found: Decision) -> None:
    assert decision.read({"content": content}, "stop", OFFERS, "command") == found


def test_a_line_in_an_object_with_more_in_it_is_no_line() -> None:
    with pytest.raises(DecisionRejected):
        decision.read({"content": '{"command": "set_fan on=true", "not": true}'}, "stop", OFFERS, "command")
