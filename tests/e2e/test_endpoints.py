"""Several endpoints under one daemon: fallback, what is told of it, kills in the middle, and what is not asked twice."""

import json
import threading

from rea_edge.emulated.endpoint import Fault, Held, Message, Scripted, ScriptedEndpoint
from rea_edge.wire import TaskEvent, TaskState
from tests.brokers import Mosquitto, wait_until
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import call, finish, questions, script, turns_so_far, wait_for_questions, wait_online

ANSWERS = script(call("look", name="tank"), call("ring"), finish("It rang."))


def tables(*endpoints: ScriptedEndpoint, protocol: str = "json", context: bool = True) -> str:
    """The part of a configuration that names endpoints in order of preference: e1, e2..."""
    lines: list[str] = []
    for number, endpoint in enumerate(endpoints, 1):
        lines += ["[[endpoint]]", f'name = "e{number}"', f'url = "{endpoint.url}"', f'protocol = "{protocol}"']
        lines += ["context_tokens = 8192"] if context else []
    return "\n".join(lines)


def dead_after(turns: int) -> ScriptedEndpoint:
    """It answers so often, and then its key is refused."""

    def answer(request: Message) -> Scripted:
        return Fault("status", status=401) if turns_so_far(request) >= turns else ANSWERS(request)

    return ScriptedEndpoint(answer)


def test_a_task_goes_on_at_the_second_endpoint_and_status_and_health_say_why(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    with dead_after(1) as first, ScriptedEndpoint(ANSWERS) as second:
        house = make_house(mosquitto, extra=tables(first, second)).start()
        with house.client() as client:
            wait_online(client)
            task_id, _ = client.submit({"goal": "Ring."})
            words = list(client.follow(task_id, silent_s=15))
            state = words[-1]
            assert isinstance(state, TaskState)
            assert (state.outcome, state.answer, state.usage.steps) == ("achieved", "It rang.", 3)
            notes = [word.text for word in words if isinstance(word, TaskEvent) and word.kind == "note"]
            assert any("unauthorized" in note for note in notes) and any("e2 is asked" in note for note in notes)
            wait_until(lambda: client.status().faults, "the retained status tells it", 15)
            told = client.data("query", {}, "status")
            assert isinstance(told, dict)
            assert told["status"]["faults"] == client.status().faults == ["endpoint e1: unauthorized: e1: status 401"]
            found = told["health"]["endpoints"]
            assert found["e1"]["state"] == "open" and found["e1"]["failed"] == {"unauthorized": 1}
            assert found["e2"]["state"] == "ok" and found["e2"]["answered"] == 2
            again, _ = client.submit({"goal": "Ring again."})
            assert client.watch(again, None).outcome == "achieved"
            assert len(questions(first)) == 2, "a new task begins where there are answers"
        assert len(house.ledger("ring")) == 2


def test_a_kill_in_the_middle_of_a_fallback_goes_on_where_it_was(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    release = threading.Event()

    def held(request: Message) -> Scripted:
        return Held(ANSWERS(request), release)

    with dead_after(2) as first, ScriptedEndpoint(held) as second:
        house = make_house(mosquitto, extra=tables(first, second)).start()
        with house.client(silent_s=30) as client:
            wait_online(client)
            task_id, _ = client.submit({"goal": "Ring."})
            wait_for_questions(second, 1)
            house.kill()
            release.set()
            house.start()
            state = client.watch(task_id, None)
        assert (state.outcome, [done.result for done in state.done]) == ("achieved", ["ok", "ok"])
        assert len(house.ledger("ring")) == 1
        assert len(questions(first)) == 3, "the switch was on disk: the first is not asked again"
        before, after = questions(second)
        assert before.split(b'"max_tokens"')[0] == after.split(b'"max_tokens"')[0]


def test_what_auto_found_out_is_not_asked_again_after_a_restart(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    with ScriptedEndpoint(ANSWERS) as endpoint:
        house = make_house(mosquitto, extra=tables(endpoint, protocol="auto", context=False)).start()
        for _ in range(2):
            with house.client(silent_s=30) as client:
                wait_online(client)
                task_id, _ = client.submit({"goal": "Ring."})
                assert client.watch(task_id, None).outcome == "achieved"
            house.kill()
            house.start()
        asked = [json.loads(body) for body in questions(endpoint)]
        assert len(asked) == 7, "one question to find out, three for each task"
        assert ["tools" in body for body in asked] == [True] + [False] * 6


def test_check_prints_what_an_endpoint_can_do(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    two = [
        {"id": f"c{n}", "type": "function", "function": {"name": "report_ready", "arguments": '{"ready": true}'}}
        for n in range(2)
    ]

    def answer(request: Message) -> Scripted:
        if "max_tokens" in request:
            return Fault("status", status=400, body="Unsupported parameter: 'max_tokens'")
        return {"tool_calls": two} if "tools" in request else '{"mark": "k7-q2"}'

    with ScriptedEndpoint(answer, context_tokens=2048) as endpoint:
        house = make_house(mosquitto, extra=tables(endpoint))
        said = house.run_command("check", "--config", str(house.config)).stdout
    for words in (
        "context 2048, less than context_tokens = 8192",
        "native tool calls yes (several in a message, arguments as text)",
        "tool_choice auto, required, named",
        "JSON Schema yes",
        "counts tokens yes",
        "refuses max_tokens (max_completion_tokens is sent)",
    ):
        assert words in said
