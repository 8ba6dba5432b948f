"""A run that the machine cannot follow is ended for that, on a real store; what it did is told as far as it can be read."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from msgspec import Raw

from rea_edge.daemon.view import trace
from rea_edge.errors import RunUnreadable
from rea_edge.journal import Journal, encode, run_from
from rea_edge.records import Answered, Asked, Begun, Call, Calls, Event, Intended, Job, Offer
from rea_edge.report import Report
from rea_edge.store import RunKind, RunRow, Store
from rea_edge.topics import Topics

TOPICS = Topics("rea/v1", "n1")
RING = Call(name="ring", args={})
BEGUN = Begun(
    endpoint="e",
    model="m",
    protocol="json",
    offers=(Offer(name="ring", effect="once", parameters={}),),
    opening=(Raw(b'{"role":"user","content":"goal"}'),),
    ask="",
    context_tokens=8192,
    min_observations=1,
    answer_tokens=100,
)
ASKED = Asked(step=1, reserved=100, cap=50)
ANSWERED = Answered(
    step=1,
    turn=Raw(b'{"role":"assistant","content":""}'),
    decision=Calls(calls=(RING,)),
    prompt_tokens=1,
    completion_tokens=1,
    seconds=1.0,
)
FOREIGN = b'{"kind":"teleported","n":1}'


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store.open(tmp_path / "state")
    yield store
    store.close()


@pytest.fixture
def journal(store: Store) -> Journal:
    return Journal(store, Report(TOPICS, lambda: None, 0.0).publish, lambda: None)


def add(
    store: Store, events: list[Event | bytes], kind: RunKind = "task", request: bytes = encode(Job(goal="g"))
) -> RunRow:
    with store.transaction() as tx:
        row, _ = tx.add_run(kind, "me", "t1", "sha256:0", request, None)
        tx.append(row.row, 0, [event if isinstance(event, bytes) else encode(event) for event in events], None)
        tx.set_state(row.row, "running")
    found = store.run(row.row)
    assert found is not None
    return found


CASES = {
    "an event of another version": ([BEGUN, FOREIGN], "event 1 of its journal"),
    "an event that cannot come": ([BEGUN, ASKED, ASKED], "event 2 of its journal: IllegalMove"),
    "no JSON": ([b"\xff"], "event 0 of its journal"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_run_that_cannot_be_followed_ends_as_failed_and_names_the_row(
    store: Store, journal: Journal, case: str
) -> None:
    events, why = CASES[case]
    row = add(store, events)
    with pytest.raises(RunUnreadable, match=f"^row 1 .*{why}") as caught:
        journal.load(row)
    _, row = journal.give_up(row, caught.value)
    assert (row.state, row.outcome, row.seq) == ("ended", "failed", len(events) + 1)
    messages = {message.topic: message.payload for message in store.pull()}
    told = msgspec.json.decode(messages[TOPICS.state("me", "t1")])
    assert (told["state"], told["outcome"], told["error"]) == ("ended", "failed", "internal")
    assert told["reason"].startswith("row 1 ") and why in told["reason"]
    assert store.queue() == []
    again = run_from(store, row)
    assert (again.phase, again.seq, again.ended and again.ended.outcome) == ("ended", row.seq, "failed")
    _, said = trace(store, row)
    assert [event.kind for event in said[-2:]] == ["note", "end"] and why in said[-2].text


def test_a_request_that_cannot_be_read_ends_its_run(store: Store, journal: Journal) -> None:
    row = add(store, [], request=b'{"goal":7}')
    with pytest.raises(RunUnreadable, match="its request") as caught:
        journal.load(row)
    assert journal.give_up(row, caught.value)[1].outcome == "failed"


@pytest.mark.parametrize(
    ("events", "done"),
    [
        pytest.param([BEGUN, ASKED, ANSWERED, FOREIGN], ["unknown"], id="its start may be what was not read"),
        pytest.param([BEGUN, ASKED, ANSWERED, Intended(n=1), FOREIGN], ["unknown"], id="its end may be"),
        pytest.param([BEGUN, ASKED, FOREIGN], [], id="no call is known"),
    ],
)
def test_a_once_call_that_may_have_started_is_told_as_unknown(
    store: Store, journal: Journal, events: list[Event | bytes], done: list[str]
) -> None:
    row = add(store, events)
    with pytest.raises(RunUnreadable) as caught:
        journal.load(row)
    run, row = journal.give_up(row, caught.value)
    assert [one.result for one in run.done] == done
    assert run_from(store, row) == run


def test_a_fault_of_the_machine_between_two_events_leaves_no_doubt_about_a_call_that_was_not_started(
    store: Store, journal: Journal
) -> None:
    row = add(store, [BEGUN, ASKED, ANSWERED])
    run, _ = journal.give_up(row, RunUnreadable("row 1 (run r-1), what follows: a bug"))
    assert run.done == ()


def test_the_sender_of_a_direct_call_that_cannot_be_followed_gets_an_error(store: Store, journal: Journal) -> None:
    row = add(store, [FOREIGN], "call", encode(Job(call=RING)))
    with pytest.raises(RunUnreadable) as caught:
        journal.load(row)
    journal.give_up(row, caught.value)
    (message,) = store.pull()
    assert message.topic == TOPICS.reply("me", "t1")
    assert msgspec.json.decode(message.payload)["error"]["code"] == "internal"


def test_a_journal_without_that_end_stays_unreadable(store: Store) -> None:
    row = add(store, [BEGUN, FOREIGN, BEGUN])
    with pytest.raises(RunUnreadable):
        run_from(store, row)
