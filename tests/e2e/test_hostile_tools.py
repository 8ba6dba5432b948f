"""Every hostile tool and every bad payload put to one daemon: it answers each, serves others meanwhile, and does not grow."""

import re
import threading

import pytest

from rea_edge.client import Client
from tests.brokers import Mosquitto, wait_until
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import House, wait_online
from tests.e2e.test_hostile_endpoints import memory_mib
from tests.e2e.test_requests import BAD, Sender
from tests.toolhost.rig import HEAD, marked
from tests.toolhost.test_hostile import COMMANDS, PYTHON

GROWTH_MIB = 2.0
SAMPLE = 4  # of the tools one in so many in every run
LIMIT_S = 1.0
PACES = '[queue]\nrate = "64/second"\nburst = 10000'


def hostile(house: House) -> list[str]:
    """Gives a house these tools, each with a limit of its own; their names."""
    python = PYTHON.replace('effect="once"', f'effect="once", timeout_s={LIMIT_S}')
    commands = COMMANDS.replace('effect = "once"', f'effect = "once"\ntimeout_s = {LIMIT_S}\ndevice = "any"')
    (house.folder / "hostile.py").write_text(HEAD + python)
    (house.folder / "hostile.toml").write_text(commands)
    known = f'"{house.folder / "devices.py"}"'
    more = ", ".join(f'"{house.folder / name}"' for name in ("hostile.py", "hostile.toml"))
    house.config.write_text(house.config.read_text().replace(known, f"{known}, {more}"))
    names = re.findall(r'@tool\(effect="once".*?\)\ndef (\w+)\(', python) + re.findall(r"^\[(\w+)\]", commands, re.M)
    assert len(names) >= 30
    return names


def ask(client: Client, name: str) -> str:
    """How a call of a hostile tool ended: `ok`, or the code."""
    reply = client.ask("call", {"id": f"h-{name[:30]}"}, name, wait_s=30.0)
    return reply.error.code if reply.error is not None else "ok"


@pytest.mark.parametrize(
    "every", [pytest.param(SAMPLE, id="sampled"), pytest.param(1, id="all", marks=pytest.mark.slow)]
)
def test_hostile_tools_are_ended_in_time_others_are_served_and_the_daemon_does_not_grow(
    mosquitto: Mosquitto, make_house: MakeHouse, every: int
) -> None:
    house = make_house(mosquitto, extra=PACES)
    names = hostile(house)[::every]
    house.start()
    ended: dict[str, str] = {}
    with house.client("eve") as eve, house.client("ann") as ann:
        wait_online(ann, 60.0)

        def look(number: int) -> None:
            assert ann.ask("call", {"id": f"l{number}", "args": {"name": "tank"}}, "look").data == {"level": 71.5}

        look(0)
        ask(eve, "leaves")  # what the first failure loads is loaded
        before_mib = memory_mib(house.pid, "VmRSS")
        flood = threading.Thread(target=lambda: ended.update({name: ask(eve, name) for name in names}))
        flood.start()
        served = 0
        try:
            while flood.is_alive():
                served += 1
                look(served)
        finally:
            flood.join()
        assert memory_mib(house.pid, "VmRSS") - before_mib <= GROWTH_MIB
        assert served >= len(names), "a look took longer than a hostile call"
    assert set(ended) == set(names)
    assert set(ended.values()) <= {"ok", "tool_failed", "outcome_unknown"}, ended
    host = marked(house.folder / "state")
    wait_until(lambda: len(marked(house.folder / "state")) == 1, f"only the host is left, not {host}", 10.0)


def put_all(house: House, broker: Mosquitto, who: str) -> None:
    sender = Sender(house, broker, who)
    try:
        for name, leaf, payload, request_id, _, _ in BAD:
            sender.send(leaf, payload)
            assert sender.reply(request_id).error is not None, name
    finally:
        sender.close()


def test_bad_payloads_are_answered_and_the_daemon_does_not_grow(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    house = make_house(mosquitto).start()
    with house.client() as client:
        wait_online(client)
        put_all(house, mosquitto, "r0")  # a sender of his own each time: of one who floods most refusals are not said
        before_mib = memory_mib(house.pid, "VmRSS")
        for number in range(1, 4):
            put_all(house, mosquitto, f"r{number}")
        assert memory_mib(house.pid, "VmRSS") - before_mib <= GROWTH_MIB
        assert client.ask("call", {"id": "k1", "args": {"name": "pipe"}}, "look").data == {"level": 12.0}
    assert house.ledger() == []
