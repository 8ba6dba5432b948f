"""Comparisons of recorded values, on both sides of each border."""

import math

import pytest
from msgspec import UNSET

from rea_edge.condition import Incomparable, Op, holds, is_path, lookup

DATA = {"value": 45, "unit": "C", "on": True, "none": None, "disks": [{"free": 1.5}], "0": "zero", "big": 2**70}


@pytest.mark.parametrize(
    ("path", "op", "operand", "expected"),
    [
        pytest.param("value", ">", 45, False, id="equal is not over"),
        pytest.param("value", ">", 44.9, True, id="over"),
        pytest.param("value", ">=", 45, True, id="equal is at least"),
        pytest.param("value", "<", 45.0, False, id="equal is not under"),
        pytest.param("value", "<=", 45, True, id="equal is at most"),
        pytest.param("value", "==", 45.0, True, id="an integer equals its float"),
        pytest.param("value", "!=", 45, False, id="equal is not other"),
        pytest.param("unit", "==", "C", True, id="text with text"),
        pytest.param("unit", "!=", "F", True, id="other text"),
        pytest.param("unit", "<", "D", True, id="text by code point"),
        pytest.param("disks.0.free", "<", 2, True, id="into a list by index"),
        pytest.param("0", "==", "zero", True, id="digits are a key in an object"),
        pytest.param("big", ">", 1e20, True, id="large integers are exact"),
    ],
)
def test_values_of_one_type_are_compared(path: str, op: Op, operand: int | float | str, expected: bool) -> None:
    assert holds(DATA, path, op, operand) is expected


@pytest.mark.parametrize(
    ("path", "op", "operand", "word"),
    [
        pytest.param("valu", ">", 1, "valu", id="a missing key"),
        pytest.param("disks.1.free", ">", 1, "disks.1.free", id="a missing index"),
        pytest.param("value.x", ">", 1, "value.x", id="a key into a number"),
        pytest.param("on", "==", 1, "true", id="true is not the number 1"),
        pytest.param("none", "==", 0, "null", id="null is a value and no number"),
        pytest.param("unit", ">", 1, "text", id="text with number"),
        pytest.param("value", ">", "1", "text", id="number with text"),
        pytest.param("disks", "==", "x", "list", id="a list"),
        pytest.param("value", "!=", math.nan, "nan", id="not a number at all"),
    ],
)
def test_what_cannot_be_compared_is_neither_true_nor_false(
    path: str, op: Op, operand: int | float | str, word: str
) -> None:
    verdict = holds(DATA, path, op, operand)
    assert isinstance(verdict, Incomparable)
    assert word in verdict.why


@pytest.mark.parametrize(
    ("path", "valid"),
    [("a", True), ("a.0.b-c_d", True), ("a" * 40, True), ("a" * 41, False), ("", False), (".a", False), ("a..b", False),
     ("a.", False), ("a b", False), ("a[0]", False), ("é", False)],
)  # fmt: skip
def test_only_paths_of_the_grammar_are_paths(path: str, valid: bool) -> None:
    assert is_path(path) is valid
    assert (lookup({path: 1}, path) is UNSET) is (not valid or "." in path)


def test_a_huge_number_is_named_and_does_not_raise() -> None:
    verdict = holds({"value": 10**5_000}, "value", ">", "x")
    assert isinstance(verdict, Incomparable)
    assert "large number" in verdict.why
