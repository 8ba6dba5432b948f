"""A simulated Tasmota device with relays and a sensor.

After https://tasmota.github.io/docs/MQTT and https://tasmota.github.io/docs/Commands (full topic `%prefix%/%topic%/`):

    cmnd/TOPIC/Power      ON, OFF, TOGGLE or 1, 0, 2, in any case; nothing, or ?, asks. With several relays Power1, Power2
                          answered on stat/TOPIC/RESULT {"POWER":"ON"}, then on stat/TOPIC/POWER as the bare word
    cmnd/TOPIC/Status     10: the sensors, on stat/TOPIC/STATUS10 {"StatusSNS":{...}}; 11: the state, on STATUS11
    tele/TOPIC/LWT        Online or Offline, retained; Offline is the will
    tele/TOPIC/SENSOR     every five minutes; never retained, unless one sets SensorRetain (and PowerRetain for POWER)

RESULT is never retained and answers every command, whoever sent it. When it connects it asks itself how its power is.
"""

import re
import time

from rea_edge.emulated.devices.appliance import Appliance, Said, packed, switched

_POWER = re.compile(r"POWER([1-8]?)")


class Tasmota(Appliance):
    """`relays` are off at first. `sensor` is what its sensors say, such as {"DS18B20": {"Temperature": 20.6}}."""

    def __init__(
        self, topic: str, *, relays: int = 1, sensor: dict[str, object] | None = None, power_retain: bool = False
    ) -> None:
        self.topic = topic
        self.relays = [False] * relays
        self.sensor = {"DS18B20": {"Temperature": 20.6}, "TempUnit": "C"} if sensor is None else sensor
        self._power_retain = power_retain
        super().__init__(f"DVES_{topic}", (f"cmnd/{topic}/+", "cmnd/tasmotas/+"), self._presence("Offline"))

    def births(self) -> list[Said]:
        return [
            self._presence("Online"),
            Said(f"cmnd/{self.topic}/POWER", b""),
            Said(f"tele/{self.topic}/INFO1", packed({"Info1": {"Module": "Generic", "Version": "14.2.0(tasmota)"}})),
            Said(f"tele/{self.topic}/STATE", packed(self._state())),
        ]

    def telemetry(self) -> list[Said]:
        """What it says every five minutes."""
        return [
            Said(f"tele/{self.topic}/STATE", packed(self._state())),
            Said(f"tele/{self.topic}/SENSOR", packed({"Time": now(), **self.sensor})),
        ]

    def answers(self, topic: str, payload: bytes) -> list[Said]:
        command = topic.rpartition("/")[2].upper()
        word = payload.decode(errors="replace").strip()
        if power := _POWER.fullmatch(command):
            return self._power(int(power[1] or 1), word)
        match command, word:
            case "STATUS", "8" | "10":
                return [self._stat(f"STATUS{word}", {"StatusSNS": {"Time": now(), **self.sensor}})]
            case "STATUS", "11":
                return [self._stat("STATUS11", {"StatusSTS": self._state()})]
            case "STATUS", "" | "0":
                return [self._stat("STATUS", {"Status": {"Topic": self.topic, "Power": self._bits()}})]
        return [self._stat("RESULT", {"Command": "Unknown"})]

    def _power(self, relay: int, word: str) -> list[Said]:
        if relay > len(self.relays):
            return [self._stat("RESULT", {"Command": "Unknown"})]
        on = switched(word, self.relays[relay - 1])
        name = self._name(relay)
        if on is not None and self.acts(self.topic, name, "ON" if on else "OFF"):
            self.relays[relay - 1] = on
        if on is None and word not in ("", "?"):
            return [self._stat("RESULT", {"Command": "Error"})]
        now_is = "ON" if self.relays[relay - 1] else "OFF"
        return [
            self._stat("RESULT", {name: now_is}),
            Said(f"stat/{self.topic}/{name}", now_is.encode(), 0, self._power_retain),
        ]

    def _name(self, relay: int) -> str:
        return "POWER" if len(self.relays) == 1 else f"POWER{relay}"

    def _bits(self) -> int:
        return sum(on << place for place, on in enumerate(self.relays))

    def _state(self) -> dict[str, object]:
        powers = {self._name(relay): "ON" if on else "OFF" for relay, on in enumerate(self.relays, 1)}
        return {"Time": now(), "UptimeSec": 611, "Heap": 24, **powers, "Wifi": {"RSSI": 44, "Signal": -78}}

    def _presence(self, word: str) -> Said:
        return Said(f"tele/{self.topic}/LWT", word.encode(), 1, True)

    def _stat(self, what: str, value: dict[str, object]) -> Said:
        return Said(f"stat/{self.topic}/{what}", packed(value))


def now() -> str:
    """Local time, as it writes it."""
    return time.strftime("%Y-%m-%dT%H:%M:%S")
