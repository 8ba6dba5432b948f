"""A whole run against endpoints that misbehave: it ends in time, within its budget, and says what was wrong."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import msgspec
import pytest

from rea_edge.cancel import Cancel
from rea_edge.clock import Clock
from rea_edge.config import Broker, Endpoint, Node, Settings
from rea_edge.daemon.approvals import Approvals
from rea_edge.daemon.effects import NodeEffects, Profiles
from rea_edge.daemon.gates import Gates, Starts
from rea_edge.daemon.halts import Halt
from rea_edge.emulated.endpoint import Fault, Held, Message, Scripted, ScriptedEndpoint
from rea_edge.endpoints import Endpoints
from rea_edge.journal import Held as HeldRun
from rea_edge.journal import Journal, decode_event, encode, run_from
from rea_edge.records import Asked, Ended, Event, Job, Limits, Moved, Protocol, Run, Unanswered
from rea_edge.report import Report
from rea_edge.runner import Runner
from rea_edge.store import Store
from rea_edge.toolbox import Toolbox
from rea_edge.topics import Topics
from tests.endpoints.test_choice import KINDS, Then, as_tls

LATE_S = 2.0  # how much later than its bound a question may end on a busy machine; what nothing bounds never ends
FINISH = json.dumps({"action": "finish", "terminal_answer": "All is well."})
BABBLE = "I wonder. " * 200  # no decision: it is asked again, and the prompt grows


class Shell:
    """A store and a runner over the real effects of a node without tools."""

    def __init__(self, folder: Path, endpoints: tuple[Endpoint, ...]) -> None:
        settings = Settings(node=Node(id="n"), broker=Broker(), endpoints=endpoints)
        self.store = Store.open(folder / "state")
        clock = Clock()
        self.effects = NodeEffects(
            settings=settings,
            toolbox=Toolbox({}, ()),
            store=self.store,
            approvals=Approvals(settings, "n", self.store, lambda: 0.0),
            gates=Gates(settings.gates, Starts(self.store, clock), clock),
            endpoints=Endpoints(settings.endpoints, Profiles(self.store)),
            halt=Halt(self.store, clock.now),
        )
        self._journal = Journal(self.store, Report(Topics("rea/v1", "n"), lambda: None, 0.0).publish, lambda: None)

    def submit(self, limits: Limits, task_id: str = "t1") -> HeldRun:
        with self.store.transaction() as tx:
            row, _ = tx.add_run(
                "task", "me", task_id, "sha256:x", encode(Job(goal="Say how it is.", limits=limits)), None
            )
        return self._journal.load(row)

    def finish(self, held: HeldRun, cancel: Cancel | None = None) -> tuple[Run, Ended, float]:
        runner = Runner(self.effects, lambda row, news: None, lambda seconds: None)
        began_s = time.monotonic()
        runner.finish(held, cancel or Cancel(), lambda: False)
        assert held.run.ended is not None
        return held.run, held.run.ended, time.monotonic() - began_s

    def events(self, held: HeldRun) -> list[Event]:
        return [decode_event(body) for body in self.store.events(held.row.row)]

    def close(self) -> None:
        self.effects.endpoints.close()
        self.store.close()


def endpoint(url: str, name: str = "e1", protocol: Protocol = "json") -> Endpoint:
    return Endpoint(name=name, url=url, model=f"model-{name}", protocol=protocol, context_tokens=8192, connect_s=0.3)


@contextmanager
def shell(folder: Path, *endpoints: Endpoint) -> Iterator[Shell]:
    made = Shell(folder, endpoints)
    try:
        yield made
    finally:
        made.close()


def chats(server: ScriptedEndpoint) -> list[bytes]:
    return [request.body for request in server.requests if request.path.endswith("/chat/completions")]


def turns(request: Message) -> int:
    found = request["messages"]
    assert isinstance(found, list)
    return sum(message["role"] == "assistant" for message in found)


@pytest.mark.parametrize(("place", "kind", "then"), KINDS)
def test_a_run_whose_only_endpoint_misbehaves_ends_in_time_and_names_it(
    place: Callable[[], AbstractContextManager[str]], kind: str, then: Then, tmp_path: Path
) -> None:
    with place() as url, shell(tmp_path, endpoint(as_tls(kind, url))) as made:
        run, ended, took_s = made.finish(made.submit(Limits(task_s=1.0)))
    assert ended.outcome in ("failed", "exceeded")
    assert kind in ended.reason
    assert ended.outcome == "exceeded" or ended.error == "endpoint_unavailable"
    assert took_s < 1.0 + LATE_S
    assert run.used.steps <= 8 and run.used.tokens <= 20_000


@pytest.mark.parametrize(("place", "kind", "then"), [row for row in KINDS if row.values[1] != "context_overflow"])
def test_a_run_goes_on_at_the_second_endpoint(
    place: Callable[[], AbstractContextManager[str]], kind: str, then: Then, tmp_path: Path
) -> None:
    with place() as url, ScriptedEndpoint([FINISH]) as second:
        with shell(tmp_path, endpoint(as_tls(kind, url)), endpoint(second.url, "e2")) as made:
            run, ended, took_s = made.finish(made.submit(Limits(task_s=6.0)))
        assert (ended.outcome, ended.answer) == ("achieved", "All is well."), ended
        assert run.begun is not None and run.begun.endpoint == "e2"
        assert json.loads(chats(second)[0])["model"] == "model-e2"
    assert took_s < 6.0 + LATE_S


def refusing_after_one(status: int) -> Callable[[Message], Scripted]:
    return lambda request: Fault("status", status=status) if turns(request) else BABBLE


def test_a_switch_is_journalled_and_leaves_what_was_said_as_it_was_byte_for_byte(tmp_path: Path) -> None:
    with ScriptedEndpoint(refusing_after_one(404)) as one, ScriptedEndpoint([BABBLE, FINISH]) as two:
        with shell(tmp_path, endpoint(one.url), endpoint(two.url, "e2")) as made:
            held = made.submit(Limits())
            run, ended, _ = made.finish(held)
            (moved,) = [event for event in made.events(held) if isinstance(event, Moved)]
            assert run_from(made.store, held.row) == run
        refused, taken = chats(one)[-1], chats(two)[0]
    assert ended.outcome == "achieved"
    assert (moved.endpoint, moved.model) == ("e2", "model-e2") and "not_found" in moved.why
    head, tail = b'"messages":', b',"max_tokens"'
    assert refused.split(head)[1].split(tail)[0].split(b"]")[0] == taken.split(head)[1].split(tail)[0].split(b"]")[0]


def test_what_cannot_have_cost_tokens_costs_the_run_nothing(tmp_path: Path) -> None:
    with (
        ScriptedEndpoint(refusing_after_one(401)) as one,
        ScriptedEndpoint([BABBLE, FINISH]) as two,
        shell(tmp_path, endpoint(one.url), endpoint(two.url, "e2")) as made,
    ):
        held = made.submit(Limits())
        run, _, _ = made.finish(held)
        charged = [event.charged for event in made.events(held) if isinstance(event, Unanswered)]
    assert charged == [False]
    assert run.used.steps == 2 and not run.used.estimated


def test_each_question_that_may_have_cost_tokens_is_a_step_with_its_reservation(tmp_path: Path) -> None:
    with ScriptedEndpoint(lambda request: Fault("cut_body")) as server, shell(tmp_path, endpoint(server.url)) as made:
        held = made.submit(Limits(steps=2))
        run, ended, _ = made.finish(held)
        reserved = [event.reserved for event in made.events(held) if isinstance(event, Asked)]
        assert len(chats(server)) == len(reserved) == 2
    assert (ended.outcome, ended.limit) == ("exceeded", "steps") and "cut" in ended.reason
    assert run.used.estimated and run.used.tokens == sum(reserved)


def test_questions_that_fail_never_pass_the_limit_of_tokens(tmp_path: Path) -> None:
    with (
        ScriptedEndpoint(lambda request: Fault("status", status=500)) as server,
        shell(tmp_path, endpoint(server.url)) as made,
    ):
        run, ended, _ = made.finish(made.submit(Limits(tokens=1500, answer_tokens=400)))
    assert run.used.tokens <= 1500
    assert "server_error" in ended.reason


def test_a_prompt_that_does_not_fit_is_asked_again_shorter_of_the_same_server(tmp_path: Path) -> None:
    """The server has room for one of two long turns; the settings promise it more than both take."""
    sizes: list[int] = []

    def answer(request: Message) -> Scripted:
        prompt = len(json.dumps(request["messages"])) // 4
        sizes.append(prompt)
        if prompt > 1000:
            told = {"message": "exceeds the available context size", "n_ctx": 1000, "n_prompt_tokens": prompt}
            return Fault("status", status=400, body=json.dumps({"error": told}))
        return BABBLE if len(sizes) < 3 else FINISH

    with ScriptedEndpoint(answer) as server, ScriptedEndpoint([FINISH]) as other:
        with shell(tmp_path, endpoint(server.url), endpoint(other.url, "e2")) as made:
            held = made.submit(Limits(answer_tokens=100))
            run, ended, _ = made.finish(held)
            (refused,) = [event for event in made.events(held) if isinstance(event, Unanswered)]
            asked = [event for event in made.events(held) if isinstance(event, Asked)]
            assert made.effects.endpoints.faults() == []
            assert run_from(made.store, held.row) == run
        assert chats(other) == []
    assert (refused.fault, refused.context_tokens, refused.charged) == ("context_overflow", 1000, False)
    assert ended.outcome == "achieved"
    assert asked[-1].first > asked[-2].first and sizes[-1] <= 1000 < sizes[-2]
    assert run.begun is not None and run.begun.context_tokens < 1500


def test_an_endpoint_of_another_protocol_is_not_taken_for_a_run_that_has_begun(tmp_path: Path) -> None:
    with ScriptedEndpoint([Fault("status", status=401)]) as one, ScriptedEndpoint([FINISH]) as two:
        with shell(tmp_path, endpoint(one.url), endpoint(two.url, "e2", protocol="command")) as made:
            _, ended, _ = made.finish(made.submit(Limits()))
        assert ended.outcome == "failed" and "unauthorized" in ended.reason
        assert chats(two) == []


def test_with_protocol_and_context_given_no_chat_request_is_sent_outside_a_run(tmp_path: Path) -> None:
    with ScriptedEndpoint([FINISH]) as server, shell(tmp_path, endpoint(server.url)) as made:
        made.finish(made.submit(Limits()))
        assert len(chats(server)) == 1


def test_after_three_unreadable_answers_an_endpoint_is_found_out_anew(tmp_path: Path) -> None:
    """It was seen to call tools, and does not keep to it."""

    def answer(request: Message) -> Scripted:
        if "report_ready" in json.dumps(request.get("tools", "")):
            function = {"name": "report_ready", "arguments": '{"ready": true}'}
            return {"tool_calls": [{"id": "a", "type": "function", "function": function}]}
        native = "action" not in json.dumps(request["messages"])
        return {"tool_calls": [{"id": "a", "function": {"name": "none", "arguments": "{}"}}]} if native else FINISH

    auto = msgspec.structs.replace(endpoint("http://x/v1"), protocol="auto")
    with ScriptedEndpoint(answer) as server, shell(tmp_path, msgspec.structs.replace(auto, url=server.url)) as made:
        for number in (1, 2):
            run, ended, _ = made.finish(made.submit(Limits(), f"t{number}"))
            assert run.begun is not None
            assert (ended.outcome, run.begun.protocol) == ("achieved", "json")
            assert sum(b"report_ready" in body for body in chats(server)) == number


def test_the_time_that_finding_out_takes_is_the_runs(tmp_path: Path) -> None:
    """The pages hang for a while; the question that follows gets only what is left."""
    with (
        ScriptedEndpoint(lambda request: Fault("hang_header")) as server,
        shell(tmp_path, endpoint(server.url)) as made,
    ):
        run, _, took_s = made.finish(made.submit(Limits(task_s=1.0)))
    assert run.used.seconds >= 1.0
    assert took_s < 1.0 + LATE_S


def test_a_cancel_ends_a_question_at_once(tmp_path: Path) -> None:
    release = threading.Event()
    with ScriptedEndpoint(lambda request: Held(FINISH, release)) as server:
        with shell(tmp_path, endpoint(server.url)) as made:
            cancel = Cancel()
            threading.Timer(0.3, cancel.cancel).start()
            _, ended, took_s = made.finish(made.submit(Limits()), cancel)
        release.set()
    assert "cancelled" in ended.reason
    assert took_s < 0.3 + LATE_S
