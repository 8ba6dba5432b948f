"""What a goal's words leave of the command language. Made by `evidence`, kept with the run; holds no rules."""

from msgspec import Struct, field


class Asked(Struct, frozen=True):
    """An act that a goal asks for, with those of its values that are certain."""

    tool: str
    args: dict[str, object]

    def is_done_by(self, tool: str, args: dict[str, object]) -> bool:
        return tool == self.tool and all(key in args and args[key] == value for key, value in self.args.items())


class Bounds(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`acts`: only these may act, and a run owes each of them; None where any may and none has to."""

    plain: bool  # an act may stand without a condition
    reads: bool = True  # a reading by itself may be the answer
    tests: tuple[tuple[str, int | float | str], ...] = ()  # how and with what a guard may compare
    paths: dict[str, tuple[str, ...]] = field(default_factory=dict)  # and where in a result, by reading tool
    acts: tuple[Asked, ...] | None = None
    why: str = ""  # none may act, though the goal orders something
