"""`{name}` in a declaration, filled with the arguments of a call. Pure.

In a text each place becomes the text of its value. A text that is one place alone becomes the value itself, of its own
type, where a value is meant and not a text.
"""

from collections.abc import Iterator, Mapping

from msgspec import UNSET, UnsetType

from rea_edge.parameters import PLACE, text_of

REQUEST_ID = "request_id"  # stands for the id of the call, like a parameter

Known = Mapping[str, object]


class Unfit(Exception):
    """What cannot be sent as it is declared or asked; the message says why. Nothing was sent."""


def places_in(value: object) -> Iterator[str]:
    """The names that stand in a text, or in the texts of a value, keys not counted."""
    match value:
        case str():
            yield from PLACE.findall(value)
        case dict():
            for inner in value.values():
                yield from places_in(inner)
        case list():
            for inner in value:
                yield from places_in(inner)


def filled_text(template: str, known: Known) -> str:
    """The text with every place filled. Raises Unfit where there is no value, or none that is one text."""
    return PLACE.sub(lambda found: one_text(found[1], known), template)


def one_text(name: str, known: Known) -> str:
    if name not in known:
        raise Unfit(f"{name} is not given")
    text = text_of(known[name])
    if text is None:
        raise Unfit(f"{name} is {known[name]!r}, not one text, number or boolean")
    return text


def filled_value(template: object, known: Known) -> object | UnsetType:
    """The value with every place filled. What stands for an argument that is not given is left out of its table; UNSET
    where that is the whole. Raises Unfit where a text around a place cannot be filled."""
    match template:
        case str():
            alone = PLACE.fullmatch(template)
            return known.get(alone[1], UNSET) if alone else filled_text(template, known)
        case dict():
            pairs = ((key, filled_value(inner, known)) for key, inner in template.items())
            return {key: inner for key, inner in pairs if inner is not UNSET}
        case list():
            return [inner for inner in (filled_value(one, known) for one in template) if inner is not UNSET]
    return template
