"""How a broker is named, and what is refused before a connection is tried."""

from pathlib import Path

import pytest

from rea_edge.errors import ConfigInvalid
from rea_edge.mqtt import Address, LinkSettings, address_of, check_settings


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("mqtt://h", Address(transport="tcp", host="h", port=1883)),
        ("mqtt://h:7/", Address(transport="tcp", host="h", port=7)),
        ("mqtts://[::1]", Address(transport="tcp", host="::1", port=8883, encrypted=True)),
        ("ws://h", Address(transport="websockets", host="h", port=80, path="/mqtt")),
        ("wss://h:9/a/b", Address(transport="websockets", host="h", port=9, path="/a/b", encrypted=True)),
        ("unix:///run/m.sock", Address(transport="unix", host="/run/m.sock", port=1)),
    ],
)
def test_a_url_gives_the_address(url: str, address: Address) -> None:
    assert address_of(url) == address


@pytest.mark.parametrize(
    "url",
    [
        "",
        "h:1883",
        "http://h",
        "mqtt://",
        "mqtt://h:x",
        "mqtt://h:0",
        "mqtt://h:70000",
        "mqtt://h/path",
        "unix://run/m",
    ],
)
def test_a_url_that_names_no_broker_is_refused_at_its_place(url: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        address_of(url)
    assert caught.value.place == "broker.url"


def test_a_login_in_the_url_is_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigInvalid) as caught:
        address_of("mqtt://me:secret@h")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "[::1]", "localhost"])
def test_unencrypted_is_allowed_on_this_machine(host: str) -> None:
    check_settings(LinkSettings(url=f"mqtt://{host}", client_id="c"))


@pytest.mark.parametrize("host", ["192.168.1.7", "broker.lan", "localhost.example.org"])
def test_unencrypted_beyond_this_machine_needs_the_word_insecure(host: str) -> None:
    with pytest.raises(ConfigInvalid, match="insecure"):
        check_settings(LinkSettings(url=f"mqtt://{host}", client_id="c"))
    check_settings(LinkSettings(url=f"mqtt://{host}", client_id="c", insecure=True))
    check_settings(LinkSettings(url=f"mqtts://{host}", client_id="c"))


@pytest.mark.parametrize("key", ["ca_file", "cert_file", "key_file"])
def test_a_missing_file_is_named_with_its_key(tmp_path: Path, key: str) -> None:
    gone = str(tmp_path / "gone.pem")
    settings = LinkSettings(
        url="mqtts://h",
        client_id="c",
        ca_file=gone if key == "ca_file" else "",
        cert_file=gone if key == "cert_file" else __file__,
        key_file=gone if key == "key_file" else "",
    )
    with pytest.raises(ConfigInvalid, match="gone.pem") as caught:
        check_settings(settings)
    assert caught.value.place == f"broker.{key}"


def test_a_file_that_is_no_certificate_is_refused() -> None:
    with pytest.raises(ConfigInvalid, match="broker.ca_file"):
        check_settings(LinkSettings(url="mqtts://h", client_id="c", ca_file=__file__))


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        (LinkSettings(client_id=""), "client_id"),
        (LinkSettings(client_id="c", keepalive_s=0), "keepalive_s"),
        (LinkSettings(client_id="c", keepalive_s=65_536), "keepalive_s"),
        (LinkSettings(client_id="c", reconnect_min_s=0.0), "reconnect_min_s"),
        (LinkSettings(client_id="c", reconnect_max_s=86_401), "reconnect_max_s"),
        (LinkSettings(client_id="c", session_expiry_s=-1), "session_expiry_s"),
        (LinkSettings(client_id="c", packet_max=1_023), "packet_max"),
    ],
)
def test_a_number_out_of_its_range_is_refused_with_its_key(settings: LinkSettings, key: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        check_settings(settings)
    assert caught.value.place == f"broker.{key}"


def test_a_password_is_never_shown() -> None:
    assert "secret" not in repr(LinkSettings(url="mqtt://h", client_id="c", password="secret"))
