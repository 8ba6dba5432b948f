"""A call that may be made again and was cut off: it runs again, and where it may not any more, nobody says that it never ran."""

import pytest

from rea_edge.loop import STRIKES, apply, next_effect, start
from rea_edge.records import (
    Act,
    AskedApproval,
    Call,
    CancelAsked,
    CutOff,
    Decided,
    EffectClass,
    Event,
    Fault,
    Job,
    Refused,
    Resumed,
    Returned,
    Run,
    Settled,
    Verified,
)
from rea_edge.report import words
from tests.test_doubt import UNTOLD, intended
from tests.test_loop import ALARM, BROKEN, DONE, FAN, READ, answer, call, end_of, ready

CRASH, STOP = Resumed(clean=False), Resumed(clean=True)
CUT = CutOff(n=1, seconds=2.0)
NO = Refused(n=1, reason="the node is halted")


def after(*events: Event, of: Call = FAN) -> Run:
    run = answer(ready(), call(of))
    for event in events:
        run = apply(run, event)
    return run


def direct(effect: EffectClass = "idempotent", *events: Event) -> Run:
    run = start("rtest-2", Job(call=FAN, effect=effect))
    for event in events:
        run = apply(run, event)
    return run


ASK = AskedApproval(
    n=1, ask_hash="h", nonce="", approvers=("bob",), seconds=9, until_s=9, shown={}, risk=""
)  # fmt: skip
YES = Decided(n=1, ask_hash="h", answer="yes", at_s=1, by="bob")
SAID_NO = Decided(n=1, ask_hash="h", answer="no", at_s=1, by="bob")


@pytest.mark.parametrize(
    ("run", "word"),
    [
        pytest.param(after(NO), "denied", id="no restart"),
        pytest.param(after(STOP, NO), "denied", id="a stop in order, between two effects"),
        pytest.param(after(CRASH, NO), "unknown", id="a crash"),
        pytest.param(after(CRASH, STOP, NO), "unknown", id="a crash, then a stop in order"),
        pytest.param(after(CUT, STOP, NO), "unknown", id="a stop that cut it off"),
        pytest.param(after(CRASH, NO, of=READ), "denied", id="a read has no effect"),
        pytest.param(after(CRASH, NO, of=ALARM), "denied", id="what acts once leaves a row of its start"),
        pytest.param(after(ASK, YES, CRASH, NO), "denied", id="so does what a person has allowed"),
        pytest.param(after(CRASH, ASK, SAID_NO), "unknown", id="a person says no to it afterwards"),
        pytest.param(direct("idempotent", CRASH, NO), "unknown", id="a direct call"),
        pytest.param(direct("once", CRASH, NO), "denied", id="a direct call that acts once"),
        pytest.param(
            apply(apply(apply(intended("idempotent"), CRASH), Verified(n=1, result=UNTOLD, seconds=0.1)), NO),
            "unknown",
            id="its probe could not tell",
        ),
    ],
)
def test_a_call_that_may_have_run_before_it_was_refused_is_unknown(run: Run, word: str) -> None:
    assert [done.result for done in run.done] == [word]


def test_the_model_and_the_reader_of_the_journal_are_told_that_it_may_have_run() -> None:
    run = after(CRASH, NO)
    assert run.told[0].text.startswith('{"ok":false,"error":{"kind":"unknown"'), run.told[0].text
    assert "may have taken effect" in run.told[0].text and "the node is halted" in run.told[0].text
    assert "its outcome is unknown" in words(run, NO)[0].text
    assert words(after(NO), NO)[0].text == "denied: the node is halted"


def test_the_sender_of_a_direct_call_is_told_that_its_outcome_is_unknown() -> None:
    end = end_of(direct("idempotent", CRASH, NO))
    assert (end.outcome, end.error) == ("failed", "outcome_unknown") and "may have taken effect" in end.reason
    assert end_of(direct("idempotent", NO)).error == "policy_denied"


@pytest.mark.parametrize(
    "events",
    [
        pytest.param((CRASH, CancelAsked(by="ann")), id="cancelled"),
        pytest.param((CRASH,) * STRIKES, id="crashed too often"),
    ],
)
def test_a_run_that_ends_while_a_call_may_have_run_says_so(events: tuple[Event, ...]) -> None:
    run = after(*events)
    end = end_of(run)
    assert "set_fan (unknown)" in end.answer, end.answer
    run = apply(run, end)
    assert [(done.n, done.tool, done.result) for done in run.done] == [(1, "set_fan", "unknown")]
    assert [done.result for done in apply(run, Settled(n=1, outcome="done", by="ann")).done] == ["ok"]


def test_a_run_that_ends_after_a_stop_in_order_does_not_doubt_what_was_not_begun() -> None:
    assert end_of(after(STOP, CancelAsked(by="ann"))).answer == "Nothing was done."


def test_a_call_that_was_cut_off_runs_again_and_what_it_gives_then_holds() -> None:
    run = after(CRASH)
    assert next_effect(run) == Act(n=1, call=FAN, effect="idempotent", seconds=10.0)
    assert [done.result for done in apply(run, Returned(n=1, result=DONE, seconds=0.1)).done] == ["ok"]
    assert run.used.seconds == after().used.seconds and after(CUT).used.seconds == after().used.seconds + 2.0


def test_a_call_that_was_cut_off_and_fails_when_it_is_made_again_is_unknown() -> None:
    busy = Fault(fault="busy", message="the device was not free")
    for fault in (BROKEN, busy):
        run = direct("idempotent", CRASH, Returned(n=1, result=fault, seconds=0.1, unknown=True))
        assert end_of(run).error == "outcome_unknown"
