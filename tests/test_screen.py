"""What is shown to a person: plain words, and nothing that a terminal would obey."""

import io

from rea_edge.screen import Screen, event_lines, verdict
from rea_edge.wire import TaskEvent, TaskState

ESCAPES = "warm\x1b[2J\x07\x9b31m\r"


def test_escapes_of_a_model_or_a_tool_do_not_reach_the_terminal() -> None:
    screen = Screen(io.StringIO())
    event = TaskEvent(seq=1, step=1, kind="result", n=1, tool="look", args={}, text=ESCAPES)
    state = TaskState(
        id="t", who="me", run="r-1", state="ended", accepted=True, body="", seq=3, step=1, outcome="achieved",
        answer=ESCAPES + "\nsecond line",
    )  # fmt: skip
    shown = "\n".join(event_lines(screen, event)) + verdict(screen, state)
    assert "warm" in shown and "second line" in shown
    assert not set(shown) & set("\x1b\x07\x9b\r")
