"""A person's yes: nothing runs without it, and with it once. Real processes, and people at the broker."""

import msgspec
import pytest

from rea_edge.client import Client
from rea_edge.emulated.endpoint import ScriptedEndpoint
from rea_edge.mqtt import LinkSettings
from rea_edge.wire import AskShown, DecidedShown, Reply
from tests.brokers import Mosquitto, wait_until
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import call, endpoint_table, finish, questions, script, wait_online
from tests.mqtt.station import Station, running

BROKER = '[access]\nidentity = "broker"\n'
GATE = '[gate.ring]\nconfirm = "always"\napprovers = ["bob", "me"]\n'
APPROVED = BROKER + GATE


def asked(client: Client, count: int = 1, *, node: bool = True) -> list[AskShown]:
    """What waits for a person, once that are so many."""
    found: list[AskShown] = []

    def all_there() -> bool:
        found[:] = client.asks() if node else client.asks_kept()
        return len(found) == count

    wait_until(all_there, f"{count} calls wait for a person", 15.0)
    return found


def say(client: Client, one: AskShown, answer: object = "yes", **keys: object) -> Reply:
    return client.ask("say", {"request": one.request, "answer": answer, "ask_hash": one.ask_hash, **keys})


def code_of(reply: Reply) -> str | None:
    return None if reply.error is None else reply.error.code


def reply_to(client: Client, call_id: str) -> Reply:
    heard = client.hear(client.topics.reply(client.who, call_id), 20.0)
    assert heard is not None
    return msgspec.json.decode(heard.payload, type=Reply)


def decided(client: Client, one: AskShown) -> DecidedShown:
    """How it ended, for somebody who has asked for nothing since."""
    heard = client.hear(client.topics.decided(one.request), 20.0)
    assert heard is not None
    return msgspec.json.decode(heard.payload, type=DecidedShown)


def test_a_call_runs_when_a_listed_person_has_said_yes_and_once(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    house = make_house(mosquitto, extra=APPROVED).start()
    with (
        house.client() as client,
        house.client("bob", approver=True) as bob,
        house.client("eve", approver=True) as eve,
    ):
        wait_online(client)
        client.send("call", {"id": "c1", "args": {"seconds": 0.25}}, "ring")
        (one,) = asked(bob)
        assert (one.who, one.tool, one.args) == ("me", "ring", {"seconds": 0.25})
        assert 100 < one.expires_s <= 120 and house.ledger() == []
        for stranger in (eve, client):  # who is not listed, and who is and asks for it himself
            assert code_of(say(stranger, one)) == "policy_denied"
        assert asked(bob)[0].ask_hash == one.ask_hash and house.ledger() == [], "it stays open"
        first = say(bob, one, id="s1")
        assert first.ok and first.data == {"request": one.request, "answer": "yes", "why": ""}
        assert reply_to(client, "c1").data == {"rang": True}
        assert say(bob, one, id="s1").data == first.data, "and once more, the same answer"
        assert code_of(say(bob, one, id="s2")) == "bad_request"
        assert asked(bob, 0) == [] and house.ledger() == [f"ring {one.request}"]
        assert (decided(eve, one).answer, client.asks()) == ("yes", [])


@pytest.mark.parametrize(
    ("answer", "changed", "why"),
    [
        pytest.param("no", {}, "bob has said no to it", id="no", marks=pytest.mark.slow),
        pytest.param("yes", {"ask_hash": "sha256:" + "0" * 64}, "ask_hash is not that of the call", id="another hash"),
        pytest.param(
            "yes", {"ask_hash": None}, "ask_hash is not that of the call", id="no hash", marks=pytest.mark.slow
        ),
        pytest.param("of course", {}, "neither yes nor no", id="another word", marks=pytest.mark.slow),
        pytest.param(True, {}, "neither yes nor no", id="no word", marks=pytest.mark.slow),
    ],
)
def test_anything_but_an_explicit_yes_to_this_call_is_a_no(
    mosquitto: Mosquitto, make_house: MakeHouse, answer: object, changed: dict[str, object], why: str
) -> None:
    house = make_house(mosquitto, extra=APPROVED).start()
    with house.client() as client, house.client("bob", approver=True) as bob:
        wait_online(client)
        client.send("call", {"id": "c1"}, "ring")
        (one,) = asked(bob)
        heard = say(bob, one, answer, **changed)
        assert heard.ok and isinstance(heard.data, dict) and heard.data["answer"] == "no"
        reply = reply_to(client, "c1")
        assert code_of(reply) == "policy_denied" and why in str(reply.error)
        assert code_of(say(bob, one)) == "bad_request" and asked(bob, 0) == [] and house.ledger() == []


def test_no_answer_in_time_means_no(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    house = make_house(mosquitto, extra=f"{APPROVED}approve_s = 2\n").start()
    with (
        house.client() as client,
        house.client("bob", approver=True) as bob,
        house.client("eve", approver=True) as eve,
    ):
        wait_online(client)
        client.send("call", {"id": "c1"}, "ring")
        (one,) = asked(bob)
        assert code_of(reply_to(client, "c1")) == "approval_timeout"
        assert code_of(say(bob, one)) == "approval_timeout"
        assert decided(eve, one).answer == "expired" and asked(bob, 0) == [] and house.ledger() == []


def test_a_task_that_waits_survives_a_kill_and_holds_up_nobody(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    def answer(request: dict[str, object]) -> str:
        rings = b"Wake them" in msgspec.json.encode(request["messages"])
        return script(call("ring") if rings else call("look", name="tank"), finish("It is done."))(request)

    with ScriptedEndpoint(answer) as endpoint:
        house = make_house(mosquitto, extra=APPROVED + endpoint_table(endpoint.url)).start()
        with house.client() as client, house.client("bob", approver=True) as bob:
            wait_online(client)
            client.submit({"id": "t1", "goal": "Wake them."})
            (one,) = asked(bob)
            assert (one.task, one.goal) == ("t1", "Wake them.")
            client.submit({"id": "t2", "goal": "Look."})
            assert client.watch("t2", None).outcome == "achieved", "the lane is free"
            state = client.data("query", {"task": "t1"}, "task")
            assert isinstance(state, dict) and state["state"] == "waiting"
            house.kill()
            with running(forger := Station(LinkSettings(url=mosquitto.url, client_id="forger"))):
                ghost = msgspec.structs.replace(one, request="raaaaaaaa-7-1")
                forger.post(client.topics.ask(ghost.request), msgspec.json.encode(ghost), retain=True)
                assert len(asked(bob, 2, node=False)) == 2
            house.start()
            wait_online(client)
            assert asked(bob)[0].ask_hash == one.ask_hash and house.ledger() == []
            assert say(bob, one).ok
            ended = client.watch("t1", None)
        assert (ended.outcome, [done.result for done in ended.done]) == ("achieved", ["ok"])
        assert house.ledger() == [f"ring {one.request}"] and len(questions(endpoint)) == 4


def test_a_no_is_told_to_the_model_and_stays_one_for_the_task(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    answers = script(call("ring"), call("ring"), finish("I could not ring."))
    gate = GATE.replace("always", "task") + "[task.default]\nmin_observations = 0\n"
    with ScriptedEndpoint(answers) as endpoint:
        house = make_house(mosquitto, extra=BROKER + gate + endpoint_table(endpoint.url)).start()
        with house.client() as client, house.client("bob", approver=True) as bob:
            wait_online(client)
            assert client.ask("call", {}, "ring").ok, "only what a model asks for waits"
            client.submit({"id": "t1", "goal": "Ring."})
            assert say(bob, asked(bob)[0], "no").ok
            ended = client.watch("t1", None)
            assert [done.result for done in ended.done] == ["denied", "denied"] and asked(bob, 0) == []
        assert b"bob has said no to it" in questions(endpoint)[1] and len(house.ledger()) == 1


@pytest.mark.parametrize(
    "killed", [pytest.param(False, id="at once", marks=pytest.mark.slow), pytest.param(True, id="after a kill")]
)
def test_a_cancel_ends_a_task_that_waits(mosquitto: Mosquitto, make_house: MakeHouse, killed: bool) -> None:
    with ScriptedEndpoint(script(call("ring"), finish("It rang."))) as endpoint:
        house = make_house(mosquitto, extra=APPROVED + endpoint_table(endpoint.url)).start()
        with (
            house.client() as client,
            house.client("bob", approver=True) as bob,
            house.client("eve", approver=True) as eve,
        ):
            wait_online(client)
            client.submit({"id": "t1", "goal": "Ring."})
            (one,) = asked(bob)
            if killed:
                house.kill()
                house.start()
                wait_online(client)
            assert client.data("ctl", {"task": "t1", "do": "cancel"}) == {"task": "t1"}
            assert client.watch("t1", None).outcome == "cancelled"
            assert code_of(say(bob, one)) == "unknown_task" and asked(bob, 0) == []
            assert decided(eve, one).answer == "cancelled" and house.ledger() == []


def test_the_gate_is_passed_once_more_after_a_yes(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    house = make_house(mosquitto, extra=f'{APPROVED}rate = "1/hour"\n').start()
    with house.client() as client, house.client("bob", approver=True) as bob:
        wait_online(client)
        for call_id in ("c1", "c2"):
            client.send("call", {"id": call_id}, "ring")
        first, second = sorted(asked(bob, 2), key=lambda one: one.task)
        assert say(bob, first).ok and reply_to(client, "c1").ok
        assert say(bob, second).ok
        reply = reply_to(client, "c2")
        assert code_of(reply) == "policy_denied" and "1 times in 3600 s" in str(reply.error)
        assert house.ledger() == [f"ring {first.request}"]


@pytest.mark.slow
def test_who_is_spoken_for_does_not_say_yes(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    house = make_house(mosquitto, extra=BROKER + GATE.replace('"me"', '"eve"')).start()
    with house.client() as client, house.client("bob") as bob, house.client("eve", approver=True) as eve:
        wait_online(client)
        client.send("call", {"id": "c1", "via": ["bob"]}, "ring")
        (one,) = asked(eve)
        assert one.via == ["bob"] and code_of(say(bob, one)) == "policy_denied"
        assert say(eve, one).ok and reply_to(client, "c1").ok
        refused = client.ask("call", {"id": "c2", "via": ["bob", "eve"]}, "ring")
        assert code_of(refused) == "policy_denied" and "no other approver" in str(refused.error)


@pytest.mark.parametrize(
    ("extra", "why"),
    [
        pytest.param(
            '[gate.ring]\nconfirm = "always"\n',
            'identity = "none"',
            id="anyone could take any name",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            BROKER + '[gate.ring]\nconfirm = "task"\n',
            "names no approvers",
            id="nobody is named",
            marks=pytest.mark.slow,
        ),
        pytest.param("", 'identity = "none"', id="the tool itself asks for it"),
    ],
)
def test_a_tool_that_nobody_can_say_yes_to_never_runs_and_says_so(
    mosquitto: Mosquitto, make_house: MakeHouse, extra: str, why: str
) -> None:
    with ScriptedEndpoint(script(call("ring"), finish("It rang."))) as endpoint:
        house = make_house(mosquitto, extra=extra + endpoint_table(endpoint.url))
        devices = house.folder / "devices.py"
        if not extra:
            devices.write_text(devices.read_text().replace('device="bell"', 'device="bell", confirm="task"'))
        house.start()
        with house.client() as client:
            wait_online(client)
            client.submit({"id": "t1", "goal": "Ring."})
            assert [done.result for done in client.watch("t1", None).done] == ["denied"]
            assert why.encode().replace(b'"', b'\\\\\\"') in questions(endpoint)[1]
            assert any(why in fault for fault in client.status().faults)
            assert house.ledger() == []
        with house.client() as client:
            card = client.hear(client.topics.all("card"), 10.0)
            assert card is not None and b"never_runs" in card.payload
        checked = house.run_command("check", "--config", str(house.config))
        assert checked.returncode == 1 and "approval of ring" in checked.stdout and why in checked.stdout


def test_who_calls_a_tool_that_waits_for_a_person_is_told_why_there_is_no_answer(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    house = make_house(mosquitto, extra=APPROVED + "approve_s = 8\n").start()
    checked = house.run_command("check", "--config", str(house.config)).stdout
    assert "approvers none but those of [gate.ring]" in checked
    with house.client() as client:
        wait_online(client)
        done = house.run_command("call", "ring")
        assert done.returncode == 1 and "approval_timeout" in done.stdout, done
        assert "or a person must say yes (rea-edge asks)" in done.stderr


def test_a_person_sees_approves_and_denies_at_the_command_line(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    house = make_house(mosquitto, extra=APPROVED).start()

    def typed(*words: str) -> str:
        return house.run_command(*words, who="bob").stdout

    with house.client() as client, house.client("eve", approver=True) as eve:
        wait_online(client)
        assert "nothing waits" in typed("asks")
        for call_id in ("c1", "c2"):
            client.send("call", {"id": call_id, "args": {"seconds": 0.5}}, "ring")
        first, second = sorted(asked(eve, 2), key=lambda one: one.task)
        listed = typed("asks")
        for one in (first, second):
            assert f'{one.request}: ring {{"seconds":0.5}}' in listed and one.ask_hash in listed
        told = typed("approve", "me/c1")
        assert told.index(first.ask_hash) < told.index("it counts as yes")
        assert reply_to(client, "c1").ok
        denied = house.run_command("deny", second.request, who="bob")
        assert denied.returncode == 0 and "it counts as no" in denied.stdout
        assert code_of(reply_to(client, "c2")) == "policy_denied"
        again = house.run_command("approve", "c2", who="bob")
        assert again.returncode == 1 and "nothing of c2 waits" in again.stderr
        assert len(house.ledger()) == 1
