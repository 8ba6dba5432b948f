"""What of a result may be seen: the allow-list first, then redaction, then a summary."""

import msgspec
import pytest
from msgspec import Raw

from rea_edge.records import Fault, Ok, Redaction, Tool
from rea_edge.redact import without_credentials
from rea_edge.visible import LARGE, summary, visible

HOST = {
    "name": "nas",
    "disks": [{"name": "a", "free": 5, "serial": "X1"}, {"name": "b", "free": 7, "serial": "X2"}],
    "owner": {"mail": "a@b.example", "room": 4},
}


def tool(*fields: str, redact: tuple[Redaction, ...] = (), summary: bool = False) -> Tool:
    return Tool(
        name="look", description="Look.", parameters={}, effect="read", fields=fields, redact=redact, summary=summary
    )


def seen(value: object, declared: Tool, *secrets: str) -> object:
    result = visible(Ok(data=Raw(msgspec.json.encode(value))), declared, secrets)
    assert isinstance(result, Ok)
    return msgspec.json.decode(result.data)


@pytest.mark.parametrize(
    ("fields", "left"),
    [
        pytest.param(("name",), {"name": "nas"}, id="one"),
        pytest.param(("disks.name",), {"disks": [{"name": "a"}, {"name": "b"}]}, id="through a list"),
        pytest.param(("owner",), {"owner": HOST["owner"]}, id="all below it"),
        pytest.param(("owner.room", "owner"), {"owner": HOST["owner"]}, id="the wider one wins"),
        pytest.param(("owner.room", "name"), {"name": "nas", "owner": {"room": 4}}, id="two"),
        pytest.param(("nothing",), {}, id="none of them"),
    ],
)
def test_only_the_fields_that_are_allowed_are_seen(fields: tuple[str, ...], left: object) -> None:
    assert seen(HOST, tool(*fields)) == left


@pytest.mark.parametrize(
    ("value", "hidden"),
    [
        pytest.param({"wifi_password": "hunter22"}, "hunter22", id="a key that names it"),
        pytest.param({"apiKey": "abc"}, "abc", id="a key in another spelling"),
        pytest.param("Authorization: Bearer abcdefgh.12345", "abcdefgh", id="a bearer token"),
        pytest.param("mqtt://bob:pw12@broker", "pw12", id="in an address"),
        pytest.param("psk=correcthorse ssid=x", "correcthorse", id="in a line of settings"),
        pytest.param('{"token": "t0k3n value"}', "t0k3n value", id="in JSON in a text"),
        pytest.param("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n", "MIIE", id="a private key, cut"),
        pytest.param("key sk-abcdefghijklmnop1234", "abcdefghijklmnop", id="a vendor's key"),
        pytest.param({"deep": [{"secret": "s3cr3tly"}]}, "s3cr3tly", id="deep inside"),
    ],
)
def test_what_looks_like_a_credential_is_hidden(value: object, hidden: str) -> None:
    assert hidden not in msgspec.json.encode(seen(value, tool())).decode()


@pytest.mark.parametrize(
    "text", ["the token bucket is full", "tokens: 812", "a secretary", "10:20:30", "v1.2.3", "x::"]
)
def test_words_of_every_day_stay(text: str) -> None:
    assert seen({"text": text, "tokens": 5}, tool(redact=("addresses",))) == {"text": text, "tokens": 5}


@pytest.mark.parametrize(
    "address",
    ["192.168.1.7", "192.168.1.7:8080", "fe80::1", "2001:db8::ff00:42:8329", "aa:bb:cc:dd:ee:ff", "bob@home.example"],
)
def test_addresses_are_hidden_where_it_is_asked(address: str) -> None:
    said = f"it is at {address}, as ever."
    assert seen(said, tool(redact=("addresses",))) == "it is at (address), as ever."
    assert seen(said, tool()) == said


def test_a_secret_of_the_configuration_is_hidden_in_results_and_in_errors() -> None:
    assert "tr0ub4dor" not in str(seen({"log": "used tr0ub4dor&3"}, tool(), "tr0ub4dor&3"))
    failed = visible(Fault(fault="tool_error", message="tr0ub4dor&3 refused, password=abc"), tool(), ["tr0ub4dor&3"])
    assert isinstance(failed, Fault) and "tr0ub4dor" not in failed.message and "abc" not in failed.message


def test_a_result_with_nothing_to_hide_keeps_its_bytes() -> None:
    data = Raw(b'{ "level" : 1.50 }')
    assert visible(Ok(data=data), tool(redact=("addresses",)), ["a-secret-text"]) == Ok(data=data)


def test_a_large_result_is_summed_up_where_that_is_declared() -> None:
    rows = [{"at": number, "value": number * 0.5, "state": "on" * (number % 3)} for number in range(200)]
    short = seen({"unit": "C", "rows": rows}, tool(summary=True))
    assert isinstance(short, dict) and short["unit"] == "C"
    assert short["rows"]["count"] == 200
    assert short["rows"]["fields"]["value"] == {"min": 0.0, "max": 99.5, "mean": 49.75}
    assert short["rows"]["fields"]["state"] == {"longest": "onon"}
    assert short["rows"]["first"][0] == rows[0] and short["rows"]["last"][-1] == rows[-1]
    assert len(msgspec.json.encode(short)) < LARGE
    assert seen(rows[:3], tool(summary=True)) == rows[:3], "a small one stays"


def test_a_summary_of_anything_is_no_larger() -> None:
    for value in ({"a": {"b": {"c": {"d": {"e": {"f": {"g": list(range(900))}}}}}}}, "x" * 9000, [[1] * 99] * 99):
        assert len(msgspec.json.encode(summary(value))) < len(msgspec.json.encode(value)) / 3


def test_hiding_takes_time_in_proportion_to_the_text() -> None:
    for text in (":" * 60_000, "a.b" * 20_000, "password" * 8_000, "x@" * 30_000, "1." * 30_000):
        without_credentials(text, ("addresses",))
