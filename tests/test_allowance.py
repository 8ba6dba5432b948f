"""Tokens a day and a month: when a count is renewed, and when no clock can make it so."""

import datetime

import pytest

from rea_edge.allowance import DAY_S, MONTH_S, Allowance, Count, Spent, charged, current, left
from rea_edge.budget import within
from rea_edge.records import Asked
from rea_edge.timeline import Moment, Timeline, onward, today

NOON = datetime.datetime(2026, 11, 30, 12, tzinfo=datetime.UTC).timestamp()
HOUR = 3600.0
YEAR = 365 * DAY_S
LIMITS = Allowance(day_tokens=1000, month_tokens=5000)


class Board:
    """A node that spends 100 tokens each time it is asked to, with clocks that a test turns."""

    def __init__(self, wall: float | None) -> None:
        self.now = Moment(boot="b0", boot_s=100.0, wall=wall)
        self.line: Timeline | None = None
        self.spent = Spent()

    def spend(self, after_s: float = 0.0, *, wall: float | None, boot: str | None = None) -> tuple[int, int]:
        """Time passes, perhaps over a reboot (of which `after_s` is the new boot's part); gives both counts."""
        boot_s = after_s if boot else self.now.boot_s + after_s
        self.now = Moment(boot=boot or self.now.boot, boot_s=boot_s, wall=wall)
        self.line = onward(self.line, self.now)
        self.spent = charged(self.spent, self.line.lived_s, today(self.line), 100, 0)
        return self.spent.day.amount, self.spent.month.amount


# Each step: seconds that pass, the wall clock then (None: not trusted), the new boot if there was one; then both counts.
Step = tuple[float, float | None, str | None, tuple[int, int]]


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([(HOUR, NOON + HOUR, None, (200, 200))], id="one day is one count"),
        pytest.param([(12 * HOUR - 1, NOON + 12 * HOUR - 1, None, (200, 200))], id="until midnight in UTC"),
        pytest.param([(12 * HOUR, NOON + 12 * HOUR, None, (100, 100))], id="the next day, here also the next month"),
        pytest.param([(5.0, NOON + YEAR, None, (200, 200))], id="a year ahead within a boot renews nothing"),
        pytest.param(
            [(5.0, NOON + YEAR, None, (200, 200)), (5.0, NOON + 2 * YEAR, None, (300, 300))], id="and a second one"
        ),
        pytest.param([(5.0, NOON - YEAR, None, (200, 200))], id="a year back charges on"),
        pytest.param(
            [(12 * HOUR, NOON + 12 * HOUR, None, (100, 100)), (60.0, NOON, None, (200, 200))],
            id="back over midnight charges the new day on",
        ),
        pytest.param([(60.0, NOON + 120, "b1", (200, 200))], id="a reboot renews nothing"),
        pytest.param([(60.0, None, "b1", (200, 200))], id="nor one that loses the clock"),
        pytest.param([(60.0, NOON + DAY_S, "b1", (100, 100))], id="a day off is believed over a reboot"),
        pytest.param(
            [
                (60.0, NOON + YEAR, "b1", (100, 100)),
                (60.0, NOON + 300, "b2", (200, 200)),
                (60.0, NOON + YEAR + 60, "b3", (300, 300)),
            ],
            id="a year ahead over a reboot once, not again after it was back",
        ),
        pytest.param(
            [
                (60.0, NOON + YEAR, "b1", (100, 100)),
                (60.0, NOON + 300, "b2", (200, 200)),
                (DAY_S, NOON + 300 + DAY_S, None, (100, 300)),
            ],
            id="a clock that was ahead and is back goes by the time lived",
        ),
        pytest.param([(DAY_S - 1, None, "b1", (200, 200)), (1.0, None, None, (100, 300))], id="without a clock 24 hours"),
        pytest.param(
            [(MONTH_S - 1, None, "b1", (100, 200)), (1.0, None, None, (200, 100))], id="without a clock 30 days"
        ),
    ],
)  # fmt: skip
def test_a_count_is_renewed_by_time_and_never_by_a_jump(steps: list[Step]) -> None:
    board = Board(NOON)
    assert board.spend(wall=NOON) == (100, 100)
    for after_s, wall, boot, counts in steps:
        assert board.spend(after_s, wall=wall, boot=boot) == counts


def test_reboots_alone_never_renew_a_count_of_a_board_without_a_clock() -> None:
    board = Board(None)
    board.spend(wall=None)
    for number in range(1, 50):
        assert board.spend(10.0, wall=None, boot=f"b{number}") == (100 * (number + 1), 100 * (number + 1))
    day, month = board.spend(DAY_S, wall=None)
    assert (day, month) == (100, 5100)


def test_a_clock_that_comes_to_be_trusted_renews_nothing_by_that() -> None:
    board = Board(None)
    board.spend(wall=None)
    assert board.spend(60.0, wall=NOON) == (200, 200)
    assert board.spend(12 * HOUR, wall=NOON + 12 * HOUR) == (100, 100)


def test_a_reservation_that_is_open_at_midnight_is_settled_in_the_new_day() -> None:
    spent = charged(Spent(), 0.0, NOON, 300, 0)
    spent = charged(spent, 1.0, NOON, 900, 900)
    assert spent.day.amount == 1200
    spent = charged(spent, 12 * HOUR, NOON + 12 * HOUR, 40 - 900, -900)
    assert (spent.day.amount, spent.reserved) == (40, 0)


@pytest.mark.parametrize(
    ("spent", "today", "least"),
    [
        pytest.param(Spent(), None, ("day_tokens", 1000, 86_390.0), id="nothing spent"),
        pytest.param(
            charged(Spent(), 10.0, NOON, 1200, 0), NOON, ("day_tokens", 0, 12 * HOUR), id="no less than nothing"
        ),
        pytest.param(
            Spent(day=Count(amount=100, period=20_787), month=Count(amount=4900, period=24_322)),
            NOON,
            ("month_tokens", 100, 12 * HOUR),
            id="the month",
        ),
    ],
)
def test_what_is_left_names_its_limit_and_its_renewal(
    spent: Spent, today: float | None, least: tuple[str, int, float]
) -> None:
    one = min(left(LIMITS.of_tokens, spent, 10.0, today), key=lambda one: one.amount)
    assert (one.limit, one.amount, one.renewed_in_s) == least


def test_no_limit_leaves_nothing_to_say() -> None:
    assert left(Allowance().of_tokens, Spent(), 0.0, None) == []


def test_the_calendar_ends_before_it_breaks() -> None:
    assert current(Spent(), 0.0, 9e15).month.period is not None
    assert left(LIMITS.of_tokens, Spent(), 0.0, 9e15)


@pytest.mark.parametrize(
    ("tokens", "cap"),
    [
        pytest.param(2000, 100, id="room for all of it"),
        pytest.param(600, 100, id="just"),
        pytest.param(599, 99, id="a shorter answer"),
        pytest.param(516, 16, id="the shortest answer"),
        pytest.param(515, None, id="none"),
    ],
)
def test_a_question_is_cut_to_what_is_left(tokens: int, cap: int | None) -> None:
    found = within(Asked(step=1, reserved=600, cap=100), tokens)
    assert (found and found.cap) == cap
    assert found is None or found.reserved - found.cap == 500
