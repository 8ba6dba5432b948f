"""Controls that come at any border of a run: as if they had come in some order, none of them lost or used twice.

Each control is a function that sends it and checks its answer, and one that checks what became of the run: a new one
(pause, resume, amend, approve) is a new row. Sampled in each run, at every border with `-m slow`.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec
import pytest

from rea_edge.records import Asked, CancelAsked, Done, Event, Settled
from rea_edge.wire import Reply
from tests.durability.controlled import TASK, Station

EVERY = 18  # of the borders, in each run
CANCEL: dict[str, object] = {"id": "x1", "task": "t1", "do": "cancel"}
Send = Callable[[Station], Reply | None]
Check = Callable[[Station, Reply | None, "Whole", "Moment"], None]


class Whole(msgspec.Struct):
    """The run as it is where nobody comes by."""

    borders: int
    kinds: list[type[Event]]
    done: list[Done]
    unknown: int  # the number of the call of which nobody knows


class Moment(msgspec.Struct):
    """How far the run was when somebody came by: questions in its journal, calls started."""

    asked: int
    started: int


def kinds(station: Station) -> list[type[Event]]:
    return [type(event) for event in station.events()]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    station = Station(tmp_path_factory.mktemp("whole"), 0, lambda station: None)
    station.run()
    run = station.run_on_disk
    assert run.ended is not None and run.ended.outcome == "achieved"
    (unknown,) = (done.n for done in run.done if done.result == "unknown")
    yield Whole(borders=station.borders.count, kinds=kinds(station), done=list(run.done), unknown=unknown)
    station.store.close()


def code_of(reply: Reply | None) -> str | None:
    return None if reply is None or reply.error is None else reply.error.code


def same_as(station: Station, whole: Whole) -> None:
    assert kinds(station) == whole.kinds
    assert list(station.run_on_disk.done) == whole.done


# --- cancel


def cancelled(station: Station, reply: Reply | None, whole: Whole, then: Moment) -> None:
    run = station.run_on_disk
    assert reply is not None and run.ended is not None
    if code_of(reply) == "unknown_task" and "has ended" in str(reply.error):
        return same_as(station, whole)
    assert reply.ok or "if it still comes" in str(reply.error)
    assert run.ended.outcome == "cancelled" and "by me" in run.ended.reason
    assert kinds(station).count(CancelAsked) == 1
    # The last one may have been about to start: then it failed, as cancelled, and left no trace.
    done = [one for one in run.done if one.result != "failed"]
    assert done == whole.done[: len(done)], "what was done before is what would have been done"
    assert len(run.done) <= len(done) + 1
    acts = [one for one in done if one.tool != "look"]
    ran = [line for line in station.ledger("ran") if not line.startswith("look")]
    assert ran == [f"{one.tool} {run.id}-{one.n}" for one in acts], "what took effect is told, and nothing else is"
    assert len(station.ledger("asked")) <= then.asked + 1, "nothing is asked after it, but what was on its way"
    assert station.effects.started == then.started, "nothing is started after it"
    again = station.send("ctl", CANCEL)
    assert again is not None and (again.ok, again.data) == (True, {"task": "t1"}), "and once more, the same answer"
    return None


# --- queries and duplicates, which change nothing


def asked_about(what: str) -> Send:
    return lambda station: station.send("query", {"id": "q1", "task": "t1"}, what)


def say(station: Station) -> Reply | None:
    run = station.store.run_name(1)
    return station.send("say", {"id": "y1", "request": f"{run}-3", "answer": "yes", "ask_hash": "sha256:0"})


def nothing_changed(station: Station, reply: Reply | None, whole: Whole, then: Moment) -> None:
    assert reply is None or reply.ok or code_of(reply) == "unknown_task"
    same_as(station, whole)


def conflicting(station: Station, reply: Reply | None, whole: Whole, then: Moment) -> None:
    """Who comes first has the name."""
    run = station.run_on_disk
    if reply is None:
        assert run.job.goal == "another"
    else:
        assert code_of(reply) == "id_conflict" and run.job.goal == "do it"
        same_as(station, whole)


# --- settle


def settle(outcome: str) -> Send:
    def send(station: Station) -> Reply | None:
        return station.send("ctl", {"id": "s1", "task": "t1", "do": "settle", "n": 3, "outcome": outcome})

    return send


def settled(station: Station, reply: Reply | None, whole: Whole, then: Moment) -> None:
    assert reply is not None and whole.unknown == 3
    run = station.run_on_disk
    (call,) = (done for done in run.done if done.n == whole.unknown)
    if not reply.ok:
        assert code_of(reply) in ("unknown_task", "bad_request") and call.result == "unknown"
        return same_as(station, whole)
    assert (call.result, call.settled) == ("failed", "me")
    assert [kind for kind in kinds(station) if kind is not Settled] == whole.kinds, "it changes nothing else"
    told = [b"whose outcome was unknown" in bytes.fromhex(body) for body in station.ledger("asked")]
    assert not any(told[: then.asked]), "nobody is told before it was said"
    assert any(told) or len(told) <= then.asked + 1, "the next question that is made tells it"
    assert all(bytes.fromhex(body).count(b"whose outcome was unknown") <= 1 for body in station.ledger("asked"))
    assert settle("not_done")(station) == reply
    assert code_of(settle("done")(station)) == "id_conflict"
    return None


CONTROLS: dict[str, tuple[Send, Check]] = {
    "cancel": (lambda station: station.send("ctl", CANCEL), cancelled),
    "query task": (asked_about("task"), nothing_changed),
    "query journal": (asked_about("journal"), nothing_changed),
    "the same task": (lambda station: station.send("task", TASK), nothing_changed),
    "another of this name": (lambda station: station.send("task", {**TASK, "goal": "another"}), conflicting),
    "a say to what nobody asks": (say, nothing_changed),
    "settle": (settle("not_done"), settled),
}


def come_by(folder: Path, border: int, whole: Whole, send: Send, check: Check) -> None:
    """Let the control come at this border, and check it against what the disk then says."""
    replies: list[Reply | None] = []
    moments: list[Moment] = []

    def visit(station: Station) -> None:
        asked = sum(isinstance(event, Asked) for event in station.events())
        moments.append(Moment(asked, station.effects.started))
        replies.append(send(station))

    station = Station(folder, border, visit)
    try:
        station.run()
        assert len(replies) == 1, f"there is no border {border}"
        run = station.run_on_disk
        assert run.phase == "ended" and run.seq == len(station.events())
        check(station, replies[0], whole, moments[0])
        states = [row for row in station.store.pull() if row.topic.endswith("/task/t1/state")]
        assert len(states) == 1, "one state is told, the newest"
        told = msgspec.json.decode(states[0].payload)
        assert told["state"] == "ended" and told["seq"] == station.run_on_disk.seq
    finally:
        station.store.close()


@pytest.mark.parametrize("name", CONTROLS)
def test_a_control_at_a_sampled_border_is_as_one_in_some_order(tmp_path: Path, whole: Whole, name: str) -> None:
    first = list(CONTROLS).index(name) % EVERY + 1  # each control meets other borders
    visit_all(tmp_path, whole, name, {*range(first, whole.borders + 1, EVERY), whole.borders})


@pytest.mark.slow
@pytest.mark.parametrize("name", CONTROLS)
def test_a_control_at_any_border_is_as_one_in_some_order(tmp_path: Path, whole: Whole, name: str) -> None:
    visit_all(tmp_path, whole, name, range(1, whole.borders + 1))


def visit_all(folder: Path, whole: Whole, name: str, borders: Iterable[int]) -> None:
    send, check = CONTROLS[name]
    for border in borders:
        place = folder / str(border)
        place.mkdir()
        try:
            come_by(place, border, whole, send, check)
        except AssertionError as exc:
            raise AssertionError(f"{name} at border {border} of {whole.borders}: {exc}") from exc
