"""What a goal's words leave of the command language. Made by `evidence`, kept with the run; holds no rules."""

from msgspec import Struct, field


class Bounds(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`numbers` are the goal's: each may be used once in a line, and `whole` says that each must be."""

    plain: bool  # an act may stand without a condition
    reads: bool = True  # a reading by itself may be the answer
    tests: tuple[tuple[str, int | float | str], ...] = ()  # how and with what a guard may compare
    paths: dict[str, tuple[str, ...]] = field(default_factory=dict)  # and where in a result, by reading tool
    numbers: tuple[float, ...] = ()
    whole: bool = True
