"""What a query shows to whom under identity broker: people see their own tasks, operators all, nobody what is configured."""

import json
import threading
from collections.abc import Iterator
from typing import Literal, NamedTuple

import pytest

from rea_edge.client import Client
from rea_edge.emulated.endpoint import Held, ScriptedEndpoint
from tests.brokers import Mosquitto, wait_until
from tests.e2e.house import House, endpoint_table, finish, wait_for_questions, wait_online

# Names and texts that must be seen by nobody, or by those only whose they are.
CONFIGURED = (
    "op-erator",
    "approver-bob",
    "caller-eve",
    "sender-joe",
    "/etc/",
    "mqtt://",
    "http://",
    "/bin/",
)
TOOL = """
[read_file]
description = "Read a file."
effect = "read"
command = ["/bin/cat", "/etc/hostname"]
"""
ACCESS = """
[access]
identity = "broker"
operators = ["op-erator"]
approvers = ["approver-bob"]
senders = ["me", "you", "sender-joe"]
callers = {turn = ["caller-eve"]}
[gate.fail]
confirm = "always"
approvers = ["approver-bob"]
"""
ABOUT_A_TASK = ("task", "journal", "answers")


class People(NamedTuple):
    house: House
    me: Client
    you: Client
    operator: Client


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    """A task of mine under way, one of yours that waits behind it, and a call of mine of which nobody knows what came."""
    folder, broker = tmp_path_factory.mktemp("queries"), Mosquitto(tmp_path_factory.mktemp("broker"))
    release = threading.Event()
    with ScriptedEndpoint(lambda request: Held(finish("Done."), release)) as endpoint:
        house = House(folder, broker.start().url, extra=ACCESS + endpoint_table(endpoint.url))
        (folder / "more.toml").write_text(TOOL)
        house.config.write_text(
            house.config.read_text().replace('devices.py"]', f'devices.py", "{folder / "more.toml"}"]')
        )
        try:
            house.start()
            with house.client("me") as me, house.client("you") as you, house.client("op-erator") as operator:
                wait_online(me, 30.0)
                me.send("call", {"id": "my-call", "args": {"seconds": 15}}, "ring")
                wait_until(lambda: house.ledger("ring"), "it rings", 20.0)
                for _ in range(2):  # the second start says what the first has found
                    house.kill()
                    house.start()
                    wait_until(lambda: unknown(me, "metrics")["count"] == 1, "nobody knows what came of it", 30.0)
                me.submit({"id": "my-task", "goal": "my goal"})
                wait_for_questions(endpoint, 1, 30.0)
                you.submit({"id": "your-task", "goal": "your goal"})
                yield People(house, me, you, operator)
        finally:
            release.set()
            house.close()
            broker.kill()


def health(client: Client, what: str) -> dict[str, object]:
    found = client.data("query", {}, what)
    assert isinstance(found, dict)
    inner = found["health"] if what == "status" else found
    assert isinstance(inner, dict)
    return inner


def unknown(client: Client, what: str) -> dict[str, object]:
    found = health(client, what)["unknown"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("what", ["status", "metrics"])
@pytest.mark.parametrize(
    ("who", "calls", "running"),
    [("me", ["my-call"], ["my-task"]), ("you", [], []), ("operator", ["my-call"], ["my-task"])],
)
def test_the_names_of_running_and_unknown_calls_are_told_to_those_whose_they_are(
    people: People, what: str, who: str, calls: list[str], running: list[str]
) -> None:
    client: Client = getattr(people, who)
    found = unknown(client, what)
    assert found["count"] == 1, "how many there are is no secret"
    listed = found["calls"]
    assert isinstance(listed, list)
    assert ([one["id"] for one in listed], health(client, what)["running"]) == (calls, running)


@pytest.mark.parametrize(("who", "listed"), [("me", ["my-task"]), ("you", ["your-task"]), ("operator", [])])
def test_a_listing_has_ones_own_tasks(people: People, who: str, listed: list[str]) -> None:
    rows = getattr(people, who).data("query", {}, "tasks")
    assert [row["id"] for row in rows] == listed


@pytest.mark.parametrize("what", ["tasks", *ABOUT_A_TASK])
@pytest.mark.parametrize(("who", "owner", "may"), [
    pytest.param("me", "me", True, id="ones own"),
    pytest.param("you", "me", False, id="another's"),
    pytest.param("me", "you", False, id="and the other way round"),
    pytest.param("you", "op-erator", False, id="an operator's"),
    pytest.param("operator", "me", True, id="an operator all"),
    pytest.param("operator", "you", True, id="of everybody"),
])  # fmt: skip
def test_what_somebody_asked_for_is_shown_to_him_and_to_operators(
    people: People, what: str, who: str, owner: str, may: bool
) -> None:
    task = {"me": "my-task", "you": "your-task"}.get(owner, "no-task")
    reply = getattr(people, who).ask("query", {"who": owner, "task": task}, what)
    if may:
        assert reply.ok and (what == "answers" or task in json.dumps(reply.data))
    else:
        assert reply.error is not None and reply.error.code == "policy_denied" and reply.data is None


@pytest.mark.parametrize("what", ABOUT_A_TASK)
def test_without_the_name_of_its_owner_another_task_is_not_there(people: People, what: str) -> None:
    for task in ("my-task", "my-call"):
        reply = people.you.ask("query", {"task": task}, what)
        assert reply.error is not None and reply.error.code == "unknown_task"


@pytest.mark.parametrize("what", ["config", "tools", "metrics", "status"])
@pytest.mark.parametrize("who", ["you", "operator"])
def test_no_query_tells_people_paths_addresses_or_programs_that_are_configured(
    people: People, what: str, who: str
) -> None:
    told = json.dumps(getattr(people, who).data("query", {"limit": 200}, what))
    assert [word for word in CONFIGURED if word in told] == []


def test_the_settings_and_tools_that_are_shown_are_lists_of_what_may_be(people: People) -> None:
    config = people.you.data("query", {}, "config")
    assert isinstance(config, dict)
    assert sorted(config) == [
        "access", "broker", "config_hash", "endpoint", "gate", "limits", "log", "memory", "node", "peer", "queue",
        "store", "task",
    ]  # fmt: skip
    assert sorted(config["access"]) == ["identity", "plain_text"]
    assert sorted(config["endpoint"][0]) == [
        "connect_s", "context_tokens", "idle_s", "model", "name", "protocol", "temperature",
    ]  # fmt: skip
    tools = people.you.data("query", {}, "tools")
    assert isinstance(tools, list) and "read_file" in [tool["name"] for tool in tools]
    shown = {key for tool in tools for key in tool}
    assert not shown & {"command", "source", "sandbox", "publish", "secrets"}


def test_what_everybody_may_read_names_no_task_and_nobody(people: People) -> None:
    with people.house.client("you") as stranger:

        def heard(what: Literal["status", "card", "health"]) -> str:
            found = stranger.hear(stranger.topics.all(what), 60.0)
            assert found is not None, what
            return found.payload.decode()

        kept = [heard("status"), heard("card")]
        while json.loads(kept[-1]).get("unknown", {}).get("count") != 1:
            kept.append(heard("health"))
    assert [word for word in ("my-", "your-", *CONFIGURED[:4]) if word in "".join(kept)] == []
