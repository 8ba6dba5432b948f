"""What a signature binds: every key of a request and the whole of its topic, by the one exact form of both."""

import hashlib
import hmac
import json

import pytest

from rea_edge.canonical import parse
from rea_edge.signature import is_signed, key_of, signature
from rea_edge.topics import Topics

KEY, OTHER = bytes(range(32)), bytes(range(1, 33))
NODE = Topics("rea/v1", "boiler-1")
TOPIC = NODE.send("ann", "call", "set_pump")
CALL: dict[str, object] = {
    "id": "c1",
    "args": {"name": "feed", "percent": 20, "on": True},
    "dry_run": False,
    "ttl_ms": 60_000,
    "sent_at": "2026-01-31T12:00:00Z",
    "epoch": "e1",
    "via": ["hub"],
    "trace": "t",
    "meta": {"note": "x"},
}
SIGNED = {**CALL, "sig": signature(KEY, TOPIC, CALL)}


def test_a_sender_needs_nothing_but_a_hash_and_sorted_keys() -> None:
    message = json.dumps({"request": CALL, "topic": TOPIC}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert SIGNED["sig"] == "hmac-sha256:" + hmac.new(KEY, message.encode(), hashlib.sha256).hexdigest()


def test_what_is_signed_is_signed_however_it_is_spelled() -> None:
    spelled = json.dumps(SIGNED, indent=2, ensure_ascii=True).replace('"percent": 20', '"percent": 2.0e1')
    found = parse(spelled.encode())
    assert isinstance(found, dict)
    assert is_signed(KEY, TOPIC, dict(reversed(found.items())))


@pytest.mark.parametrize(
    "changed",
    [
        *(pytest.param({key: "other"}, id=f"another {key}") for key in CALL),
        *(pytest.param({key: None}, id=f"no {key}") for key in CALL),
        pytest.param({"args": {"name": "feed", "percent": 21, "on": True}}, id="another argument"),
        pytest.param({"args": {"name": "feed", "percent": 20, "on": 1}}, id="a number for a truth value"),
        pytest.param({"args": {"name": "feed", "percent": "20", "on": True}}, id="a text for a number"),
        pytest.param({"args": {"name": "feed", "percent": 20, "on": True, "x": 0}}, id="an argument more"),
        pytest.param({"args": {"name": "feed", "percent": 20}}, id="an argument less"),
        pytest.param({"limits": {"steps": 99}}, id="a key more"),
        pytest.param({"dry_run": 0}, id="zero for false"),
    ],
)
def test_whoever_changes_a_key_has_not_signed_it(changed: dict[str, object]) -> None:
    kept = {key: value for key, value in {**SIGNED, **changed}.items() if value is not None}
    assert is_signed(KEY, TOPIC, SIGNED) and not is_signed(KEY, TOPIC, kept)


@pytest.mark.parametrize(
    "topic",
    [
        pytest.param(NODE.send("ann", "call", "open_valve"), id="another tool"),
        pytest.param(NODE.send("bob", "call", "set_pump"), id="another person"),
        pytest.param(NODE.send("ann", "task"), id="another kind"),
        pytest.param(NODE.send("ann", "query", "set_pump"), id="another kind with the same last level"),
        pytest.param(Topics("rea/v1", "boiler-2").send("ann", "call", "set_pump"), id="another node"),
        pytest.param(Topics("rea/v2", "boiler-1").send("ann", "call", "set_pump"), id="another root"),
        pytest.param("rea/v1/boiler-1/out/ann/call/set_pump", id="the other direction"),
    ],
)
def test_a_signature_holds_on_its_own_topic_alone(topic: str) -> None:
    assert not is_signed(KEY, topic, SIGNED)


@pytest.mark.parametrize(
    "sig",
    [
        pytest.param(None, id="null"),
        pytest.param("", id="empty"),
        pytest.param(7, id="a number"),
        pytest.param(str(SIGNED["sig"]).removeprefix("hmac-sha256:"), id="without its method"),
        pytest.param(str(SIGNED["sig"]).upper(), id="in capitals"),
        pytest.param(str(SIGNED["sig"])[:-2], id="cut"),
        pytest.param("hmac-sha256:" + "é" * 64, id="beyond ASCII"),
        pytest.param("\ud800", id="half a surrogate pair"),
        pytest.param(signature(OTHER, TOPIC, CALL), id="of another key"),
    ],
)
def test_nothing_but_the_very_signature_counts(sig: object) -> None:
    assert not is_signed(KEY, TOPIC, {**CALL, "sig": sig})


def test_two_integers_with_one_exact_form_are_not_signed_at_all() -> None:
    close, at = {"id": "c", "args": {"n": 2**53 + 1}}, {"id": "c", "args": {"n": [10**20]}}
    with pytest.raises(ValueError, match="cannot be signed"):
        signature(KEY, TOPIC, close)
    signed = {**at, "sig": signature(KEY, TOPIC, at)}
    assert is_signed(KEY, TOPIC, signed)
    assert not is_signed(KEY, TOPIC, {**signed, "args": {"n": [10**20 + 1]}})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("00" * 15, "at least 32 hex digits, got 30", id="too short"),
        pytest.param("", "at least 32", id="empty"),
        pytest.param("correct horse battery staple of ann", "expected hex digits", id="a password"),
        pytest.param("0" * 33, "expected hex digits", id="half a byte"),
    ],
)
def test_a_key_that_is_none_is_refused_without_being_shown(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        key_of(text)
    assert not text or text not in str(caught.value)
    assert key_of("00" * 16) == bytes(16)
