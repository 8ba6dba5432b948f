"""Which values of a tool's parameters an order speaks for: literally, or by a word that an example taught."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, product

from rea_edge.decision.grammar import choices
from rea_edge.evidence.lessons import spoken_for
from rea_edge.evidence.naming import Taught
from rea_edge.evidence.values import few_of, fits, is_number
from rea_edge.evidence.words import COMMON, numbers, words
from rea_edge.parameters import needed_in, shapes_of
from rea_edge.records import Args, Tool

_STEM = 4  # letters that two forms of a word share
_MOST = 1000  # assignments that are looked at


class Chosen:
    """The values that one text speaks for."""

    def __init__(self, text: str, taught: Taught) -> None:
        self._text = text
        self.words = words(text)
        self.numbers = numbers(text)
        self._taught = taught

    def of(self, tool: Tool, key: str, shape: object) -> list[object] | None:
        """The values of a parameter; None where any text may stand."""
        few = choices(shape)
        if few is not None and not _are_integers(few):
            meant = [value for value in few if value in self._meant(tool, key, few)]
            spoken = self.spoken(few)
            # For an act both count: "stop it from turning on" says two things.
            return spoken or meant if tool.effect == "read" else list(dict.fromkeys([*spoken, *meant]))
        if few is None and not is_number(shape):
            return None
        said = [int(number) if number.is_integer() else number for number in self.numbers]
        # A number that only a word stands for: with any word that was never taught it might be another number.
        known = self.words <= frozenset(word for one in self._taught.lessons for word in one.words) | COMMON
        meant = [value for value in self._meant(tool, key, few) if isinstance(value, int | float) and known]
        return [value for value in dict.fromkeys([*said, *meant]) if fits(shape, value)]

    def mentions(self, tool: Tool) -> bool:
        return any(self.spoken(some) or self.nearly(some) for _, some in few_of(tool))

    def spoken(self, values: Iterable[object]) -> list[object]:
        """Values whose every word is there; of "room" and "living room" the longer one."""
        found = [value for value in values if isinstance(value, str) and words(value) and words(value) <= self.words]
        return [one for one in found if not any(words(one) < words(str(other)) for other in found)]

    def nearly(self, values: Iterable[object]) -> list[object]:
        """Values that stand there in another form: "humid" for humidity. Enough for a reading, not for an act."""
        texts = [value for value in values if isinstance(value, str)]
        near = ((value, word) for value in texts for word in self.words if min(len(word), len(value)) >= _STEM)
        return [value for value, word in near if value.startswith(word) or word.startswith(value)]

    def last_place(self, value: object) -> int:
        """Where a value stands last; -1 where it is only meant."""
        return self._text.rfind(str(value).lower())

    def _meant(self, tool: Tool, key: str, few: Sequence[object] | None) -> list[object]:
        """Values that a word stands for in an example without numbers ("halfway")."""
        taught = [
            (one, one.act.args[key]) for one in self._taught.lessons if one.act is not None and key in one.act.args
        ]
        # Where an example says the value itself, its other words teach nothing about it.
        telling = frozenset(
            word
            for lesson, value in taught
            if not lesson.numbers and not words(str(value)) & lesson.ordered
            for word in lesson.ordered
        )
        # A word that is a value itself stands for nothing else, nor does one that names the tool: not the "door" that
        # by chance stands in the only example of its being unlocked.
        own = frozenset(word for _, some in few_of(tool) for value in some for word in words(str(value)))
        heard = (self.words & telling) - COMMON - own - self._taught.names.get(tool.name, frozenset())
        found = dict.fromkeys(spoken_for(heard, [(lesson.ordered, value) for lesson, value in taught]))
        return [value for value in found if few is None or value in few]


def single(candidates: dict[str, list[object]], said: Sequence[float]) -> Args | None:
    """The one way to give each parameter one of its values and use each number that was said once; None if there is
    none or more than one."""
    ways = []
    for values in islice(product(*candidates.values()), _MOST):
        given = [float(value) for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
        if not Counter(said) - Counter(given) and _no_more_than_said(given, said):
            ways.append(dict(zip(candidates, values, strict=True)))
    return ways[0] if len(ways) == 1 else None


def parameters(tool: Tool) -> Iterator[tuple[str, object, bool]]:
    """Key, schema and whether it is required."""
    for key, shape in shapes_of(tool.parameters).items():
        yield key, shape, key in needed_in(tool.parameters)


def _no_more_than_said(given: Sequence[float], said: Sequence[float]) -> bool:
    return all(count <= said.count(value) for value, count in Counter(given).items() if value in said)


def _are_integers(values: Sequence[object]) -> bool:
    return all(isinstance(value, int) and not isinstance(value, bool) for value in values)
