"""Simulated devices against what their public documentation says: a message in, what is published, what was done."""

import json
from collections.abc import Callable

import pytest

from rea_edge.emulated.devices.appliance import Appliance, Deed, Mood, Said
from rea_edge.emulated.devices.plain import esphome, first_shelly, homeassistant
from rea_edge.emulated.devices.shelly import Shelly
from rea_edge.emulated.devices.tasmota import Tasmota
from rea_edge.emulated.devices.zigbee2mqtt import Zigbee2Mqtt, bulb, plug, thermometer

Make = Callable[[], Appliance]
PLUS = "shellyplus1-a8032abe54dc"


def bridge() -> Zigbee2Mqtt:
    return Zigbee2Mqtt([plug("plug"), bulb("lamp"), thermometer("cellar")])


def tasmota() -> Tasmota:
    return Tasmota("tasmota_switch")


def two_relays() -> Tasmota:
    return Tasmota("dual", relays=2)


def shelly() -> Shelly:
    return Shelly(PLUS)


def read(said: list[Said]) -> list[tuple[str, object]]:
    return [(one.topic, loose(one.payload)) for one in said]


def loose(payload: bytes) -> object:
    """JSON where it is JSON of more than a word, else text."""
    return json.loads(payload) if payload[:1] == b"{" else payload.decode()


PLUG_ON = {"state": "ON", "power": 0, "linkquality": 92}
LAMP = {"state": "OFF", "brightness": 215, "linkquality": 92}
SENSORS = {"DS18B20": {"Temperature": 20.6}, "TempUnit": "C"}
SWITCH = {"id": 0, "source": "MQTT", "output": False, "temperature": {"tC": 41.2, "tF": 106.2}}
SWITCH_ON = {**SWITCH, "output": True}
EVENT = {
    "src": PLUS, "dst": f"{PLUS}/events", "method": "NotifyStatus",
    "params": {"switch:0": {"id": 0, "output": True, "source": "MQTT"}},
}  # fmt: skip


def frame(method: str, source: str | None = "user_1", **params: object) -> str:
    asked: dict[str, object] = {"id": 123, "method": method, "params": params}
    return json.dumps(asked if source is None else {**asked, "src": source})


def reply(**what: object) -> tuple[str, object]:
    return "user_1/rpc", {"id": 123, "src": PLUS, "dst": "user_1", **what}


@pytest.mark.parametrize(
    ("make", "topic", "payload", "said", "did"),
    [
        pytest.param(bridge, "zigbee2mqtt/plug/set", '{"state": "ON"}', [("zigbee2mqtt/plug", PLUG_ON)], [("plug", "state", "ON")], id="zigbee2mqtt set"),
        pytest.param(bridge, "zigbee2mqtt/plug/set/state", "ON", [("zigbee2mqtt/plug", PLUG_ON)], [("plug", "state", "ON")], id="zigbee2mqtt set without JSON"),
        pytest.param(bridge, "zigbee2mqtt/plug/set", '{"state": "TOGGLE"}', [("zigbee2mqtt/plug", PLUG_ON)], [("plug", "state", "ON")], id="zigbee2mqtt toggle"),
        pytest.param(bridge, "zigbee2mqtt/lamp/set", '{"brightness": 20}', [("zigbee2mqtt/lamp", {**LAMP, "brightness": 20})], [("lamp", "brightness", 20)], id="zigbee2mqtt number"),
        pytest.param(bridge, "zigbee2mqtt/lamp/get", '{"state": ""}', [("zigbee2mqtt/lamp", LAMP)], [], id="zigbee2mqtt get"),
        pytest.param(
            bridge, "zigbee2mqtt/bridge/request/permit_join", '{"value": true, "transaction": 23}',
            [("zigbee2mqtt/bridge/response/permit_join", {"data": {"value": True}, "status": "ok", "transaction": 23})],
            [("bridge", "permit_join", True)], id="zigbee2mqtt request with a transaction",
        ),
        pytest.param(bridge, "zigbee2mqtt/bridge/request/health_check", "", [("zigbee2mqtt/bridge/response/health_check", {"data": {"healthy": True}, "status": "ok"})], [], id="zigbee2mqtt health"),
        pytest.param(tasmota, "cmnd/tasmota_switch/Power", "", [("stat/tasmota_switch/RESULT", {"POWER": "OFF"}), ("stat/tasmota_switch/POWER", "OFF")], [], id="tasmota asked with an empty payload"),
        pytest.param(tasmota, "cmnd/tasmota_switch/Power", "?", [("stat/tasmota_switch/RESULT", {"POWER": "OFF"}), ("stat/tasmota_switch/POWER", "OFF")], [], id="tasmota asked with a question mark"),
        pytest.param(tasmota, "cmnd/tasmota_switch/Power", "TOGGLE", [("stat/tasmota_switch/RESULT", {"POWER": "ON"}), ("stat/tasmota_switch/POWER", "ON")], [("tasmota_switch", "POWER", "ON")], id="tasmota toggle"),
        pytest.param(tasmota, "cmnd/tasmota_switch/POWER", "on", [("stat/tasmota_switch/RESULT", {"POWER": "ON"}), ("stat/tasmota_switch/POWER", "ON")], [("tasmota_switch", "POWER", "ON")], id="tasmota in small letters"),
        pytest.param(two_relays, "cmnd/dual/POWER2", "1", [("stat/dual/RESULT", {"POWER2": "ON"}), ("stat/dual/POWER2", "ON")], [("dual", "POWER2", "ON")], id="tasmota second relay"),
        pytest.param(two_relays, "cmnd/dual/POWER3", "1", [("stat/dual/RESULT", {"Command": "Unknown"})], [], id="tasmota without such a relay"),
        pytest.param(tasmota, "cmnd/tasmota_switch/Boil", "1", [("stat/tasmota_switch/RESULT", {"Command": "Unknown"})], [], id="tasmota unknown command"),
        pytest.param(shelly, f"{PLUS}/rpc", frame("Switch.Set", id=0, on=True), [reply(result={"was_on": False}), (f"{PLUS}/events/rpc", EVENT), (f"{PLUS}/status/switch:0", SWITCH_ON)], [(PLUS, "switch:0", True)], id="shelly set"),
        pytest.param(shelly, f"{PLUS}/rpc", frame("Switch.Set", None, id=0, on=True), [(f"{PLUS}/events/rpc", EVENT), (f"{PLUS}/status/switch:0", SWITCH_ON)], [(PLUS, "switch:0", True)], id="shelly set by nobody"),
        pytest.param(shelly, f"{PLUS}/rpc", frame("Switch.GetStatus", id=0), [reply(result=SWITCH)], [], id="shelly status"),
        pytest.param(shelly, f"{PLUS}/rpc", frame("Switch.Boil", id=0), [reply(error={"code": 404, "message": "No handler for Switch.Boil"})], [], id="shelly unknown method"),
        pytest.param(shelly, f"{PLUS}/rpc", frame("Switch.Set", id=7, on=True), [reply(error={"code": -105, "message": "Argument 'id', value 7 not found!"})], [], id="shelly without such a switch"),
        pytest.param(shelly, f"{PLUS}/command/switch:0", "on", [(f"{PLUS}/events/rpc", EVENT), (f"{PLUS}/status/switch:0", SWITCH_ON)], [(PLUS, "switch:0", True)], id="shelly command"),
        pytest.param(shelly, f"{PLUS}/command/switch:0", "status_update", [(f"{PLUS}/status/switch:0", SWITCH)], [], id="shelly asked for its status"),
        pytest.param(lambda: esphome("garage"), "garage/switch/relay/command", "ON", [("garage/switch/relay/state", "ON")], [("garage", "switch", "ON")], id="esphome switch"),
        pytest.param(lambda: esphome("garage"), "garage/button/open/command", "PRESS", [], [("garage", "button", "PRESS")], id="esphome button"),
        pytest.param(lambda: homeassistant("home/bedroom/switch1"), "home/bedroom/switch1/set", "ON", [("home/bedroom/switch1", "ON")], [("home-bedroom-switch1", "switch", "ON")], id="home assistant switch"),
        pytest.param(lambda: first_shelly("shelly1-BA6AC1"), "shellies/shelly1-BA6AC1/relay/0/command", "on", [("shellies/shelly1-BA6AC1/relay/0", "on")], [("shelly1-BA6AC1", "switch", "ON")], id="first shelly"),
    ],
)  # fmt: skip
def test_a_device_answers_as_documented(
    make: Make, topic: str, payload: str, said: list[tuple[str, object]], did: list[tuple[str, str, object]]
) -> None:
    device = make()
    assert read(device.take(topic, payload.encode())) == said
    assert device.deeds == [Deed(*one) for one in did]


def test_tasmota_gives_its_sensors_when_asked() -> None:
    ((topic, answer),) = read(tasmota().take("cmnd/tasmota_switch/Status", b"10"))
    assert topic == "stat/tasmota_switch/STATUS10" and isinstance(answer, dict)
    assert {**SENSORS, "Time": answer["StatusSNS"]["Time"]} == answer["StatusSNS"]


@pytest.mark.parametrize(
    ("make", "topic", "online", "offline"),
    [
        pytest.param(bridge, "zigbee2mqtt/bridge/state", b'{"state":"online"}', b'{"state":"offline"}', id="zigbee2mqtt 2"),
        pytest.param(lambda: Zigbee2Mqtt([], legacy=True), "zigbee2mqtt/bridge/state", b"online", b"offline", id="zigbee2mqtt 1"),
        pytest.param(tasmota, "tele/tasmota_switch/LWT", b"Online", b"Offline", id="tasmota"),
        pytest.param(shelly, f"{PLUS}/online", b"true", b"false", id="shelly"),
        pytest.param(lambda: first_shelly("s1"), "shellies/s1/online", b"true", b"false", id="first shelly"),
        pytest.param(lambda: esphome("garage"), "garage/status", b"online", b"offline", id="esphome"),
        pytest.param(lambda: homeassistant("home/x"), "home/x/available", b"online", b"offline", id="home assistant"),
    ],
)  # fmt: skip
def test_a_device_says_retained_that_it_is_online_and_leaves_a_will(
    make: Make, topic: str, online: bytes, offline: bytes
) -> None:
    device = make()
    (birth,) = [one for one in device.births() if one.topic == topic]
    assert (birth.payload, birth.retain) == (online, True)
    assert device.will is not None
    assert (device.will.topic, device.will.payload, device.will.retain) == (topic, offline, True)


def test_a_state_is_retained_only_where_the_documentation_says_so() -> None:
    def state_retained(device: Appliance, topic: str, payload: bytes) -> list[bool]:
        return [one.retain for one in device.take(topic, payload)]

    assert state_retained(bridge(), "zigbee2mqtt/plug/get", b'{"state":""}') == [False]
    assert state_retained(tasmota(), "cmnd/tasmota_switch/POWER", b"ON") == [False, False]
    assert state_retained(Tasmota("t", power_retain=True), "cmnd/t/POWER", b"ON") == [False, True]
    assert state_retained(esphome("g"), "g/switch/relay/command", b"ON") == [True]
    assert not any(state_retained(shelly(), f"{PLUS}/command/switch:0", b"on"))


@pytest.mark.parametrize("name", ["cellar", "lost", "nobody"])
def test_zigbee2mqtt_says_nothing_of_a_device_that_does_not_answer_but_in_its_log(name: str) -> None:
    device = Zigbee2Mqtt([plug("lost"), thermometer("cellar")])
    device.lose("lost")
    asked = b'{"temperature": ""}' if name == "cellar" else b'{"state": ""}'
    ((topic, logged),) = read(device.take(f"zigbee2mqtt/{name}/get", asked))
    assert topic == "zigbee2mqtt/bridge/logging"
    assert isinstance(logged, dict) and logged["level"] == "error" and name in logged["message"]


def test_zigbee2mqtt_publishes_who_is_online_per_device() -> None:
    device = bridge()
    births = dict(read(device.births()))
    assert births["zigbee2mqtt/plug/availability"] == {"state": "online"}
    lost = device.lose("plug")
    assert (lost.topic, loose(lost.payload), lost.retain) == (
        "zigbee2mqtt/plug/availability", {"state": "offline"}, True,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        pytest.param(b"ON", "Invalid JSON", id="no JSON"),
        pytest.param(b'{"state": "BOIL"}', "No converter", id="no such value"),
        pytest.param(b'{"brightness": 20}', "No converter", id="no such key"),
        pytest.param(b"\xff", "Invalid JSON", id="no text"),
    ],
)
def test_zigbee2mqtt_refuses_in_its_log_what_it_does_not_understand(payload: bytes, why: str) -> None:
    device = bridge()
    ((topic, logged),) = read(device.take("zigbee2mqtt/plug/set", payload))
    assert topic == "zigbee2mqtt/bridge/logging" and isinstance(logged, dict) and why in logged["message"]
    assert device.deeds == []


@pytest.mark.parametrize(
    ("mood", "acted", "answered"),
    [
        pytest.param("well", True, b'{"id":1,"src":"s","dst":"me","result":{"was_on":false}}', id="well"),
        pytest.param("deaf", False, None, id="takes no notice"),
        pytest.param("mute", True, None, id="acts and says nothing"),
        pytest.param("stubborn", False, b'{"id":1,"src":"s","dst":"me","result":{"was_on":false}}', id="does not act"),
        pytest.param("garbled", True, b'\xff{"state": "O', id="answers with rubbish"),
        pytest.param("astray", True, b'{"id":"another","src":"s","dst":"me","result":{"was_on":false}}', id="answers another"),
    ],
)  # fmt: skip
def test_a_device_misbehaves_as_it_is_told(mood: Mood, acted: bool, answered: bytes | None) -> None:
    device = Shelly("s")
    device.mood = mood
    asked = b'{"id":1,"src":"me","method":"Switch.Set","params":{"id":0,"on":true}}'
    said = device.take("s/rpc", asked)
    assert next((one.payload for one in said if one.topic in ("me/rpc",)), None) == answered
    assert (device.on, bool(device.deeds)) == (acted, acted)
    assert device.heard == [("s/rpc", asked)]


def test_a_stubborn_device_answers_with_the_state_it_is_in() -> None:
    for device, topic, payload in (
        (bridge(), "zigbee2mqtt/plug/set", b'{"state":"ON"}'),
        (tasmota(), "cmnd/tasmota_switch/POWER", b"ON"),
        (esphome("g"), "g/switch/relay/command", b"ON"),
    ):
        device.mood = "stubborn"
        assert all(b"OFF" in one.payload for one in device.take(topic, payload))
        assert device.deeds == []


def test_a_slow_device_takes_its_time_with_each_answer() -> None:
    device = tasmota()
    device.slow_s = 2.5
    assert [one.after_s for one in device.take("cmnd/tasmota_switch/POWER", b"ON")] == [2.5, 2.5]
