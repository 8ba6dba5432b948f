"""Whatever people say, in whatever order, late, twice, over restarts: only the exact call that was approved runs, once."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from msgspec import Struct

from rea_edge.wire import AskShown, DecidedShown
from tests.durability.people import APPROVERS, SECONDS, Desk

PEOPLE = ("me", "bob", "eve", "zoe")


class Asking(Struct):
    """A call as the test expects it: what became of it, when it was asked and said yes to."""

    who: str
    args: dict[str, object]
    via: list[str]
    request: str = ""
    asked_s: float = 0.0
    yes_s: float = 0.0
    word: str = ""  # yes, no, expired; empty while it waits


CALL = st.tuples(st.just("call"), st.sampled_from(PEOPLE), st.integers(0, 2), st.sampled_from([[], ["eve"], ["zoe"]]))
ANSWERS = st.sampled_from(["yes", "yes", "yes", "no", "YES", "", True, None, 1, ["yes"], {"yes": True}])
HASHES = st.sampled_from(["right", "right", "right", "another call's", "none", "cut"])
SAY = st.tuples(st.just("say"), st.sampled_from(("bob", "eve", *PEOPLE)), st.integers(0, 5), ANSWERS, HASHES)
OTHER = st.sampled_from([("work",), ("work",), ("restart",), ("turn",)])
WAIT = st.tuples(st.just("wait"), st.sampled_from([1.0, 20.0, SECONDS - 1, SECONDS, SECONDS + 1]))
WORK = ("work",)
BEGUN = st.lists(CALL, min_size=1, max_size=3).map(lambda calls: [*calls, WORK])  # something waits from the first on
STEPS = st.tuples(BEGUN, st.lists(st.one_of(SAY, SAY, SAY, CALL, OTHER, WAIT), max_size=12)).map(
    lambda two: two[0] + two[1]
)


class Story:
    """Plays steps on a node and keeps what must be so."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.now_s = 100.0
        self.ledger: list[tuple[str, object]] = []
        self.calls: list[Asking] = []
        self.desk = self._begun()
        self._says = 0

    def _begun(self) -> Desk:
        return Desk(self._folder, lambda: self.now_s, self.ledger)

    def play(self, step: tuple[object, ...]) -> None:
        match step:
            case ("call", str(who), int(value), list(via)):
                self.calls.append(Asking(who=who, args={"value": value}, via=via))
                keys = {"id": f"c{len(self.calls)}", "args": {"value": value}, "via": via}
                assert self.desk.send(who, "call", keys, "ring") is None
            case ("say", str(who), int(place), answer, str(hash_)):
                self._say(who, place, answer, hash_)
            case ("wait", float(seconds)):
                self.now_s += seconds
            case ("turn",):
                self.desk.asks.turn()
                self._expire()
            case ("restart",):
                self.desk.store.close()
                self.desk = self._begun()
            case ("work",):
                self._work()

    def _work(self) -> None:
        self.desk.work()
        shown = {one.task: one for one in self.desk.told() if isinstance(one, AskShown)}
        for number, one in enumerate(self.calls, 1):
            if one.request or one.word:
                continue
            if not set(APPROVERS) - {one.who, *one.via}:
                one.word = "no"  # nobody is left to say yes
                continue
            ask = shown[f"c{number}"]
            assert (ask.args, ask.who, ask.via) == (one.args, one.who, one.via)
            one.request, one.asked_s = ask.request, self.now_s

    def _say(self, who: str, place: int, answer: object, hash_: str) -> None:
        waiting = [one for one in self.calls if one.request]
        if not waiting:
            return
        one = waiting[place % len(waiting)]
        shown = {ask.request: ask.ask_hash for ask in self.desk.told() if isinstance(ask, AskShown)}
        right = shown.get(one.request, "sha256:gone")
        another = next((known for request, known in shown.items() if request != one.request), "sha256:0")
        said = {"right": right, "another call's": another, "none": None, "cut": right[:-1]}[hash_]
        self._says += 1
        keys = {"id": f"s{self._says}", "request": one.request, "answer": answer, "ask_hash": said}
        reply = self.desk.send(who, "say", keys)
        assert reply is not None, "every say is answered"
        again = self.desk.send(who, "say", keys)
        assert again is not None and (again.ok, again.data) == (reply.ok, reply.data)
        if who not in APPROVERS or who == one.who or who in one.via:
            assert not reply.ok and reply.error is not None
            assert one.word or reply.error.code == "policy_denied"
        elif one.word:
            assert not reply.ok
        elif self.now_s - one.asked_s >= SECONDS:
            assert reply.error is not None and reply.error.code == "approval_timeout"
            one.word = "expired"
        else:
            one.word, one.yes_s = ("yes" if answer == "yes" and said == right else "no"), self.now_s
            assert reply.ok and isinstance(reply.data, dict) and reply.data["answer"] == one.word

    def _expire(self) -> None:
        for one in self.calls:
            if one.request and not one.word and self.now_s - one.asked_s >= SECONDS:
                one.word = "expired"


def played(folder: Path, steps: list[tuple[object, ...]]) -> Story:
    story = Story(folder)
    allowed: list[tuple[str, object]] = []
    started: set[str] = set()
    for step in [*steps, ("work",), ("wait", SECONDS), ("turn",), ("work",)]:
        if step == ("work",):
            for one in story.calls:
                if one.word == "yes" and one.request not in started:
                    started.add(one.request)
                    if story.now_s - one.yes_s <= SECONDS:
                        allowed.append((one.request, one.args))
        story.play(step)
        assert sorted(map(repr, story.ledger)) == sorted(map(repr, allowed)), "what was approved has run, once"
    return story


@pytest.mark.parametrize(
    "examples", [pytest.param(60, id="some"), pytest.param(600, id="many", marks=pytest.mark.slow)]
)
def test_only_the_exact_call_that_was_approved_runs_and_once(examples: int) -> None:
    @settings(max_examples=examples, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(STEPS)
    @example([("call", "me", 0, []), WORK, ("say", "bob", 0, "yes", "right"), ("wait", SECONDS + 1)])
    def told(steps: list[tuple[object, ...]]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            story = played(Path(folder), steps)
            ended = [one for one in story.desk.told() if isinstance(one, DecidedShown)]
            assert len(ended) == len(story.desk.told()), "nothing waits any more"
            assert {one.request: one.answer for one in ended} == {
                one.request: one.word for one in story.calls if one.request
            }
            assert len(ended) == len({one.request for one in ended}), "each end is told once"
            replies = story.desk.replies()
            ran = {request for request, _ in story.ledger}
            for number, one in enumerate(story.calls, 1):
                reply = replies[f"c{number}"]
                assert reply.ok == (one.request in ran)
                late = reply.error is not None and reply.error.code == "approval_timeout"
                assert late == (one.word == "expired")
            story.desk.store.close()

    told()
