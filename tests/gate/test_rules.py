"""The bounds of a tool: what breaks each of them, on both sides of its edge."""

import pytest

from rea_edge.budget import clamp
from rea_edge.gate import Facts, breach, too_dear, too_soon
from rea_edge.records import Args, Call, Hours, Limits, Rate, Rule, Usage
from rea_edge.rules import hours_of, rate_of

PARAMETERS: Args = {
    "type": "object",
    "properties": {"percent": {"type": "integer"}, "speed": {"default": 90}, "boost": {"default": None}},
}
NOON = Facts(minute=720, done=frozenset({"look"}))


@pytest.mark.parametrize(
    ("rule", "args", "facts", "words"),
    [
        pytest.param(Rule(), {"percent": 200}, NOON, None, id="no bound"),
        pytest.param(Rule(ranges={"percent": (0, 80)}), {"percent": 80}, NOON, None, id="the most"),
        pytest.param(
            Rule(ranges={"percent": (0, 80)}), {"percent": 81}, NOON, "percent must be from 0 to 80", id="more"
        ),
        pytest.param(Rule(ranges={"percent": (5, 80)}), {"percent": 5}, NOON, None, id="the least"),
        pytest.param(Rule(ranges={"percent": (5, 80)}), {"percent": 4}, NOON, "not 4", id="less"),
        pytest.param(Rule(ranges={"percent": (0, 80)}), {"percent": True}, NOON, "not True", id="true is no number"),
        pytest.param(Rule(ranges={"percent": (0, 80)}), {"percent": float("nan")}, NOON, "percent", id="not a number"),
        pytest.param(Rule(ranges={"percent": (0, 80)}), {"percent": "high"}, NOON, "percent", id="a text"),
        pytest.param(Rule(ranges={"percent": (0, 80)}), {"percent": None}, NOON, "not None", id="null is no number"),
        pytest.param(Rule(ranges={"speed": (0, 80)}), {"speed": None}, NOON, "not None", id="null is no default"),
        pytest.param(Rule(ranges={"boost": (0, 80)}), {"boost": None}, NOON, None, id="null is what it is left out"),
        pytest.param(Rule(ranges={"percent": (0, 80)}), {}, NOON, None, id="left out, without a default"),
        pytest.param(Rule(ranges={"speed": (0, 80)}), {}, NOON, "not 90", id="left out, and the default is too high"),
        pytest.param(Rule(values={"name": ("pump", "fan")}), {"name": "fan"}, NOON, None, id="one of those"),
        pytest.param(
            Rule(values={"name": ("pump", "fan")}),
            {"name": "door"},
            NOON,
            "one of pump, fan on this node, not 'door'",
            id="none of those",
        ),
        pytest.param(Rule(values={"name": ("pump",)}), {"name": "Pump"}, NOON, "not 'Pump'", id="in other letters"),
        pytest.param(Rule(values={"name": (1,)}), {"name": True}, NOON, "not True", id="true is not one"),
        pytest.param(Rule(values={"name": (1,)}), {"name": 1.0}, NOON, None, id="one is one"),
        pytest.param(Rule(values={"name": ("pump",)}), {"name": None}, NOON, "not None", id="null is none of them"),
        pytest.param(Rule(values={"name": ("pump",)}), {}, NOON, None, id="not said, without a default"),
        pytest.param(Rule(values={"speed": (10, 20)}), {}, NOON, "not 90", id="not said, and the default is none"),
        pytest.param(Rule(hours=Hours(first=420, last=1320)), {}, Facts(minute=420), None, id="the first minute"),
        pytest.param(Rule(hours=Hours(first=420, last=1320)), {}, Facts(minute=1319), None, id="the last minute"),
        pytest.param(
            Rule(hours=Hours(first=420, last=1320)), {}, Facts(minute=1320), "07:00-22:00", id="a minute late"
        ),
        pytest.param(Rule(hours=Hours(first=1320, last=360)), {}, Facts(minute=0), None, id="over midnight"),
        pytest.param(Rule(hours=Hours(first=1320, last=360)), {}, Facts(minute=360), "22:00", id="over midnight, late"),
        pytest.param(Rule(hours=Hours(first=0, last=1439)), {}, Facts(), "not trusted", id="no trusted clock"),
        pytest.param(Rule(requires=("look",)), {}, NOON, None, id="what is required was done"),
        pytest.param(Rule(requires=("look", "ask")), {}, NOON, "requires ask first", id="and what was not"),
        pytest.param(Rule(requires=("look",)), {}, Facts(minute=0), None, id="a direct call has no before"),
    ],
)
def test_a_call_is_held_to_its_rule(rule: Rule, args: Args, facts: Facts, words: str | None) -> None:
    said = breach(rule, Call(name="turn", args=args), PARAMETERS, facts)
    assert (said is None) if words is None else (said is not None and words in said), said


@pytest.mark.parametrize(
    ("rule", "ago_s", "words"),
    [
        pytest.param(Rule(dwell_s=10), [], None, id="never before"),
        pytest.param(Rule(dwell_s=10), [10.0], None, id="rested"),
        pytest.param(Rule(dwell_s=10), [9.5], "again in 1 s", id="not rested"),
        pytest.param(Rule(rate=Rate(times=2, seconds=60)), [1.0], None, id="one of two"),
        pytest.param(Rule(rate=Rate(times=2, seconds=60)), [1.0, 20.0], "again in 40 s", id="two of two"),
        pytest.param(Rule(rate=Rate(times=2, seconds=60)), [1.0, 60.0], None, id="the older one is a minute old"),
        pytest.param(Rule(rate=Rate(times=2, seconds=60)), [1.0, 2.0, 50.0], "again in 58 s", id="more than allowed"),
    ],
)
def test_starts_keep_their_distance(rule: Rule, ago_s: list[float], words: str | None) -> None:
    said = too_soon(rule, "turn", ago_s)
    assert (said is None) if words is None else (said is not None and words in said), said


@pytest.mark.parametrize(
    ("limit", "spent", "cost", "words"),
    [
        pytest.param(1.0, 0.0, 1.0, None, id="exactly the limit"),
        pytest.param(1.0, 0.0, 1.000001, "1 of 1 are left", id="a little more"),
        pytest.param(0.3, 0.1, 0.2, None, id="tenths add up exactly"),
        pytest.param(0.3, 0.3, 0.0, None, id="what is free, with nothing left"),
        pytest.param(0.3, 0.3, 0.1, "costs 0.1, and 0 of 0.3 are left", id="nothing left"),
        pytest.param(0.3, 0.4, 0.1, "0 of 0.3 are left", id="less than nothing left"),
        pytest.param(0.0, 1e9, 1e9, None, id="no limit"),
    ],
)
def test_a_call_is_held_to_what_it_may_cost(limit: float, spent: float, cost: float, words: str | None) -> None:
    said = too_dear("turn", cost, Limits(cost=limit), Usage(cost=spent))
    assert (said is None) if words is None else (said is not None and words in said), said


@pytest.mark.parametrize(
    ("configured", "asked", "given"),
    [
        pytest.param(5.0, {}, 5.0, id="as configured"),
        pytest.param(5.0, {"cost": 2}, 2.0, id="less"),
        pytest.param(5.0, {"cost": 9}, 5.0, id="more is clamped"),
        pytest.param(0.0, {"cost": 9}, 9.0, id="a limit where there was none"),
        pytest.param(0.0, {}, 0.0, id="none"),
    ],
)
def test_a_request_can_only_lower_what_its_calls_may_cost(
    configured: float, asked: dict[str, int | float], given: float
) -> None:
    assert clamp(asked, Limits(cost=configured)).cost == given


def test_rates_and_hours_are_read_as_people_write_them() -> None:
    assert rate_of("6/minute") == Rate(times=6, seconds=60.0)
    assert rate_of("120 / day") == Rate(times=120, seconds=86400.0)
    assert hours_of("22:30-06:00") == Hours(first=1350, last=360)


@pytest.mark.parametrize("text", ["", "6", "0/minute", "6/week", "-1/hour", "121/day", "1.5/hour", "6/minutes"])
def test_what_is_no_rate_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="6/minute"):
        rate_of(text)


@pytest.mark.parametrize("text", ["", "7-22", "07:00", "24:00-06:00", "07:60-08:00", "07:00-07:00"])
def test_what_are_no_hours_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        hours_of(text)
