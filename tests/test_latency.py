"""Whether a tool is slow is told from enough of its newest calls, and no longer than that is so."""

import pytest
from msgspec import Raw

from rea_edge.latency import KEPT, LEAST, OLD_S, Latencies, percentile
from rea_edge.records import Fault, Ok, Result, Tool

OK = Ok(data=Raw(b"1"))
TOOLS = {"look": Tool(name="look", description="Look.", parameters={}, effect="read", p95_s=2.0)}


def after(*took_s: float, result: Result = OK) -> Latencies:
    """One call a second, from second 0 on."""
    latencies = Latencies()
    for now_s, seconds in enumerate(took_s):
        latencies.note("look", result, seconds, float(now_s))
    return latencies


@pytest.mark.parametrize(
    ("took_s", "slow"),
    [
        pytest.param([0.1] * LEAST, False, id="fast"),
        pytest.param([2.0] * LEAST, False, id="exactly the objective"),
        pytest.param([2.1] * LEAST, True, id="slow"),
        pytest.param([2.1] * (LEAST - 1), False, id="too few calls"),
        pytest.param([0.1] * (LEAST - 1) + [9.0], False, id="one in twenty"),
        pytest.param([0.1] * (LEAST - 2) + [9.0] * 2, True, id="two in twenty"),
        pytest.param(
            [9.0] * 99 + [0.1] * (KEPT - 3) + [9.0] * 3, False, id="the newest count, of them 5 % may be slow"
        ),
        pytest.param([9.0] * 99 + [0.1] * (KEPT - 4), True, id="more than 5 % of the newest are slow"),
    ],
)
def test_a_tool_is_slow_where_more_than_one_in_twenty_of_its_newest_calls_is(took_s: list[float], slow: bool) -> None:
    faults = after(*took_s).faults(TOOLS, float(len(took_s)))
    assert faults == (
        ["tool look is slow: more than 5 % of its calls take longer than 2 s (p95_s); see health"] if slow else []
    )


def test_what_was_slow_an_hour_ago_is_forgotten() -> None:
    latencies = after(*[9.0] * LEAST)
    assert latencies.faults(TOOLS, OLD_S)
    assert not latencies.faults(TOOLS, OLD_S + 0.5)
    assert not latencies.figures(TOOLS, OLD_S + LEAST)


def test_figures_say_how_many_and_how_long() -> None:
    one = after(0.1, 0.2, 0.3, 0.4).figures(TOOLS, 4.0)["look"]
    assert (one.calls, one.p50_s, one.p95_s, one.objective_s) == (4, 0.2, 0.4, 2.0)


@pytest.mark.parametrize(
    ("fault", "counts"), [("timeout", True), ("tool_error", True), ("busy", False), ("no_host", False)]
)
def test_a_call_that_did_not_run_says_nothing_of_its_tool(fault: str, counts: bool) -> None:
    latencies = after(0.1, result=Fault(fault=fault, message=""))
    assert bool(latencies.figures(TOOLS, 1.0)) is counts


def test_a_tool_that_is_gone_is_not_told_of() -> None:
    latencies = after(*[9.0] * LEAST)
    assert latencies.figures({}, 1.0) == {} and latencies.faults({}, 1.0) == []


@pytest.mark.parametrize(("part", "value"), [(0.5, 2.0), (0.95, 4.0), (0.75, 3.0), (0.01, 1.0)])
def test_a_percentile_is_one_of_the_values(part: float, value: float) -> None:
    assert percentile([1.0, 2.0, 3.0, 4.0], part) == value
