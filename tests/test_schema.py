"""The closed subset of JSON Schema: what is valid, what is coerced without loss, what is refused and how it is told."""

import pytest

from rea_edge import schema
from rea_edge.errors import DecisionRejected, ToolInvalid
from rea_edge.records import Args

PUMP: Args = {
    "type": "object",
    "properties": {
        "pin": {"type": "integer", "minimum": 0, "maximum": 27},
        "speed": {"type": "number", "exclusiveMinimum": 0.5, "maximum": 10},
        "name": {"type": "string", "minLength": 1, "maxLength": 8},
        "code": {"type": "string", "pattern": "^[0-9]{4}$"},
        "mode": {"enum": ["auto", "off"]},
        "level": {"type": "integer", "enum": [0, 1]},
        "on": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
        "more": {"type": "object", "properties": {"deep": {"type": "number"}}, "required": ["deep"]},
        "until": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        "bag": {"type": "object", "additionalProperties": {"type": "integer"}},
        "step": {"type": "integer", "multipleOf": 5},
    },
    "required": ["pin"],
}


def check(**args: object) -> object:
    return schema.compile(PUMP, place="set_pump").check(args)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, {}, id="nothing to coerce"),
        pytest.param({"pin": "17"}, {"pin": 17}, id="digits to an integer"),
        pytest.param({"pin": 6.0}, {"pin": 6}, id="a whole float to an integer"),
        pytest.param({"speed": "2.5"}, {"speed": 2.5}, id="text to a number"),
        pytest.param({"speed": 2}, {"speed": 2}, id="an integer is a number"),
        pytest.param({"name": 48213}, {"name": "48213"}, id="an integer to text"),
        pytest.param({"code": "0042"}, {"code": "0042"}, id="zeros in a text stay"),
        pytest.param({"level": "1"}, {"level": 1}, id="text to a number of an enum"),
        pytest.param({"on": "FALSE"}, {"on": False}, id="a boolean as text"),
        pytest.param({"tags": '["a", "b"]'}, {"tags": ["a", "b"]}, id="a list as JSON text"),
        pytest.param({"more": '{"deep": "1.5"}'}, {"more": {"deep": 1.5}}, id="an object as JSON text"),
        pytest.param({"name": None}, {}, id="null for an optional one is absent"),
        pytest.param({"until": None}, {"until": None}, id="null where null is taken stays"),
        pytest.param({"bag": {"a": "3"}}, {"bag": {"a": 3}}, id="inside a bag of integers"),
        pytest.param({"name": "a\nb\tc"}, {"name": "a\nb\tc"}, id="line breaks and tabs are text"),
    ],
)
def test_coercion_loses_nothing(given: Args, expected: Args) -> None:
    assert check(**{"pin": 1, **given}) == {"pin": 1, **expected}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        pytest.param({"pin": 28}, ["pin", "from 0 to 27", "28"], id="over the maximum"),
        pytest.param({"pin": -1}, ["pin"], id="under the minimum"),
        pytest.param({"pin": 1.5}, ["pin", "integer", "1.5"], id="no rounding"),
        pytest.param({"pin": "017"}, ["pin"], id="padded digits"),
        pytest.param({"pin": "1 7"}, ["pin"], id="digits with a blank"),
        pytest.param({"pin": "１７"}, ["pin"], id="digits of another script"),
        pytest.param({"pin": True}, ["pin", "true"], id="true is no number"),
        pytest.param({"pin": None}, ["pin", "null"], id="null for a required one"),
        pytest.param({"pin": 2**80}, ["pin"], id="beyond 64 bits"),
        pytest.param({"speed": 0.5}, ["speed", "over 0.5"], id="on an open bound"),
        pytest.param({"speed": "2 m/s"}, ["speed"], id="a unit"),
        pytest.param({"speed": float("nan")}, ["speed", "finite"], id="not a number"),
        pytest.param({"speed": float("inf")}, ["speed", "finite"], id="infinity"),
        pytest.param({"name": ""}, ["name"], id="too short"),
        pytest.param({"name": "x" * 9}, ["name", "at most 8"], id="too long"),
        pytest.param({"name": "a\0b"}, ["name", "control"], id="NUL"),
        pytest.param({"name": "a\x1b[0m"}, ["name", "control"], id="a terminal escape"),
        pytest.param({"name": "a\ud83d"}, ["name", "surrogate"], id="half a surrogate pair"),
        pytest.param({"name": 1.5}, ["name"], id="a float is no text"),
        pytest.param({"code": "1234\n"}, ["code"], id="$ is the very end"),
        pytest.param({"code": "١٢٣٤"}, ["code"], id="digits of another script in a pattern"),
        pytest.param({"mode": "Auto"}, ["mode", "auto", "off"], id="another letter case"),
        pytest.param({"on": "yes"}, ["on", "true or false"], id="yes"),
        pytest.param({"on": 1}, ["on"], id="1 is not true"),
        pytest.param({"tags": "a,b"}, ["tags", "list"], id="no splitting"),
        pytest.param({"tags": ["a", "b", "c"]}, ["tags", "at most 2"], id="too many items"),
        pytest.param({"tags": ["a", 1.5]}, ["tags[1]"], id="one item"),
        pytest.param({"more": {}}, ["more.deep", "missing"], id="missing inside"),
        pytest.param({"more": {"deep": 1, "x": 1}}, ["more.x", "deep"], id="unknown inside"),
        pytest.param({"pn": 1}, ["pn", "pin"], id="unknown"),
        pytest.param({"step": 7}, ["step", "multiple of 5"], id="between two steps"),
        pytest.param({"pin": schema.Clash(1, 2)}, ["pin", "twice"], id="two values for one key"),
    ],
)
def test_what_is_not_valid_is_told_with_field_and_reason(given: Args, words: list[str]) -> None:
    with pytest.raises(DecisionRejected) as told:
        check(**{"pin": 1, **given})
    assert told.value.kind == "invalid_args"
    assert told.value.message.startswith("set_pump: ")
    assert len(told.value.message) < 200
    assert all(word in told.value.message for word in words), told.value.message


def test_a_missing_argument_is_named_with_what_it_must_be() -> None:
    with pytest.raises(DecisionRejected, match="`pin` is missing; it must be an integer from 0 to 27"):
        check()


def test_integers_stay_exact() -> None:
    wide = schema.compile({"type": "object", "properties": {"n": {"type": "integer"}}}, place="t")
    assert wide.check({"n": "9007199254740993"}) == {"n": 9007199254740993}
    with pytest.raises(DecisionRejected):
        wide.check({"n": 9007199254740993.0})


def test_a_value_that_is_nested_without_end_is_refused_without_recursion() -> None:
    deep: object = 1
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(DecisionRejected, match="nested too deeply"):
        check(pin=1, tags=deep)


@pytest.mark.parametrize(
    ("node", "keyword"),
    [
        ({"type": "string", "format": "uri", "contentEncoding": "x"}, "contentEncoding"),
        ({"allOf": []}, "allOf"),
        ({"type": "blob"}, "type"),
        ({"type": "integer", "minLength": 1}, "minLength"),
        ({"type": "string", "pattern": "("}, "pattern"),
        ({"type": "string", "pattern": "\\p{L}"}, "pattern"),
        ({"enum": [1.5]}, "enum"),
        ({"enum": []}, "enum"),
        ({"type": "integer", "minimum": 2**63}, "minimum"),
        ({"type": "number", "multipleOf": 0.1}, "multipleOf"),
        ({"anyOf": [{"type": "object", "properties": {}}, {"type": "object"}]}, "anyOf"),
        ({"$ref": "#/x"}, "$ref"),
        ({"$ref": "#/$defs/loop"}, "loop"),
        ({"type": "array", "uniqueItems": True}, "uniqueItems"),
        ("integer", "a"),
    ],
)
def test_a_keyword_outside_the_subset_is_refused_by_name_or_named_when_lenient(node: object, keyword: str) -> None:
    whole: Args = {
        "type": "object",
        "properties": {"a": node},
        "$defs": {"loop": {"type": "object", "properties": {"loop": {"$ref": "#/$defs/loop"}}}},
    }
    with pytest.raises(ToolInvalid, match="pumps.py: set_pump") as refused:
        schema.compile(whole, place="pumps.py: set_pump")
    assert keyword in str(refused.value)
    lenient = schema.compile(whole, place="set_pump", lenient=True)
    assert any(keyword in name for name in lenient.ignored)
    assert lenient.check({}) == {}


def test_references_into_definitions_are_followed() -> None:
    whole: Args = {
        "type": "object",
        "properties": {"at": {"$ref": "#/$defs/Point"}},
        "$defs": {"Point": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}},
    }
    compiled = schema.compile(whole, place="t")
    assert compiled.check({"at": {"x": "3"}}) == {"at": {"x": 3}}
    with pytest.raises(DecisionRejected, match="at.x"):
        compiled.check({"at": {}})


def test_an_object_is_closed_unless_it_says_otherwise() -> None:
    shape: Args = {"type": "object", "properties": {"a": {"type": "integer"}}}
    with pytest.raises(DecisionRejected, match="not known"):
        schema.compile(shape, place="t").check({"b": 1})
    assert schema.compile({**shape, "additionalProperties": True}, place="t").check({"b": 1}) == {"b": 1}
    assert schema.compile({"type": "object"}, place="t").check({"b": 1}) == {"b": 1}


def test_types_that_others_write_are_understood_when_lenient() -> None:
    shape: Args = {
        "type": "dict",
        "properties": {"n": {"type": "float"}, "items": {"type": "tuple"}, "on": {"type": "Boolean"}},
    }
    assert schema.compile(shape, place="t", lenient=True).check({"n": "1.5", "items": "[1]", "on": "true"}) == {
        "n": 1.5,
        "items": [1],
        "on": True,
    }
