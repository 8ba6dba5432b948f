"""A greenhouse with vents, a sprinkler, a blind, probes and a camera, whose world is one JSON file.

Tools for the held-out tasks. The file is $REA_TOOL_GREENHOUSE_FILE: `probes`, `doors`, and `journal`, which gets an
entry per effect. Nothing moves by itself.
"""

import json
import os
from pathlib import Path
from typing import Annotated, Literal, TypedDict

from msgspec import Meta

from rea_edge.tool import tool

Probe = Literal["soil", "air", "sun", "rain"]
Door = Literal["north", "south"]
Bed = Literal["tomatoes", "herbs", "orchids"]


class Value(TypedDict):
    value: float
    unit: str


class Latch(TypedDict):
    latch: Literal["locked", "unlocked"]


class Done(TypedDict):
    done: bool


@tool(
    effect="read",
    examples=[
        ("How dry is the soil?", {"name": "soil"}),
        ("What is the air temperature?", {"name": "air"}),
        ("How strong is the sun?", {"name": "sun"}),
        ("Has it been raining?", {"name": "rain"}),
        ("Show me the rain gauge.", {"name": "rain"}),
        ("What is the price of tomatoes?", "cannot"),
    ],
)
def read_probe(name: Probe) -> Value:
    """Read a probe: soil moisture in percent, air temperature in C, sun in watts per square metre, rain in mm."""
    unit = {"soil": "%", "air": "C", "sun": "W/m2", "rain": "mm"}[name]
    return {"value": _world()["probes"][name], "unit": unit}


@tool(
    effect="read",
    examples=[
        ("Is the north door locked?", {"name": "north"}),
        ("What about the south door?", {"name": "south"}),
        ("Check the north door.", {"name": "north"}),
    ],
)
def door_state(name: Door) -> Latch:
    """Tell whether a door is locked."""
    return {"latch": _world()["doors"][name]}


@tool(
    effect="idempotent",
    examples=[
        ("Lock the south door.", {"name": "south", "latch": "locked"}),
        ("Unlock the north door.", {"name": "north", "latch": "unlocked"}),
        (
            "Lock the north door if it is unlocked.",
            "if door_state north -> latch == unlocked then set_door name=north latch=locked",
        ),
        ("Break the door down.", "cannot"),
    ],
)
def set_door(name: Door, latch: Literal["locked", "unlocked"]) -> Done:
    """Lock or unlock a door."""
    return _act("set_door", {"name": name, "latch": latch})


@tool(
    effect="idempotent",
    examples=[
        ("Open the vents.", {"state": "open"}),
        ("Close the vents, please.", {"state": "closed"}),
        ("Open the vents if the air is over 28.", "if read_probe air -> value > 28 then set_vents open"),
        ("Close the vents if the air gets below 12.", "if read_probe air -> value < 12 then set_vents closed"),
        ("Paint the door green.", "cannot"),
    ],
)
def set_vents(state: Literal["open", "closed"]) -> Done:
    """Open or close the roof vents."""
    return _act("set_vents", {"state": state})


@tool(
    effect="once",
    examples=[
        ("Water the herbs for 5 minutes.", {"bed": "herbs", "minutes": 5}),
        ("Give the orchids 3 minutes of water.", {"bed": "orchids", "minutes": 3}),
        (
            "Water the tomatoes for 10 minutes if the soil is below 30.",
            "if read_probe soil -> value < 30 then water bed=tomatoes minutes=10",
        ),
        ("Plant a tree.", "cannot"),
    ],
)
def water(bed: Bed, minutes: Annotated[int, Meta(ge=1, le=30)]) -> Done:
    """Water one bed for some minutes."""
    return _act("water", {"bed": bed, "minutes": minutes})


@tool(
    effect="idempotent",
    examples=[
        ("Pull the blind down to 40 percent.", {"percent": 40}),
        ("Lower the blind all the way.", {"percent": 100}),
        ("Raise the blind.", {"percent": 0}),
        ("Set the blind to 80 when the sun exceeds 700.", "if read_probe sun -> value > 700 then set_blind percent=80"),
        ("Wash the windows.", "cannot"),
    ],
)
def set_blind(percent: Annotated[int, Meta(ge=0, le=100)]) -> Done:
    """Lower the sun blind: 0 is up, 100 is all the way down."""
    return _act("set_blind", {"percent": percent})


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
    return Path(os.environ["REA_TOOL_GREENHOUSE_FILE"])
