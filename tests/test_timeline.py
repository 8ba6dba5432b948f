"""Time over restarts, reboots and clocks that jump: what has passed, and what may have passed."""

import pytest

from rea_edge.timeline import OFF_MAX_S, Moment, Timeline, Trust, away_s, before, judged, onward, today

NOON = 1_800_000_000.0  # a wall time
DAY = 86_400.0
YEAR = 365 * DAY


def at(boot: str, boot_s: float, wall: float | None = None) -> Moment:
    return Moment(boot=boot, boot_s=boot_s, wall=wall)


def lived(*moments: Moment) -> Timeline:
    line: Timeline | None = None
    for moment in moments:
        line = onward(line, moment)
    assert line is not None
    return line


@pytest.mark.parametrize(
    ("moments", "lived_s"),
    [
        pytest.param([at("a", 500)], 0, id="a life begins at nothing"),
        pytest.param([at("a", 500), at("a", 560)], 60, id="boot time counts within a boot"),
        pytest.param([at("a", 500, NOON), at("a", 560, NOON + YEAR)], 60, id="a year ahead within a boot is nothing"),
        pytest.param([at("a", 500, NOON), at("a", 560, NOON - YEAR)], 60, id="and a year back"),
        pytest.param([at("a", 500), at("a", 510, NOON), at("a", 560, NOON + DAY)], 60, id="also where it was set late"),
        pytest.param([at("a", 500), at("b", 30)], 30, id="without a clock only the new boot is known after a reboot"),
        pytest.param([at("a", 500, NOON), at("b", 30)], 30, id="and where it is not trusted any more"),
        pytest.param([at("a", 500), at("b", 30, NOON)], 30, id="and where it is trusted only now"),
        pytest.param([at("a", 500, NOON), at("b", 30, NOON + 90)], 90, id="trusted at both ends it counts"),
        pytest.param(
            [at("a", 500, NOON), at("a", 700), at("b", 30, NOON + 290)], 290, id="also where it was lost in between"
        ),
        pytest.param(
            [at("a", 500, NOON), at("b", 30), at("b", 60, NOON + 90)], 90, id="also where it comes back a while later"
        ),
        pytest.param([at("a", 500, NOON), at("b", 30, NOON - 2 * YEAR)], 30, id="two years back over a reboot"),
        pytest.param([at("a", 500, NOON), at("b", 30, NOON + 10 * YEAR)], 30 + OFF_MAX_S, id="ten years ahead"),
        pytest.param(
            [at("a", 500, NOON), at("b", 30, NOON + YEAR), at("b", 40, NOON + 9 * YEAR)],
            40 + OFF_MAX_S,
            id="and ahead again in that boot",
        ),
        pytest.param([at("a", 500), at("a", 400)], 0, id="a clock that cannot go back but does"),
    ],
)
def test_only_what_is_known_to_have_passed_counts(moments: list[Moment], lived_s: float) -> None:
    assert lived(*moments).lived_s == lived_s


@pytest.mark.parametrize(
    ("moments", "wall"),
    [
        pytest.param([at("a", 500)], None, id="no clock"),
        pytest.param([at("a", 500, NOON), at("a", 560, NOON + YEAR)], NOON + 60, id="the first of a boot, counted on"),
        pytest.param([at("a", 500, NOON), at("a", 560)], NOON + 60, id="also when it is lost"),
        pytest.param([at("a", 500, NOON), at("b", 30)], None, id="not over a reboot"),
        pytest.param([at("a", 500, NOON), at("b", 30, NOON - DAY)], NOON - DAY, id="there the new first one counts"),
    ],
)
def test_the_calendar_stays_steady_within_a_boot(moments: list[Moment], wall: float | None) -> None:
    assert today(lived(*moments)) == wall


def test_a_moment_ago_lies_in_the_same_boot() -> None:
    assert before(at("a", 500, NOON), 60) == at("a", 440, NOON - 60)
    assert before(at("a", 5), 60) == at("a", 0)


@pytest.mark.parametrize(
    ("readings", "believed"),
    [
        pytest.param([(NOON, 0, True)], [True], id="set from outside"),
        pytest.param([(NOON, 0, False), (NOON, 9, True)], [False, True], id="not set, then set"),
        pytest.param([(NOON, 0, True), (NOON - 2, 1, True), (NOON - 5, 2, True)], [True, True, False], id="behind"),
        pytest.param(
            [(NOON + YEAR, 0, True), (NOON, 1, True), (NOON + DAY - 1, DAY, True), (NOON + DAY, DAY + 1, True)],
            [True, False, False, True],
            id="behind for a day: the newest was wrong",
        ),
        pytest.param(
            [(NOON + YEAR, 0, True), (NOON, 1, True), (NOON + 9, 10, False), (NOON + DAY + 9, DAY + 10, True)],
            [True, False, False, False],
            id="a day with a break",
        ),
        pytest.param(
            [(NOON + YEAR, 0, True), (NOON, 1, True), (NOON + DAY, DAY + 1, True), (NOON + DAY + 1, DAY + 2, True)],
            [True, False, True, True],
            id="and from then on",
        ),
    ],
)
def test_a_clock_is_believed_when_it_is_set_and_not_behind(
    readings: list[tuple[float, float, bool]], believed: list[bool]
) -> None:
    trust, found = Trust(), []
    for wall, boot_s, synchronised in readings:
        trust, good = judged(trust, wall, boot_s, synchronised=synchronised)
        found.append(good)
    assert found == believed


@pytest.mark.parametrize(
    ("last", "now", "away"),
    [
        pytest.param(None, at("a", 5, NOON), float("inf"), id="never up before"),
        pytest.param(at("a", 500), at("a", 560), 60, id="boot time within a boot"),
        pytest.param(at("a", 500, NOON), at("a", 560, NOON - YEAR), 60, id="whatever the clock says"),
        pytest.param(at("a", 500, NOON), at("b", 30, NOON + 90), 90, id="the clock over a reboot"),
        pytest.param(at("a", 500, NOON), at("b", 30, NOON + 10), 30, id="never less than this boot"),
        pytest.param(at("a", 500, NOON), at("b", 30, NOON + YEAR), YEAR, id="however long"),
        pytest.param(at("a", 500), at("b", 30, NOON), float("inf"), id="for ever where it was not trusted then"),
        pytest.param(at("a", 500, NOON), at("b", 30), float("inf"), id="or is not now"),
    ],
)
def test_what_waited_may_be_as_old_as_anything_allows(last: Moment | None, now: Moment, away: float) -> None:
    assert away_s(last, now) == away
