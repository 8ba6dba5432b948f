"""How the bounds of a tool are written in `[gate.NAME]` or a declaration, read to the values of `Rule`. Pure.

rate    = number "/" ("second" / "minute" / "hour" / "day")
hours   = HH:MM "-" HH:MM        local time; over midnight where the second is the earlier one
"""

import re

from rea_edge.records import Hours, Rate

MOST_IN_A_RATE = 120  # starts that are remembered of one tool
_SECONDS = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0}
_RATE = re.compile(r"([1-9][0-9]{0,2})\s*/\s*(second|minute|hour|day)")
_HOURS = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])\s*-\s*([01][0-9]|2[0-3]):([0-5][0-9])")


def rate_of(text: str) -> Rate:
    """Read `6/minute`. Raises `ValueError` with what is expected."""
    found = _RATE.fullmatch(text.strip())
    if found is None or int(found[1]) > MOST_IN_A_RATE:
        raise ValueError(f"expected a rate such as 6/minute, at most {MOST_IN_A_RATE} per second, minute, hour or day")
    return Rate(times=int(found[1]), seconds=_SECONDS[found[2]])


def hours_of(text: str) -> Hours:
    """Read `07:00-22:00`. Raises `ValueError` with what is expected."""
    found = _HOURS.fullmatch(text.strip())
    if found is None:
        raise ValueError("expected hours such as 07:00-22:00")
    first, last = int(found[1]) * 60 + int(found[2]), int(found[3]) * 60 + int(found[4])
    if first == last:
        raise ValueError("expected two different times: the tool would never run, or always")
    return Hours(first=first, last=last)
