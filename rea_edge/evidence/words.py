"""The words and numbers of a text, and the few closed sets of words that mean the same everywhere."""

import re
from collections.abc import Sequence

# Words that stand in any question: they speak for no tool.
COMMON = frozenset(
    re.findall(
        r"\w+",
        "a an and are at be can could did do does for from have has how i in is it its me much many my now of out please "
        "s t tell that the there this to was we what when where which who will with would you your",
    )
)
# A condition in other words than those of the examples.
IF = frozenset(re.findall(r"\w+", "if when whenever whether once case should provided assuming 如果 要是 假如 的话"))
# Not now, not so, not at all: no act, unless an example of the tool uses the word itself.
HELD_BACK = frozenset(
    re.findall(
        r"\w+",
        "unless until till except but never not no dont without instead before after then while tomorrow tonight later "
        "soon daily hourly every each always yesterday or either neither 不要 不能 别 勿 除非 直到 之前 之后 明天 以后 "
        "每天 或者 吗 是否",
    )
)
# A goal that begins so asks and does not order.
QUESTION = frozenset(re.findall(r"\w+", "is are am was were what how why where who which does did has have"))
_WORD = re.compile(r"[^\W\d_]+|[\d]+")
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_NOT = re.compile(r"n['’]t\b")
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?")
_WINDOW = 2  # words before an operand that say how it is compared


def words(text: str) -> frozenset[str]:
    """The words of a text, in lower case, without numbers; of scripts without blanks, each pair of characters."""
    text = _NOT.sub(" not", text.lower())
    found = {word for word in _WORD.findall(_WIDE.sub(" ", text)) if not word[0].isdigit()}
    for run in _WIDE.findall(text):
        found |= {run} | {run[at : at + 2] for at in range(len(run) - 1)}
        found |= {word for word in IF | HELD_BACK if not word.isascii() and word in run}
    return frozenset(found)


def first_word(text: str) -> str:
    """The word that a text begins with, in lower case; empty where it has none."""
    found = _WORD.search(text.lower())
    return found[0] if found else ""


def numbers(text: str) -> tuple[float, ...]:
    """The numbers of a text in their order, as often as they stand there."""
    return tuple(float(found) for found in _NUMBER.findall(text))


def operands(text: str, wanted: Sequence[int | float | str]) -> list[tuple[int | float | str, int]]:
    """Where the wanted numbers and texts stand in a text."""
    found: list[tuple[int | float | str, int]] = []
    for hit in _NUMBER.finditer(text):
        number = float(hit[0])
        if number in wanted:
            found.append((int(number) if number.is_integer() else number, hit.start()))
    for value in wanted:
        if isinstance(value, str):
            hits = re.finditer(rf"\b{re.escape(value.lower())}\b", text.lower())
            found += [(value, hit.start()) for hit in hits]
    return found


def before_place(text: str, at: int) -> frozenset[str]:
    """The last words before a place."""
    said = _NOT.sub(" not", text[:at].lower())
    last = re.findall(r"[^\W\d_]+", said)[-_WINDOW:]
    return words(" ".join(word[-4:] if _WIDE.fullmatch(word) else word for word in last))
