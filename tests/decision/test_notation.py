"""What models write in place of JSON: notation is repaired, values are not guessed."""

import math

import pytest

from rea_edge.decision.notation import Broken, PyCall, Value, read_calls, read_value
from rea_edge.schema import Clash


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("{'a': True, 'b': None,}", {"a": True, "b": None}, id="Python literals and a trailing comma"),
        pytest.param("{“a”：“b”，“c”：［1］}", {"a": "b", "c": [1]}, id="curly and full-width structure"),
        pytest.param('{"a": "b", // c\n /* d */ "e": 1}', {"a": "b", "e": 1}, id="comments"),
        pytest.param(
            '{"a": 1 "b": {"c": 2} "d": 3}', {"a": 1, "b": {"c": 2}, "d": 3}, id="missing commas between pairs"
        ),
        pytest.param('[{"a": 1} {"b": 2}]', [{"a": 1}, {"b": 2}], id="missing comma between objects"),
        pytest.param("{a: `b`, $c-d: 1}", {"a": "b", "$c-d": 1}, id="bare keys and back quotes"),
        pytest.param(
            '{"a": "x\\d\\n\\"y\\u00e9\\ud83d\\ude00"}', {"a": 'x\\d\n"yé😀'}, id="escapes, known and unknown"
        ),
        pytest.param('{"a": "line\nline\tend"}', {"a": "line\nline\tend"}, id="raw line breaks"),
        pytest.param('\ufeff\u200b{\x00"a"\x00: \\n1\\n}', {"a": 1}, id="noise between tokens"),
        pytest.param("{'a': '他说“好”，走了'}", {"a": "他说“好”，走了"}, id="punctuation inside a text stays"),
        pytest.param("{'a': 'True, None: [1,]'}", {"a": "True, None: [1,]"}, id="a text stays as it is"),
        pytest.param("{'n': 12345678901234567890123}", {"n": 12345678901234567890123}, id="large integers"),
        pytest.param('{x:<escape>a "b"<escape>,n:5}', {"x": 'a "b"', "n": 5}, id="FunctionGemma's quotes"),
    ],
)
def test_notation_is_repaired(text: str, value: object) -> None:
    read = read_value(text)
    assert isinstance(read, Value)
    assert read.value == value
    assert read.end == len(text)


@pytest.mark.parametrize(
    ("text", "key", "ended"),
    [
        pytest.param('{"a": mosquitto}', "a", False, id="a bare word"),
        pytest.param('{"a": 0x11}', "a", False, id="hex"),
        pytest.param('{"a": 017}', "a", False, id="a padded number"),
        pytest.param('{"a": .5}', "a", False, id="no digit before the point"),
        pytest.param('{"a": 5kg}', "a", False, id="a unit"),
        pytest.param('{"a": 1_000}', "a", False, id="digit groups"),
        pytest.param('{"a": 10+7}', "a", False, id="an expression"),
        pytest.param('{"a": ["cpu", ...]}', "a", False, id="an ellipsis"),
        pytest.param('{"a": }', "a", False, id="no value"),
        pytest.param('{"a": "The "blue" pump"}', "a", False, id="unescaped quotes"),
        pytest.param("{'a': 'it's cold'}", "a", False, id="an apostrophe"),
        pytest.param('{"a": "x" + "y"}', "a", False, id="a sum of texts"),
        pytest.param('["a" "b"]', "", False, id="two texts in a list"),
        pytest.param('{"a": "\\u12"}', "a", False, id="half an escape"),
        pytest.param('{"a": [1}', "a", False, id="brackets that do not match"),
        pytest.param('{"a":: 1}', "a", False, id="two colons"),
        pytest.param('{"a": 1,, "b": 2}', "a", False, id="two commas"),
        pytest.param('{"a": undefined}', "a", False, id="undefined"),
        pytest.param('{"a": "b', "a", True, id="cut in a text"),
        pytest.param('{"a": 1', "a", True, id="cut after a number"),
        pytest.param('{"a', "", True, id="cut in a key"),
        pytest.param("[" * 200, "", False, id="too deep"),
        pytest.param('{"a": ' + "1" * 5000 + "}", "a", False, id="a number without end"),
    ],
)
def test_what_is_not_certain_is_not_read(text: str, key: str, ended: bool) -> None:
    read = read_value(text)
    assert isinstance(read, Broken)
    assert (read.key, read.ended) == (key, ended)


def test_only_the_outermost_brace_may_be_missing_and_only_after_a_closed_value() -> None:
    read = read_value('{"n": "x", "args": {"a": 1}')
    assert isinstance(read, Broken)
    assert read.partial == {"n": "x", "args": {"a": 1}}
    for text in ('{"n": "x", "args": {"a": 1', '{"args": {"a": 1}, "n": "x"', '[{"a": {}}'):
        read = read_value(text)
        assert isinstance(read, Broken)
        assert read.partial is None


def test_two_values_for_one_key_are_marked_and_equal_ones_are_one() -> None:
    read = read_value('{"a": 1, "a": 2, "b": 1, "b": 1, "c": 1, "c": true}')
    assert isinstance(read, Value)
    assert read.value == {"a": Clash(1, 2), "b": 1, "c": Clash(1, True)}


def test_not_a_number_stays_one_for_the_schema_to_refuse() -> None:
    for word in ("NaN", "Infinity", "-Infinity", "nan"):
        read = read_value('{"a": ' + word + "}")
        assert isinstance(read, Value)
        assert isinstance(read.value, dict)
        assert not math.isfinite(read.value["a"])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (
            "f(a=1, b='x', c=[1, {'d': None}], e=(1, 2))",
            PyCall("f", {"a": 1, "b": "x", "c": [1, {"d": None}], "e": [1, 2]}),
        ),
        ("[f(), g.h(a=True)]", [PyCall("f", {}), PyCall("g.h", {"a": True})]),
        ('f("x", 2)', PyCall("f", {}, ("x", 2))),
        ('f(a="""x\n"y" """)', PyCall("f", {"a": 'x\n"y" '})),
        (r"f(a='Martha\'s')", PyCall("f", {"a": "Martha's"})),
    ],
)
def test_python_calls_with_plain_values_are_read(text: str, value: object) -> None:
    assert read_calls(text) == Value(value, len(text))


@pytest.mark.parametrize(
    "text",
    ["f(a=g(1))", "f(a=x)", "f(a=1+2)", 'f(a=f"x")', "f(*[1])", "f(**{})", "f(a=1", "[f() only]", "f(a=1, 2)", "f(a=(1))", "f(a='x' 'y')"],
)  # fmt: skip
def test_python_code_is_never_evaluated(text: str) -> None:
    assert isinstance(read_calls(text), Broken)
