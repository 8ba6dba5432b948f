"""The pure parts of the link: rests, versions, the queue of what is told, packets on a stream."""

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rea_edge.mqtt.backoff import Backoff
from rea_edge.mqtt.messages import Outgoing
from rea_edge.mqtt.packets import PINGRESP, PacketSocket
from rea_edge.mqtt.versions import Versions
from rea_edge.mqtt.waiting import Waiting


def failed(backoff: Backoff, chance: float = 1.0) -> float:
    return backoff.rest_s(up_s=0, ended_by_peer=False, chance=chance)


def test_rests_double_up_to_the_longest() -> None:
    backoff = Backoff(1.0, 60.0)
    assert [failed(backoff) for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]


def test_half_of_a_rest_is_chance() -> None:
    assert [failed(Backoff(1.0, 60.0), chance) for chance in (0.0, 0.5, 1.0)] == [0.5, 0.75, 1.0]


@pytest.mark.parametrize(
    ("up_s", "rest_s"),
    [
        pytest.param(9.9, 4.0, id="a short connection changes nothing"),
        pytest.param(10.0, 1.0, id="a settled one starts again"),
    ],
)
def test_rests_start_again_after_a_settled_connection(up_s: float, rest_s: float) -> None:
    backoff = Backoff(1.0, 60.0)
    failed(backoff)
    failed(backoff)
    assert backoff.rest_s(up_s=up_s, ended_by_peer=False, chance=1.0) == rest_s


def test_the_fourth_quick_takeover_is_a_quarrel_and_rests_longest() -> None:
    backoff = Backoff(1.0, 60.0)
    rests = [backoff.rest_s(up_s=0.5, ended_by_peer=True, chance=1.0) for _ in range(4)]
    assert (rests, backoff.contested) == ([1, 2, 4, 60], True)
    backoff.rest_s(up_s=60.0, ended_by_peer=True, chance=1.0)
    assert not backoff.contested


def test_connections_we_end_ourselves_are_no_takeovers() -> None:
    backoff = Backoff(1.0, 60.0)
    for _ in range(9):
        backoff.rest_s(up_s=0.5, ended_by_peer=False, chance=1.0)
    assert not backoff.contested


def test_both_versions_are_tried_in_turn_until_one_has_worked() -> None:
    versions = Versions("auto")
    at_once = [versions.unanswered(unsupported=False) for _ in range(4)]
    assert at_once == [True, False, True, False]  # a rest after both
    assert versions.current == "5"


def test_a_version_that_worked_is_kept_over_two_silent_ends_and_doubted_after_three() -> None:
    versions = Versions("auto")
    versions.worked()
    assert [versions.unanswered(unsupported=False) for _ in range(4)] == [False, False, False, True]
    assert versions.current == "3.1.1"


@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_a_version_that_is_set_is_never_changed(version: Literal["5", "3.1.1"]) -> None:
    versions = Versions(version)
    for _ in range(5):
        assert not versions.unanswered(unsupported=True)
    assert versions.current == version


def out(payload: bytes, qos: int = 1) -> Outgoing:
    return Outgoing(topic="t", payload=payload, qos=qos)


def drain(waiting: Waiting) -> list[bytes]:
    taken = []
    while (message := waiting.take(1)) is not None:
        taken.append(message.payload)
    return taken


def test_over_the_cap_the_oldest_of_qos_0_goes_first_then_the_oldest() -> None:
    waiting = Waiting(most=3)
    for message in (out(b"a"), out(b"b", 0), out(b"c"), out(b"d"), out(b"e")):
        waiting.put(message)
    assert (waiting.dropped_qos0, waiting.dropped_qos1) == (1, 1)
    assert drain(waiting) == [b"c", b"d", b"e"]
    assert waiting.size_bytes == 0


def test_the_cap_in_bytes_counts_topic_and_payload() -> None:
    waiting = Waiting(most_bytes=10)
    waiting.put(out(b"1234"))
    waiting.put(out(b"5678"))
    assert waiting.size_bytes == 10
    waiting.put(out(b"9"))
    assert (len(waiting), waiting.size_bytes, waiting.dropped_qos1) == (2, 7, 1)


def test_what_is_larger_than_the_cap_alone_is_dropped() -> None:
    waiting = Waiting(most_bytes=10)
    waiting.put(out(bytes(10)))
    assert (len(waiting), waiting.dropped_qos1) == (0, 1)


def test_without_room_only_qos_0_is_taken() -> None:
    waiting = Waiting()
    waiting.put(out(b"a"))
    waiting.put(out(b"b", 0))
    assert [message.payload for message in [waiting.take(0)] if message] == [b"b"]
    assert waiting.take(0) is None


def test_what_is_put_back_comes_first_in_its_order() -> None:
    waiting = Waiting()
    waiting.put(out(b"c"))
    waiting.put_back([out(b"a"), out(b"b")])
    assert drain(waiting) == [b"a", b"b", b"c"]


class Stream:
    """Gives prepared chunks, with nothing there between them, then end of file."""

    def __init__(self, chunks: list[bytes]) -> None:
        self._chunks = [part for chunk in chunks for part in (chunk, None)]

    def recv(self, size: int) -> bytes:
        if not self._chunks:
            return b""
        chunk = self._chunks[0]
        if not chunk:
            del self._chunks[0]
            raise BlockingIOError
        self._chunks[0] = chunk[size:]
        return chunk[:size]

    def send(self, data: bytes | bytearray) -> int:
        return len(data)

    def close(self) -> None:
        self._chunks = []

    def fileno(self) -> int:
        return -1

    def setblocking(self, flag: bool) -> None:
        assert not flag


def read_all(packets: PacketSocket, size: int) -> bytes:
    got = b""
    while True:
        try:
            chunk = packets.recv(size)
        except BlockingIOError:
            continue
        if not chunk:
            return got
        got += chunk


def publish(topic: bytes, packet_id: bytes, payload: bytes) -> bytes:
    body = len(topic).to_bytes(2) + topic + packet_id + payload
    length = len(body)
    digits = bytearray()
    while True:
        digits.append(length & 0x7F | (0x80 if length > 0x7F else 0))
        length >>= 7
        if not length:
            return bytes([0x32 if packet_id else 0x30]) + bytes(digits) + body


PACKETS = st.lists(
    st.one_of(
        st.just(PINGRESP),
        st.builds(publish, st.binary(max_size=6), st.sampled_from([b"", b"\x00\x07"]), st.binary(max_size=300)),
    ),
    max_size=8,
)


@given(packets=PACKETS, cuts=st.lists(st.integers(1, 200), max_size=10), size=st.integers(1, 400), tail=st.booleans())
def test_packets_pass_unchanged_or_without_their_payload_however_the_bytes_come(
    packets: list[bytes], cuts: list[int], size: int, *, tail: bool
) -> None:
    limit, cut_tail = 150, b"\0" if tail else b""
    raw, chunks = b"".join(packets), []
    for cut in cuts:
        chunks.append(raw[:cut])
        raw = raw[cut:]
    got = read_all(PacketSocket(Stream([*filter(None, chunks), raw]), limit, cut_tail), size)
    small: list[bytes] = []
    for packet in packets:
        start = 2 if packet[1] < 0x80 else 3
        if len(packet) - start <= limit:
            small.append(packet)
        else:
            end = start + 2 + packet[start + 1] + (2 if packet[0] & 0x06 else 0)
            small.append(bytes([packet[0], end - start + len(cut_tail)]) + packet[start:end] + cut_tail)
    # The rest of a cut packet shows as signs of life, as many as there were reads.
    assert without_life(got) == without_life(b"".join(small))


def without_life(raw: bytes) -> list[bytes]:
    """The packets in `raw` except PINGRESP; all of them are shorter than 16 KiB."""
    packets = []
    while raw:
        end = 2 + raw[1] if raw[1] < 0x80 else 3 + (raw[1] & 0x7F | raw[2] << 7)
        if raw[:2] != PINGRESP:
            packets.append(raw[:end])
        raw = raw[end:]
    return packets


def test_a_cut_packet_is_marked_until_the_next_begins() -> None:
    packets = PacketSocket(Stream([publish(b"t", b"\0\1", bytes(200)) + publish(b"t", b"\0\2", b"x")]), 100, b"")
    assert packets.recv(99) == b"\x32\x05\0\1t\0\1"
    assert packets.cut
    assert packets.recv(99) == PINGRESP
    assert (packets.cut, packets.recv(99)) == (False, b"\x32\x06")


@pytest.mark.parametrize(
    "raw", [b"\x30\xff\xff\xff\xff\x7f", b"\x30\xc8\x01\xff\xff" + bytes(70_000)], ids=["length", "topic past the end"]
)
def test_a_packet_that_cannot_be_is_a_broken_connection(raw: bytes) -> None:
    packets = PacketSocket(Stream([raw]), 100, b"")
    with pytest.raises(ConnectionError):
        packets.recv(1)
