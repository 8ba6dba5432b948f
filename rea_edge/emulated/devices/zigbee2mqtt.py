"""A simulated Zigbee2MQTT with a few Zigbee devices behind it.

After https://www.zigbee2mqtt.io/guide/usage/mqtt_topics_and_messages.html and, for who is online,
https://www.zigbee2mqtt.io/guide/configuration/device-availability.html (version 2; `legacy` is version 1's default):

    BASE/NAME                            what a device said last, a JSON object; not retained unless set for a device
    BASE/NAME/set, BASE/NAME/set/KEY     change it; the answer is BASE/NAME, once the device has confirmed
    BASE/NAME/get                        read it, {"state": ""}; the answer is BASE/NAME
    BASE/NAME/availability               retained, {"state":"online"} or {"state":"offline"}; legacy: the bare word
    BASE/bridge/state                    the same of the bridge itself, also its will
    BASE/bridge/request/WHAT             answered on BASE/bridge/response/WHAT, with the request's `transaction`
    BASE/bridge/logging                  {"level", "message"}: all that is ever heard of a set or get that failed

A device that sleeps answers no question and says how it is when it likes (`report`).
"""

from collections.abc import Sequence

import msgspec

from rea_edge.emulated.devices.appliance import Appliance, Said, objects, packed, switched

Span = tuple[float, float]


class Thing:
    """A Zigbee device: how it is, what of it can be set (a span of numbers, or None: ON, OFF, TOGGLE)."""

    def __init__(
        self, name: str, state: dict[str, object], takes: dict[str, Span | None] | None = None, *, sleeps: bool = False
    ) -> None:
        self.name = name
        self.state: dict[str, object] = {**state, "linkquality": 92}
        self.takes = takes or {}
        self.sleeps = sleeps
        self.online = True
        self.retain = False

    @property
    def hears(self) -> bool:
        return self.online and not self.sleeps


def plug(name: str) -> Thing:
    return Thing(name, {"state": "OFF", "power": 0}, {"state": None})


def valve(name: str) -> Thing:
    return Thing(name, {"state": "OFF", "battery": 88}, {"state": None})


def bulb(name: str) -> Thing:
    return Thing(name, {"state": "OFF", "brightness": 215}, {"state": None, "brightness": (0, 254)})


def thermometer(name: str) -> Thing:
    """Runs on a battery and sleeps."""
    return Thing(name, {"temperature": 27.34, "humidity": 44.72, "battery": 97}, sleeps=True)


class Zigbee2Mqtt(Appliance):
    """`things` are the devices behind it, by name. `gives_up_s`: when it says that a device did not answer."""

    def __init__(
        self, things: Sequence[Thing], *, base: str = "zigbee2mqtt", legacy: bool = False, gives_up_s: float = 10.0
    ) -> None:
        self.base = base
        self.things = {thing.name: thing for thing in things}
        self.permit_join = False
        self._legacy = legacy
        self._gives_up_s = gives_up_s
        filters = ("+/set", "+/set/+", "+/get", "bridge/request/#")
        will = Said(f"{base}/bridge/state", self._presence("offline"), 1, True)
        super().__init__(f"mqttjs_{base}", tuple(f"{base}/{one}" for one in filters), will)

    def births(self) -> list[Said]:
        listed = [{"friendly_name": name, "type": "EndDevice", "supported": True} for name in self.things]
        return [
            Said(f"{self.base}/bridge/state", self._presence("online"), 1, True),
            Said(f"{self.base}/bridge/devices", packed(listed), 0, True),
            *(self._availability(thing) for thing in self.things.values()),
            *(self._state(thing) for thing in self.things.values()),
        ]

    def report(self, name: str, **values: object) -> Said:
        """What a device says of its own accord, its values having changed."""
        thing = self.things[name]
        thing.state |= values
        return self._state(thing)

    def lose(self, name: str) -> Said:
        """A device went offline: it did not check in, or no longer answers pings."""
        self.things[name].online = False
        return self._availability(self.things[name])

    def find(self, name: str) -> Said:
        """It is back."""
        self.things[name].online = True
        return self._availability(self.things[name])

    def answers(self, topic: str, payload: bytes) -> list[Said]:
        match topic.removeprefix(f"{self.base}/").split("/"):
            case ["bridge", "request", *what]:
                return self._request("/".join(what), payload)
            case [name, "set", key]:
                return self._set(name, {key: payload.decode(errors="replace")})
            case [name, "set"]:
                return self._set(name, objects(payload)) if objects(payload) else [self._invalid(topic, payload)]
            case [name, "get"]:
                return self._get(name, objects(payload))
        return []

    def _set(self, name: str, values: dict[str, object]) -> list[Said]:
        thing = self.things.get(name)
        if thing is None:
            return [self._error(f"Entity '{name}' is unknown")]
        for key, value in values.items():
            wanted = self._meant(thing, key, value)
            if wanted is None:
                return [self._error(f"No converter available for 'set' '{key}' to '{name}' ({value!r})")]
            if not thing.hears:
                return [self._silent("set", key, name)]
            if self.acts(name, key, wanted):
                thing.state[key] = wanted
        return [self._state(thing)]

    def _get(self, name: str, values: dict[str, object]) -> list[Said]:
        thing = self.things.get(name)
        if thing is None:
            return [self._error(f"Entity '{name}' is unknown")]
        for key in values:
            if key not in thing.takes and key not in thing.state:
                return [self._error(f"No converter available for 'get' '{key}' of '{name}'")]
            if not thing.hears:
                return [self._silent("get", key, name)]
        return [self._state(thing)] if values else []

    def _meant(self, thing: Thing, key: str, value: object) -> object:
        if key not in thing.takes:
            return None
        span = thing.takes[key]
        if span is None:
            on = switched(value, thing.state[key] == "ON") if isinstance(value, str) else None
            return None if on is None else "ON" if on else "OFF"
        number = value if isinstance(value, int | float) and not isinstance(value, bool) else None
        return number if number is not None and span[0] <= number <= span[1] else None

    def _request(self, what: str, payload: bytes) -> list[Said]:
        asked = objects(payload)
        match what:
            case "health_check":
                found: dict[str, object] = {"data": {"healthy": True}, "status": "ok"}
            case "permit_join" if isinstance(value := asked.get("value", asked.get("time")), bool | int):
                if self.acts("bridge", "permit_join", value):
                    self.permit_join = bool(value)
                found = {"data": {"value": value}, "status": "ok"}
            case "permit_join":
                found = {"data": {}, "error": "Invalid payload", "status": "error"}
            case _:
                return []
        repeated = {"transaction": asked["transaction"]} if "transaction" in asked else {}
        return [Said(f"{self.base}/bridge/response/{what}", packed({**found, **repeated}))]

    def _state(self, thing: Thing) -> Said:
        return Said(f"{self.base}/{thing.name}", packed(thing.state), 0, thing.retain)

    def _availability(self, thing: Thing) -> Said:
        word = "online" if thing.online else "offline"
        return Said(f"{self.base}/{thing.name}/availability", self._presence(word), 1, True)

    def _presence(self, word: str) -> bytes:
        return word.encode() if self._legacy else msgspec.json.encode({"state": word})

    def _error(self, message: str) -> Said:
        return Said(f"{self.base}/bridge/logging", packed({"level": "error", "message": f"z2m: {message}"}))

    def _silent(self, what: str, key: str, name: str) -> Said:
        failed = self._error(f"Publish '{what}' '{key}' to '{name}' failed: 'Error: Timeout after 10000ms'")
        return failed._replace(after_s=self._gives_up_s)

    def _invalid(self, topic: str, payload: bytes) -> Said:
        return self._error(f"Invalid JSON '{payload.decode(errors='replace')}', skipping '{topic}'")
