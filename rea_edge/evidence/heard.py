"""A goal beside what the examples teach: which tools, values and comparisons its words speak for."""

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from rea_edge.bounds import Bounds
from rea_edge.decision.grammar import choices, paths
from rea_edge.evidence.lessons import Lesson, lessons, shares, spoken_for
from rea_edge.evidence.values import allows, few_of, is_number, only
from rea_edge.evidence.words import COMMON, HELD_BACK, IF, QUESTION, before_place, first_word, numbers, operands, words
from rea_edge.records import Args, Calls, Guard, Tool

_STEM = 4  # letters that two forms of a word share
_NAMING = 0.5  # a word that names a tool stands in at least this share of its examples


class Heard:
    """A goal beside what the examples teach."""

    def __init__(self, goal: str, tools: Sequence[Tool], commands: int) -> None:
        self._goal = goal
        self._words = words(goal)
        self._numbers = numbers(goal)
        self._tools = tools
        self._lessons = [lesson for _, lesson in lessons(tools)]
        self._acts = [tool for tool in tools if tool.effect != "read"]
        self._one_line = commands == 1
        self._asks = first_word(goal) in QUESTION
        self._conditional = bool(self._words & (self._cues() | IF))
        self._tests = self._comparisons() if self._conditional else []
        self._named = {tool.name for tool in self._acts if self._words & self._names(tool)}

    def bounds(self) -> Bounds:
        return Bounds(
            plain=not self._conditional,
            # A goal that names a device orders something: a reading would pass for having done it.
            reads=not (self._named and self._one_line) or self._asks,
            tests=tuple(dict.fromkeys((op, value) for op, value, _ in self._tests)),
            paths={tool.name: self._paths(tool) for tool in self._tools if tool.effect == "read"}
            if self._tests
            else {},
            numbers=self._numbers,
            whole=self._one_line,
        )

    def narrow(self, tool: Tool) -> Tool | None:
        if tool.effect == "read":
            return self._narrow_read(tool)
        if tool.name not in self._named or (self._one_line and len(self._named) > 1):
            return None
        if self._asks:
            return None
        # Where several lines may run, a goal may be a sequence.
        held_back = HELD_BACK if self._one_line else HELD_BACK - {"then"}
        if self._conditional and self._one_line:
            held_back |= {"and"}
        if self._words & held_back - self._allowed_words(tool):
            return None
        return self._with_values(tool, strict=True)

    # --- tools

    def _narrow_read(self, tool: Tool) -> Tool | None:
        own = [lesson for lesson in self._lessons if lesson.act is not None and self._about(lesson, tool)]
        if not own:
            return tool  # nothing was taught about it
        others = [lesson for lesson in self._lessons if lesson not in own]
        foreign = frozenset(word for lesson in others for word in lesson.words)
        telling = frozenset(word for lesson in own for word in lesson.words) - foreign - COMMON
        if not (self._words & telling or self._mentions(tool)):
            return None
        return self._with_values(tool, strict=self._conditional)

    def _about(self, lesson: Lesson, tool: Tool) -> bool:
        return isinstance(lesson.decision, Calls) and lesson.decision.calls[0].name == tool.name

    def _mentions(self, tool: Tool) -> bool:
        return any(self._spoken(some) or self._nearly(some) for _, some in few_of(tool))

    def _nearly(self, values: Iterable[object]) -> list[object]:
        """Values of which the goal has another form: "humid" for humidity. Enough for a reading, not for an act."""
        texts = [value for value in values if isinstance(value, str)]
        near = ((value, word) for value in texts for word in self._words if min(len(word), len(value)) >= _STEM)
        return [value for value, word in near if value.startswith(word) or word.startswith(value)]

    def _names(self, tool: Tool) -> frozenset[str]:
        """The words that name an acting tool: parts of its name, else the words its examples have in common."""
        own = [lesson for lesson in self._lessons if lesson.act is not None and lesson.act.name == tool.name]
        parts = frozenset(tool.name.split("_"))
        if not own:
            return parts - {part for other in self._acts if other.name != tool.name for part in other.name.split("_")}
        share = shares(own)
        elsewhere = [
            shares([lesson for lesson in self._lessons if lesson.act is not None and lesson.act.name == other.name])
            for other in self._acts
            if other.name != tool.name
        ]
        refused = shares([lesson for lesson in self._lessons if lesson.decision is None])
        values = {word for _, some in few_of(tool) for value in some for word in words(str(value))}
        telling = {
            word: part
            for word, part in share.items()
            if part >= _NAMING
            and word not in COMMON | values
            and all(there.get(word, 0.0) < part / 2 for there in elsewhere)
            and refused.get(word, 0.0) < part / 2
        }
        most = max(telling.values(), default=0.0)
        named = frozenset(word for word in telling if word in parts)
        return named or frozenset(word for word, part in telling.items() if part == most)

    def _allowed_words(self, tool: Tool) -> frozenset[str]:
        own = (lesson.words for lesson in self._lessons if lesson.act is not None and lesson.act.name == tool.name)
        return frozenset(word for said in own for word in said)

    # --- conditions

    def _guards(self) -> list[tuple[Lesson, Guard]]:
        return [(lesson, lesson.decision) for lesson in self._lessons if isinstance(lesson.decision, Guard)]

    def _cues(self) -> frozenset[str]:
        """Words that stand in guarded examples alone."""
        counted = Counter(word for lesson, _ in self._guards() for word in lesson.words)
        # A noun that by chance no other example has is no cue: a cue is taught with more than one tool or twice.
        return frozenset(word for word, count in counted.items() if count > 1) - self._plain_words()

    def _comparisons(self) -> list[tuple[str, int | float | str, int]]:
        """What the goal compares with, how, and where that stands in it: the examples show the words right before."""
        taught: list[tuple[frozenset[str], object]] = []
        for lesson, guard in self._guards():
            for value, at in operands(lesson.say, [guard.value]):
                taught += (
                    [(before_place(lesson.say, at) - self._plain_words(), guard.op)] if value == guard.value else []
                )
        texts = {guard.value for _, guard in self._guards() if isinstance(guard.value, str)}
        return [
            (str(op), value, at)
            for value, at in operands(self._goal, [*self._numbers, *sorted(texts)])
            for op in dict.fromkeys(spoken_for(before_place(self._goal, at), taught))
        ]

    def _plain_words(self) -> frozenset[str]:
        return frozenset(word for one in self._lessons if not isinstance(one.decision, Guard) for word in one.words)

    def _paths(self, tool: Tool) -> tuple[str, ...]:
        """Where a result may be compared: as in an example, else in the only place there is."""
        shown = dict.fromkeys(guard.path for _, guard in self._guards() if guard.read.name == tool.name)
        return tuple(shown) or tuple(path for path, _ in paths(tool.returns) if len(paths(tool.returns)) == 1)

    # --- values

    def _with_values(self, tool: Tool, *, strict: bool) -> Tool | None:
        """The tool with each parameter cut down to the values the goal speaks for; None if one has none (strict)."""
        shapes = tool.parameters.get("properties")
        required = tool.parameters.get("required")
        if not isinstance(shapes, dict):
            return tool
        cut: Args = {}
        for key, shape in shapes.items():
            values = self._values(tool, key, shape)
            needed = isinstance(required, list) and key in required
            if values is None or (not values and not strict):
                cut[key] = shape
            elif values:
                cut[key] = only(values)
            elif needed:
                return None
        return msgspec.structs.replace(tool, parameters={**tool.parameters, "properties": cut})

    def _values(self, tool: Tool, key: str, shape: object) -> list[object] | None:
        """The values of a parameter that the goal speaks for; None where any text may stand."""
        few = choices(shape)
        if few is not None and not all(isinstance(value, int) and not isinstance(value, bool) for value in few):
            spoken = self._spoken(few)
            if tool.effect == "read" and self._tests and len(spoken) > 1:
                # Of several things that are named, the last one before the comparison is what is compared.
                before = self._goal.lower()[: self._tests[0][2]]
                spoken.sort(key=lambda value: before.rfind(str(value).lower()))
                spoken = spoken[-1:]
            if not spoken and tool.effect == "read" and not self._tests:
                spoken = self._nearly(few)
            return spoken or [value for value in few if value in self._meant(key, few)]
        if few is None and not is_number(shape):
            return None
        said = [int(number) if number.is_integer() else number for number in self._numbers]
        # A number that only a word stands for: with any word that was never taught it might be another number.
        known = self._words <= frozenset(word for one in self._lessons for word in one.words) | COMMON
        meant = [value for value in self._meant(key, few) if isinstance(value, int | float) and known]
        fits = [value for value in dict.fromkeys([*said, *meant]) if few is None or value in few]
        return [value for value in fits if allows(shape, value)]

    def _spoken(self, values: Iterable[object]) -> list[object]:
        return [value for value in values if isinstance(value, str) and words(value) and words(value) <= self._words]

    def _meant(self, key: str, few: Sequence[object] | None) -> list[object]:
        """Values that a word of the goal stands for in an example without numbers ("halfway")."""
        pairs = [
            (lesson.words, lesson.decision.calls[0].args[key])
            for lesson in self._lessons
            if isinstance(lesson.decision, Calls) and key in lesson.decision.calls[0].args
        ]
        plain = [
            (lesson.words, lesson.decision.calls[0].args[key])
            for lesson in self._lessons
            if isinstance(lesson.decision, Calls) and key in lesson.decision.calls[0].args and not lesson.numbers
        ]
        taught = [value for _, value in plain]
        found = spoken_for(self._words - COMMON, pairs)
        return [value for value in found if value in taught and (few is None or value in few)]
