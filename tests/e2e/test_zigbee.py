"""Zigbee2MQTT: the shipped pack against a simulated bridge, from a call to what its devices really did."""

from contextlib import closing

import pytest

from rea_edge.emulated.devices.appliance import Mood
from rea_edge.emulated.devices.powered import Powered
from rea_edge.emulated.devices.zigbee2mqtt import Zigbee2Mqtt, bulb, plug, thermometer
from rea_edge.emulated.endpoint import ScriptedEndpoint
from tests.brokers import AnyBroker, Mosquitto, wait_until
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import call, endpoint_table, finish, script
from tests.e2e.packs import asked, asking, furnished, values, wait_offline


def test_a_zigbee_plug_is_read_set_and_missed(broker: AnyBroker, make_house: MakeHouse) -> None:
    bridge = Zigbee2Mqtt([plug("plug"), bulb("lamp"), thermometer("cellar")], gives_up_s=0.1)
    bridge.things["cellar"].retain = True
    with (
        Powered(bridge, broker.url) as device,
        asking(furnished(make_house(broker), "zigbee2mqtt")) as client,
    ):
        assert asked(client, "zigbee_state", device="plug") == ("ok", {"state": "OFF", "power": 0, "linkquality": 92})
        assert asked(client, "zigbee_switch", device="plug", state="ON") == ("ok", "ON")
        assert asked(client, "zigbee_dim", device="lamp", brightness=40) == ("ok", 40)
        assert [(deed.device, deed.what, deed.value) for deed in bridge.deeds] == [
            ("plug", "state", "ON"), ("lamp", "brightness", 40),
        ]  # fmt: skip
        assert asked(client, "zigbee_sensor", device="cellar") == (
            "ok", {"temperature": 27.34, "humidity": 44.72, "battery": 97, "linkquality": 92},
        )  # fmt: skip
        assert asked(client, "zigbee_bridge") == ("ok", {"healthy": True})

        code, words = asked(client, "zigbee_state", device="cellar")
        assert code == "tool_failed" and "no answer on zigbee2mqtt/cellar within 1 s" in str(words), "it sleeps"

        device.say(bridge.lose("lamp"))
        wait_offline(broker, "zigbee2mqtt/lamp/availability")
        code, words = asked(client, "zigbee_dim", device="lamp", brightness=50)
        assert code == "tool_failed" and "the device is not there: zigbee2mqtt/lamp/availability" in str(words)

        device.cut()
        wait_offline(broker, "zigbee2mqtt/bridge/state")
        code, words = asked(client, "zigbee_switch", device="plug", state="OFF")
        assert code == "tool_failed" and "the device is not there: zigbee2mqtt/bridge/state" in str(words)
        assert len(bridge.deeds) == 2


# What a plug does that is told to be on, what is said of it, and what it is told in all.
ZIGBEE = [
    pytest.param("deaf", "tool_failed", "could not tell", ["set", "get"], [], id="deaf"),
    pytest.param("mute", "tool_failed", "could not tell", ["set", "get"], ["ON"], id="acts and says nothing"),
    pytest.param("stubborn", "tool_failed", "did not take effect", ["set", "get"], [], id="does not act"),
    pytest.param("garbled", "tool_failed", "could not tell", ["set", "get"], ["ON"], id="says rubbish"),
]


@pytest.mark.parametrize(("mood", "code", "words", "told", "did"), ZIGBEE)
def test_what_is_not_known_of_a_zigbee_plug_is_not_claimed(
    mosquitto: Mosquitto, make_house: MakeHouse, mood: Mood, code: str, words: str, told: list[str], did: list[str]
) -> None:
    bridge = Zigbee2Mqtt([plug("plug")])
    with (
        Powered(bridge, mosquitto.url),
        asking(furnished(make_house(mosquitto), "zigbee2mqtt")) as client,
    ):
        bridge.mood = mood
        found = asked(client, "zigbee_switch", device="plug", state="ON")
        assert found[0] == code and words in str(found[1]), found
        assert [topic.rpartition("/")[2] for topic, _ in bridge.heard] == told
        assert values(bridge) == did


def test_an_act_whose_answer_was_lost_is_found_done_by_asking(broker: AnyBroker, make_house: MakeHouse) -> None:
    bridge = Zigbee2Mqtt([plug("plug")])
    with Powered(bridge, broker.url), asking(furnished(make_house(broker), "zigbee2mqtt")) as client:
        bridge.mood = "mute"
        keys: dict[str, object] = {"id": "c1", "args": {"device": "plug", "state": "ON"}}
        client.send("call", keys, "zigbee_switch")
        wait_until(lambda: values(bridge) == ["ON"], "it is on", 15)
        bridge.mood = "well"
        reply = client.ask("call", keys, "zigbee_switch", wait_s=30)
        assert reply.ok and isinstance(reply.data, dict) and reply.data["verified_by"] == "zigbee_state"
        assert values(bridge) == ["ON"]


def test_rubbish_is_no_reading(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    bridge = Zigbee2Mqtt([plug("plug")])
    with Powered(bridge, mosquitto.url), asking(furnished(make_house(mosquitto), "zigbee2mqtt")) as client:
        bridge.mood = "garbled"
        code, words = asked(client, "zigbee_state", device="plug")
        assert code == "tool_failed" and "1 other message(s) came there" in str(words)


def test_a_device_that_the_owner_did_not_name_is_not_reached(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    bridge = Zigbee2Mqtt([plug("plug"), plug("door")])
    owner = '[gate.zigbee_switch]\nvalues = { device = ["plug"] }\n'
    with (
        Powered(bridge, mosquitto.url),
        asking(furnished(make_house(mosquitto, extra=owner), "zigbee2mqtt")) as client,
    ):
        code, words = asked(client, "zigbee_switch", device="door", state="ON")
        assert code == "policy_denied" and "device must be one of plug on this node, not 'door'" in str(words)
        for name in ("door/set", "+/set", "#", "plug/set", "$SYS"):
            assert asked(client, "zigbee_switch", device=name, state="ON")[0] == "bad_request", name
        assert bridge.heard == []
        assert asked(client, "zigbee_switch", device="plug", state="ON") == ("ok", "ON")
        dry = client.ask("call", {"args": {"device": "plug", "state": "OFF"}, "dry_run": True}, "zigbee_switch")
        assert dry.ok and values(bridge) == ["ON"], "a dry run says nothing to a device"


def test_a_task_reads_one_zigbee_device_and_switches_another(broker: AnyBroker, make_house: MakeHouse) -> None:
    bridge = Zigbee2Mqtt([plug("fan"), thermometer("cellar")])
    bridge.things["cellar"].retain = True
    answers = script(
        call("zigbee_sensor", device="cellar"),
        call("zigbee_switch", device="fan", state="ON"),
        finish("The fan is on."),
    )
    with (
        ScriptedEndpoint(answers) as endpoint,
        Powered(bridge, broker.url),
        asking(furnished(make_house(broker, extra=endpoint_table(endpoint.url)), "zigbee2mqtt")) as client,
    ):
        task_id, _ = client.submit({"goal": "Look how warm the cellar is, and turn the fan on."})
        state = client.watch(task_id, None)
        assert (state.outcome, state.answer) == ("achieved", "The fan is on.")
        assert [(done.tool, done.result) for done in state.done] == [("zigbee_sensor", "ok"), ("zigbee_switch", "ok")]
        assert values(bridge) == ["ON"]
        assert b"27.34" in endpoint.requests[-1].body


def test_a_small_model_switches_a_device_that_a_setting_names(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    bridge = Zigbee2Mqtt([plug("pump")])
    only = '\n[task.default]\ntools = ["zigbee_state", "zigbee_switch"]\n'
    with (
        ScriptedEndpoint(script("zigbee_switch device=pump state=ON")) as endpoint,
        closing(make_house(mosquitto, extra=endpoint_table(endpoint.url, "command") + only)) as house,
        Powered(bridge, mosquitto.url),
        asking(furnished(house, "zigbee2mqtt", ZIGBEE_DEVICES="pump,fan")) as client,
    ):
        task_id, _ = client.submit({"goal": "Turn the pump on."})
        state = client.watch(task_id, None)
        assert (state.outcome, values(bridge)) == ("achieved", ["ON"]), state.reason
        code, words = asked(client, "zigbee_switch", device="door", state="ON")
        assert code == "bad_request" and "pump" in str(words) and len(bridge.heard) == 1
