"""A simulated boiler room: temperatures that move with time, a pump, a fan, a valve and an alarm.

The room lives in one JSON file, written whole or not at all, so that anyone can look at it from outside: `journal`
holds the latest effects with their request ids, `count` how often each tool has acted. The file
is $REA_TOOL_BOILER_FILE; without it `boiler.json` in the folder that the host names in $REA_STATE_DIR.
"""

import fcntl
import json
import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal, TypedDict

from msgspec import Meta

from rea_edge.tool import request_id, tool

JOURNAL_LENGTH = 200

Sensor = Literal["boiler", "flow", "room", "pressure"]
# Listed, not any text: what a tool may say of itself is what a model cannot be misled by.
Unit = Literal["C", "bar"]
# Words rather than true and false: a tiny model says `set_fan off` of itself, and misses `on=false`.
Switch = Literal["on", "off"]


class Reading(TypedDict):
    value: float
    unit: Unit


class Switched(TypedDict):
    state: Switch


class Opened(TypedDict):
    percent: int


class Sounded(TypedDict):
    seconds: int


class Entry(TypedDict):
    """One effect: which tool, with what, for which request, and when (unix time)."""

    tool: str
    args: dict[str, str | int]
    request_id: str
    at: float


class Room(TypedDict):
    """The room as it was `at` a moment; what came after is computed from the elapsed time."""

    at: float
    celsius: dict[str, float]
    pump: Switch
    fan: Switch
    valve: int
    count: dict[str, int]
    journal: list[Entry]


@tool(
    effect="read",
    timeout_s=5.0,
    examples=[
        ("How hot is the boiler?", {"name": "boiler"}),
        ("What is the temperature of the flow?", {"name": "flow"}),
        ("Check the boiler.", {"name": "boiler"}),
        ("Is the room cold?", {"name": "room"}),
        ("What is the weather in Paris?", "cannot"),
        ("What is the temperature in the room?", {"name": "room"}),
        ("Tell me the temperature of the boiler.", {"name": "boiler"}),
        ("How high is the pressure?", {"name": "pressure"}),
    ],
)
def read_sensor(name: Sensor) -> Reading:
    """Read one sensor of the boiler room: a temperature in C, or the pressure in bar."""
    celsius = _looked()["celsius"]
    if name == "pressure":
        # Water expands: about 1.2 bar cold and 2.0 bar at 80 C.
        return {"value": round(1.0 + celsius["boiler"] / 80.0, 2), "unit": "bar"}
    return {"value": round(celsius[name], 1), "unit": "C"}


@tool(
    effect="idempotent",
    timeout_s=5.0,
    examples=[
        ("Start the pump.", {"state": "on"}),
        ("Turn off the pump.", {"state": "off"}),
        ("Turn the pump off if the flow is under 20.", "if read_sensor flow -> value < 20 then set_pump off"),
        ("Switch on the pump.", {"state": "on"}),
        ("Start the pump if the boiler is over 45.", "if read_sensor boiler -> value > 45 then set_pump on"),
        ("Run the pump if the room is below 15.", "if read_sensor room -> value < 15 then set_pump on"),
        ("Open the garage door.", "cannot"),
    ],
)
def set_pump(state: Switch) -> Switched:
    """Start or stop the circulation pump."""
    with _changing("set_pump", {"state": state}) as room:
        room["pump"] = state
    return {"state": state}


@tool(
    effect="idempotent",
    timeout_s=5.0,
    examples=[
        ("Switch the fan on.", {"state": "on"}),
        ("Stop the fan.", {"state": "off"}),
        ("Stop the fan if the boiler is below 40.", "if read_sensor boiler -> value < 40 then set_fan off"),
        ("Send an email.", "cannot"),
        ("Start the fan if the boiler is above 90.", "if read_sensor boiler -> value > 90 then set_fan on"),
        ("Turn off the fan.", {"state": "off"}),
        ("Turn on the fan if the flow is over 75.", "if read_sensor flow -> value > 75 then set_fan on"),
    ],
)
def set_fan(state: Switch) -> Switched:
    """Start or stop the fan that cools the boiler."""
    with _changing("set_fan", {"state": state}) as room:
        room["fan"] = state
    return {"state": state}


@tool(
    effect="idempotent",
    timeout_s=5.0,
    examples=[
        ("Open the valve halfway.", {"percent": 50}),
        ("Close the valve.", {"percent": 0}),
        (
            "Close the valve if the pressure is over 2.",
            "if read_sensor pressure -> value > 2 then set_valve percent=0",
        ),
        ("Set the valve to 20 percent.", {"percent": 20}),
        ("Open the valve fully.", {"percent": 100}),
        (
            "Open the valve to 60 percent if the room is under 17.",
            "if read_sensor room -> value < 17 then set_valve percent=60",
        ),
    ],
)
def set_valve(percent: Annotated[int, Meta(ge=0, le=100)]) -> Opened:
    """Open the heating valve to a percentage: 0 is closed, 100 fully open."""
    with _changing("set_valve", {"percent": percent}) as room:
        room["valve"] = percent
    return {"percent": percent}


@tool(
    effect="once",
    timeout_s=5.0,
    examples=[
        ("Sound the alarm for 5 seconds.", {"seconds": 5}),
        ("Ring the alarm for 10 seconds.", {"seconds": 10}),
        (
            "If the boiler is over 95, sound the alarm for 15 seconds.",
            "if read_sensor boiler -> value > 95 then sound_alarm seconds=15",
        ),
        ("Sing a song.", "cannot"),
    ],
)
def sound_alarm(seconds: Annotated[int, Meta(ge=1, le=60)]) -> Sounded:
    """Sound the alarm of the boiler room for some seconds."""
    with _changing("sound_alarm", {"seconds": seconds}):
        pass
    return {"seconds": seconds}


# --- the room


def _new(at: float) -> Room:
    celsius = {"boiler": 72.0, "flow": 55.0, "room": 24.0}
    return {"at": at, "celsius": celsius, "pump": "off", "fan": "off", "valve": 40, "count": {}, "journal": []}


def _goals(room: Room) -> dict[str, tuple[float, float]]:
    """Where each temperature would settle if nothing were touched, in C, and how slowly it goes there, in seconds."""
    boiler = 74.0 - (26.0 if room["fan"] == "on" else 0.0) - (6.0 if room["pump"] == "on" else 0.0)
    flow = 22.0 + (boiler - 22.0) * (0.9 if room["pump"] == "on" else 0.6)
    warm = 18.0 + (flow - 18.0) * room["valve"] / 200.0
    return {"boiler": (boiler, 120.0), "flow": (flow, 60.0), "room": (warm, 900.0)}


def _now(room: Room, at: float) -> Room:
    """Let the time since `room` pass. A clock that was set back counts as no time at all."""
    elapsed_s = max(0.0, at - room["at"])
    celsius = {
        name: goal + (room["celsius"][name] - goal) * math.exp(-elapsed_s / slowness_s)
        for name, (goal, slowness_s) in _goals(room).items()
    }
    return {**room, "at": at, "celsius": celsius}


def _looked() -> Room:
    """The room as it is now. The first look starts it, so that from then on its temperatures move."""
    path = _file()
    with _lock(path):
        return _now(_load(path), time.time())


@contextmanager
def _changing(name: str, args: dict[str, str | int]) -> Iterator[Room]:
    """Hold the room, give it as it is now, and write it back with one more journal entry."""
    path = _file()
    with _lock(path):
        at = time.time()
        room = _now(_load(path), at)
        yield room
        room["count"][name] = room["count"].get(name, 0) + 1
        room["journal"].append({"tool": name, "args": args, "request_id": request_id(), "at": at})
        del room["journal"][:-JOURNAL_LENGTH]
        _write(path, room)


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    # The lock has a file of its own: the room's is replaced at every write.
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(path.name + ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _load(path: Path) -> Room:
    try:
        text = path.read_text()
    except FileNotFoundError:
        room = _new(time.time())
        _write(path, room)
        return room
    found: Room = json.loads(text)
    return found


def _write(path: Path, room: Room) -> None:
    fresh = path.with_name(path.name + ".new")
    fresh.write_text(json.dumps(room, indent=1))
    fresh.replace(path)


def _file() -> Path:
    named = os.environ.get("REA_TOOL_BOILER_FILE")
    return Path(named) if named else Path(os.environ.get("REA_STATE_DIR", ".")) / "boiler.json"
