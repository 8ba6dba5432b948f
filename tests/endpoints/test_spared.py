"""A server that refuses members of a question by name is asked without them: at once, once each, and from then on."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from rea_edge.cancel import Cancel
from rea_edge.emulated.endpoint import Fault, Message, Scripted, ScriptedEndpoint
from rea_edge.journal import run_from
from rea_edge.records import Limits, Moved, Unanswered
from tests.endpoints.test_runs import BABBLE, FINISH, chats, endpoint, shell, turns


def refusing(names: list[str], answers: list[str]) -> Callable[[Message], Scripted]:
    """Refuses the first of these members that a request has."""

    def answer(request: Message) -> Scripted:
        for name in names:
            if name in request:
                return Fault("status", status=400, body=f"Unsupported parameter: '{name}'")
        return answers[min(turns(request), len(answers) - 1)]

    return answer


@pytest.mark.parametrize("names", [["max_tokens"], ["temperature", "stream_options"], ["response_format"], ["stream"]])
def test_a_run_goes_on_without_what_is_refused_and_pays_for_answers_alone(names: list[str], tmp_path: Path) -> None:
    with (
        ScriptedEndpoint(refusing(names, [BABBLE, FINISH])) as server,
        shell(tmp_path, endpoint(server.url)) as made,
    ):
        held = made.submit(Limits())
        run, ended, _ = made.finish(held)
        events = made.events(held)
        assert run_from(made.store, held.row) == run
        assert made.effects.endpoints.faults() == []
        asked = [json.loads(body) for body in chats(server)]
        assert ended.outcome == "achieved", ended
        assert [event.charged for event in events if isinstance(event, Unanswered)] == [False] * len(names)
        assert [event.endpoint for event in events if isinstance(event, Moved)] == ["e1"] * len(names)
        assert run.used.steps == 2
        assert run.used.estimated == ("stream_options" in names), "without it a stream is not counted"
        assert len(asked) == 2 + len(names), "each is refused once"
        assert not any(name in asked[-1] for name in names)
        assert "max_tokens" in asked[-1] or "max_completion_tokens" in asked[-1]


def test_a_server_that_does_not_stream_is_asked_for_whole_answers(tmp_path: Path) -> None:
    with (
        ScriptedEndpoint([Fault("refuse_stream", body=FINISH)]) as server,
        shell(tmp_path, endpoint(server.url)) as made,
    ):
        run, ended, _ = made.finish(made.submit(Limits()))
    assert (ended.outcome, run.used.estimated) == ("achieved", False)


def test_what_is_refused_is_known_to_the_next_run_and_after_a_restart(tmp_path: Path) -> None:
    with ScriptedEndpoint(refusing(["max_tokens"], [FINISH])) as server:
        for life in (1, 2):
            with shell(tmp_path, endpoint(server.url)) as made:
                with made.store.transaction() as tx:
                    tx.meta_set("life", str(life))
                assert made.effects.begin(made.submit(Limits()).run.job, Cancel()).without == (
                    () if life == 1 else ("max_tokens",)
                )
                if life == 1:
                    made.finish(made.submit(Limits()))
        assert len(chats(server)) == 2


def test_a_member_that_is_refused_again_though_it_is_not_sent_ends_the_run_by_name(tmp_path: Path) -> None:
    with (
        ScriptedEndpoint(lambda request: Fault("status", status=400, body="unknown field 'temperature'")) as server,
        shell(tmp_path, endpoint(server.url)) as made,
    ):
        _, ended, _ = made.finish(made.submit(Limits()))
        assert len(chats(server)) == 2
    assert ended.outcome == "failed" and "bad_request" in ended.reason and "temperature" in ended.reason


def test_a_second_endpoint_is_asked_with_what_the_first_one_refused(tmp_path: Path) -> None:
    def first(request: Message) -> Scripted:
        return refusing(["max_tokens"], [BABBLE])(request) if not turns(request) else Fault("status", status=401)

    with ScriptedEndpoint(first) as one, ScriptedEndpoint([BABBLE, FINISH]) as two:
        with shell(tmp_path, endpoint(one.url), endpoint(two.url, "e2")) as made:
            _, ended, _ = made.finish(made.submit(Limits()))
        assert ended.outcome == "achieved"
        assert "max_tokens" in json.loads(chats(two)[0])


def test_in_command_a_grammar_that_is_refused_gives_way_to_a_schema(tmp_path: Path) -> None:
    with (
        ScriptedEndpoint(refusing(["grammar"], ["cannot"])) as server,
        shell(tmp_path, endpoint(server.url, protocol="command")) as made,
    ):
        _, ended, _ = made.finish(made.submit(Limits()))
        first, second = [json.loads(body) for body in chats(server)]
    assert ended.outcome == "gave_up"
    assert "grammar" in first and "response_format" in second and "grammar" not in second
