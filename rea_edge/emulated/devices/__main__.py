"""Runs a simulated device: `python -m rea_edge.emulated.devices tasmota --broker mqtt://127.0.0.1:1883 --name pump`.

It says what it does, one JSON line a deed, until it is ended.
"""

import argparse
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import get_args

from rea_edge.emulated.devices.appliance import Appliance, Mood, packed
from rea_edge.emulated.devices.plain import esphome, first_shelly, homeassistant
from rea_edge.emulated.devices.powered import Powered
from rea_edge.emulated.devices.shelly import Shelly
from rea_edge.emulated.devices.tasmota import Tasmota
from rea_edge.emulated.devices.zigbee2mqtt import Zigbee2Mqtt, bulb, plug, thermometer, valve

LOOK_S = 0.1


def bridge(base: str) -> Appliance:
    return Zigbee2Mqtt([plug("plug"), bulb("lamp"), valve("valve"), thermometer("thermometer")], base=base)


# By kind: the name it has unless another is given, how it is made, and what it has, as a tool names it.
KINDS: dict[str, tuple[str, Callable[[str], Appliance], str]] = {
    "zigbee2mqtt": ("zigbee2mqtt", bridge, "devices plug, lamp, valve and thermometer"),
    "tasmota": ("plug", Tasmota, "one relay and a thermometer"),
    "shelly": ("shellyplus1-a8032abe54dc", Shelly, "switch 0"),
    "shelly1": ("shelly1-BA6AC1", first_shelly, "relay 0"),
    "esphome": ("garage", esphome, "switch relay and button open"),
    "homeassistant": ("home/bedroom/switch1", homeassistant, "one switch"),
}


def main(words: list[str] | None = None) -> int:
    """Run one device until SIGTERM or SIGINT."""
    given = parser().parse_args(words)
    default, make, has = KINDS[given.kind]
    name = given.name or default
    appliance = make(name)
    appliance.mood, appliance.slow_s = given.mood, given.slow_s
    ended = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        ended.set()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    with Powered(appliance, given.broker):
        print(f"{given.kind} is online as {name}: {has}", file=sys.stderr, flush=True)
        told = 0
        while not ended.wait(LOOK_S):
            for deed in appliance.deeds[told:]:
                print(packed(deed._asdict()).decode(), flush=True)
                told += 1
    return 0


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        "python -m rea_edge.emulated.devices", description="Play a device on an MQTT broker."
    )
    made.add_argument("kind", choices=sorted(KINDS))
    made.add_argument("--broker", default="mqtt://127.0.0.1:1883")
    made.add_argument("--name", help="its name, topic, prefix or base topic, whatever that kind has")
    made.add_argument("--mood", choices=get_args(Mood), default="well", help="how it misbehaves")
    made.add_argument("--slow-s", type=float, default=0.0, help="seconds each answer takes")
    return made


if __name__ == "__main__":
    sys.exit(main())
