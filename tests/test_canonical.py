"""RFC 8785 by its own tables, and what strict reading refuses."""

import hashlib
import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rea_edge.canonical import MAX_DEPTH, body_hash, canonical, parse


@pytest.mark.parametrize(
    ("bits", "written"),
    [
        ("0000000000000000", "0"),
        ("8000000000000000", "0"),
        ("0000000000000001", "5e-324"),
        ("8000000000000001", "-5e-324"),
        ("7fefffffffffffff", "1.7976931348623157e+308"),
        ("ffefffffffffffff", "-1.7976931348623157e+308"),
        ("4340000000000000", "9007199254740992"),
        ("c340000000000000", "-9007199254740992"),
        ("4430000000000000", "295147905179352830000"),
        ("44b52d02c7e14af5", "9.999999999999997e+22"),
        ("44b52d02c7e14af6", "1e+23"),
        ("44b52d02c7e14af7", "1.0000000000000001e+23"),
        ("444b1ae4d6e2ef4e", "999999999999999700000"),
        ("444b1ae4d6e2ef4f", "999999999999999900000"),
        ("444b1ae4d6e2ef50", "1e+21"),
        ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
        ("3eb0c6f7a0b5ed8d", "0.000001"),
        ("41b3de4355555553", "333333333.3333332"),
        ("41b3de4355555554", "333333333.33333325"),
        ("41b3de4355555555", "333333333.3333333"),
        ("41b3de4355555556", "333333333.3333334"),
        ("41b3de4355555557", "333333333.33333343"),
        ("becbf647612f3696", "-0.0000033333333333333333"),
        ("43143ff3c1cb0959", "1424953923781206.2"),
    ],
)
def test_a_double_is_written_as_appendix_b_of_the_rfc_says(bits: str, written: str) -> None:
    (number,) = struct.unpack(">d", bytes.fromhex(bits))
    assert canonical(number) == written.encode()


@pytest.mark.parametrize(
    ("value", "written"),
    [
        pytest.param(-0.0, b"0", id="minus zero is zero"),
        pytest.param(10.0, b"10", id="a whole double has no point"),
        pytest.param(1e20, b"100000000000000000000", id="digits up to 1e21"),
        pytest.param(1e21, b"1e+21", id="an exponent from 1e21"),
        pytest.param(1e-6, b"0.000001", id="digits down to 1e-6"),
        pytest.param(1e-7, b"1e-7", id="an exponent below 1e-6"),
        pytest.param(123e-7, b"0.0000123", id="small with several digits"),
        pytest.param(2**53, b"9007199254740992", id="the last exact integer"),
        pytest.param(2**53 + 1, b"9007199254740992", id="beyond it the nearest double"),
        pytest.param(2**60, b"1152921504606847000", id="a large integer as its double"),
        pytest.param(True, b"true", id="true is no number"),
        pytest.param([], b"[]", id="empty array"),
        pytest.param({}, b"{}", id="empty object"),
        pytest.param((1, None, False), b"[1,null,false]", id="a tuple is an array"),
        pytest.param('\u20ac$\x0f\nA\'B"\\\\"/', '"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"'.encode(), id="escapes of 3.2.2.2"),
        pytest.param("\b\t\n\f\r\x00\x1f\x7f", b'"\\b\\t\\n\\f\\r\\u0000\\u001f\x7f"', id="every short escape"),
        pytest.param("\u2028\U0001f602", '"\u2028\U0001f602"'.encode(), id="the rest is plain UTF-8"),
        pytest.param(
            {"\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\U0001f600": 5, "\x80": 6, "\u00f6": 7},
            '{"\\r":2,"1":4,"\x80":6,"ö":7,"€":1,"\U0001f600":5,"\ufb33":3}'.encode(),
            id="keys in the UTF-16 order of 3.2.3",
        ),
    ],
)
def test_a_value_has_one_form(value: object, written: bytes) -> None:
    assert canonical(value) == written


def nested(depth: int) -> object:
    value: object = 1
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


@pytest.mark.parametrize(
    ("value", "why"),
    [
        pytest.param(float("nan"), "nan is not JSON", id="nan"),
        pytest.param([float("-inf")], "-inf is not JSON", id="infinity"),
        pytest.param(10**400, "beyond the range", id="an integer no double holds"),
        pytest.param("a\ud800", "half a surrogate", id="half a surrogate"),
        pytest.param({"\udc00": 1}, "half a surrogate", id="half a surrogate in a key"),
        pytest.param({1: 1}, "not a string", id="a key that is no string"),
        pytest.param(b"x", "bytes is not JSON", id="bytes"),
        pytest.param(nested(MAX_DEPTH + 1), "nested deeper", id="one level too deep"),
        pytest.param(nested(100_000), "nested deeper", id="far too deep"),
    ],
)
def test_what_has_no_form_is_refused_by_name(value: object, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        canonical(value)


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(ValueError, match="nested deeper"):
        canonical(loop)


def test_the_deepest_value_allowed_is_written_and_read() -> None:
    assert parse(canonical(nested(MAX_DEPTH))) == nested(MAX_DEPTH)


def test_the_hash_of_a_text_goal_is_what_any_sender_can_compute() -> None:
    expected = hashlib.sha256('{"goal":"Pumpe ans Öl"}'.encode()).hexdigest()
    assert body_hash({"goal": "Pumpe ans Öl"}) == f"sha256:{expected}"


def test_the_order_of_keys_and_the_spelling_of_numbers_do_not_change_the_hash() -> None:
    first = parse(b'{"goal":"x","limits":{"steps":6,"task_s":1e1}}')
    second = parse(b'{ "limits": {"task_s": 10.0, "steps": 6.0}, "g\\u006fal": "x"}')
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert body_hash(first) == body_hash(second)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.floats(-(2**53), 2**53) | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(JSON_VALUES)
def test_what_is_written_reads_back_equal_and_writes_the_same_again(value: object) -> None:
    written = canonical(value)
    assert parse(written) == value
    assert canonical(parse(written)) == written


@given(st.integers(-(10**308), 10**308) | st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_beyond_2_to_the_53_keeps_its_form_once_it_has_one(number: float) -> None:
    written = canonical(number)
    assert float(written) == float(number)
    assert canonical(parse(written)) == written


@given(st.binary(max_size=64) | st.text(alphabet='{}[]",:\\ud8E0-19.NaInfity', max_size=64).map(str.encode))
def test_any_bytes_are_read_to_something_that_has_a_form_or_refused(payload: bytes) -> None:
    try:
        value = parse(payload)
    except ValueError:
        return
    written = canonical(value)
    assert canonical(parse(written)) == written


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        pytest.param(b'{"goal":1,"goal":2}', 'key "goal" occurs twice', id="duplicate key"),
        pytest.param(b'{"a":[{"b":{"x":1,"\\u0078":1}}]}', 'key "x" occurs twice', id="deep duplicate, escaped"),
        pytest.param(b'{"a":NaN}', "NaN is not JSON", id="nan"),
        pytest.param(b"[-Infinity]", "-Infinity is not JSON", id="infinity"),
        pytest.param(b"[1e999]", "1e999 is beyond", id="a number that becomes infinite"),
        pytest.param(b"9" * 400, "is beyond the range", id="an integer no double holds"),
        pytest.param(b"9" * 60_000, "is beyond the range", id="a very long integer"),
        pytest.param(b'"\\ud800"', r"\\ud800", id="half a surrogate"),
        pytest.param(b'{"a":[{"\\udfff":1}]}', r"\\udfff", id="half a surrogate in a key"),
        pytest.param(b'"\xff"', "not UTF-8 at byte 1", id="not UTF-8"),
        pytest.param(b'"\xed\xa0\x80"', "not UTF-8 at byte 1", id="a surrogate as UTF-8"),
        pytest.param(b'{"a":1', "not JSON: .*line 1 column 7", id="cut off"),
        pytest.param(b"{'a':1}", "not JSON", id="single quotes"),
        pytest.param(b"[1,]", "not JSON", id="trailing comma"),
        pytest.param(b"[01]", "not JSON", id="leading zero"),
        pytest.param(b'"a\nb"', "not JSON", id="raw control character"),
        pytest.param(b"1 2", "not JSON: Extra data", id="two values"),
        pytest.param(b"", "not JSON", id="nothing"),
        pytest.param(b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), "nested deeper", id="one level too deep"),
        pytest.param(b"[" * 500 + b"]" * 500, "nested deeper", id="too deep, within the stack"),
        pytest.param(b"[" * 60_000, "nested deeper", id="deeper than the stack"),
        pytest.param(b'{"a":' * 12_000, "nested deeper", id="objects deeper than the stack"),
    ],
)
def test_what_is_not_strict_json_is_refused_with_a_reason(payload: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse(payload)


def test_a_byte_order_mark_is_dropped() -> None:
    assert parse(b'\xef\xbb\xbf{"a":1}') == {"a": 1}


def test_a_form_is_json_to_everyone_else() -> None:
    value = {"b": [1.5, -0.0, "\u2028"], "a": None}
    assert json.loads(canonical(value)) == value
