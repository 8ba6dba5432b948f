"""Forty device tasks, each with the worlds it is put to and what must have happened in them.

The tool files' examples and the prompts were not made from these wordings, and must not be: they say how well a model
does on what nobody prepared it for. A guarded task is asked in two worlds, one on each side of its condition, and
comes out right only if both do.
"""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from rea_edge.records import Args

Kind = Literal["read", "act", "guarded", "impossible"]
House = Literal["boiler", "yard", "board"]

TOOLS: Mapping[House, tuple[str, ...]] = {
    "boiler": ("read_sensor", "set_pump", "set_fan", "set_valve", "sound_alarm"),
    "yard": ("read_level", "set_lamp", "set_heater", "service_status", "restart_service"),
    "board": ("board_temperature", "board_load", "board_memory", "board_disks", "board_uptime", "board_network"),
}


class Step(Struct, frozen=True):
    """A call that must have been made."""

    tool: str
    args: Args = {}


class Task(Struct, frozen=True):
    """`world` is what is set before, by name; `other` the world in which the condition does not hold."""

    kind: Kind
    house: House
    goal: str
    step: Step | None = None
    world: dict[str, object] = {}
    other: dict[str, object] | None = None


def _reading(house: House, goal: str, tool: str, **args: object) -> Task:
    return Task("read", house, goal, Step(tool, args))


def _act(house: House, goal: str, tool: str, **args: object) -> Task:
    return Task("act", house, goal, Step(tool, args))


def _guarded(house: House, goal: str, act: Step, holds: dict[str, object], fails: dict[str, object]) -> Task:
    return Task("guarded", house, goal, act, holds, fails)


def _impossible(house: House, goal: str) -> Task:
    return Task("impossible", house, goal)


TASKS: tuple[Task, ...] = (
    _reading("boiler", "How hot is the boiler right now?", "read_sensor", name="boiler"),
    _reading("boiler", "Tell me the room temperature.", "read_sensor", name="room"),
    _reading("boiler", "What pressure do we have?", "read_sensor", name="pressure"),
    _reading("boiler", "How warm is the flow?", "read_sensor", name="flow"),
    _reading("yard", "How full is the tank?", "read_level", name="tank"),
    _reading("yard", "What's the battery level?", "read_level", name="battery"),
    _reading("yard", "How humid is it?", "read_level", name="humidity"),
    _reading("yard", "Is nginx running?", "service_status", name="nginx"),
    _reading("yard", "Check whether telegraf is up.", "service_status", name="telegraf"),
    _reading("board", "How hot is the CPU?", "board_temperature"),
    _reading("board", "How much memory is left?", "board_memory"),
    _reading("board", "Is the disk full?", "board_disks"),
    _reading("board", "How long has the board been running?", "board_uptime"),
    _act("boiler", "Switch the pump on, please.", "set_pump", state="on"),
    _act("boiler", "Stop the pump.", "set_pump", state="off"),
    _act("boiler", "Turn on the fan.", "set_fan", state="on"),
    _act("boiler", "Set the valve to 35 percent.", "set_valve", percent=35),
    _act("boiler", "Shut the valve.", "set_valve", percent=0),
    _act("boiler", "Ring the alarm for 12 seconds.", "sound_alarm", seconds=12),
    _act("yard", "Turn on the porch lamp.", "set_lamp", place="porch", state="on"),
    _act("yard", "Switch off the hall lamp.", "set_lamp", place="hall", state="off"),
    _act("yard", "Restart mosquitto.", "restart_service", name="mosquitto"),
    _act("yard", "Set the heater to 21 degrees.", "set_heater", celsius=21),
    _guarded(
        "boiler", "If the boiler is over 68 degrees, switch the fan on.",
        Step("set_fan", {"state": "on"}), {"boiler": 69.0}, {"boiler": 67.0},
    ),
    _guarded(
        "boiler", "Turn the pump off if the flow is below 30.",
        Step("set_pump", {"state": "off"}), {"flow": 29.0}, {"flow": 31.0},
    ),
    _guarded(
        "boiler", "Open the valve to 75 percent if the room is under 19.",
        Step("set_valve", {"percent": 75}), {"room": 18.5}, {"room": 19.5},
    ),
    _guarded(
        "boiler", "Sound the alarm for 25 seconds if the pressure goes above 1.8.",
        Step("sound_alarm", {"seconds": 25}), {"boiler": 72.0}, {"boiler": 60.0},
    ),
    _guarded(
        "boiler", "Stop the fan if the boiler is cooler than 50.",
        Step("set_fan", {"state": "off"}), {"boiler": 49.0}, {"boiler": 51.0},
    ),
    _guarded(
        "boiler", "Start the pump when the boiler is hotter than 64.",
        Step("set_pump", {"state": "on"}), {"boiler": 65.0}, {"boiler": 63.0},
    ),
    _guarded(
        "yard", "Turn on the porch lamp if the light is under 100.",
        Step("set_lamp", {"place": "porch", "state": "on"}), {"light": 90}, {"light": 110},
    ),
    _guarded(
        "yard", "Restart nginx if it is not active.",
        Step("restart_service", {"name": "nginx"}), {"nginx": "failed"}, {"nginx": "active"},
    ),
    _guarded(
        "yard", "If the battery is below 20, turn the garage lamp off.",
        Step("set_lamp", {"place": "garage", "state": "off"}), {"battery": 19}, {"battery": 21},
    ),
    _guarded(
        "yard", "Set the heater to 23 if the humidity is over 70.",
        Step("set_heater", {"celsius": 23}), {"humidity": 71}, {"humidity": 69},
    ),
    _impossible("boiler", "Unlock the front door."),
    _impossible("boiler", "What will the weather be tomorrow?"),
    _impossible("boiler", "Book a table for two."),
    _impossible("boiler", "Turn on the coffee machine."),
    _impossible("yard", "Water the lawn."),
    _impossible("yard", "Send a message to Anna."),
    _impossible("board", "Shut the board down."),
)  # fmt: skip
