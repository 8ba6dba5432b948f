"""Paces and places of senders: who may go on, who waits how long, and who is not slowed down by whom."""

import pytest

from rea_edge.fairness import SENDERS_MAX, Fairness, Pace, Paces, no_place


def fairness(per_s: float = 2.0, burst: int = 3, told: int = 20) -> Fairness:
    pace = Pace(per_s=per_s, burst=burst)
    return Fairness(Paces(run=pace, query=pace, control=pace, refusal=Pace(per_s=1.0, burst=told)))


def test_a_burst_is_taken_at_once_and_then_one_each_so_often() -> None:
    fair = fairness()
    assert [fair.wait_s("run", "ann", 10.0) for _ in range(5)] == [0, 0, 0, 0.5, 0.5]
    assert fair.wait_s("run", "ann", 10.4) == pytest.approx(0.1)
    assert fair.wait_s("run", "ann", 10.5) == 0
    assert fair.wait_s("run", "ann", 10.5) == 0.5
    assert [fair.wait_s("run", "ann", 1000.0) for _ in range(4)] == [0, 0, 0, 0.5]


def test_nobody_pays_for_another_nor_one_kind_for_another() -> None:
    fair = fairness()
    while fair.wait_s("run", "ann", 0.0) == 0:
        pass
    assert fair.wait_s("run", "bob", 0.0) == 0
    assert fair.wait_s("control", "ann", 0.0) == 0


def test_names_made_up_for_a_flood_share_one_bucket_and_known_senders_keep_theirs() -> None:
    fair = fairness(burst=2)
    assert fair.wait_s("run", "ann", 0.0) == 0
    taken = sum(fair.wait_s("run", f"x{number}", 0.0) == 0 for number in range(10 * SENDERS_MAX))
    assert taken == SENDERS_MAX - 1 + 2
    assert fair.wait_s("run", "ann", 0.0) == 0
    assert fair.wait_s("run", "newcomer", 10.0) == 0, "those whose bucket is full again are forgotten"


def test_a_refusal_more_than_can_be_told_is_only_counted() -> None:
    fair = fairness(told=2)
    assert [fair.is_told("ann", 0.0) for _ in range(4)] == [True, True, False, False]
    assert fair.unsaid == 2
    assert fair.is_told("ann", 1.0) and fair.is_told("bob", 0.0)


@pytest.mark.parametrize(
    ("own", "total", "taken"),
    [
        pytest.param(0, 0, True, id="an empty queue"),
        pytest.param(9, 9, True, id="alone up to all of it"),
        pytest.param(10, 10, False, id="alone, full"),
        pytest.param(4, 9, True, id="below half"),
        pytest.param(5, 6, False, id="half of it while another waits"),
        pytest.param(0, 10, True, id="another's full queue"),
        pytest.param(4, 14, True, id="up to half as much again"),
        pytest.param(4, 15, False, id="and no further"),
    ],
)
def test_a_queue_of_ten_is_shared(own: int, total: int, taken: bool) -> None:
    assert (no_place(10, own, total) is None) == taken


def test_a_queue_of_one_takes_one_of_each() -> None:
    assert no_place(1, 0, 0) is None and no_place(1, 1, 1) and no_place(1, 0, 1)
