"""What a check has found, and how it is shown."""

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from rea_edge.cli.explain import Explained, lines
from rea_edge.screen import Screen, harmless


class Found(Struct, frozen=True, omit_defaults=True):
    """One thing looked at: ok, or what to do; and what a tool is."""

    what: str
    ok: bool
    words: str
    tool: Explained | None = None


def tell(screen: Screen, found: Sequence[Found], *, as_json: bool = False) -> None:
    if as_json:
        screen.say(msgspec.json.encode(found).decode())
        return
    for one in found:
        mark = screen.paint("ok   ", "green") if one.ok else screen.paint("WRONG", "red")
        screen.say(f"{mark} {one.what}: {one.words}")
        for line in () if one.tool is None else lines(one.tool):
            screen.say(f"        {harmless(line)}")
