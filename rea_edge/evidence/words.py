"""The words and numbers of a text, and the few closed sets of words that mean the same everywhere."""

import re
from collections.abc import Sequence
from typing import NamedTuple

# Words that stand in any question: they speak for no tool.
COMMON = frozenset(
    re.findall(
        r"\w+",
        "a an and are at be can could did do does for from have has how i in is it its me much many my now of out please "
        "s t tell that the there this to was we what when where which who will with would you your",
    )
)
# Said to be polite or of the moment: they ask for nothing.
POLITE = frozenset(re.findall(r"\w+", "please kindly hey hello hi ok okay thanks thank so just right immediately 请"))
# A condition in other words than those of the examples.
IF = frozenset(re.findall(r"\w+", "if when whenever whether once case should provided assuming 如果 要是 假如 的话"))
# Not now, not so, not at all: no act, unless an example of the tool uses the word itself.
HELD_BACK = frozenset(
    re.findall(
        r"\w+",
        "unless until till except but never not no dont without instead before after then while tomorrow tonight later "
        "soon daily hourly every each always yesterday or either neither else otherwise avoid prevent pretend simulate "
        "cancel remind undo 不要 不能 不 没 未 别 勿 除非 直到 之前 之后 明天 以后 每天 或者 否则 吗 是否",
    )
)
# Not this thing or not this value, but one that is counted from it.
RELATIVE = frozenset(
    re.findall(r"\w+", "by more less another other different further warmer colder hotter cooler higher lower")
)
# Something else is asked besides.
BESIDES = frozenset(re.findall(r"\w+", "and also plus both together afterwards 和 并 且 再 然后 同时"))
# What a reading does, in a condition.
CHANGES = frozenset(
    re.findall(r"\w+", "goes gets rises climbs drops falls sinks reads shows becomes stays been degree degrees value")
)
# What was named before.
PRONOUN = frozenset(re.findall(r"\w+", "it its them they that this 它"))
# How things are is said, and nothing ordered.
STATES = frozenset({"is", "are", "am", "was", "were", "s"})
# Before a condition these only ask about it.
ASKING = frozenset(re.findall(r"\w+", "let know see check whether find look"))
# A goal that begins so asks and does not order.
QUESTION = frozenset(re.findall(r"\w+", "is are am was were what how why where who which does did has have"))
# Of each pair the first is heard as the second.
_SAME = {"shut": "close", "halt": "stop", "begin": "start", "commence": "start"}
_WORD = re.compile(r"[^\W\d_]+|[\d]+")
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_NOT = re.compile(r"\bcannot\b|(?:\bca)?n['’]t\b")
_NUMBER = re.compile(r"(?:(?<![\w.])|(?<=[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]))-?\d+(?:\.\d+)?")
_WINDOW = 2  # words before an operand that say how it is compared


class Operand(NamedTuple):
    """A number or text, and where it stands."""

    value: int | float | str
    at: int
    end: int


def plain(text: str) -> str:
    """The text in lower case, with "not" for "n't"."""
    return _NOT.sub(" not", text.lower())


def words(text: str) -> frozenset[str]:
    """The words of a text, in lower case, without numbers; of scripts without blanks, each pair of characters."""
    text = plain(text)
    found = {_SAME.get(word, word) for word in _WORD.findall(_WIDE.sub(" ", text)) if not word[0].isdigit()}
    for run in _WIDE.findall(text):
        found |= {run} | {run[at : at + 2] for at in range(len(run) - 1)}
        found |= {word for word in IF | HELD_BACK | BESIDES if not word.isascii() and word in run}
    return frozenset(found)


def first_word(text: str) -> str:
    """The word that a text begins with, in lower case; empty where it has none."""
    found = _WORD.search(text.lower())
    return found[0] if found else ""


def numbers(text: str) -> tuple[float, ...]:
    """The numbers of a text in their order, as often as they stand there."""
    return tuple(float(found) for found in _NUMBER.findall(text))


def operands(text: str, wanted: Sequence[int | float | str]) -> list[Operand]:
    """Where the wanted numbers and texts stand in a text."""
    found = []
    counted = {value for value in wanted if not isinstance(value, str)}
    for hit in _NUMBER.finditer(text):
        number = float(hit[0])
        if number in counted:
            found.append(Operand(int(number) if number.is_integer() else number, hit.start(), hit.end()))
    for value in wanted:
        if isinstance(value, str):
            hits = re.finditer(rf"\b{re.escape(value.lower())}\b", text.lower())
            found += [Operand(value, hit.start(), hit.end()) for hit in hits]
    return found


def units(text: str) -> list[str]:
    """The words right after each number of a text: its unit, where there is one. "20C" has one too."""
    found = (re.match(r"\s*([^\W\d_]+)", text[hit.end() :].lower()) for hit in _NUMBER.finditer(text))
    return [unit[1] for unit in found if unit]


def before_place(text: str, at: int) -> frozenset[str]:
    """The last words before a place."""
    said = plain(text[:at])
    last = re.findall(r"[^\W\d_]+", said)[-_WINDOW:]
    return words(" ".join(word[-4:] if _WIDE.fullmatch(word) else word for word in last))
