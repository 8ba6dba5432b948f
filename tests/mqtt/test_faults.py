"""What a link survives: restarts, lost packets, dead links, foreign clients, brokers that break the rules."""

import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Literal

import pytest

from rea_edge.daemon.post import SILENT
from rea_edge.emulated.packets import Connect, Packet, Puback, Publish
from rea_edge.mqtt import Outgoing, Session, Will
from tests.brokers import AnyBroker, Emulated, Mosquitto, wait_until
from tests.mqtt.conftest import Settings
from tests.mqtt.station import Station, running
from tests.mqtt.wires import Listener, Proxy, read_packet


def test_nothing_is_lost_when_the_broker_restarts_in_the_middle(broker: AnyBroker, settings: Settings) -> None:
    sender, receiver = Station(settings(broker.url, "s")), Station(settings(broker.url, "r"), "t/#")
    sent = [b"%d" % n for n in range(120)]
    with running(receiver, sender):
        for payload in sent[:60]:
            sender.post("t/x", payload)
        wait_until(lambda: receiver.accepted, "the first")
        broker.stop()
        for payload in sent[60:]:
            sender.post("t/x", payload)
        broker.start()
        sender.wait_empty()
        receiver.wait_payloads(*sent)
    assert receiver.downs


def test_a_broker_that_lost_its_state_is_subscribed_to_again(settings: Settings) -> None:
    with Emulated() as broker:
        station = Station(settings(broker.url, "b"), "t/#")
        with running(station):
            broker.stop(lose=True)
            broker.start()
            station.wait_up(2)
            station.post("t/x", b"x")
            station.wait_payloads(b"x")
    assert [session.present for session in station.ups] == [False, False]


def test_no_more_than_ten_publications_are_ever_in_flight_also_after_a_reconnect(settings: Settings) -> None:
    received: list[list[bytes]] = []

    def receiving(_client_id: str, packet: Packet) -> None:
        if isinstance(packet, Connect):
            received.append([])
        elif isinstance(packet, Publish):
            received[-1].append(packet.payload)

    def sending(_client_id: str, packet: Packet) -> Literal["drop"] | None:
        return "drop" if isinstance(packet, Puback) and len(received) < 3 else None

    births, rows = [b"birth %d" % n for n in range(3)], [b"%d" % n for n in range(40)]
    sent = births + rows
    with Emulated() as broker:
        broker.on_recv, broker.on_send = receiving, sending
        own = settings(broker.url, "s", keepalive_s=1)
        sender = Station(own, births=tuple(Outgoing(topic="t/b", payload=payload) for payload in births))
        for payload in rows:
            sender.post("t/x", payload)
        with running(sender):
            sender.wait_empty()
    # After the first end any of them may be the one to blame, so they go one by one.
    assert received == [sent[:10], sent[:1], sent]


def test_a_publication_whose_acknowledgement_was_lost_is_sent_again(settings: Settings) -> None:
    with Emulated() as broker:
        lost = iter([True])
        broker.on_send = lambda _id, packet: "drop" if isinstance(packet, Puback) and next(lost, False) else None
        sender, receiver = Station(settings(broker.url, "s", keepalive_s=1)), Station(settings(broker.url, "r"), "t/#")
        with running(receiver, sender):
            sender.post("t/x", b"x")
            sender.wait_empty()
            wait_until(lambda: len(receiver.accepted) == 2, "it came twice")
        assert sender.downs[0] == "a publication was not acknowledged"


def test_what_was_told_is_sent_again_when_the_link_breaks_before_its_acknowledgement(settings: Settings) -> None:
    with Emulated() as broker:
        lost = iter([True])
        broker.on_recv = lambda _id, packet: "cut" if isinstance(packet, Publish) and next(lost, False) else None
        with running(station := Station(settings(broker.url, "b"), "t/#")):
            station.link.tell(Outgoing(topic="t/x", payload=b"x"))
            station.wait_payloads(b"x")
    assert len(station.ups) == 2


def test_a_message_whose_acknowledgement_was_lost_comes_again(settings: Settings) -> None:
    with Emulated() as broker:
        sender, receiver = Station(settings(broker.url, "s")), Station(settings(broker.url, "r"), "t/#")
        with running(receiver, sender):
            lost = iter([True])
            broker.on_recv = lambda _id, packet: "drop" if isinstance(packet, Puback) and next(lost, False) else None
            sender.post("t/x", b"x")
            receiver.wait_payloads(b"x")
            broker.kick("r")
            wait_until(lambda: receiver.payloads == [b"x", b"x"], "it came again")


def test_a_dead_connection_is_noticed_and_replaced(broker: AnyBroker, settings: Settings) -> None:
    with Proxy(broker.port) as proxy, running(station := Station(settings(proxy.url, "b", keepalive_s=1), "t/#")):
        proxy.stall()
        station.wait_up(2)
        station.post("t/x", b"x")
        station.wait_payloads(b"x")
    assert proxy.connections == 2
    assert SILENT in station.downs[0], "so that it is known to have been away for longer"


def test_the_will_is_published_when_the_process_is_killed_and_not_when_it_stops(
    broker: AnyBroker, settings: Settings, protocol: str
) -> None:
    program = (
        "import sys, time\n"
        "from rea_edge.mqtt import Link, LinkSettings, Outgoing, Will\n"
        "link = Link(LinkSettings(url=sys.argv[1], client_id='d', protocol=sys.argv[2]), subscriptions=('t/#',),\n"
        "    accept=lambda _: True, pull=lambda _: (), published=lambda *_: None, on_down=lambda _: None,\n"
        "    before_connect=lambda: Will(topic='status', payload=b'will'),\n"
        "    on_up=lambda _: [Outgoing(topic='status', payload=b'online', retain=True)])\n"
        "link.start()\n"
        "sys.stdin.readline()\n"
        "link.stop(Outgoing(topic='status', payload=b'offline', retain=True), 5.0)\n"
    )
    watcher = Station(settings(broker.url, "w"), "status")
    with running(watcher):
        for seen, end in ([b"online", b"will"], "kill"), ([b"online", b"offline"], "stop"):
            watcher.accepted.clear()
            command = [sys.executable, "-c", program, broker.url, protocol]
            with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
                try:
                    watcher.wait_payloads(b"online")
                    if end == "stop":
                        process.communicate(b"\n", 10.0)
                finally:
                    process.send_signal(signal.SIGKILL)
            wait_until(lambda seen=seen: len(watcher.accepted) == len(seen), f"{seen} after {end}")  # type: ignore[misc]
            assert watcher.payloads == seen
        time.sleep(0.3)  # a will would follow the broken connection at once
        assert watcher.payloads == [b"online", b"offline"]


def test_a_stop_sends_what_waits_before_the_farewell(broker: AnyBroker, settings: Settings) -> None:
    watcher = Station(settings(broker.url, "w"), "t/#")
    will = Will(topic="t/status", payload=b"will")
    leaver = Station(settings(broker.url, "l"), will=will)
    with running(watcher):
        with running(leaver):
            for n in range(25):
                leaver.post("t/x", b"%d" % n)
            leaver.link.stop(Outgoing(topic="t/status", payload=b"offline"), 5.0)
            assert leaver.link.state.phase == "stopped"
        watcher.wait_payloads(b"offline")
    assert watcher.payloads == [b"%d" % n for n in range(25)] + [b"offline"]
    assert leaver.downs == ["stopped"]


def test_what_comes_during_a_stop_is_left_for_the_next_start(settings: Settings) -> None:
    with Emulated() as broker:
        held = threading.Event()

        def hold(client_id: str, packet: Packet) -> Literal["drop"] | None:
            if client_id == "r" and isinstance(packet, Publish):
                held.set()
                return "drop"  # without its acknowledgement the stop lasts as long as it may
            return None

        broker.on_recv = hold
        sender, leaver = Station(settings(broker.url, "s")), Station(settings(broker.url, "r"), "t/#")
        with running(sender):
            with running(leaver):
                stop = threading.Thread(target=leaver.link.stop, args=(Outgoing(topic="x", payload=b"bye"), 0.5))
                stop.start()
                held.wait(5.0)
                sender.post("t/x", b"late")
                sender.wait_empty()
                stop.join()
            assert not leaver.accepted
            with running(again := Station(settings(broker.url, "r"), "t/#")):
                again.wait_payloads(b"late")


def test_the_beat_moves_while_nothing_happens(settings: Settings) -> None:
    with Emulated() as broker, running(station := Station(settings(broker.url, "b", keepalive_s=1))):
        beat = station.link.state.beat
        wait_until(lambda: station.link.state.beat > beat, "a turn", 3.0)


def test_a_stop_without_a_broker_does_not_wait(settings: Settings) -> None:
    station = Station(settings("mqtt://127.0.0.1:1", "b", reconnect_min_s=60, reconnect_max_s=60))
    station.link.start()
    wait_until(lambda: station.link.state.phase == "resting", "the first attempt has failed")
    began_s = time.monotonic()
    station.link.stop(Outgoing(topic="t", payload=b"offline"), 30.0)
    assert time.monotonic() - began_s < 2.0
    assert "refused" in station.link.state.last_error


def test_a_farewell_that_is_not_acknowledged_leaves_the_will_to_speak(settings: Settings) -> None:
    with Emulated() as broker:
        watcher = Station(settings(broker.url, "w"), "t/#")
        leaver = Station(settings(broker.url, "l"), will=Will(topic="t/status", payload=b"will"))
        with running(watcher), running(leaver):
            broker.on_recv = lambda id_, packet: "drop" if id_ == "l" and isinstance(packet, Publish) else None
            leaver.link.stop(Outgoing(topic="t/status", payload=b"offline"), 0.2)
            watcher.wait_payloads(b"will")
        assert watcher.payloads == [b"will"]


def test_a_second_client_with_the_same_id_is_noticed_and_given_way(broker: AnyBroker, settings: Settings) -> None:
    pair = [Station(settings(broker.url, "same", reconnect_max_s=8.0), "t/#") for _ in range(2)]

    def quarrel_is_over() -> bool:
        errors = [station.link.state.last_error for station in pair]
        return any("another client seems to use the id 'same'" in error for error in errors)

    try:
        for station in pair:
            station.link.start()
        wait_until(quarrel_is_over, "one of them says so", 15.0)
        loser = next(station for station in pair if "another" in station.link.state.last_error)
        ups = len(loser.ups)
        time.sleep(1.0)  # without giving way there would be a takeover or more in it
        assert len(loser.ups) == ups
    finally:
        for station in pair:
            station.link.stop(None, 2.0)


class RawBroker:
    """Plays a 3.1.1 broker: CONNACK, SUBACK, then the given packets; keeps what it is sent from then on."""

    def __init__(self, *packets: bytes) -> None:
        self.packets = packets
        self.heard: list[tuple[int, bytes]] = []

    def __call__(self, conn: socket.socket) -> None:
        read_packet(conn)
        conn.sendall(b"\x20\x02\x00\x00")
        _, subscribe = read_packet(conn)
        conn.sendall(b"\x90\x03" + subscribe[:2] + b"\x01")
        for packet in self.packets:
            conn.sendall(packet)
        while True:
            self.heard.append(read_packet(conn))


@pytest.mark.parametrize("protocol", ["3.1.1"])
def test_a_topic_that_is_no_utf8_is_acknowledged_and_forgotten(settings: Settings) -> None:
    bad = b"\x32\x07\x00\x02t\xff\x00\x01x"
    good = b"\x32\x07\x00\x02tt\x00\x02y"
    play = RawBroker(bad, good)
    with Listener(play) as listener, running(station := Station(settings(listener.url, "b"), "#")):
        station.wait_payloads(b"y")
        wait_until(lambda: len(play.heard) == 2, "both are acknowledged")
        assert play.heard == [(0x40, b"\x00\x01"), (0x40, b"\x00\x02")]
        assert station.link.state.unreadable == 1


@pytest.mark.parametrize("protocol", ["3.1.1"])
def test_rubbish_from_the_broker_ends_the_connection_and_not_the_thread(settings: Settings) -> None:
    rubbish = [b"\xf0\x01\x00", b"\x32\x01\x00", b"\x30\xff\xff\xff\xff\x7f", b"\x00\x00", b"\x62\x00"]
    played = iter(rubbish)

    def play(conn: socket.socket) -> None:
        packet = next(played, b"\x32\x07\x00\x02tt\x00\x02y")
        RawBroker(packet)(conn)

    with Listener(play) as listener, running(station := Station(settings(listener.url, "b", keepalive_s=1), "#")):
        station.wait_payloads(b"y")
    assert len(station.ups) >= len(rubbish)


def test_a_fault_in_a_callback_does_not_end_the_thread(broker: AnyBroker, settings: Settings) -> None:
    faults = iter([True])
    station = Station(settings(broker.url, "b"), "t/#")

    def greet(_session: Session) -> tuple[Outgoing, ...]:
        if next(faults, False):
            raise RuntimeError("a bug of ours")
        return ()

    station.greet = greet
    with running(station):
        station.post("t/x", b"x")
        station.wait_payloads(b"x")
    assert "a bug of ours" in station.downs[0]


class TestTheVersionOfTheProtocol:
    """Protocol `auto`."""

    @pytest.fixture
    def protocol(self) -> str:
        return "auto"

    def test_is_5_where_the_broker_speaks_it(self, broker: AnyBroker, settings: Settings) -> None:
        with running(station := Station(settings(broker.url, "b"))):
            assert station.link.state.protocol == "5"

    def test_falls_back_when_the_broker_says_it_is_unsupported(self, settings: Settings) -> None:
        with Emulated(v5=False) as broker, running(station := Station(settings(broker.url, "b"))):
            assert station.link.state.protocol == "3.1.1"
            broker.kick("b")
            station.wait_up(2)
        assert [session.protocol for session in station.ups] == ["3.1.1", "3.1.1"]
        assert station.connects == 3  # what worked is remembered

    @pytest.mark.parametrize("close", [True, False], ids=["closes", "does not answer"])
    def test_falls_back_when_an_mqtt_5_connect_is_met_with_nothing(self, settings: Settings, *, close: bool) -> None:
        gone = threading.Event()

        def play(conn: socket.socket) -> None:
            _, connect = read_packet(conn)
            if connect[6] == 4:
                conn.sendall(b"\x20\x02\x00\x00")
                read_packet(conn)
            elif not close:
                gone.wait(10.0)

        with Listener(play) as listener:
            station = Station(settings(listener.url, "b"))
            try:
                with running(station):
                    assert station.link.state.protocol == "3.1.1"
            finally:
                gone.set()
        assert listener.connections == 2

    def test_stays_5_over_a_restart(self, mosquitto: Mosquitto, settings: Settings) -> None:
        with running(station := Station(settings(mosquitto.url, "b"))):
            mosquitto.stop()
            wait_until(lambda: station.downs, "down")
            mosquitto.start()
            station.wait_up(2)
        assert {session.protocol for session in station.ups} == {"5"}


def test_a_refused_login_is_named_and_tried_again(settings: Settings) -> None:
    allowed = threading.Event()
    with Emulated(login=lambda _id, user, word: allowed.is_set() and (user, word) == ("u", b"w")) as broker:
        station = Station(settings(broker.url, "b", username="u", password="w"))
        try:
            station.link.start()
            wait_until(lambda: "refused" in station.link.state.last_error, "the refusal is named")
            allowed.set()
            station.wait_up()
        finally:
            station.link.stop(None, 2.0)


@pytest.mark.parametrize("protocol", ["5"])
def test_a_filter_that_is_refused_is_named_in_the_state(settings: Settings) -> None:
    with Emulated(access=lambda _peer, action, topic: (action, topic) != ("subscribe", "no/#")) as broker:
        station = Station(settings(broker.url, "b"), "t/#", "no/#")
        with running(station):
            assert station.link.state.refused == ("no/#",)
            station.post("t/x", b"x")
            station.wait_payloads(b"x")


def test_a_link_is_alive_from_its_start_to_its_stop_also_without_a_broker(settings: Settings) -> None:
    with Emulated() as broker:
        url = broker.url
    station = Station(settings(url, "alone"))
    station.link.start()
    try:
        wait_until(lambda: station.link.state.last_error, "it has tried in vain")
        assert station.link.alive
    finally:
        station.link.stop(None, 2.0)
    assert not station.link.alive
