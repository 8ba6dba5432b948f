"""A yard with lamps, a heater, meters and services: tools like a board's, whose world is one JSON file.

The file is $REA_TOOL_YARD_FILE: `levels`, `services`, and `journal`, which gets an entry per effect. Nothing moves
by itself.
"""

import json
import os
from pathlib import Path
from typing import Annotated, Literal, TypedDict

from msgspec import Meta

from rea_edge.tool import tool

Meter = Literal["tank", "battery", "light", "humidity"]
Place = Literal["porch", "hall", "garage"]
Service = Literal["nginx", "mosquitto", "telegraf"]
Switch = Literal["on", "off"]


class Level(TypedDict):
    value: float
    unit: str


class Health(TypedDict):
    state: Literal["active", "failed"]


class Done(TypedDict):
    done: bool


@tool(
    effect="read",
    examples=[
        ("How much water is in the tank?", {"name": "tank"}),
        ("What does the battery say?", {"name": "battery"}),
        ("Read the light level.", {"name": "light"}),
        ("What is the humidity?", {"name": "humidity"}),
        ("Is the tank empty?", {"name": "tank"}),
        ("Who won the game?", "cannot"),
    ],
)
def read_level(name: Meter) -> Level:
    """Read a meter: tank, battery or humidity in percent, light in lux."""
    return {"value": _world()["levels"][name], "unit": "lux" if name == "light" else "%"}


@tool(
    effect="idempotent",
    examples=[
        ("Switch on the hall lamp.", {"place": "hall", "state": "on"}),
        ("Turn the garage lamp off.", {"place": "garage", "state": "off"}),
        ("Light up the porch.", {"place": "porch", "state": "on"}),
        (
            "Turn on the hall lamp if the light is below 40.",
            "if read_level light -> value < 40 then set_lamp place=hall state=on",
        ),
        (
            "Turn the porch lamp off if the battery is under 15.",
            "if read_level battery -> value < 15 then set_lamp place=porch state=off",
        ),
        ("Paint the fence.", "cannot"),
    ],
)
def set_lamp(place: Place, state: Switch) -> Done:
    """Switch a lamp on or off."""
    return _act("set_lamp", {"place": place, "state": state})


@tool(
    effect="idempotent",
    examples=[
        ("Set the heater to 18 degrees.", {"celsius": 18}),
        ("Heat to 25 degrees.", {"celsius": 25}),
        (
            "Set the heater to 20 if the humidity is over 80.",
            "if read_level humidity -> value > 80 then set_heater celsius=20",
        ),
        ("Mow the grass.", "cannot"),
    ],
)
def set_heater(celsius: Annotated[int, Meta(ge=5, le=30)]) -> Done:
    """Set the heater's thermostat."""
    return _act("set_heater", {"celsius": celsius})


@tool(
    effect="read",
    examples=[
        ("Is mosquitto running?", {"name": "mosquitto"}),
        ("What is the state of nginx?", {"name": "nginx"}),
        ("Is telegraf up?", {"name": "telegraf"}),
        ("Check the mosquitto service.", {"name": "mosquitto"}),
    ],
)
def service_status(name: Service) -> Health:
    """Tell whether a service is active or has failed."""
    return {"state": _world()["services"][name]}


@tool(
    effect="once",
    examples=[
        ("Restart nginx.", {"name": "nginx"}),
        (
            "Restart telegraf if it is not active.",
            "if service_status telegraf -> state != active then restart_service telegraf",
        ),
        (
            "If mosquitto has failed, restart it.",
            "if service_status mosquitto -> state == failed then restart_service mosquitto",
        ),
        ("Install a new kernel.", "cannot"),
    ],
)
def restart_service(name: Service) -> Done:
    """Restart a service."""
    return _act("restart_service", {"name": name})


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
    return Path(os.environ["REA_TOOL_YARD_FILE"])
