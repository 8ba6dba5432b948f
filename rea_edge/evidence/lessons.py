"""What the examples of tools teach: which words go with which answer."""

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from rea_edge.decision.command import read_line
from rea_edge.errors import DecisionRejected
from rea_edge.evidence.clauses import clauses
from rea_edge.evidence.words import numbers, plain, words
from rea_edge.records import Args, Call, Calls, Guard, Offer, Tool


class Lesson(Struct, frozen=True):
    """One example as it is learned from: all its words, those outside its condition, those inside, and the numbers
    outside. `decision` is None for `cannot`."""

    say: str
    words: frozenset[str]
    ordered: frozenset[str]
    conditional: frozenset[str]
    numbers: tuple[float, ...]
    decision: Calls | Guard | None

    @property
    def act(self) -> Call | None:
        match self.decision:
            case Calls(calls=(first, *_)):
                return first
            case Guard(then=then):
                return then
        return None


def lessons_of(tools: Sequence[Tool]) -> list[tuple[Tool, Lesson]]:
    """Every example that can be read, with the tool it belongs to."""
    offers = [Offer.of(tool) for tool in tools]
    found = []
    for tool in tools:
        for example in tool.examples:
            try:
                decision = _decision(tool, example.answer, offers)
            except DecisionRejected:
                continue
            found.append((tool, _lesson(plain(example.say), decision)))
    return found


def _lesson(say: str, decision: Calls | Guard | None) -> Lesson:
    heard = words(say)
    if not isinstance(decision, Guard):
        return Lesson(say, heard, heard, frozenset(), numbers(say), decision)
    cut = clauses(say, heard, [decision.value] if isinstance(decision.value, str) else [])
    return Lesson(say, heard, words(cut.order), words(cut.condition), numbers(cut.order), decision)


def _decision(tool: Tool, answer: Args | str, offers: Sequence[Offer]) -> Calls | Guard | None:
    if not isinstance(answer, str):
        return Calls(calls=(Call(name=tool.name, args=answer),))
    read = read_line(answer, offers)
    return read if isinstance(read, Calls | Guard) else None


def spoken_for(heard: frozenset[str], pairs: Sequence[tuple[frozenset[str], object]]) -> list[object]:
    """Keys for which a heard word speaks: one that stands in examples with this key and in none with another."""
    keys: dict[str, list[object]] = {}
    for said, key in pairs:
        for word in said & heard:
            known = keys.setdefault(word, [])
            if key not in known:
                known.append(key)
    return [only for known in keys.values() if len(known) == 1 for only in known]


def shares(taught: Sequence[Lesson]) -> dict[str, float]:
    """In which part of the examples each ordering word stands."""
    counted = Counter(word for lesson in taught for word in lesson.ordered)
    return {word: count / len(taught) for word, count in counted.items()}
