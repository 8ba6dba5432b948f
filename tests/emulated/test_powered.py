"""Simulated devices on real brokers: what another client sees of them, and what the broker says when one dies."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rea_edge.emulated.devices.appliance import Appliance
from rea_edge.emulated.devices.line import Line, understood, written
from rea_edge.emulated.devices.plain import esphome
from rea_edge.emulated.devices.powered import Powered
from rea_edge.emulated.devices.shelly import Shelly
from rea_edge.emulated.devices.tasmota import Tasmota
from rea_edge.emulated.devices.zigbee2mqtt import Zigbee2Mqtt, plug, thermometer
from rea_edge.emulated.packets import Connack, Connect, Malformed, Publish, Suback
from rea_edge.emulated.wire import decode, frame_end
from tests.brokers import AnyBroker, Mosquitto, wait_until
from tests.emulated.client import Client

ROOT = Path(__file__).resolve().parent.parent.parent


@contextmanager
def watching(broker: AnyBroker, topic_filter: str, protocol: str = "5") -> Iterator[Client]:
    with Client(broker.port, f"watcher-{os.getpid()}", protocol) as client:
        client.subscribe(topic_filter)
        yield client


def heard(client: Client, topic: str) -> tuple[bytes, bool]:
    """The next message on a topic, whatever comes before it."""
    while (message := client.next()).topic != topic:
        pass
    return message.payload, message.retain


def test_zigbee2mqtt_answers_sets_and_gets(broker: AnyBroker, protocol: str) -> None:
    bridge = Zigbee2Mqtt([plug("plug")], base="z")
    with Powered(bridge, broker.url), watching(broker, "z/plug", protocol) as client:
        client.publish("z/plug/set", '{"state": "ON"}')
        assert json.loads(heard(client, "z/plug")[0])["state"] == "ON"
        client.publish("z/plug/get", '{"state": ""}')
        assert json.loads(heard(client, "z/plug")[0])["state"] == "ON"
        assert [deed.value for deed in bridge.deeds] == ["ON"]


def test_zigbee2mqtt_is_found_by_who_comes_later_and_says_who_is_lost(broker: AnyBroker) -> None:
    bridge = Zigbee2Mqtt([plug("plug"), thermometer("cellar")])
    with Powered(bridge, broker.url) as device, watching(broker, "zigbee2mqtt/#") as client:
        assert heard(client, "zigbee2mqtt/cellar/availability") == (b'{"state":"online"}', True)
        device.say(bridge.lose("plug"))
        assert heard(client, "zigbee2mqtt/plug/availability") == (b'{"state":"offline"}', False)
        device.say(bridge.report("cellar", temperature=19.5))
        assert json.loads(heard(client, "zigbee2mqtt/cellar")[0])["temperature"] == 19.5


def test_a_device_whose_power_is_cut_is_told_offline_by_the_broker_and_comes_back(broker: AnyBroker) -> None:
    device = Powered(Tasmota("pump"), broker.url).start()
    try:
        with watching(broker, "tele/pump/LWT") as client:
            assert heard(client, "tele/pump/LWT") == (b"Online", True)
            device.cut()
            assert heard(client, "tele/pump/LWT") == (b"Offline", False)
            device.start()
            assert heard(client, "tele/pump/LWT") == (b"Online", False)
    finally:
        device.stop()


def test_a_device_that_is_stopped_says_farewell(broker: AnyBroker) -> None:
    with watching(broker, "garage/status") as client:
        with Powered(esphome("garage"), broker.url):
            assert heard(client, "garage/status")[0] == b"online"
        assert heard(client, "garage/status")[0] == b"offline"


def test_shelly_answers_where_it_was_asked_to(broker: AnyBroker) -> None:
    shelly = Shelly("shellyplus1-a8032abe54dc")
    with Powered(shelly, broker.url), watching(broker, "me/rpc") as client:
        asked = {"id": 5, "src": "me", "method": "Switch.Set", "params": {"id": 0, "on": True}}
        client.publish("shellyplus1-a8032abe54dc/rpc", json.dumps(asked))
        assert json.loads(heard(client, "me/rpc")[0])["result"] == {"was_on": False}
        wait_until(lambda: shelly.on, "it is on")


def test_a_device_that_is_mute_says_nothing_between_two_others_messages(broker: AnyBroker) -> None:
    pump = Tasmota("pump")
    with Powered(pump, broker.url), watching(broker, "stat/pump/#") as client:
        pump.mood = "mute"
        client.publish("cmnd/pump/POWER", "ON")
        wait_until(lambda: pump.relays == [True], "it is on")
        client.publish("stat/pump/END", "end")
        assert client.until("end") == []


def test_a_device_finds_its_broker_again(mosquitto: Mosquitto) -> None:
    pump = Tasmota("pump")
    with Powered(pump, mosquitto.url):
        before = len(pump.heard)  # it asks itself at each birth
        mosquitto.stop()
        mosquitto.start()
        wait_until(lambda: len(pump.heard) > before, "it is online again", 30)
        with watching(mosquitto, "stat/pump/POWER") as client:
            client.publish("cmnd/pump/POWER", "ON")
            assert heard(client, "stat/pump/POWER")[0] == b"ON"


def test_a_device_that_finds_no_broker_says_so() -> None:
    with pytest.raises(ValueError, match="mqtt://host:port"):
        Line.to("http://127.0.0.1:1", Connect("x", 4, True, 30, None, None, None))


def test_a_device_runs_as_a_process_and_tells_its_deeds(mosquitto: Mosquitto) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "rea_edge.emulated.devices", "tasmota", "--broker", mosquitto.url, "--name", "pump"],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None and process.stderr is not None
        assert process.stderr.readline() == "tasmota is online as pump: one relay and a thermometer\n"
        with watching(mosquitto, "tele/pump/LWT") as client:
            client.publish("cmnd/pump/POWER", "ON")
            assert json.loads(process.stdout.readline()) == {"device": "pump", "what": "POWER", "value": "ON"}
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
            assert heard(client, "tele/pump/LWT") == (b"Online", True)
            assert heard(client, "tele/pump/LWT") == (b"Offline", False)
    finally:
        process.kill()
        process.communicate()


def test_a_connect_reads_back_as_the_broker_reads_it() -> None:
    will = Publish("t/will", b"gone", 1, True)
    packet = Connect("device", 4, True, 30, will, "ann", b"secret")
    frame = bytearray(written(packet))
    found = frame_end(frame, 1000)
    assert found == (2, len(frame))
    assert decode(frame[0], bytes(frame[2:]), 4) == packet


@pytest.mark.parametrize(
    ("head", "body", "packet"),
    [
        pytest.param(0x20, b"\1\0", Connack(0, True), id="session present"),
        pytest.param(0x90, b"\0\7\1\x80", Suback(7, b"\1\x80"), id="two filters, one refused"),
        pytest.param(0x30, b"\0\1ab", Publish("a", b"b"), id="publish"),
    ],
)
def test_a_brokers_packet_is_understood(head: int, body: bytes, packet: object) -> None:
    assert understood(head, body) == packet


@pytest.mark.parametrize(("head", "body"), [(0x20, b"\0"), (0x10, b""), (0xF0, b""), (0xD0, b"\0")])
def test_what_is_no_packet_of_a_broker_is_malformed(head: int, body: bytes) -> None:
    with pytest.raises(Malformed):
        understood(head, body)


def test_an_appliance_alone_knows_no_answers() -> None:
    with pytest.raises(NotImplementedError):
        Appliance("x", (), None).take("t", b"")
