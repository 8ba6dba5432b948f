"""The table of failures is whole, and the breaker opens, rests and closes by it."""

from typing import get_args

import pytest

from rea_edge.endpoint.faults import RETRYABLE, Kind
from rea_edge.trouble import OPEN_AFTER, RULES, Standing, after_failure, left, may_have_cost, rule_of

OURS = {"no_endpoint", "resting"}  # not of a server


def test_every_kind_of_failure_has_a_rule_and_no_rule_is_of_nothing() -> None:
    assert set(RULES) == set(get_args(Kind)) | OURS


@pytest.mark.parametrize("kind", sorted(get_args(Kind)))
def test_the_table_and_the_client_agree_on_what_time_may_mend(kind: str) -> None:
    assert rule_of(kind).passes == (kind in RETRYABLE)


@pytest.mark.parametrize("kind", sorted(RULES))
def test_what_may_have_cost_tokens_is_never_asked_again_within_one_question(kind: str) -> None:
    assert rule_of(kind).then != "again" or not may_have_cost(kind)


def test_an_unknown_name_counts_as_one_that_may_have_cost_tokens() -> None:
    assert may_have_cost("made_up") and rule_of("made_up").then == "next"


def after(*kinds: str, now_s: float = 100.0, **more: float) -> Standing:
    standing = Standing()
    for kind in kinds:
        standing = after_failure(standing, kind, now_s, jitter=1.0, **more)  # type: ignore[arg-type]  # by keyword
    return standing


@pytest.mark.parametrize(
    ("standing", "rest_s", "open_s"),
    [
        pytest.param(Standing(), 0, 0, id="fresh"),
        pytest.param(after("connect"), 0.5, 0, id="one failure is a rest"),
        pytest.param(after("connect", "connect"), 1, 0, id="the rest doubles"),
        pytest.param(after(*["connect"] * OPEN_AFTER), 2, 2, id="three in a row open it"),
        pytest.param(after(*["connect"] * 40), 30, 30, id="at most half a minute"),
        pytest.param(after("rate_limited", retry_after_s=7), 7.5, 0, id="the rest a server asks for, and some jitter"),
        pytest.param(after("unauthorized"), 0, 30, id="what only a person mends opens it at once"),
        pytest.param(after(*["unauthorized"] * 40), 0, 600, id="for longer each time"),
        pytest.param(after("rate_limited", passes=False), 0, 30, id="a quota that is used up"),
        pytest.param(after("context_overflow"), 0, 0, id="a prompt too long is not the server's fault"),
        pytest.param(after("cancelled"), 0, 0, id="nor is a cancel"),
        pytest.param(left(after("cut"), 100), 0.5, 30, id="a run turned away"),
    ],
)
def test_how_an_endpoint_stands(standing: Standing, rest_s: float, open_s: float) -> None:
    assert standing.rest_s(100.0) == rest_s
    assert standing.open(100.0) == (open_s > 0)
    if open_s:
        assert standing.open(100.0 + open_s - 0.01) and not standing.open(100.0 + open_s)


def test_after_its_rest_one_failure_opens_it_again() -> None:
    opened = after(*["connect"] * OPEN_AFTER)
    assert not opened.open(103.0)
    again = after_failure(opened, "connect", 103.0, jitter=1.0)
    assert again.open(106.9) and again.rest_s(103.0) == 4.0


def test_jitter_spreads_the_rests() -> None:
    rests = {after_failure(Standing(), "connect", 0.0, jitter=jitter).rest_until_s for jitter in (0.7, 1.0, 1.3)}
    assert len(rests) == 3
