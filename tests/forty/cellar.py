"""A cellar with gauges, a freezer, a pump, lights and a chime, whose world is one JSON file.

Tools for the tasks that were kept back. The file is $REA_TOOL_CELLAR_FILE: `gauges`, `plugs`, and `journal`, which gets
an entry per effect. Nothing moves by itself.
"""

import json
import os
from pathlib import Path
from typing import Annotated, Literal, TypedDict

from msgspec import Meta

from rea_edge.tool import tool

Gauge = Literal["sump", "freezer", "wine rack"]
Room = Literal["stairs", "laundry", "workshop"]


class Value(TypedDict):
    value: float
    unit: str


class Plug(TypedDict):
    power: Literal["live", "dead"]


class Done(TypedDict):
    done: bool


@tool(
    effect="read",
    examples=[
        ("How high is the water in the sump?", {"name": "sump"}),
        ("What is the freezer's temperature?", {"name": "freezer"}),
        ("Is the wine rack warm?", {"name": "wine rack"}),
        ("Check the sump.", {"name": "sump"}),
        ("Who built this house?", "cannot"),
    ],
)
def read_gauge(name: Gauge) -> Value:
    """Read a gauge: the water in the sump in cm, the temperature of the freezer or the wine rack in C."""
    return {"value": _world()["gauges"][name], "unit": "cm" if name == "sump" else "C"}


@tool(
    effect="read",
    examples=[
        ("Is there power in the laundry?", {"room": "laundry"}),
        ("Test the plug on the stairs.", {"room": "stairs"}),
    ],
)
def plug_state(room: Room) -> Plug:
    """Tell whether the plug of a room is live or dead."""
    return {"power": _world()["plugs"][room]}


@tool(
    effect="once",
    examples=[
        ("Run the sump pump for 30 seconds.", {"seconds": 30}),
        ("Pump for 10 seconds.", {"seconds": 10}),
        ("Pump for 60 seconds if the sump is over 20.", "if read_gauge sump -> value > 20 then run_pump seconds=60"),
        ("Dig a well.", "cannot"),
    ],
)
def run_pump(seconds: Annotated[int, Meta(ge=1, le=120)]) -> Done:
    """Run the sump pump for some seconds."""
    return _act("run_pump", {"seconds": seconds})


@tool(
    effect="idempotent",
    examples=[
        ("Set the freezer to -20 degrees.", {"celsius": -20}),
        ("Keep the freezer at -16.", {"celsius": -16}),
        (
            "Set the freezer to -22 if it is above -15.",
            "if read_gauge freezer -> value > -15 then set_freezer celsius=-22",
        ),
        ("Bake a cake.", "cannot"),
    ],
)
def set_freezer(celsius: Annotated[int, Meta(ge=-30, le=-10)]) -> Done:
    """Set the freezer's thermostat."""
    return _act("set_freezer", {"celsius": celsius})


@tool(
    effect="idempotent",
    examples=[
        ("Light in the laundry, please.", {"room": "laundry", "on": True}),
        ("No light on the stairs any more.", {"room": "stairs", "on": False}),
        ("Switch the workshop light on.", {"room": "workshop", "on": True}),
        ("Switch the laundry light off.", {"room": "laundry", "on": False}),
        ("Switch the stairs light off if the plug is dead.", "cannot"),
    ],
)
def set_light(room: Room, on: bool) -> Done:
    """Switch the light of a room on or off."""
    return _act("set_light", {"room": room, "on": on})


# --- the file


def _world():  # type: ignore[no-untyped-def] # a test's own tool: the file's shape is said above
    return json.loads(_file().read_text())


def _act(name: str, args: dict[str, object]) -> Done:
    world = _world()
    world["journal"].append({"tool": name, "args": args})
    fresh = _file().with_suffix(".new")
    fresh.write_text(json.dumps(world))
    fresh.replace(_file())
    return {"done": True}


def _file() -> Path:
    return Path(os.environ["REA_TOOL_CELLAR_FILE"])
