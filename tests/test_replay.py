"""Recorded answers, read once more."""

import argparse
import io

import msgspec
import pytest
from msgspec import Raw

from rea_edge.cli.readings import show_readings
from rea_edge.records import Answered, Call, Calls, Decision, Event, Finish, GiveUp, Guard, Malformed
from rea_edge.replay import answers_of, in_words, read_again
from rea_edge.screen import Screen
from tests.test_loop import READ, asked, begun, ready
from tests.test_switch import switched

NATIVE = b'{"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"read_sensor","arguments":"{\\"name\\": \\"boiler\\"}"}}]}'
FINISH = b'{"role":"assistant","content":"{\\"action\\":\\"finish\\",\\"terminal_answer\\":\\"It is hot.\\"}"}'
TEXT = b'{"role":"assistant","content":"It is hot."}'


def answered(decision: Decision | Malformed, turn: bytes, message: bytes = b"null") -> Answered:
    run = asked(ready())
    return Answered(
        step=run.used.steps, turn=Raw(turn), message=Raw(message), decision=decision,
        prompt_tokens=1, completion_tokens=1, seconds=1.0,
    )  # fmt: skip


HOT_ONE = Finish(answer="It is hot.")
RECORDED: list[Event] = [
    begun("native"),
    answered(Calls(calls=(READ,)), b"{}", NATIVE),
    answered(HOT_ONE, TEXT),
    switched("json"),
    answered(HOT_ONE, FINISH),
]


def test_what_is_read_as_it_was_is_the_same_also_after_a_change_of_protocol() -> None:
    readings = list(read_again(RECORDED))
    assert [reading.same for reading in readings] == [True, True, True]
    assert [reading.protocol for reading in readings] == ["native", "native", "json"]


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(answered(Finish(answer="It is cold."), TEXT), id="another answer"),
        pytest.param(
            answered(Malformed(error="empty", message="nothing"), b"{}", NATIVE), id="a call was not read then"
        ),
        pytest.param(answered(Calls(calls=(Call(name="set_fan", args={}),)), b"{}", NATIVE), id="another call"),
        pytest.param(
            answered(Malformed(error="empty", message="x"), b'{"content":""}'), id="other words for the model"
        ),
    ],
)
def test_what_is_read_otherwise_now_is_shown_then_and_now_and_fails(event: Answered) -> None:
    readings = list(read_again([begun("native"), event]))
    assert [reading.same for reading in readings] == [False]
    out = io.StringIO()
    assert show_readings(readings, argparse.Namespace(json=False), Screen(out)) == 1
    assert readings[0].then in out.getvalue() and readings[0].now in out.getvalue()
    assert show_readings(list(read_again(RECORDED)), argparse.Namespace(json=True), Screen(io.StringIO())) == 0


def test_what_is_sent_for_a_replay_has_no_prompts_and_reads_the_same() -> None:
    sent = msgspec.json.decode(msgspec.json.encode(list(answers_of(RECORDED))), type=list[Event])
    assert list(read_again(sent)) == list(read_again(RECORDED))
    assert b"rules" not in msgspec.json.encode(sent)


@pytest.mark.parametrize(
    ("read", "words"),
    [
        (Guard(read=READ, path="value", op=">", value=60, then=READ), "value > 60"),
        (GiveUp(reason="no tool"), "give up 'no tool'"),
        (Malformed(error="conflict", message="two"), "conflict: two"),
    ],
)
def test_a_decision_fits_one_line(read: Decision | Malformed, words: str) -> None:
    assert words in in_words(read) and "\n" not in in_words(read)
