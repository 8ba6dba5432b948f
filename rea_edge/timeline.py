"""How much time has passed, over restarts, reboots and clocks that jump. Pure: told what the clocks say, reads none.

1. Within one boot the boot-time clock says it all. A wall clock that is set ahead or back meanwhile changes nothing.
2. Over a reboot at least the seconds of the new boot have passed. How long the board was off only a wall clock can
   say; it is believed where it was trusted at both ends, once in each boot: a second jump is no second time off.
3. Time off counts as a week at most. No wait is meant to be longer, and one clock that wrongly says ten years must not
   make all journals old enough to be deleted.
4. What is not known has not passed, and nothing runs backwards. So no wait ends too early; on a board without a
   trusted clock one may end later by the time that the board was off.

Only how old a waiting message may be is judged the other way round (`away_s`): what is not known may be for ever.
"""

import msgspec

from rea_edge.records import Frozen

OFF_MAX_S = 7 * 86_400.0
BEHIND_S = 86_400.0
STEP_S = 2.0  # a clock that is kept in step may be set back by so much


class Moment(Frozen, frozen=True, kw_only=True):
    """What the clocks say: which boot, boot-time seconds in it, and wall seconds (None: not trusted)."""

    boot: str
    boot_s: float
    wall: float | None = None


class Trust(Frozen, frozen=True, kw_only=True):
    """The newest wall time that was trusted, and since when (boot-time seconds) the clock has lain behind it."""

    newest: float | None = None
    behind_since_s: float | None = None


class Timeline(Frozen, frozen=True, kw_only=True):
    """The life of a state up to a moment: `lived_s` counts on over restarts and reboots.

    `wall` is the newest trusted time taken: the first of the boot `wall_boot`, when `wall_s` had been lived.
    """

    boot: str
    boot_s: float
    lived_s: float = 0.0
    wall: float | None = None
    wall_s: float = 0.0
    wall_boot: str = ""


def onward(line: Timeline | None, now: Moment) -> Timeline:
    """The same life up to now; None begins one."""
    if line is None:
        line = Timeline(boot=now.boot, boot_s=now.boot_s)
    began_s = line.boot_s if line.boot == now.boot else 0.0
    lived_s = line.lived_s + max(0.0, now.boot_s - began_s)
    line = msgspec.structs.replace(line, boot=now.boot, boot_s=now.boot_s, lived_s=lived_s)
    if now.wall is None or line.wall_boot == now.boot:
        return line
    if line.wall is not None:
        off_s = now.wall - line.wall - (lived_s - line.wall_s)
        lived_s += min(max(0.0, off_s), OFF_MAX_S)
    return msgspec.structs.replace(line, lived_s=lived_s, wall=now.wall, wall_s=lived_s, wall_boot=now.boot)


def judged(trust: Trust, wall: float, boot_s: float, *, synchronised: bool) -> tuple[Trust, bool]:
    """Whether a wall time may be believed: set from outside, and not before the newest that was.

    One that lies behind is believed once the clock has been set from outside for a day without a break: then it was
    the newest that was wrong, and a node must not stay without a clock until that year comes.
    """
    if not synchronised:
        return Trust(newest=trust.newest), False
    if trust.newest is not None and wall < trust.newest - STEP_S:
        since_s = boot_s if trust.behind_since_s is None else trust.behind_since_s
        if boot_s - since_s < BEHIND_S:
            return Trust(newest=trust.newest, behind_since_s=since_s), False
    return Trust(newest=wall), True


def today(line: Timeline) -> float | None:
    """Wall seconds, counted on from the first trusted time of this boot: steady, whatever the clock is set to.

    None while no time of this boot was trusted.
    """
    if line.wall is None or line.wall_boot != line.boot:
        return None
    return line.wall + line.lived_s - line.wall_s


def before(now: Moment, seconds: float) -> Moment:
    """The moment that was so long ago; in a boot that has not lasted so long, its begin."""
    seconds = min(seconds, now.boot_s)
    wall = None if now.wall is None else now.wall - seconds
    return Moment(boot=now.boot, boot_s=now.boot_s - seconds, wall=wall)


def away_s(last: Moment | None, now: Moment) -> float:
    """The most time that may have passed since a moment; for ever, where nothing says how long."""
    if last is None:
        return float("inf")
    if last.boot == now.boot:
        return max(0.0, now.boot_s - last.boot_s)
    if last.wall is None or now.wall is None:
        return float("inf")
    return max(now.boot_s, now.wall - last.wall)
