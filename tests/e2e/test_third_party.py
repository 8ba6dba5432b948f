"""Tasmota, Shelly, ESPHome, Home Assistant, alerts: the shipped packs against simulated devices, from a call to the deed."""

import json

import pytest

from rea_edge.emulated.devices.appliance import Said
from rea_edge.emulated.devices.plain import esphome, homeassistant
from rea_edge.emulated.devices.powered import Powered
from rea_edge.emulated.devices.shelly import Shelly
from rea_edge.emulated.devices.tasmota import Tasmota
from tests.brokers import AnyBroker, Mosquitto, wait_until
from tests.e2e.conftest import MakeHouse
from tests.e2e.packs import PACKS, asked, asking, furnished, said_last, tooled, values, wait_offline
from tests.emulated.client import Client as Onlooker

# --- Tasmota


def test_a_tasmota_device_is_read_set_and_missed(broker: AnyBroker, make_house: MakeHouse) -> None:
    pump, strip = Tasmota("pump"), Tasmota("strip", relays=3)
    with (
        Powered(pump, broker.url) as device,
        Powered(strip, broker.url),
        asking(furnished(make_house(broker), "tasmota")) as client,
    ):
        assert asked(client, "tasmota_state", device="pump") == ("ok", {"POWER": "OFF"})
        assert asked(client, "tasmota_power", device="pump", state="ON") == ("ok", "ON")
        assert asked(client, "tasmota_relay", device="strip", relay=2, state="ON") == ("ok", "ON")
        assert asked(client, "tasmota_relay_state", device="strip", relay=3) == ("ok", "OFF")
        assert asked(client, "tasmota_state", device="strip")[1] == {"POWER1": "OFF", "POWER2": "ON", "POWER3": "OFF"}
        code, sensors = asked(client, "tasmota_sensors", device="pump")
        assert isinstance(sensors, dict) and sensors["DS18B20"] == {"Temperature": 20.6}
        assert (values(pump), strip.relays) == (["ON"], [False, True, False])

        code, words = asked(client, "tasmota_power", device="pmup", state="ON")
        assert code == "tool_failed" and "no answer on stat/pmup/RESULT" in str(words)

        device.cut()
        wait_offline(broker, "tele/pump/LWT")
        code, words = asked(client, "tasmota_power", device="pump", state="OFF")
        assert code == "tool_failed" and "the device is not there: tele/pump/LWT says Offline" in str(words)
        device.start()
        assert asked(client, "tasmota_power", device="pump", state="OFF") == ("ok", "OFF")


def test_what_a_tasmota_device_said_before_or_to_others_is_no_answer(
    broker: AnyBroker, protocol: str, make_house: MakeHouse
) -> None:
    strip = Tasmota("strip", relays=2, power_retain=True)
    with (
        Powered(strip, broker.url),
        Onlooker(broker.port, "other") as other,
        asking(furnished(make_house(broker, protocol=protocol), "tasmota")) as client,
    ):
        other.publish("stat/strip/POWER1", "ON", retain=True)  # from before it was switched off by hand
        strip.mood = "deaf"
        code, words = asked(client, "tasmota_relay", device="strip", relay=1, state="ON")
        assert code == "tool_failed" and "no answer on stat/strip/POWER1" in str(words)
        strip.mood = "mute"
        other.publish("stat/strip/STATUS11", '{"StatusSTS":{"POWER1":"ON"}}', retain=True)
        code, words = asked(client, "tasmota_state", device="strip")
        assert code == "tool_failed" and "no answer on stat/strip/STATUS11" in str(words)


def test_an_answer_to_another_command_is_not_taken_for_ones_own(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    pump = Tasmota("pump")
    with (
        Powered(pump, mosquitto.url),
        Onlooker(mosquitto.port, "other") as other,
        asking(furnished(make_house(mosquitto), "tasmota")) as client,
    ):
        pump.slow_s = 0.7
        heard = len(pump.heard)
        client.send("call", {"id": "c1", "args": {"device": "pump", "state": "ON"}}, "tasmota_power")
        wait_until(lambda: len(pump.heard) > heard, "it is told", 15)
        pump.slow_s = 0.0
        other.publish("cmnd/pump/Boil", "1")  # answered at once, on the same topic
        reply = client.ask("call", {"id": "c1", "args": {"device": "pump", "state": "ON"}}, "tasmota_power", wait_s=30)
        assert (reply.ok, reply.data, values(pump)) == (True, "ON", ["ON"])


# --- Shelly


def test_a_shelly_is_read_set_and_missed(broker: AnyBroker, make_house: MakeHouse) -> None:
    shelly = Shelly("shellyplus1-a8032abe54dc")
    named = {"device": shelly.prefix}
    with (
        Powered(shelly, broker.url) as device,
        asking(furnished(make_house(broker), "shelly")) as client,
    ):
        assert asked(client, "shelly_state", **named) == ("ok", {"output": False, "temperature": {"tC": 41.2}})
        assert asked(client, "shelly_switch", **named, on=True) == ("ok", {"was_on": False})
        assert asked(client, "shelly_switch", **named, on=True) == ("ok", {"was_on": True})
        assert values(shelly) == [True, True]
        code, words = asked(client, "shelly_switch", **named, on=True, switch=5)
        assert (code, words) == ("tool_failed", "the device answered: Argument 'id', value 5 not found!")
        assert len(shelly.deeds) == 2
        device.cut()
        wait_until(lambda: said_last(broker, f"{shelly.prefix}/online") == b"false", "the broker knows", 15)
        code, words = asked(client, "shelly_switch", **named, on=False)
        assert code == "tool_failed" and "the device is not there" in str(words)


def test_an_answer_to_another_question_is_not_taken_for_ones_own(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    shelly = Shelly("pump")
    with Powered(shelly, mosquitto.url), asking(furnished(make_house(mosquitto), "shelly")) as client:
        shelly.mood = "astray"
        code, words = asked(client, "shelly_state", device="pump")
        assert code == "tool_failed" and "1 other message(s) came there" in str(words)
        code, words = asked(client, "shelly_switch", device="pump", on=True)
        assert code == "tool_failed" and "could not tell" in str(words) and values(shelly) == [True]


# --- devices that speak in words, and people


def test_a_button_is_pressed_once_whatever_is_asked_again(broker: AnyBroker, make_house: MakeHouse) -> None:
    garage = esphome("garage")
    with (
        Powered(garage, broker.url) as device,
        asking(furnished(make_house(broker), "esphome")) as client,
    ):
        keys: dict[str, object] = {"id": "c1", "args": {"device": "garage", "name": "open"}}
        for _ in range(3):
            assert client.ask("call", keys, "esphome_press", wait_s=30).data == {"published": True}
        wait_until(lambda: values(garage) == ["PRESS"], "it is pressed", 15)
        assert asked(client, "esphome_switch", device="garage", name="relay", state="ON") == ("ok", "ON")
        assert asked(client, "esphome_state", device="garage", name="relay") == ("ok", "ON")
        device.say(Said("garage/sensor/temperature/state", b"21.5", retain=True))
        assert asked(client, "esphome_sensor", device="garage", name="temperature") == ("ok", 21.5)
        device.cut()
        wait_offline(broker, "garage/status")
        code, words = asked(client, "esphome_press", device="garage", name="open")
        assert code == "tool_failed" and "the device is not there: garage/status says offline" in str(words)
        assert values(garage) == ["PRESS", "ON"]


def test_a_device_in_home_assistants_form_and_what_home_assistant_says(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    light = homeassistant("home/bedroom/light")
    with (
        Powered(light, mosquitto.url) as device,
        asking(furnished(make_house(mosquitto), "homeassistant")) as client,
    ):
        assert asked(client, "home_state", room="bedroom", device="light") == ("ok", "OFF")
        assert asked(client, "home_switch", room="bedroom", device="light", state="ON") == ("ok", "ON")
        light.mood = "stubborn"
        code, words = asked(client, "home_switch", room="bedroom", device="light", state="OFF")
        assert code == "tool_failed" and "1 other message(s) came there" in str(words)
        device.say(Said("homeassistant/sensor/outdoor_temperature/state", b"7.5", retain=True))
        device.say(Said("homeassistant/lock/front_door/state", b'"locked"', retain=True))
        assert asked(client, "homeassistant_state", domain="sensor", entity="outdoor_temperature") == ("ok", 7.5)
        assert asked(client, "homeassistant_state", domain="lock", entity="front_door") == ("ok", "locked")


def test_an_alert_reaches_people_once_and_says_which_call_it_was(broker: AnyBroker, make_house: MakeHouse) -> None:
    house = make_house(broker)
    with (
        Onlooker(broker.port, "people") as people,
        asking(furnished(house, "notify")) as client,
    ):
        people.subscribe("alerts/#")
        text = 'The boiler is "hot", 80°.'
        keys: dict[str, object] = {"id": "a1", "args": {"severity": "alarm", "text": text}}
        for _ in range(3):
            assert client.ask("call", keys, "send_alert", wait_s=30).ok
        people.publish("alerts/end", "end")
        message = people.next()
        found = json.loads(message.payload)
        assert (message.topic, message.qos, message.retain) == ("alerts/alarm", 0, False)
        assert (found["severity"], found["text"]) == ("alarm", text) and found["id"].endswith("-1")
        assert people.until("end") == []


# --- a node that dies in the middle

PULSE = """
[pulse]
description = "Start the dosing pump."
effect = "{effect}"
timeout_s = 20.0
publish = "cmnd/pump/POWER"
payload = "ON"
await = "stat/pump/RESULT"
await_path = "POWER"
{more}
"""
LOOK = """
verify = {{ tool = "tasmota_state", args = {{ device = "pump" }}, path = "POWER", equals = "ON" }}
"""


@pytest.mark.parametrize(
    ("effect", "more", "code", "data", "did"),
    [
        pytest.param("once", "", "outcome_unknown", None, ["ON"], id="once is unknown"),
        pytest.param("once", LOOK, "ok", "ON", ["ON"], id="once with a probe is known"),
        pytest.param("idempotent", "", "ok", "ON", ["ON", "ON"], id="idempotent is said again"),
    ],
)
def test_a_node_killed_while_it_waits_for_a_device(
    mosquitto: Mosquitto, make_house: MakeHouse, effect: str, more: str, code: str, data: object, did: list[str]
) -> None:
    pump = Tasmota("pump")
    house = make_house(mosquitto)
    (house.folder / "pulse.toml").write_text(PULSE.format(effect=effect, more=more.format()))
    with (
        Powered(pump, mosquitto.url),
        asking(tooled(house, "tasmota", str(house.folder / "pulse.toml"))) as client,
    ):
        pump.mood = "mute"
        client.send("call", {"id": "c1"}, "pulse")
        wait_until(lambda: values(pump) == ["ON"], "it runs", 15)
        house.kill()
        pump.mood = "well"
        house.start()
        reply = client.ask("call", {"id": "c1"}, "pulse", wait_s=30)
        found = ("ok", reply.data) if reply.error is None else (reply.error.code, None)
        assert found[0] == code and values(pump) == did


def test_every_shipped_pack_loads_by_its_name(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    house = tooled(make_house(mosquitto), *PACKS)
    with asking(house) as client:
        assert client.status_asked().faults == []
    checked = house.run_command("check", "--config", str(house.config))
    assert checked.returncode == 0 and "zigbee_switch" in checked.stdout, checked.stdout
