"""Who is next: senders take turns, and each sender's own runs go in the order of their acceptance."""

from rea_edge.daemon.queue import SENDERS_MAX, Waiting
from rea_edge.store import RunRow


def row(number: int, who: str) -> RunRow:
    return RunRow(
        row=number, kind="task", who=who, id=f"t{number}", body="", request=b"", state="accepted", outcome=None, seq=0,
        shown="yes", at=None, ended_at=None,
    )  # fmt: skip


def taken(waiting: Waiting) -> int:
    found = waiting.take("task")
    assert found is not None
    waiting.drop(found[0].row)
    return found[0].row


def filled(*whos: str) -> Waiting:
    waiting = Waiting()
    waiting.admit(True)
    for number, who in enumerate(whos, 1):
        waiting.put(row(number, who))
    return waiting


def test_one_sender_is_served_in_the_order_of_acceptance() -> None:
    waiting = filled("ann", "ann", "ann")
    assert [taken(waiting) for _ in range(3)] == [1, 2, 3]


def test_a_second_sender_waits_for_one_run_of_a_flood_and_not_for_all() -> None:
    waiting = filled("ann", "ann", "ann", "ann", "bob", "bob")
    assert [taken(waiting) for _ in range(6)] == [1, 5, 2, 6, 3, 4]


def test_a_sender_who_always_comes_back_does_not_starve_another() -> None:
    waiting = filled("ann", "ann", "ann", "bob")
    order = []
    for number in range(10, 15):
        order.append(taken(waiting))
        waiting.put(row(number, "bob"))
    assert order == [1, 4, 2, 10, 3]


def test_the_turns_that_are_remembered_are_bounded() -> None:
    waiting = filled(*(f"s{number}" for number in range(2 * SENDERS_MAX)))
    assert [taken(waiting) for _ in range(2 * SENDERS_MAX)] == list(range(1, 2 * SENDERS_MAX + 1))
