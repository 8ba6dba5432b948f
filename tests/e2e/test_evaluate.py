"""What a model gets wrong, on a whole node: circles, answers in no form, secrets, and reading it all again."""

import json
import shutil

from rea_edge.emulated.endpoint import ScriptedEndpoint
from tests.brokers import Mosquitto
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import House, call, endpoint_table, finish, questions, script, turns_so_far, wait_online

KEY = "sk-0123456789abcdef"
CHAT = f"As a language model with the key {KEY} I would rather chat."


def only_react(request: dict[str, object]) -> str:
    """A model that answers in ReAct alone."""
    if "Final Answer:" not in json.dumps(request["messages"]):
        return CHAT
    turns = (
        'Thought: look\nAction: look\nAction Input: {"name": "tank"}',
        "Thought: done\nFinal Answer: It is 71.5 %.",
    )
    return turns[min(turns_so_far(request), 1)]


def run(house: House, goal: str, task_id: str) -> dict[str, object]:
    found = json.loads(house.run_command("task", goal, "--id", task_id, "--json").stdout)
    assert isinstance(found, dict)
    return found


def test_the_same_call_again_and_again_ends_the_task_by_name(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    with ScriptedEndpoint(script(call("look", name="tank"))) as endpoint:
        house = make_house(mosquitto, extra=endpoint_table(endpoint.url)).start()
        with house.client() as client:
            wait_online(client)
        state = run(house, "Look.", "c1")
        assert state["outcome"] == "gave_up" and "circles" in str(state["reason"]) and "71.5" in str(state["answer"])
        done = state["done"]
        assert isinstance(done, list) and [item["result"] for item in done] == ["ok", "ok", "denied"]
        assert b"this is a conclusion" in questions(endpoint)[2]


def test_three_answers_in_no_form_bring_the_next_protocol_and_the_raw_ones_are_kept_without_secrets(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    with ScriptedEndpoint(only_react) as endpoint:
        table = endpoint_table(endpoint.url, "auto").replace("[limits]", 'api_key_file = "key"\n[limits]')
        house = make_house(mosquitto, extra=table)
        (house.folder / "key").write_text(KEY + "\n")
        (house.folder / "key").chmod(0o600)
        house.start()
        with house.client() as client:
            wait_online(client)
        state = run(house, "How full is the tank?", "s1")
        assert (state["outcome"], state["answer"]) == ("achieved", "It is 71.5 %.")
        last = questions(endpoint)[-1].decode()
        assert "rather chat" not in last and "71.5" in last

        shown = house.run_command("show", "s1").stdout
        assert (
            shown.count("the model wrote") == 3 and "rather chat" in shown and "asked again in protocol react" in shown
        )
        assert KEY not in shown and "***" in shown
        house.stop()
        assert KEY.encode() not in b"".join(
            file.read_bytes() for file in (house.folder / "state").glob("*") if file.is_file()
        )


def test_a_protocol_fixed_by_the_operator_is_kept_and_the_task_gives_up(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    with ScriptedEndpoint(only_react) as endpoint:
        house = make_house(mosquitto, extra=endpoint_table(endpoint.url, "json")).start()
        with house.client() as client:
            wait_online(client)
        state = run(house, "How full is the tank?", "s1")
        assert state["outcome"] == "gave_up" and "in protocol json" in str(state["reason"])
        assert len(questions(endpoint)) == 3


def test_a_tool_that_the_endpoint_knows_by_another_name_is_called_by_it_and_reported_by_its_own(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    with ScriptedEndpoint(script(call("see", name="tank"), finish("It is 71.5 %."))) as endpoint:
        table = endpoint_table(endpoint.url).replace("[limits]", 'names = { look = "see" }\n[limits]')
        house = make_house(mosquitto, extra=table).start()
        with house.client() as client:
            wait_online(client)
        state = run(house, "How full is the tank?", "n1")
        done = state["done"]
        assert state["outcome"] == "achieved" and isinstance(done, list) and done[0]["tool"] == "look"
        assert b"Observation of see" in questions(endpoint)[1]
        assert house.run_command("replay", "n1").returncode == 0


def test_a_task_type_is_done_only_when_a_tool_says_so(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    answers = script(
        call("look", name="tank"),
        call("turn", percent=5),
        finish("Done it."),
        call("look", name="tank"),
        finish("Done it."),
    )
    with ScriptedEndpoint(answers) as endpoint:
        wanted = '{tool = "look", args = {name = "tank"}, path = "level", op = ">", value = 50}'
        house = make_house(mosquitto, extra=endpoint_table(endpoint.url) + f"\n[task.default]\ndone_when = [{wanted}]")
        house.start()
        with house.client() as client:
            wait_online(client)
        assert run(house, "Fill the tank.", "d1")["outcome"] == "achieved"
        assert b"Not complete yet" in questions(endpoint)[3] and b"since the last act" in questions(endpoint)[3]


def test_a_replay_reads_recorded_answers_again_from_the_node_and_from_a_copy(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    with ScriptedEndpoint(script("{oops", call("look", name="tank"), finish("It is 71.5 %."))) as endpoint:
        house = make_house(mosquitto, extra=endpoint_table(endpoint.url)).start()
        with house.client() as client:
            wait_online(client)
        assert run(house, "How full is the tank?", "r1")["outcome"] == "achieved"
        live = house.run_command("replay", "r1")
        assert live.returncode == 0, live.stderr
        assert "3 recorded answers, 0 read otherwise now" in live.stdout
        assert 'call look {"name":"tank"}' in live.stdout and "finish 'It is 71.5 %.'" in live.stdout
        assert house.run_command("replay", "nobody").returncode == 1
        house.stop()

    copy = house.folder / "copy"
    shutil.copytree(house.folder / "state", copy)
    assert house.run_command("replay", "me/r1", "--state", str(copy)).returncode == 0
    assert house.run_command("replay", "none", "--state", str(copy)).returncode == 1
