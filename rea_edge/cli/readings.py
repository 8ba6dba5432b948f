"""How a replay is shown: each answer then and now, and whether anything is read otherwise."""

import argparse
from collections.abc import Sequence

import msgspec

from rea_edge.replay import Reading
from rea_edge.screen import Screen


def show_readings(readings: Sequence[Reading], args: argparse.Namespace, screen: Screen) -> int:
    """Exit 0 only if every answer is read as it was when the task ran."""
    changed = sum(not reading.same for reading in readings)
    if args.json:
        screen.say(msgspec.json.encode(readings).decode())
        return 1 if changed else 0
    for reading in readings:
        screen.say(screen.paint(f"step {reading.step}  {reading.protocol}", "bold"))
        if reading.same:
            screen.say(screen.label("Same", reading.now, "green"))
        else:
            screen.say(screen.label("Then", reading.then, "yellow"))
            screen.say(screen.label("Now", reading.now, "red"))
    screen.say(f"{len(readings)} recorded answers, {changed} read otherwise now")
    return 1 if changed else 0
