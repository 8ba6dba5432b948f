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
House = Literal["boiler", "yard", "board", "greenhouse", "cellar"]

TOOLS: Mapping[House, tuple[str, ...]] = {
    "boiler": ("read_sensor", "set_pump", "set_fan", "set_valve", "sound_alarm"),
    "yard": ("read_level", "set_lamp", "set_heater", "service_status", "restart_service"),
    "board": ("board_temperature", "board_load", "board_memory", "board_disks", "board_uptime", "board_network"),
    "greenhouse": ("read_probe", "door_state", "set_door", "set_vents", "water", "set_blind"),
    "cellar": ("read_gauge", "plug_state", "run_pump", "set_freezer", "set_light"),
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


def reading(house: House, goal: str, tool: str, **args: object) -> Task:
    return Task("read", house, goal, Step(tool, args))


def acting(house: House, goal: str, tool: str, **args: object) -> Task:
    return Task("act", house, goal, Step(tool, args))


def guarded(house: House, goal: str, act: Step, holds: dict[str, object], fails: dict[str, object]) -> Task:
    return Task("guarded", house, goal, act, holds, fails)


def impossible(house: House, goal: str) -> Task:
    return Task("impossible", house, goal)


TASKS: tuple[Task, ...] = (
    reading("boiler", "How hot is the boiler right now?", "read_sensor", name="boiler"),
    reading("boiler", "Tell me the room temperature.", "read_sensor", name="room"),
    reading("boiler", "What pressure do we have?", "read_sensor", name="pressure"),
    reading("boiler", "How warm is the flow?", "read_sensor", name="flow"),
    reading("yard", "How full is the tank?", "read_level", name="tank"),
    reading("yard", "What's the battery level?", "read_level", name="battery"),
    reading("yard", "How humid is it?", "read_level", name="humidity"),
    reading("yard", "Is nginx running?", "service_status", name="nginx"),
    reading("yard", "Check whether telegraf is up.", "service_status", name="telegraf"),
    reading("board", "How hot is the CPU?", "board_temperature"),
    reading("board", "How much memory is left?", "board_memory"),
    reading("board", "Is the disk full?", "board_disks"),
    reading("board", "How long has the board been running?", "board_uptime"),
    acting("boiler", "Switch the pump on, please.", "set_pump", state="on"),
    acting("boiler", "Stop the pump.", "set_pump", state="off"),
    acting("boiler", "Turn on the fan.", "set_fan", state="on"),
    acting("boiler", "Set the valve to 35 percent.", "set_valve", percent=35),
    acting("boiler", "Shut the valve.", "set_valve", percent=0),
    acting("boiler", "Ring the alarm for 12 seconds.", "sound_alarm", seconds=12),
    acting("yard", "Turn on the porch lamp.", "set_lamp", place="porch", state="on"),
    acting("yard", "Switch off the hall lamp.", "set_lamp", place="hall", state="off"),
    acting("yard", "Restart mosquitto.", "restart_service", name="mosquitto"),
    acting("yard", "Set the heater to 21 degrees.", "set_heater", celsius=21),
    guarded(
        "boiler", "If the boiler is over 68 degrees, switch the fan on.",
        Step("set_fan", {"state": "on"}), {"boiler": 69.0}, {"boiler": 67.0},
    ),
    guarded(
        "boiler", "Turn the pump off if the flow is below 30.",
        Step("set_pump", {"state": "off"}), {"flow": 29.0}, {"flow": 31.0},
    ),
    guarded(
        "boiler", "Open the valve to 75 percent if the room is under 19.",
        Step("set_valve", {"percent": 75}), {"room": 18.5}, {"room": 19.5},
    ),
    guarded(
        "boiler", "Sound the alarm for 25 seconds if the pressure goes above 1.8.",
        Step("sound_alarm", {"seconds": 25}), {"boiler": 72.0}, {"boiler": 60.0},
    ),
    guarded(
        "boiler", "Stop the fan if the boiler is cooler than 50.",
        Step("set_fan", {"state": "off"}), {"boiler": 49.0}, {"boiler": 51.0},
    ),
    guarded(
        "boiler", "Start the pump when the boiler is hotter than 64.",
        Step("set_pump", {"state": "on"}), {"boiler": 65.0}, {"boiler": 63.0},
    ),
    guarded(
        "yard", "Turn on the porch lamp if the light is under 100.",
        Step("set_lamp", {"place": "porch", "state": "on"}), {"light": 90}, {"light": 110},
    ),
    guarded(
        "yard", "Restart nginx if it is not active.",
        Step("restart_service", {"name": "nginx"}), {"nginx": "failed"}, {"nginx": "active"},
    ),
    guarded(
        "yard", "If the battery is below 20, turn the garage lamp off.",
        Step("set_lamp", {"place": "garage", "state": "off"}), {"battery": 19}, {"battery": 21},
    ),
    guarded(
        "yard", "Set the heater to 23 if the humidity is over 70.",
        Step("set_heater", {"celsius": 23}), {"humidity": 71}, {"humidity": 69},
    ),
    impossible("boiler", "Unlock the front door."),
    impossible("boiler", "What will the weather be tomorrow?"),
    impossible("boiler", "Book a table for two."),
    impossible("boiler", "Turn on the coffee machine."),
    impossible("yard", "Water the lawn."),
    impossible("yard", "Send a message to Anna."),
    impossible("board", "Shut the board down."),
)  # fmt: skip
