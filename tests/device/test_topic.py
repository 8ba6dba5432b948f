"""Which topics a tool may use, and what arguments may make of them."""

import pytest

from rea_edge.device.places import Unfit
from rea_edge.device.topic import can_reach, filled_topic, topic_fault, variants
from rea_edge.records import Args

FREE: Args = {"properties": {"name": {"type": "string"}, "room": {"type": "string"}, "n": {"type": "integer"}}}
LISTED: Args = {"properties": {"name": {"enum": ["lamp", "desk/lamp", "rea/v1/n1"]}, "one": {"const": "rea"}}}


@pytest.mark.parametrize(("topic", "why"), [
    pytest.param("zigbee2mqtt/lamp/set", "", id="a plain one"),
    pytest.param("/old/style", "", id="a level may be empty"),
    pytest.param("Küche/Lampe 1", "", id="letters of any language, and spaces"),
    pytest.param("x" * 256, "", id="the longest"),
    pytest.param("x" * 257, "more than 256 bytes", id="one byte longer"),
    pytest.param("ü" * 129, "more than 256 bytes", id="bytes count, not letters"),
    pytest.param("", "empty", id="none"),
    pytest.param("$SYS/broker", "the broker's own", id="of the broker"),
    pytest.param("a/$b", "", id="a dollar further on is a letter"),
    pytest.param("a/+/b", "wildcard", id="one level"),
    pytest.param("a/#", "wildcard", id="all below"),
    pytest.param("a+b", "wildcard", id="also within a level"),
    pytest.param("a\0b", "control character", id="NUL"),
    pytest.param("a\nb", "control character", id="a line break"),
    pytest.param("a\x85b", "control character", id="one of the second row"),
    pytest.param("a\ud800b", "none of Unicode", id="half a character"),
    pytest.param("a\uffffb", "none of Unicode", id="no character"),
])  # fmt: skip
def test_a_topic_is_plain_or_it_is_said_why_not(topic: str, why: str) -> None:
    assert why in topic_fault(topic)
    assert bool(topic_fault(topic)) == bool(why)


@pytest.mark.parametrize(("template", "known", "topic"), [
    pytest.param("z/{name}/set", {"name": "lamp"}, "z/lamp/set", id="a text"),
    pytest.param("z/{n}", {"n": 3}, "z/3", id="a number"),
    pytest.param("z/{name}", {"name": "Küche 1"}, "z/Küche 1", id="any letters"),
    pytest.param("z/x{name}-{room}", {"name": "a", "room": "b"}, "z/xa-b", id="several in a level"),
    pytest.param("z/{request_id}", {"request_id": "r1-1"}, "z/r1-1", id="the id of the call"),
    pytest.param("z/{name}", {"name": "a/b"}, None, id="a further level"),
    pytest.param("z/{name}", {"name": "+"}, None, id="a wildcard"),
    pytest.param("z/{name}", {"name": "#"}, None, id="the other wildcard"),
    pytest.param("z/{name}", {"name": ""}, None, id="nothing"),
    pytest.param("z/{name}", {"name": "a\0"}, None, id="NUL as the argument"),
    pytest.param("z/{name}", {"name": "a\x7f"}, None, id="a control character"),
    pytest.param("z/{name}", {"name": ["a"]}, None, id="a list"),
    pytest.param("z/{name}", {}, None, id="not given"),
    pytest.param("{name}/x", {"name": "$SYS"}, None, id="of the broker"),
    pytest.param("z/{name}", {"name": "x" * 255}, None, id="too long"),
])  # fmt: skip
def test_an_argument_never_makes_another_topic_of_it(template: str, known: Args, topic: str | None) -> None:
    if topic is None:
        with pytest.raises(Unfit):
            filled_topic(template, FREE, known)
    else:
        assert filled_topic(template, FREE, known) == topic


def test_what_the_author_listed_may_have_levels_of_its_own() -> None:
    assert filled_topic("z/{name}/set", LISTED, {"name": "desk/lamp"}) == "z/desk/lamp/set"


@pytest.mark.parametrize(("template", "parameters", "reaches"), [
    pytest.param("z/lamp", FREE, False, id="elsewhere"),
    pytest.param("rea/v1", FREE, True, id="the root itself"),
    pytest.param("rea/v1/n1/in/x/task", FREE, True, id="below it"),
    pytest.param("rea/v11/n1", FREE, False, id="beside it"),
    pytest.param("rea", FREE, False, id="above it"),
    pytest.param("/rea/v1/n1", FREE, False, id="an empty level makes another topic"),
    pytest.param("{name}/v1/x", FREE, True, id="an argument can make the first level"),
    pytest.param("{name}/set", FREE, False, id="but not where the second is fixed"),
    pytest.param("{name}/{room}", FREE, True, id="both are free"),
    pytest.param("{name}", FREE, False, id="an argument has no slash"),
    pytest.param("r{name}/v{n}", FREE, True, id="a part of each level"),
    pytest.param("x{name}/v{n}", FREE, False, id="a level that begins otherwise"),
    pytest.param("rea{name}/v1", FREE, False, id="an argument is never empty"),
    pytest.param("{request_id}/v1", FREE, True, id="an id is taken for any text"),
    pytest.param("z/{name}", LISTED, False, id="listed below another level"),
    pytest.param("{name}/set", LISTED, True, id="listed with the root in it"),
    pytest.param("{one}/v1", LISTED, True, id="a constant"),
])  # fmt: skip
def test_a_topic_that_can_reach_the_root_is_known_before_any_call(
    template: str, parameters: Args, reaches: bool
) -> None:
    assert can_reach(template, parameters, "rea/v1") == reaches


def test_enums_that_make_too_many_topics_are_refused() -> None:
    parameters: Args = {"properties": {name: {"enum": list(range(11))} for name in "abc"}}
    with pytest.raises(Unfit, match="more than 1000"):
        list(variants("{a}/{b}/{c}", parameters))
    assert len(list(variants("{a}/{b}", parameters))) == 121
