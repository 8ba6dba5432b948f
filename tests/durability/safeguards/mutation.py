"""One safeguard that can be taken away, and where the tests are that several subjects name. Changes nothing."""

from msgspec import Struct

Change = tuple[str, str, str]  # file, text that stands there once, what stands there instead

BORDERS = "tests/durability/test_borders.py"


class Mutation(Struct, frozen=True):
    """`tests` are those that must turn red: at least one of them."""

    name: str
    changes: tuple[Change, ...]
    tests: tuple[str, ...]
