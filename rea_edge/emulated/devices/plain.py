"""Simulated devices that speak in bare words: a command topic, a state topic, a topic that says who is online.

Home Assistant's form for any MQTT device, https://www.home-assistant.io/integrations/switch.mqtt/ and .../button.mqtt/:
command topic, state topic (often retained), availability topic with `online` and `offline`. After it also:

ESPHome, https://esphome.io/components/mqtt.html: PREFIX/switch/NAME/command and /state (ON, OFF; state retained by
default), PREFIX/button/NAME/command (PRESS; buttons have no state), PREFIX/sensor/NAME/state, PREFIX/status online or
offline, retained, offline being the will.
Shelly of the first generation, https://shelly-api-docs.shelly.cloud/gen1/#mqtt-support: shellies/ID/relay/0 (on, off),
shellies/ID/relay/0/command (on, off, toggle), shellies/ID/online (true, false).
"""

from rea_edge.emulated.devices.appliance import Appliance, Said, switched


class Words(Appliance):
    """A switch, and a button where `button` is its topic: what stands for on and off is as its kind of device says it."""

    def __init__(
        self,
        name: str,
        *,
        command: str,
        state: str,
        availability: str,
        on_off: tuple[str, str] = ("ON", "OFF"),
        online_offline: tuple[str, str] = ("online", "offline"),
        retain: bool = True,
        button: str = "",
    ) -> None:
        self.name = name
        self.on = False
        self.command, self.state, self.availability, self.button = command, state, availability, button
        self._on_off, self._online_offline, self._retain = on_off, online_offline, retain
        filters = (command, button) if button else (command,)
        super().__init__(name, filters, Said(availability, online_offline[1].encode(), 0, True))

    def births(self) -> list[Said]:
        return [Said(self.availability, self._online_offline[0].encode(), 0, True), self.said()]

    def said(self) -> Said:
        """Its state as it says it."""
        return Said(self.state, self._on_off[0 if self.on else 1].encode(), 0, self._retain)

    def answers(self, topic: str, payload: bytes) -> list[Said]:
        word = payload.decode(errors="replace")
        if topic == self.button:
            if word == "PRESS":
                self.acts(self.name, "button", "PRESS")
            return []
        on = switched(word, self.on)
        if on is None:
            return []
        if self.acts(self.name, "switch", "ON" if on else "OFF"):
            self.on = on
        return [self.said()]


def esphome(prefix: str, switch: str = "relay", button: str = "open") -> Words:
    return Words(
        prefix,
        command=f"{prefix}/switch/{switch}/command",
        state=f"{prefix}/switch/{switch}/state",
        availability=f"{prefix}/status",
        button=f"{prefix}/button/{button}/command",
    )


def homeassistant(place: str) -> Words:
    """Below a topic such as `home/bedroom/switch1`, laid out as in Home Assistant's example."""
    return Words(
        place.replace("/", "-"),
        command=f"{place}/set",
        state=place,
        availability=f"{place}/available",
        button=f"{place}/press",
    )


def first_shelly(name: str) -> Words:
    place = f"shellies/{name}"
    return Words(
        name,
        command=f"{place}/relay/0/command",
        state=f"{place}/relay/0",
        availability=f"{place}/online",
        on_off=("on", "off"),
        online_offline=("true", "false"),
        retain=False,
    )
