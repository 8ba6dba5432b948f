"""What another node's card says of its tools: read, compared with what was accepted of it, made tools of here. Pure.

A card is anybody's who may write there. Nothing of it counts before a person has accepted it, and of what was accepted
nothing that has changed since. Its words reach a model as data: in quotes, cut, without what could be taken for a role.
"""

import re
from collections.abc import Collection, Mapping

import msgspec
from msgspec import Struct

from rea_edge import canonical, schema
from rea_edge.basics import Frozen
from rea_edge.errors import ToolInvalid
from rea_edge.markup import plain
from rea_edge.records import Args, Confirm, EffectClass, Rule, Tool

CARD_MAX = 32 * 1024  # bytes: what a node publishes at most
DECLARATION_MAX = 8 * 1024  # bytes, as JSON, of one tool: a model has to read them all
DESCRIPTION_MAX = 300  # characters
WORDS_MAX = 120  # characters of what a parameter says of itself, and of one word that it takes
MOST_DEPTH = 12  # of a schema
WAY_S = 5.0  # what a call takes besides its tool: two brokers' hops, and the queue for a lane there
PROMPT_S = 2.0  # that most calls should take; what its tool itself takes, its own node watches
LONGEST_S = 3600.0
MOST_COST = 1e9
STRICTNESS: tuple[EffectClass, ...] = ("read", "idempotent", "once")

_KEPT = frozenset({
    "type", "enum", "const", "anyOf", "oneOf", "properties", "required", "additionalProperties", "items", "minItems",
    "maxItems", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
    "$ref", "$defs", "default",
})  # fmt: skip
# Not among them: `pattern`. Matching one that was made for it takes for ever, and its own node checks it anyway.
# `plain` takes these out at the start of a line; here all is one line.
_SPEAKER = re.compile(
    r"\b(system|user|assistant|human|developer|tool|observation|action|answer)\s*[:：]", re.IGNORECASE
)


class CardInvalid(ValueError):
    """What came is no card. The message says why, for the operator."""


class Declaration(Frozen, frozen=True, kw_only=True):
    """One tool, as the card of its node says it: what is accepted, and must stay so. Other keys are not looked at."""

    effect: EffectClass
    description: str = ""
    parameters: Args = {}
    returns: Args | None = None
    takes_s: float = 10.0  # at most, all attempts together, and the wait for a person where there is one
    confirm: Confirm = "never"
    cost: float = 0.0
    outward: bool = False

    @property
    def digest(self) -> str:
        return canonical.body_hash(msgspec.to_builtins(self))


class Card(Struct, frozen=True, kw_only=True):
    """What a card says of the tools that are wanted. `wrong` names those whose declaration cannot be used, and why."""

    tools: dict[str, Declaration]
    wrong: dict[str, str] = {}
    epoch: str = ""
    tools_hash: str = ""
    cut: bool = False  # it was too large for a message: names and effects are all it has


class Pin(Frozen, frozen=True, kw_only=True):
    """What a person has accepted of a peer: as it stands in a file."""

    v: int = 1
    node: str
    root: str
    at: str | None = None
    tools_hash: str = ""
    tools: dict[str, Declaration]


class Terms(Struct, frozen=True, kw_only=True):
    """What this node's configuration says of one tool of a peer."""

    called: str
    node: str
    source: str
    effect: EffectClass = "once"
    timeout_s: float | None = None


def read_card(payload: bytes, wanted: Collection[str]) -> Card:
    """Read a card as far as the wanted tools go. Raises CardInvalid where it is none. Whether a tool can be made of what
    is said is not looked at: `tool_of` says that, of what a person is about to accept."""
    if len(payload) > CARD_MAX:
        raise CardInvalid(f"its card has {len(payload)} bytes, at most {CARD_MAX} are read")
    try:
        card = canonical.parse(payload)
    except ValueError as exc:
        raise CardInvalid(f"its card is not good JSON: {exc}") from None
    if not isinstance(card, dict) or not isinstance(card.get("tools"), list):
        raise CardInvalid("its card has no list of tools")
    found: dict[str, Declaration] = {}
    wrong: dict[str, str] = {}
    for entry in card["tools"]:
        name = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(name, str) or name not in wanted:
            continue
        if name in found or name in wrong:
            wrong[name] = "its card has it twice"
            continue
        try:
            found[name] = _declared(entry)
        except ValueError as exc:
            wrong[name] = shown(str(exc), DESCRIPTION_MAX)
    return Card(
        tools={name: one for name, one in found.items() if name not in wrong},
        wrong=wrong,
        epoch=_text(card.get("epoch")),
        tools_hash=_text(card.get("tools_hash")),
        cut="cut" in card,
    )


def differences(pinned: Mapping[str, Declaration], card: Card) -> dict[str, str]:
    """The accepted tools that the card does not say the same of, each with what is wrong."""
    found: dict[str, str] = {}
    for name, one in pinned.items():
        if name in card.wrong:
            found[name] = card.wrong[name]
        elif name not in card.tools:
            found[name] = "is gone"
        elif card.tools[name].digest != one.digest:
            found[name] = f"changed ({', '.join(changed_keys(one, card.tools[name]))})"
    return found


def changed_keys(old: Declaration, new: Declaration) -> list[str]:
    """What two declarations say differently."""
    return [key for key in Declaration.__struct_fields__ if getattr(old, key) != getattr(new, key)]


def tool_of(declared: Declaration, terms: Terms) -> Tool:
    """The tool as this node offers it: the stricter of the two effects. Raises ToolInvalid for what cannot be used."""
    place = f"{terms.source}: {terms.called}"
    parameters = _plain_schema(declared.parameters, place, 0)
    schema.compile(parameters, place=place)
    returns = None if declared.returns is None else _plain_schema(declared.returns, place, 0)
    said = msgspec.json.encode(shown(declared.description, DESCRIPTION_MAX)).decode()
    return Tool(
        name=terms.called,
        description=f"{terms.node} says of it: {said}",
        parameters=parameters,
        returns=returns,
        effect=max(declared.effect, terms.effect, key=STRICTNESS.index),
        kind="node",
        timeout_s=terms.timeout_s or min(declared.takes_s + WAY_S, LONGEST_S),
        outward=declared.outward,
        p95_s=PROMPT_S if declared.confirm == "never" else declared.takes_s,  # a person's time is nobody's fault
        rule=Rule(cost=declared.cost) if declared.cost else None,
        source=terms.source,
    )


def shown(text: str, most: int) -> str:
    """A text from a card as one line that is no more than text."""
    line = _SPEAKER.sub(r"\1 -", " ".join(plain(text).split()))
    return line if len(line) <= most else line[: most - 1] + "…"


def _declared(entry: dict[str, object]) -> Declaration:
    if (size := len(msgspec.json.encode(entry))) > DECLARATION_MAX:
        raise ValueError(f"its declaration has {size} bytes, at most {DECLARATION_MAX} are read")
    one = msgspec.convert(entry, Declaration)
    if not 0 < one.takes_s <= LONGEST_S:
        raise ValueError(f"takes_s {one.takes_s!r} is no number of seconds up to {LONGEST_S:g}")
    if not 0 <= one.cost <= MOST_COST:
        raise ValueError(f"cost {one.cost!r} is no number up to {MOST_COST:g}")
    return one


def _plain_schema(value: object, place: str, depth: int) -> Args:
    """A schema without what says nothing or should not be run; its words as data."""
    if not isinstance(value, dict) or depth > MOST_DEPTH:
        raise ToolInvalid(place, "its parameters are no schema" if depth <= MOST_DEPTH else "its schema is too deep")
    plain: Args = {}
    for key, one in value.items():
        match key, one:
            case ("description", str()):
                plain[key] = shown(one, WORDS_MAX)
            case ("properties" | "$defs", dict()):
                plain[key] = {_word(name, place): _plain_schema(part, place, depth + 1) for name, part in one.items()}
            case ("anyOf" | "oneOf", list()):
                plain[key] = [_plain_schema(part, place, depth + 1) for part in one]
            case ("items" | "additionalProperties", dict()):
                plain[key] = _plain_schema(one, place, depth + 1)
            case ("enum" | "required", list()):
                plain[key] = [_word(part, place) for part in one]
            case ("default", dict() | list()):
                pass  # says nothing here, like all that is not kept
            case _ if key in _KEPT:
                plain[key] = _word(one, place)
            case _:
                pass
    return plain


def _word(value: object, place: str) -> object:
    """A value that stands in a schema: refused where it is more than a word, for it could not be given as it is."""
    for text in value if isinstance(value, list) else [value]:
        if isinstance(text, dict | list):
            raise ToolInvalid(place, "in its schema there is a list or table where a word should be")
        if isinstance(text, str) and shown(text, WORDS_MAX) != " ".join(text.split()):
            raise ToolInvalid(
                place, f"{shown(text, 40)!r} in its schema is too long, or holds signs that are no word's"
            )
    return value


def _text(value: object) -> str:
    return value if isinstance(value, str) and len(value) <= 128 else ""
