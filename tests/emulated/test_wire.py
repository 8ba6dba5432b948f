"""Rubbish: the decoder raises one kind of error only, and the broker outlives whatever it is sent."""

import random
import socket

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rea_edge.emulated.broker import Broker
from rea_edge.emulated.packets import Malformed, Publish
from rea_edge.emulated.wire import decode, encode, frame_end
from tests.emulated.client import Client

# One valid packet of each kind a client of version 5 sends, as head and body.
VALID = [
    (0x10, b"\0\4MQTT\5\xc6\0\x3c\x05\x11\0\0\0\x0a\0\1c\x05\x18\0\0\0\1\0\1w\0\4gone\0\1u\0\1p"),
    (0x32, b"\0\3t/x\0\1\x10\x02\0\0\0\x5a\x08\0\1r\x26\0\1a\0\1bhello"),
    (0x31, b"\0\3t/x\0retained"),
    (0x40, b"\0\1\x10\0"),
    (0x82, b"\0\2\0\0\3t/+\x29\0\1#\1"),
    (0xA2, b"\0\3\0\0\3t/+"),
    (0xC0, b""),
    (0xE0, b"\4\x05\x11\0\0\0\x05"),
]


@given(st.integers(0, 255), st.binary(max_size=64), st.sampled_from([4, 5]))
@example(0x10, b"\0\4MQTT\5\2\0\0\5\x22\0", 4)
@settings(max_examples=500, deadline=None)
def test_any_bytes_are_a_packet_or_malformed(head: int, body: bytes, version: int) -> None:
    try:
        decode(head, body, version)
    except Malformed as exc:
        assert 0x80 <= exc.code <= 0xFF


@pytest.mark.parametrize(("head", "body"), VALID, ids=[hex(head) for head, _ in VALID])
def test_a_valid_packet_is_read_and_cut_short_it_is_never_an_accident(head: int, body: bytes) -> None:
    decode(head, body, 5)
    for end in range(len(body)):
        try:
            decode(head, body[:end], 5)
        except Malformed:
            continue


def test_a_publish_comes_out_of_its_bytes_as_it_went_in() -> None:
    packet = Publish("t/ü", b"x" * 300, 1, True, True, 77, ((0x08, b"\0\1r"), (0x26, b"\0\1a\0\1b")))
    for version, expected in ((5, packet), (4, packet._replace(properties=()))):
        raw = bytearray(encode(packet, version))
        span = frame_end(raw, 1000)
        assert span is not None
        assert decode(raw[0], bytes(raw[span[0] : span[1]]), version) == expected
        assert frame_end(raw[:-1], 1000) is None


@pytest.mark.parametrize(
    ("head", "body", "code"),
    [
        pytest.param(0x30, b"\0\3t/+\0", 0x90, id="a wildcard in a topic"),
        pytest.param(0x30, b"\0\0\0", 0x90, id="no topic"),
        pytest.param(0x30, b"\0\1\xff\0", 0x81, id="a topic that is not UTF-8"),
        pytest.param(0x30, b"\0\1\0\0", 0x81, id="a null character"),
        pytest.param(0x36, b"\0\1t\0\1\0", 0x81, id="QoS 3"),
        pytest.param(0x32, b"\0\1t\0\0\0", 0x82, id="packet id 0"),
        pytest.param(0x30, b"\0\1t\3\x23\0\1", 0x94, id="a topic alias"),
        pytest.param(0x30, b"\0\1t\4\x01\0\x01\0", 0x82, id="a property twice"),
        pytest.param(0x80, b"\0\1\0\0\1t\0", 0x81, id="wrong flags"),
        pytest.param(0x82, b"\0\1\0", 0x82, id="a SUBSCRIBE without filters"),
        pytest.param(0x82, b"\0\1\2\x0b\1\0\1t\0", 0xA1, id="a subscription identifier"),
        pytest.param(0xC0, b"x", 0x81, id="bytes too many"),
        pytest.param(0x50, b"\0\1", 0x82, id="a PUBREC"),
    ],
)
def test_what_is_wrong_has_its_code(head: int, body: bytes, code: int) -> None:
    with pytest.raises(Malformed) as caught:
        decode(head, body, 5)
    assert caught.value.code == code


@pytest.mark.parametrize("seed", range(3))
def test_the_broker_outlives_rubbish_and_serves_others_meanwhile(seed: int) -> None:
    chance = random.Random(seed)
    with Broker() as broker, Client(broker.port, "watch") as watch:
        watch.subscribe("watch/#")
        for _ in range(60):
            with socket.create_connection(("127.0.0.1", broker.port), 5.0) as sock:
                sock.settimeout(0.002)
                try:
                    for _ in range(chance.randrange(1, 6)):
                        sock.sendall(_spoiled(chance))
                    sock.recv(100)
                except OSError:
                    continue
        watch.publish("watch/x", "alive")
        assert watch.payloads(1) == ["alive"]
        assert watch.disconnects.empty()


def _spoiled(chance: random.Random) -> bytes:
    """A CONNECT so that the rest is looked at, or a packet with a few bytes changed, or noise."""
    kind = chance.randrange(4)
    if kind == 0:
        return chance.randbytes(chance.randrange(1, 40))
    head, body = VALID[0] if kind == 1 else chance.choice(VALID)
    spoiled = bytearray(bytes([head, len(body)]) + body)
    if kind > 1:
        for _ in range(chance.randrange(3)):
            spoiled[chance.randrange(len(spoiled))] = chance.randrange(256)
    return bytes(spoiled)
