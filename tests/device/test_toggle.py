"""What does something else each time it is sent, in the words of common devices."""

import pytest

from rea_edge.device.toggle import toggle_in


@pytest.mark.parametrize(("topic", "payload", "word"), [
    pytest.param("zigbee2mqtt/lamp/set", {"state": "ON"}, "", id="Zigbee2MQTT: on"),
    pytest.param("zigbee2mqtt/lamp/set", {"state": "TOGGLE"}, "TOGGLE", id="Zigbee2MQTT: toggle"),
    pytest.param("zigbee2mqtt/lamp/set", "TOGGLE", "TOGGLE", id="Zigbee2MQTT: toggle as a text"),
    pytest.param("zigbee2mqtt/lamp/set", '{"state":"toggle"}', "toggle", id="JSON as a text"),
    pytest.param("zigbee2mqtt/lamp/set", {"brightness_step": 20}, "brightness_step", id="Zigbee2MQTT: a step"),
    pytest.param("zigbee2mqtt/lamp/set", {"color_temp_move": "up"}, "color_temp_move", id="Zigbee2MQTT: a move"),
    pytest.param("zigbee2mqtt/lamp/set", {"a": [{"b": "Toggle"}]}, "Toggle", id="deep inside"),
    pytest.param("zigbee2mqtt/lamp/set", {"stepper": 1, "movement": 1, "relay": 2}, "", id="other words"),
    pytest.param("cmnd/plug/POWER", "ON", "", id="Tasmota: on"),
    pytest.param("cmnd/plug/POWER", "TOGGLE", "TOGGLE", id="Tasmota: toggle"),
    pytest.param("cmnd/plug/Power1", "2", "Power1 2", id="Tasmota: 2 is toggle"),
    pytest.param("cmnd/plug/POWER", 2, "POWER 2", id="Tasmota: 2 as a number"),
    pytest.param("plug/cmnd/POWER", "2", "POWER 2", id="Tasmota: its topics the other way round"),
    pytest.param("cmnd/plug/Dimmer", "2", "", id="Tasmota: 2 percent"),
    pytest.param("cmnd/plug/Dimmer", "+", "Dimmer +", id="Tasmota: brighter"),
    pytest.param("cmnd/plug/Dimmer", "-", "Dimmer -", id="Tasmota: darker"),
    pytest.param("cmnd/plug/Backlog", "Power1 ON; Power2 OFF", "", id="Tasmota: a backlog"),
    pytest.param("cmnd/plug/Backlog", "Delay 10; Power2 2", "Power2 2", id="Tasmota: a toggle in a backlog"),
    pytest.param("cmnd/plug/Backlog0", "Power2 TOGGLE", "Power2 TOGGLE", id="Tasmota: the word in a backlog"),
    pytest.param("other/plug/POWER", "2", "", id="2 elsewhere is a number"),
    pytest.param("shellies/plug/relay/0/command", "on", "", id="Shelly 1: on"),
    pytest.param("shellies/plug/relay/0/command", "toggle", "toggle", id="Shelly 1: toggle"),
    pytest.param("plug/rpc", {"method": "Switch.Set", "params": {"id": 0, "on": True}}, "", id="Shelly 2: set"),
    pytest.param("plug/rpc", {"method": "Switch.Toggle", "params": {"id": 0}}, "Switch.Toggle", id="Shelly 2: toggle"),
    pytest.param("plug/rpc", {"method": "Cover.GoToPosition", "params": {"rel": 10}}, "rel", id="Shelly 2: relative"),
    pytest.param("home/lamp/toggle", "", "toggle", id="the topic says it"),
    pytest.param("home/screen/text", "Please mind that the light in the hall toggles by itself after ten.", "", id="prose"),
    pytest.param("home/lamp/set", None, "", id="null"),
    pytest.param("home/lamp/set", "[" * 5000, "", id="no JSON, and deep"),
])  # fmt: skip
def test_a_toggle_is_known_by_its_words(topic: str, payload: object, word: str) -> None:
    assert toggle_in(topic, payload) == word
