"""A reload: all of the new configuration or nothing of it, and what runs goes on with what it began with."""

import os
import signal
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from rea_edge.client import Client
from rea_edge.emulated.endpoint import Held, ScriptedEndpoint
from rea_edge.records import Args
from rea_edge.wire import NodeStatus, Reply
from tests.brokers import AnyBroker, Mosquitto, wait_until
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import (
    House,
    call,
    endpoint_table,
    finish,
    script,
    wait_for_questions,
    wait_online,
)

OPERATED = '[access]\nidentity = "broker"\noperators = ["op"]\n'
HORN = '''

@tool(effect="idempotent", device="horn")
def hoot(times: int = 1) -> str:
    """Hoot."""
    note("hoot")
    return "new"
'''


def change_tools(house: House, *changes: tuple[str, str], more: str = "") -> None:
    file = house.folder / "devices.py"
    text = file.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    file.write_text(text + more)


def reloaded(operator: Client) -> Args:
    said = operator.data("node", {"do": "reload"}, wait_s=60)
    assert isinstance(said, dict)
    return said


def code_of(reply: Reply) -> str | None:
    return None if reply.error is None else reply.error.code


def hup(house: House, told: str = "event=reload", count: int = 1) -> None:
    """Reload by signal, and wait until the log says how it went."""
    os.kill(house.pid, signal.SIGHUP)
    wait_until(lambda: house.log.read_text().count(told) >= count, told, 30)


def hosts_of(house: House) -> set[int]:
    """The tool hosts below the daemon."""
    found: set[int] = set()
    for file in Path(f"/proc/{house.pid}/task").glob("*/children"):
        with suppress(OSError):  # threads and processes end meanwhile
            for pid in file.read_text().split():
                if b"rea_edge.toolhost" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.add(int(pid))
    return found


def status_after(client: Client, before: NodeStatus) -> NodeStatus:
    wait_until(lambda: client.status().config_hash != before.config_hash, "the status tells of the new one", 20)
    return client.status()


def test_a_signal_takes_new_tools_and_a_new_gate_without_a_restart(broker: AnyBroker, make_house: MakeHouse) -> None:
    house = make_house(broker).start()
    with house.client() as client:
        wait_online(client)
        before, pid = client.status_asked(), house.pid
        assert code_of(client.ask("call", {}, "hoot")) == "bad_request"
        change_tools(house, more=HORN)
        house.config.write_text(house.config.read_text() + "[gate.turn]\nranges = {percent = [0, 50]}\n")
        hup(house, "event=reloaded")
        assert client.ask("call", {}, "hoot").data == "new"
        held_back = client.ask("call", {"args": {"percent": 60}}, "turn")
        assert code_of(held_back) == "policy_denied" and "0 to 50" in str(held_back.error)
        after = status_after(client, before)
        assert after.tools_hash != before.tools_hash and after.session == before.session and house.pid == pid
        with house.client("ann") as fresh:
            card = fresh.hear(fresh.topics.all("card"), 20)
            assert card is not None and b'"hoot"' in card.payload
        wait_until(lambda: len(hosts_of(house)) == 1, "the host before is gone", 20)


def test_an_operator_reloads_over_the_broker_and_hears_what_needs_a_restart(
    broker: AnyBroker, make_house: MakeHouse
) -> None:
    house = make_house(broker, extra=OPERATED).start()
    with house.client() as client, house.client("op") as operator:
        wait_online(client)
        denied = client.ask("node", {"do": "reload"})
        assert code_of(denied) == "policy_denied"
        text = house.config.read_text().replace("reconnect_min_s = 0.1", "reconnect_min_s = 0.2")
        house.config.write_text(text + '[memory]\nsoft_mib = 61\n[task.look_only]\ntools = ["look"]\n')
        said = reloaded(operator)
        assert said["needs_restart"] == ["broker.reconnect_min_s", "memory.soft_mib"]
        found = client.status_asked()
        assert [one for one in found.faults if "needs a restart" in one and "memory.soft_mib" in one], found.faults
        assert (said["config_hash"], said["tools_hash"]) == (found.config_hash, found.tools_hash)
        house.config.write_text(
            house.config.read_text().replace("0.2", "0.1").replace("soft_mib = 61", "soft_mib = 60")
        )
        typed = house.run_command("reload", who="op")
        assert typed.returncode == 0 and "reloaded" in typed.stdout, typed
        assert client.status_asked().faults == []


BROKEN: list[tuple[str, tuple[str, str], str]] = [
    ("devices.py", ("def look(name", "def look(name: ("), "devices.py"),
    ("config.toml", ("[broker]", "[broker]\nspeed = 3"), "broker.speed"),
    ("config.toml", ("devices.py", "no_such.py"), "no_such.py"),
]


@pytest.mark.parametrize(("file", "change", "named"), BROKEN, ids=["a tool file", "a setting", "no file"])
def test_what_does_not_load_leaves_all_as_it_was_and_is_said_until_it_does(
    mosquitto: Mosquitto, make_house: MakeHouse, file: str, change: tuple[str, str], named: str
) -> None:
    house = make_house(mosquitto, extra=OPERATED).start()
    with house.client() as client, house.client("op") as operator:
        wait_online(client)
        before = client.status_asked()
        good = (house.folder / file).read_text()
        (house.folder / file).write_text(good.replace(*change))
        narrower = house.config.read_text() + "[gate.turn]\nranges = {percent = [0, 50]}\n"
        house.config.write_text(narrower)
        refused = operator.ask("node", {"do": "reload"}, wait_s=60)
        assert code_of(refused) == "bad_request" and named in str(refused.error), refused
        found = client.status_asked()
        assert (found.config_hash, found.tools_hash) == (before.config_hash, before.tools_hash)
        assert [one for one in found.faults if one.startswith("reload refused") and named in one], found.faults
        assert client.ask("call", {"args": {"name": "tank"}}, "look").ok
        assert client.ask("call", {"args": {"percent": 60}}, "turn").ok, "nothing of it is taken"
        assert len(hosts_of(house)) == 1
        (house.folder / file).write_text(good)
        reloaded(operator)
        assert client.status_asked().faults == []


@pytest.mark.slow
def test_after_a_kill_with_two_hosts_nothing_runs_until_both_are_gone(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    """A host that is stopped cannot see that its daemon is gone: what it runs would run on beside the next start."""
    house = make_house(mosquitto, extra=OPERATED).start()
    hosts: list[int] = []
    try:
        with house.client(silent_s=60) as client, house.client("op", silent_s=60) as operator:
            wait_online(client)
            client.send("call", {"id": "c1", "args": {"seconds": 25.0}}, "doze")
            wait_until(lambda: len(house.ledger("doze")) == 1, "the host before is in use", 20)
            (first,) = hosts_of(house)
            change_tools(house, more=HORN)
            reloaded(operator)
            hosts = [first, *(hosts_of(house) - {first})]
            assert len(hosts) == 2
            for host in hosts:
                os.kill(host, signal.SIGSTOP)
            house.kill()
            for host in hosts:
                house.start()
                wait_until(lambda: "is locked" in house.log.read_text(), "it waits, and says for whom", 40)
                wait_online(client)
                held_back = client.ask("call", {}, "hoot")
                assert code_of(held_back) == "bad_request", held_back
                assert house.ledger("hoot") == []
                house.kill()
                house.log.write_text("")
                os.kill(host, signal.SIGKILL)
            wait_until(lambda: not any(map(is_alive, hosts)), "both are gone", 20)
            house.start()
            wait_online(client)
            assert client.ask("call", {}, "hoot").ok
    finally:
        for host in filter(is_alive, hosts):
            os.kill(host, signal.SIGKILL)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("at", ["the trial", pytest.param("the host", marks=pytest.mark.slow), "the swap"])
def test_a_kill_in_the_middle_of_a_reload_loses_nothing(
    mosquitto: Mosquitto, make_house: MakeHouse, tmp_path: Path, at: str
) -> None:
    more, marks = threading.Event(), tmp_path / "marks"
    answers = script(call("turn", percent=5), finish("The valve is at 5."))
    with ScriptedEndpoint(lambda request: Held(answers(request), more)) as endpoint:
        house = make_house(mosquitto, extra=OPERATED + endpoint_table(endpoint.url)).start()
        with house.client(silent_s=30) as client:
            wait_online(client)
            task_id, _ = client.submit({"goal": "Turn the valve."})
            wait_for_questions(endpoint, 1)
            slow = f"\nwith open({str(marks)!r}, 'a') as file:\n    file.write('x')\ntime.sleep(1.0)\n"
            change_tools(house, more=HORN + slow)
            os.kill(house.pid, signal.SIGHUP)
            loads = {"the trial": 1, "the host": 2, "the swap": 2}[at]
            wait_until(lambda: marks.exists() and len(marks.read_text()) == loads, f"{loads} times loaded", 30)
            if at == "the swap":
                wait_until(lambda: "event=reloaded" in house.log.read_text(), "it is in force", 30)
            house.kill()
            house.start()
            more.set()
            assert client.watch(task_id, None).outcome == "achieved"
            assert client.ask("call", {}, "hoot").ok, "the start reads what the reload did"
            assert len(hosts_of(house)) == 1
    assert len(house.ledger("turn")) == 1


def test_twenty_reloads_leave_memory_descriptors_and_processes_as_they_were(
    mosquitto: Mosquitto, make_house: MakeHouse
) -> None:
    house = make_house(mosquitto).start()
    with house.client() as client:
        wait_online(client)
        for count in range(1, 4):  # what is loaded at the first ones stays
            hup(house, "event=reloaded", count)
            assert client.ask("call", {"args": {"name": "tank"}}, "look").ok
        wait_until(lambda: len(hosts_of(house)) == 1, "one host", 20)
        before = figures(house)
        for count in range(4, 24):
            change_tools(house, more=f"# {count}\n")
            hup(house, "event=reloaded", count)
            assert client.ask("call", {"args": {"name": "tank"}}, "look").ok
        wait_until(lambda: len(hosts_of(house)) == 1, "one host", 20)
        rss, descriptors, threads = figures(house)
        assert rss - before[0] < 1024, f"{before[0]} KiB became {rss}"
        assert (descriptors, threads) == before[1:]


def figures(house: House) -> tuple[int, int, int]:
    """Resident KiB, open descriptors and threads of the daemon."""
    words = dict(line.split(":", 1) for line in Path(f"/proc/{house.pid}/status").read_text().splitlines())
    return int(words["VmRSS"].split()[0]), len(os.listdir(f"/proc/{house.pid}/fd")), int(words["Threads"])
