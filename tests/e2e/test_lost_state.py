"""A node whose state is gone: what acts once waits for a person who has taken note of it, the rest goes on."""

import json
import os
import shutil
from pathlib import Path

import pytest

from rea_edge.client import Client
from rea_edge.emulated.endpoint import ScriptedEndpoint
from rea_edge.wire import Reply
from tests.brokers import AnyBroker, Mosquitto, wait_until
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import House, call, endpoint_table, finish, script, wait_online

OPERATED = '[access]\nidentity = "broker"\noperators = ["op"]'
GARBAGE = b"no database at all, but long enough to be taken for one" * 100
SERVICE = 61_234  # no user's number here


def ring(client: Client) -> Reply:
    return client.ask("call", {}, "ring")


def refused_as_lost(reply: Reply) -> bool:
    return (
        reply.error is not None
        and reply.error.code == "policy_denied"
        and "an operator must release" in reply.error.message
    )


def wait_degraded(client: Client) -> None:
    wait_until(lambda: client.status().state == "degraded", "it says degraded", 20)


def damaged(house: House) -> None:
    """As a card leaves it that has lost a file."""
    house.stop()
    (house.folder / "state" / "state.db").write_bytes(GARBAGE)
    house.start()


def test_once_tools_wait_for_a_release_on_the_device_and_all_else_goes_on(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    answers = script(
        call("turn", percent=1), call("ring"), finish("The valve is at 1; the bell waits for an operator.")
    )
    with ScriptedEndpoint(answers) as endpoint:
        house = make_house(mosquitto, extra=endpoint_table(endpoint.url)).start()
        release = ("release", "--config", str(house.config))
        with house.client(silent_s=30) as client:
            wait_online(client)
            assert ring(client).ok
            assert "nothing to release" in told_when_stopped(house, *release)
            damaged(house)
            wait_degraded(client)
            assert refused_as_lost(ring(client))
            assert client.ask("call", {"args": {"name": "tank"}}, "look").ok
            task_id, _ = client.submit({"goal": "Turn the valve and ring."})
            state = client.watch(task_id, None)
            assert [done.result for done in state.done] == ["ok", "denied"], "the model is told, and goes on"
            busy = house.run_command(*release)
            assert busy.returncode == 75 and "stop the service first" in busy.stderr
            house.kill()
            house.start()
            wait_degraded(client)
            assert refused_as_lost(ring(client)), "a restart releases nothing"
            assert "released" in told_when_stopped(house, *release)
            wait_online(client)
            assert ring(client).ok
    assert len(house.ledger("ring")) == 2


def told_when_stopped(house: House, *words: str) -> str:
    house.stop()
    done = house.run_command(*words)
    assert done.returncode == 0, done
    house.start()
    return done.stdout


def test_a_release_where_there_is_no_state_says_which_folder_it_looked_into(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    house = make_house(mosquitto)
    done = house.run_command("release", "--config", str(house.config))
    assert done.returncode == 74
    assert str(house.folder / "state") in done.stderr and "start the service" in done.stderr


def test_a_loss_that_the_release_itself_finds_is_not_released(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    house = make_house(mosquitto).start()
    with house.client() as client:
        wait_online(client)
        house.stop()
        state = house.folder / "state"
        (state / "state.id").write_text("00000000-0000-4000-8000-000000000000\n")
        first = house.run_command("release", "--config", str(house.config), "--json")
        assert (first.returncode, json.loads(first.stdout)["released"]) == (1, False)
        assert (state / "broken-1" / "state.db").exists()
        second = house.run_command("release", "--config", str(house.config), "--json")
        assert (second.returncode, json.loads(second.stdout)["released"]) == (0, True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_root_releases_the_state_of_a_service_whose_folder_lies_in_one_of_roots_alone(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    house = make_house(mosquitto).start()
    with house.client() as client:
        wait_online(client)
        house.stop()
    state = house.folder / "state"
    (state / "state.id").write_text("00000000-0000-4000-8000-000000000000\n")
    house.folder.chmod(0o700)  # as /var/lib/private, where systemd puts the folder of a dynamic user
    for file in (state, *state.rglob("*")):
        os.chown(file, SERVICE, SERVICE)
    for expected in (1, 0):
        done = house.run_command("release", "--config", str(house.config))
        assert done.returncode == expected, done.stderr
    assert {file.stat().st_uid for file in (state, *state.rglob("*"))} == {SERVICE}, "the service can write all of it"


def test_a_state_that_is_gone_without_a_trace_is_missed_by_the_broker_that_knows_the_node(
    broker: AnyBroker, protocol: str, make_house: MakeHouse
) -> None:
    house = make_house(broker, protocol=protocol).start()
    with house.client(silent_s=30) as client:
        wait_online(client)
        assert ring(client).ok
        house.stop()
        shutil.rmtree(house.folder / "state")
        client.send("call", {"id": "queued"}, "ring")
        house.start()
        wait_degraded(client)
        assert any("the broker has a session" in fault for fault in client.status().faults)
        queued = client.ask("call", {"id": "queued"}, "ring")  # 3.1.1 cannot prove how old it is
        assert refused_as_lost(queued) or (queued.error and queued.error.code == "expired"), "also what waited"
        assert client.ask("call", {"args": {"percent": 3}}, "turn").ok
        house.kill()
        wait_until(lambda: client.status().state == "offline", "its will says offline", 20)
        house.start()
        wait_degraded(client)
        assert refused_as_lost(ring(client))
    assert len(house.ledger("ring")) == 1


def put_back(house: House, copy: Path) -> None:
    """As from a backup, or by the card that was in the board before."""
    shutil.rmtree(house.folder / "state")
    shutil.copytree(copy, house.folder / "state")


def test_an_older_copy_of_the_state_waits_for_a_release_and_does_not_run_again_what_it_forgot(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    house = make_house(mosquitto).start()
    copy = house.folder / "copy"
    with house.client(silent_s=30) as client:
        wait_online(client)
        assert ring(client).ok
        house.stop()
        shutil.copytree(house.folder / "state", copy)
        house.start()
        assert client.ask("call", {"id": "forgotten"}, "ring").ok
        house.kill()
        put_back(house, copy)
        client.send("call", {"id": "forgotten"}, "ring")  # nobody heard the answer
        house.start()
        wait_degraded(client)
        assert any("an older copy" in fault for fault in client.status().faults)
        assert refused_as_lost(client.ask("call", {"id": "forgotten"}, "ring"))
        assert client.ask("call", {"args": {"percent": 3}}, "turn").ok
        assert "released" in told_when_stopped(house, "release", "--config", str(house.config))
        wait_online(client)
        assert ring(client).ok
    assert len(house.ledger("ring")) == 3


def test_the_state_of_another_node_is_no_state_of_this_one(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    house, other = make_house(mosquitto).start(), make_house(mosquitto)
    other.config.write_text(other.config.read_text().replace('id = "n1"', 'id = "n2"'))
    other.node = "n2"
    other.start()
    with house.client(silent_s=30) as client, other.client(silent_s=30) as neighbour:
        wait_online(client)
        wait_online(neighbour)
        assert client.ask("call", {"id": "done"}, "ring").ok
        house.stop()
        other.stop()
        put_back(house, other.folder / "state")  # the cards of two boards are swapped
        house.start()
        wait_degraded(client)
        assert refused_as_lost(client.ask("call", {"id": "done"}, "ring"))
    assert len(house.ledger("ring")) == 1


def test_a_state_that_moves_to_another_place_is_not_an_older_copy(broker: AnyBroker, make_house: MakeHouse) -> None:
    house = make_house(broker).start()
    with house.client(silent_s=30) as client:
        wait_online(client)
        for end in (house.kill, house.stop):
            end()
            shutil.copytree(house.folder / "state", house.folder / "copy")
            put_back(house, house.folder / "copy")
            shutil.rmtree(house.folder / "copy")
            house.start()
            assert ring(client).ok
            assert client.status_asked().faults == []


def test_a_new_node_is_not_taken_for_one_that_lost_its_state(broker: AnyBroker, make_house: MakeHouse) -> None:
    house = make_house(broker).start()
    with house.client() as client:
        wait_online(client)
        house.kill()
        house.start()
        assert ring(client).ok
        assert client.status_asked().faults == []


def test_an_operator_releases_a_node_over_the_broker_and_nobody_else_does(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    house = make_house(mosquitto, extra=OPERATED).start()
    with house.client() as client, house.client("op") as operator:
        wait_online(client)
        damaged(house)
        wait_degraded(client)
        denied = client.ask("node", {"do": "release"})
        assert (
            denied.error is not None and denied.error.code == "policy_denied" and "me is none" in denied.error.message
        )
        old = operator.ask("node", {"do": "release", "epoch": "of the state before"})
        assert old.error is not None and old.error.code == "stale_epoch"
        assert refused_as_lost(ring(client))
        released = operator.data("node", {"do": "release"})
        assert isinstance(released, dict) and "not a database" in str(released["lost"]), released
        assert client.status_asked().state == "online" and ring(client).ok
        wait_online(client)
        assert operator.data("node", {"do": "release"}) == {"lost": None, "halted": None}, "once more is harmless"
