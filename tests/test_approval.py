"""A person's yes in the machine: what waits, what it may come to, and what a yes is worth."""

import pytest
from msgspec import Raw, structs

from rea_edge import approval
from rea_edge.errors import Code
from rea_edge.loop import IllegalMove, apply, next_effect, start
from rea_edge.records import (
    Act,
    AskedApproval,
    Call,
    CancelAsked,
    Decided,
    Ended,
    Event,
    Intended,
    Job,
    Ok,
    Record,
    Refused,
    Resumed,
    Returned,
    Rule,
    Run,
    Wait,
)

RING = Call(name="ring", args={"loud": True})
JOB = Job(call=RING, who="me", via=("ann",))
ASK = AskedApproval(
    n=1,
    ask_hash="sha256:a",
    nonce="0",
    approvers=("bob",),
    seconds=60.0,
    until_s=160.0,
    shown={"loud": True},
    risk="it acts",
)
YES = Decided(n=1, ask_hash="sha256:a", answer="yes", at_s=120.0, by="bob", say="s1")
NO = structs.replace(YES, answer="no")
LATE = structs.replace(YES, answer="expired", by="", say="")
RANG = Returned(n=1, result=Ok(data=Raw(b"true")), seconds=0.1)


def after(*events: Event) -> Run:
    run = start("r-1", JOB)
    for event in events:
        run = apply(run, event)
    return run


@pytest.mark.parametrize(
    ("events", "kind"),
    [
        pytest.param([], Act, id="nobody is asked before the gate says so"),
        pytest.param([ASK], Wait, id="it waits"),
        pytest.param([ASK, Resumed(clean=False)], Wait, id="and over a restart"),
        pytest.param([ASK, Resumed(clean=False), Resumed(clean=False), Resumed(clean=False)], Wait, id="and many"),
        pytest.param([ASK, YES], Act, id="a yes leads to the gate once more"),
        pytest.param([ASK, YES, Resumed(clean=True)], Act, id="also after a restart"),
        pytest.param([ASK, NO], Record, id="a no is the end"),
        pytest.param([ASK, LATE], Record, id="so is silence"),
        pytest.param([ASK, CancelAsked(by="me")], Record, id="and a cancel"),
        pytest.param([ASK, YES, CancelAsked(by="me")], Record, id="which wins while nothing has started"),
        pytest.param([ASK, YES, Intended(n=1)], Record, id="what was cut off is unknown"),
    ],
)
def test_what_a_run_does_about_a_call_that_needs_a_yes(events: list[Event], kind: type) -> None:
    assert isinstance(next_effect(after(*events)), kind)


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([YES], id="a yes that nobody asked for"),
        pytest.param([ASK, structs.replace(YES, ask_hash="sha256:b")], id="a yes to something else"),
        pytest.param([ASK, structs.replace(YES, n=2)], id="a yes to another call"),
        pytest.param([ASK, YES, YES], id="two of them"),
        pytest.param([ASK, YES, NO], id="a no after a yes"),
        pytest.param([ASK, NO, YES], id="a yes after a no"),
        pytest.param([ASK, LATE, YES], id="a yes that is late"),
        pytest.param([ASK, YES, Intended(n=1), YES], id="a yes to what has started"),
        pytest.param([ASK, Intended(n=1)], id="a start without a yes"),
        pytest.param([ASK, RANG], id="a result without a yes"),
        pytest.param([ASK, ASK], id="asked twice"),
        pytest.param([ASK, YES, ASK], id="asked again"),
        pytest.param([Intended(n=1), ASK], id="asked after the start"),
        pytest.param([structs.replace(ASK, n=2)], id="about a call that is not open"),
    ],
)
def test_nothing_else_has_a_place(events: list[Event]) -> None:
    with pytest.raises(IllegalMove):
        after(*events)


@pytest.mark.parametrize(
    ("said", "error", "words"),
    [
        (NO, "policy_denied", "bob has said no to it"),
        (structs.replace(NO, why="its answer is neither yes nor no"), "policy_denied", "neither yes nor no"),
        (LATE, "approval_timeout", "nobody has said yes to it in time"),
    ],
)
def test_a_no_is_denied_and_says_whose(said: Decided, error: Code, words: str) -> None:
    run = after(ASK, said)
    effect = next_effect(run)
    assert isinstance(effect, Record) and isinstance(effect.event, Ended)
    assert effect.event.error == error and words in effect.event.reason
    assert run.done[0].result == "denied" and run.ask is None


@pytest.mark.parametrize("event", [Intended(n=1), RANG, Refused(n=1, reason="too soon")])
def test_a_yes_is_used_up_by_what_comes_of_its_call(event: Event) -> None:
    assert after(ASK, YES).said == YES
    run = after(ASK, YES, event)
    assert (run.ask, run.said) == (None, None)


HASH = approval.ask_hash("n", "r-1-1", RING, JOB, "0")


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(("m", "r-1-1", RING, JOB, "0"), id="another node"),
        pytest.param(("n", "r-1-2", RING, JOB, "0"), id="another request"),
        pytest.param(("n", "r-1-1", Call(name="rang", args=RING.args), JOB, "0"), id="another tool"),
        pytest.param(("n", "r-1-1", Call(name="ring", args={"loud": 1}), JOB, "0"), id="another argument"),
        pytest.param(("n", "r-1-1", Call(name="ring", args={}), JOB, "0"), id="no argument"),
        pytest.param(("n", "r-1-1", RING, structs.replace(JOB, who="you"), "0"), id="another sender"),
        pytest.param(("n", "r-1-1", RING, structs.replace(JOB, via=()), "0"), id="on nobody's behalf"),
        pytest.param(("n", "r-1-1", RING, JOB, "1"), id="asked another time"),
    ],
)
def test_the_hash_names_all_that_is_said_yes_to(changed: tuple[str, str, Call, Job, str]) -> None:
    assert approval.ask_hash(*changed) != HASH


NEVER, TASK, ALWAYS = (Rule(confirm=word, approvers=("bob", "me")) for word in approval.STRICTNESS)


@pytest.mark.parametrize(
    ("declared", "configured", "direct", "by_a_model"),
    [
        (None, None, False, False),
        (None, NEVER, False, False),
        (NEVER, TASK, False, True),
        (TASK, NEVER, False, True),
        (ALWAYS, NEVER, True, True),
        (TASK, ALWAYS, True, True),
        (ALWAYS, None, True, True),
    ],
)
def test_the_stricter_of_declaration_and_node_holds(
    declared: Rule | None, configured: Rule | None, direct: bool, by_a_model: bool
) -> None:
    needed = approval.terms(declared, configured)
    assert (needed.hold_for(JOB), needed.hold_for(Job(goal="Ring."))) == (direct, by_a_model)


def test_only_the_node_says_who_may_say_yes_and_never_the_sender() -> None:
    assert approval.terms(ALWAYS, None).approvers == ()
    needed = approval.terms(None, Rule(confirm="always", approvers=("bob", "me", "ann")))
    assert approval.eligible(needed, JOB) == ("bob",)


@pytest.mark.parametrize(
    ("configured", "approvers"),
    [
        pytest.param(None, ("eve",), id="nothing is said of the tool"),
        pytest.param(Rule(confirm="always"), ("eve",), id="nobody is named for it"),
        pytest.param(Rule(approvers=("bob",)), ("bob",), id="somebody is, and nobody else"),
    ],
)
def test_those_of_the_node_say_yes_where_the_tool_has_nobody_of_its_own(
    configured: Rule | None, approvers: tuple[str, ...]
) -> None:
    needed = approval.terms(None, configured, ("eve",))
    assert needed.approvers == approvers and approval.nobody(needed, "ring", "broker") is None
    assert "anyone could take" in (approval.nobody(needed, "ring", "none") or "")
    alone = approval.nobody(approval.terms(None, configured), "ring", "broker")
    assert alone == (None if approvers == ("bob",) else "[gate.ring] names no approvers, nor does [access]")


@pytest.mark.parametrize(
    ("hash_", "approvers", "now_s", "why"),
    [
        pytest.param("sha256:a", ("bob",), 180.0, None, id="in its last moment"),
        pytest.param("sha256:a", ("bob",), 180.5, "has lapsed", id="a moment later"),
        pytest.param("sha256:b", ("bob",), 121.0, "not the call", id="another call"),
        pytest.param("sha256:a", ("eve",), 121.0, "no approver any more", id="of somebody who is none any more"),
    ],
)
def test_a_yes_is_looked_at_again_at_the_start(
    hash_: str, approvers: tuple[str, ...], now_s: float, why: str | None
) -> None:
    needed = approval.Terms(confirm="always", approvers=approvers)
    found = approval.lapsed(after(ASK, YES), hash_, needed, now_s)
    assert found is None if why is None else why in str(found)
