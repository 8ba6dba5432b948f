"""What people are told: every key of the contract, and nothing larger than a message may be."""

import msgspec
import pytest
from msgspec import Raw

from rea_edge.loop import apply, start
from rea_edge.records import Args, Call, Done, Ended, Job, Ok, Returned, Run
from rea_edge.report import LINE_MAX, TEXT_MAX, Report, cut, fitted, line, words
from rea_edge.store import RunRow
from rea_edge.topics import Topics
from rea_edge.wire import PUBLISH_MAX, Reply, TaskEvent

REPORT = Report(Topics("rea/v1", "n1"), lambda: None, 0.0)
ROW = RunRow(
    row=1, kind="task", who="me", id="t1", body="sha256:0", request=b"", state="ended", outcome="achieved", seq=3,
    shown="yes", at=None, ended_at=None,
)  # fmt: skip
LONG = pytest.mark.parametrize(
    "letter", [pytest.param("x", id="plain"), pytest.param("\x00", id="six bytes each"), pytest.param("漢", id="wide")]
)


def size(value: object) -> int:
    return len(msgspec.json.encode(value))


def ended(answer: str, reason: str, args: Args, calls: int = 1) -> Run:
    run = start("rtest-1", Job(goal="goal"))
    run = apply(run, Ended(outcome="achieved", answer=answer, reason=reason))
    done = tuple(Done(n=n, tool="look", args=args, result="ok") for n in range(1, calls + 1))
    return msgspec.structs.replace(run, done=done)


def test_a_refusal_has_every_key_also_where_it_is_false_or_null() -> None:
    said = msgspec.to_builtins(REPORT.refused("task", None, "busy", "later", True))
    error = {"code": "busy", "message": "later", "retryable": True, "fault": None}
    assert said == {
        "for": "task", "id": None, "ok": False, "data": None, "error": error, "next": None, "ms": None, "at": None,
    }  # fmt: skip


def test_an_event_says_that_its_time_is_not_known() -> None:
    assert msgspec.to_builtins(TaskEvent(seq=1, step=1, kind="note"))["at"] is None


@LONG
def test_a_state_fits_into_a_message_whatever_was_answered(letter: str) -> None:
    state = REPORT.state_of(ROW, ended(letter * 40_000, letter * 40_000, {"text": letter * 2_000}, calls=50))
    assert size(state) <= PUBLISH_MAX
    assert state.answer is not None and "query journal" in state.answer
    assert state.done_total == 50
    assert [done.n for done in state.done] == list(range(51 - len(state.done), 51))


def test_a_state_that_fits_is_told_whole() -> None:
    state = REPORT.state_of(ROW, ended("It is 45.", "", {"name": "boiler"}, calls=3))
    assert (state.answer, len(state.done), state.done_total) == ("It is 45.", 3, 3)


@LONG
def test_live_events_and_lines_of_the_journal_fit(letter: str) -> None:
    event = TaskEvent(seq=1, step=1, kind="call", text=letter * 70_000, args={"text": letter * 70_000})
    for shown in (fitted(event), line(event)):
        assert shown.args is None and size(shown) <= LINE_MAX
    assert size(fitted(event).text) <= TEXT_MAX < size(line(event).text)
    assert fitted(event).text.endswith("query journal)")


def test_a_call_whose_arguments_are_cut_says_where_they_are() -> None:
    event = TaskEvent(seq=1, step=1, kind="call", args={"text": "x" * 40_000})
    assert fitted(event).args is None and "query journal" in fitted(event).text


@LONG
def test_a_text_is_cut_to_the_byte_and_never_a_fitting_one(letter: str) -> None:
    whole = letter * 100
    assert cut(whole, size(whole)) == whole
    for most in range(60, size(whole)):
        assert most - 6 < size(cut(whole, most)) <= most


def test_the_journal_has_a_result_whole() -> None:
    run = start("rtest-1", Job(call=Call(name="look", args={})))
    event = Returned(n=1, result=Ok(data=Raw(msgspec.json.encode("x" * 20_000))), seconds=0.1)
    (said,) = words(apply(run, event), event)
    assert len(said.text) == 20_002 == len(line(said).text)


def test_a_reply_reads_back() -> None:
    reply = Reply(for_="call", id="c1", ok=True, data=None)
    assert msgspec.json.decode(msgspec.json.encode(reply), type=Reply) == reply
