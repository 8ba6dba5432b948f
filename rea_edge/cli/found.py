"""What a check has found, and how it is shown."""

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from rea_edge.screen import Screen


class Found(Struct, frozen=True):
    """One thing looked at: ok, or what to do."""

    what: str
    ok: bool
    words: str


def tell(screen: Screen, found: Sequence[Found], *, as_json: bool = False) -> None:
    if as_json:
        screen.say(msgspec.json.encode(found).decode())
        return
    for one in found:
        mark = screen.paint("ok   ", "green") if one.ok else screen.paint("WRONG", "red")
        screen.say(f"{mark} {one.what}: {one.words}")
