"""One change that takes a safeguard away, as a value."""

from msgspec import Struct

Change = tuple[str, str, str]  # file, text that stands there once, what stands there instead


class Mutation(Struct, frozen=True):
    """`tests` are those that must turn red: at least one of them."""

    name: str
    changes: tuple[Change, ...]
    tests: tuple[str, ...]
