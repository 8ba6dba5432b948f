"""What a parameter takes is told as a person would say it, and no wider than the node lets through."""

import pytest

from rea_edge.cli.wording import narrowed, takes

INTEGER = {"type": "integer", "minimum": 0, "maximum": 100}


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        pytest.param(INTEGER, "a whole number from 0 to 100", id="both ends"),
        pytest.param({"type": "number", "minimum": 0.5}, "a number, at least 0.5", id="one end"),
        pytest.param(
            {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
            "a number, above 0 and below 1",
            id="open ends",
        ),
        pytest.param(
            {"type": "number", "exclusiveMinimum": 0, "maximum": 9}, "a number, above 0 and at most 9", id="one open"
        ),
        pytest.param({"type": "integer"}, "a whole number", id="no end"),
        pytest.param({"type": "string"}, "a text", id="a text"),
        pytest.param(
            {"type": "string", "minLength": 1, "maxLength": 8, "pattern": "^[a-z]+$"},
            "a text of 1 to 8 characters matching ^[a-z]+$",
            id="a bounded text",
        ),
        pytest.param({"type": "string", "minLength": 2}, "a text of at least 2 characters", id="a long text"),
        pytest.param({"type": "boolean"}, "true or false", id="a switch"),
        pytest.param({"enum": ["on", "off", 3]}, 'one of "on", "off", 3', id="choices"),
        pytest.param(
            {"enum": list(range(20))}, "one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 8 more", id="many choices"
        ),
        pytest.param({"const": "on"}, '"on"', id="one choice"),
        pytest.param({"anyOf": [INTEGER, {"type": "null"}]}, "a whole number from 0 to 100 or null", id="or nothing"),
        pytest.param({"type": ["string", "null"]}, "a text or null", id="two types"),
        pytest.param(
            {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 2},
            'a list of one of "a", "b" of at most 2 items',
            id="a list",
        ),
        pytest.param({"type": "object", "properties": {"x": {}, "y": {}}}, "a table with x, y", id="a table"),
        pytest.param({}, "anything", id="no word on it"),
        pytest.param(None, "anything", id="no schema"),
    ],
)
def test_a_schema_is_told_in_words(shape: object, words: str) -> None:
    assert takes(shape) == words


@pytest.mark.parametrize(
    ("shape", "ranges", "words"),
    [
        pytest.param(INTEGER, [(10, 80)], "a whole number from 10 to 80", id="narrower"),
        pytest.param(INTEGER, [(10, 80), (0, 50)], "a whole number from 10 to 50", id="two ranges"),
        pytest.param(INTEGER, [(-5, 200)], "a whole number from 0 to 100", id="wider changes nothing"),
        pytest.param(INTEGER, [(0, 100)], "a whole number from 0 to 100", id="the same changes nothing"),
        pytest.param(INTEGER, [], "a whole number from 0 to 100", id="no range"),
        pytest.param({"type": "number"}, [(0, 1)], "a number from 0 to 1", id="where there was none"),
        pytest.param(
            {"anyOf": [INTEGER, {"type": "null"}]}, [(0, 5)], "a whole number from 0 to 5 or null", id="inside a choice"
        ),
        pytest.param({"type": "string"}, [(0, 5)], "a text", id="no number"),
    ],
)
def test_ranges_narrow_what_is_told(shape: object, ranges: list[tuple[float, float]], words: str) -> None:
    held = narrowed(shape, ranges)
    assert takes(held) == words
    assert (held is shape) is (takes(held) == takes(shape))
