"""Each safeguard is missed by a test when it is taken away: without this, green tests would prove little."""

import pytest

from tests.durability import mutations


@pytest.mark.parametrize("mutation", mutations.MUTATIONS, ids=lambda mutation: mutation.name)
def test_every_safeguard_that_is_taken_away_still_stands_in_the_code(mutation: mutations.Mutation) -> None:
    assert [complaint for change in mutation.changes if (complaint := mutations.misfit(mutations.ROOT, change))] == []


def test_no_safeguard_can_be_taken_away_unnoticed_as_one_shows() -> None:
    assert list(mutations.unnoticed("check sum of an event")) == []


@pytest.mark.slow
def test_no_safeguard_can_be_taken_away_unnoticed() -> None:
    assert list(mutations.unnoticed()) == []


def test_a_change_that_no_test_misses_is_told() -> None:
    harmless = mutations.Mutation(
        "nothing", (("loop.py", "STRIKES = 3", "STRIKES = 1 + 2"),), ("tests/test_outcome.py",)
    )
    assert mutations.tried(harmless).red == ""
