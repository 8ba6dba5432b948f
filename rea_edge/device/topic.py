"""Which topics a tool may use: plain ones, and none of this system's own. Pure.

What is published below the root is a request to a node, with the rights of this one; so no tool gets there.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice, product

from rea_edge.device.places import Known, Unfit, one_text
from rea_edge.parameters import PLACE, shape_of
from rea_edge.records import Args, Exchange, Tool

TOPIC_MOST = 256  # bytes; some brokers of clouds close the connection above it
COMBINATIONS_MOST = 1000


def topic_fault(topic: str) -> str:
    """Why no tool may use this topic, empty if it may. The root is another matter, see `reaches`."""
    if not topic:
        return "it is empty"
    if topic.startswith("$"):
        return "it begins with '$', which is the broker's own"
    if found := next((one for one in topic if one in "+#"), ""):
        return f"{found!r} is a wildcard"
    if any(map(_unprintable, topic)):
        return "it holds a control character, or one that is none of Unicode"
    if len(topic.encode()) > TOPIC_MOST:
        return f"it has more than {TOPIC_MOST} bytes"
    return ""


def reaches(topic: str, root: str) -> bool:
    return topic == root or topic.startswith(f"{root}/")


def filled_topic(template: str, parameters: Args, known: Known) -> str:
    """The topic of a call. Raises Unfit where an argument would make another topic of it than is declared."""

    def part(found: re.Match[str]) -> str:
        text = one_text(found[1], known)
        if choices(parameters, found[1]) is None and (
            not text or set(text) & set("/+#") or any(map(_unprintable, text))
        ):
            raise Unfit(
                f"{found[1]} is {text!r}: a part of a topic is not empty and has no /, +, # or control character"
            )
        return text

    topic = PLACE.sub(part, template)
    if why := topic_fault(topic):
        raise Unfit(f"the topic {topic!r} cannot be used: {why}")
    return topic


def choices(parameters: Args, name: str) -> Sequence[object] | None:
    """The values that the declaration itself gives for a parameter; None where it is free."""
    shape = shape_of(parameters, name)
    listed = shape.get("enum")
    if isinstance(listed, list):
        return listed
    return [shape["const"]] if "const" in shape else None


def variants(template: str, parameters: Args) -> Iterator[str]:
    """The template with each choice of those parameters that have choices filled in; free places stay.

    Raises Unfit where that are more than anybody meant.
    """
    listed = {name: found for name in PLACE.findall(template) if (found := choices(parameters, name)) is not None}
    all_of_them = list(islice(product(*listed.values()), COMBINATIONS_MOST + 1))
    if len(all_of_them) > COMBINATIONS_MOST:
        raise Unfit(f"its enums make more than {COMBINATIONS_MOST} topics")
    for chosen in all_of_them:
        yield _with(template, dict(zip(listed, chosen, strict=True)))


def can_reach(template: str, parameters: Args, root: str) -> bool:
    """Whether any arguments make a topic at or below the root of it. Raises Unfit as `variants` does."""
    levels = root.split("/")
    for variant in variants(template, parameters):
        # A free part never holds a slash, so levels can be compared one by one.
        said = variant.split("/")
        if len(said) >= len(levels) and all(map(_can_be, said, levels)):
            return True
    return False


def topics_of(exchange: Exchange) -> Iterator[tuple[str, str]]:
    """The topics that a declaration names, each with its key."""
    if exchange.publish:
        yield "publish", exchange.publish
    if exchange.reply:
        yield "await", exchange.reply
    for one in exchange.availability:
        yield "availability", one.topic


def without_reaching(tools: Sequence[Tool], root: str) -> tuple[tuple[Tool, ...], tuple[str, ...]]:
    """The tools whose topics stay away from the root, and what is wrong with each of the others."""
    wrong = {
        tool.name: why for tool in tools if tool.exchange is not None and (why := _trespass(tool, tool.exchange, root))
    }
    return tuple(tool for tool in tools if tool.name not in wrong), tuple(wrong.values())


def _trespass(tool: Tool, exchange: Exchange, root: str) -> str:
    for key, template in topics_of(exchange):
        if can_reach(template, tool.parameters, root):
            return (
                f"{tool.source}: {tool.name}.{key}: {template!r} can reach {root}/#, where requests to nodes are; begin it "
                "with a fixed level of another name, or give its parameters an enum"
            )
    return ""


def _with(template: str, known: Known) -> str:
    return PLACE.sub(lambda found: one_text(found[1], known) if found[1] in known else found[0], template)


def _can_be(template: str, level: str) -> bool:
    pieces = [re.escape(piece) for piece in re.split(PLACE.pattern.replace("(", "(?:"), template)]
    return re.fullmatch(".+".join(pieces), level) is not None


def _unprintable(character: str) -> bool:
    """What a broker may end the connection for: control characters, surrogates, and what is no character at all."""
    code = ord(character)
    control = code < 0x20 or 0x7F <= code < 0xA0
    return control or 0xD800 <= code < 0xE000 or 0xFDD0 <= code < 0xFDF0 or code & 0xFFFE == 0xFFFE
