"""Of two nodes with one id both find out, and the older acts: the rule alone, with times as numbers."""

import pytest

from rea_edge.daemon.rival import CLAIM_S, GRACE_S, LOOK_S, OFFLINE_S, SILENT_S, TIE_S, Claim, Doing, Rival, Seen


def claim(instance: str, up_s: float, doing: Doing = "acts") -> Claim:
    return Claim(instance=instance, host="board", boot="b", up_ms=int(up_s * 1000), doing=doing)


def status(instance: str, up_s: float, *, session: int = 1, state: str = "online") -> Seen:
    return Seen(claim=claim(instance, up_s), state=state, session=session)


def connected(now_s: float = 100.0, *, known: tuple[str, ...] = (), up_since_s: float = 90.0) -> Rival:
    """A node that has been up for ten seconds and is connecting now."""
    rival = Rival("me", known, up_since_s)
    rival.begin()
    rival.subscribed(now_s)
    return rival


def test_nobody_acts_before_the_first_look_has_begun() -> None:
    rival = Rival("me", (), 90.0)
    assert rival.verdict(100.0) == "wait"
    rival.begin()
    assert rival.verdict(100.1) == "wait"


def test_a_node_alone_acts_as_soon_as_its_own_claim_is_back() -> None:
    rival = connected()
    assert rival.verdict(100.0) == "wait"
    assert not rival.hear_claim(claim("me", 10), 100.1)
    assert rival.verdict(100.1) == "yes"


def test_a_node_whose_claim_does_not_come_back_acts_all_the_same() -> None:
    rival = connected()
    assert [rival.verdict(100.0 + seconds) for seconds in (LOOK_S - 0.1, LOOK_S)] == ["wait", "yes"]


@pytest.mark.parametrize("state", ["online", "offline"])
def test_a_foreign_status_gives_its_node_time_to_come_back(state: str) -> None:
    rival = connected()
    rival.hear_status(status("other", 500, state=state), 100.1)
    rival.hear_claim(claim("me", 10), 100.1)
    assert [rival.verdict(100.1 + seconds) for seconds in (GRACE_S - 0.1, GRACE_S)] == ["wait", "yes"]


def test_a_status_that_an_earlier_process_of_ours_left_costs_no_time() -> None:
    rival = connected(known=("before",))
    rival.hear_status(status("before", 500), 100.1)
    rival.hear_claim(claim("me", 10), 100.1)
    assert rival.verdict(100.1) == "yes"


def test_a_foreign_status_that_has_moved_on_since_the_last_look_is_alive() -> None:
    rival = connected()
    rival.hear_status(status("other", 500, session=7, state="offline"), 100.1)
    rival.begin()
    rival.subscribed(102.0)
    rival.hear_status(status("other", 502, session=8, state="offline"), 102.1)
    assert rival.verdict(102.1) == "no"
    assert "host board, boot b, instance other" in rival.words(102.1)[0]


def test_a_will_of_the_same_connection_shows_no_life() -> None:
    rival = connected()
    rival.hear_status(status("other", 502, session=7), 100.1)
    rival.hear_status(status("other", 500, session=7, state="offline"), 100.2)
    assert rival.verdict(110.0) == "yes"


@pytest.mark.parametrize(
    ("instance", "ahead_s", "older"),
    [
        pytest.param("other", 60.0, True, id="it was there before us"),
        pytest.param("other", -9.0, False, id="it came after us"),
        pytest.param("a", TIE_S - 0.1, True, id="as long, and its name is smaller"),
        pytest.param("z", TIE_S - 0.1, False, id="as long, and ours is smaller"),
        pytest.param("a", -TIE_S + 0.1, True, id="a little shorter, and its name is smaller"),
    ],
)
def test_the_one_that_has_been_up_for_longer_acts(instance: str, ahead_s: float, *, older: bool) -> None:
    rival = connected()
    rival.hear_claim(claim("me", 10), 100.0)
    rival.verdict(100.0)
    assert rival.hear_claim(claim(instance, 10 + ahead_s), 100.0) is not older
    assert rival.verdict(100.0) == ("no" if older else "yes")
    assert len(rival.words(100.0)) == 1


def test_both_sides_come_to_the_same_end() -> None:
    one, two = Rival("aaa", (), 0.0), Rival("bbb", (), 50.0)
    for rival in (one, two):
        rival.begin()
        rival.subscribed(60.0)
    assert one.hear_claim(claim("bbb", 10, "looks"), 60.0)
    assert not two.hear_claim(claim("aaa", 60), 60.0)
    assert (one.verdict(70.0), two.verdict(70.0)) == ("yes", "no")


def test_one_that_only_stands_by_is_no_reason_to_stand_by() -> None:
    rival = connected()
    assert not rival.hear_claim(claim("other", 500, "stands_by"), 100.0)
    assert rival.verdict(110.0) == "yes"


def test_a_standby_takes_over_when_the_other_has_been_offline_for_a_while() -> None:
    rival = standing_by()
    rival.hear_status(status("other", 500, state="offline"), 101.0)
    assert rival.verdict(101.0 + OFFLINE_S) == "no"
    assert rival.verdict(101.1 + OFFLINE_S) != "no"


def test_a_standby_stays_while_the_other_comes_back_in_time() -> None:
    rival = standing_by()
    rival.hear_status(status("other", 500, state="offline"), 101.0)
    rival.hear_status(status("other", 505, session=2), 105.0)
    assert rival.verdict(101.1 + OFFLINE_S) == "no"


def test_a_standby_asks_from_time_to_time_and_takes_over_where_nobody_answers() -> None:
    rival = standing_by()
    assert [rival.claim_due(100.0 + seconds) for seconds in (1, CLAIM_S - 1, CLAIM_S, CLAIM_S + 1)] == [
        False, False, True, False,
    ]  # fmt: skip
    rival.hear_claim(claim("other", 560), 161.0)
    assert rival.verdict(100.1 + SILENT_S) == "no"
    assert rival.verdict(161.1 + SILENT_S) != "no"


def test_who_acts_answers_for_itself_when_another_speaks_in_its_name() -> None:
    rival = connected()
    rival.hear_claim(claim("me", 10), 100.0)
    rival.verdict(100.0)
    assert rival.hear_status(status("other", 1), 101.0)
    assert not rival.hear_status(status("me", 11), 101.0)
    assert not rival.hear_status(status("", 1), 101.0)


def test_who_has_acted_does_not_wait_for_one_that_came_later() -> None:
    rival = connected()
    rival.hear_claim(claim("me", 10), 100.0)
    assert rival.verdict(100.0) == "yes"
    rival.begin()
    rival.subscribed(120.0)
    rival.hear_status(status("other", 2, state="offline"), 120.1)
    rival.hear_claim(claim("me", 30), 120.1)
    assert rival.verdict(120.1) == "yes"
    assert "instance other" in rival.words(120.1)[0]


def test_a_standby_lets_one_that_comes_back_know_of_it_once() -> None:
    rival = standing_by()
    assert rival.hear_claim(claim("other", 520, "looks"), 120.0)
    assert not rival.hear_claim(claim("other", 520.5, "looks"), 120.5)
    assert not rival.hear_claim(claim("other", 530), 130.0)


def standing_by() -> Rival:
    rival = connected()
    rival.hear_claim(claim("other", 500), 100.0)
    assert rival.verdict(100.0) == "no"
    return rival
