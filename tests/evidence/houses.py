"""The tools of the forty tasks and of the held-out ones, by house, as they declare themselves."""

from functools import cache
from pathlib import Path

from rea_edge.records import Tool
from rea_edge.toolhost.load import declarations
from tests.forty.tasks import TOOLS, House

ROOT = Path(__file__).resolve().parent.parent.parent
FILES: dict[House, Path] = {
    "boiler": ROOT / "tools" / "boiler.py",
    "board": ROOT / "tools" / "board.py",
    "yard": ROOT / "tests" / "forty" / "yard.py",
    "greenhouse": ROOT / "tests" / "forty" / "greenhouse.py",
    "cellar": ROOT / "tests" / "forty" / "cellar.py",
}


@cache
def tools_of(house: House) -> tuple[Tool, ...]:
    declared = {tool.name: tool for tool in declarations(str(FILES[house]), 10.0)}
    return tuple(declared[name] for name in sorted(TOOLS[house]))
