"""A call that may be made again is cut off by a kill or a stop, and may not run any more at the next start."""

from collections.abc import Callable

import pytest

from tests.brokers import Mosquitto, wait_until
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import House, wait_online

HEAT = '''
"""A tool that says when it has begun, and takes its time to end."""
import os, time
from pathlib import Path
from rea_edge.tool import request_id, tool


@tool(effect="idempotent", timeout_s=60.0)
def heat(percent: int) -> dict[str, int]:
    """Set the heating."""
    with Path(os.environ["REA_TOOL_LEDGER"]).open("a") as file:
        file.write(f"heat {request_id()}\\n")
    time.sleep(50)
    return {"percent": percent}
'''


def killed(house: House) -> None:
    house.kill()


def stopped(house: House) -> None:
    assert house.stop() == 0


@pytest.mark.parametrize("end", [killed, stopped])
def test_a_call_that_was_cut_off_and_is_forbidden_since_is_reported_as_unknown(
    mosquitto: Mosquitto, make_house: MakeHouse, end: Callable[[House], None]
) -> None:
    house = make_house(mosquitto)
    (house.folder / "devices.py").write_text(HEAT)
    house.start()
    with house.client(silent_s=40) as client:
        wait_online(client)
        client.send("call", {"id": "c1", "args": {"percent": 50}}, "heat")
        wait_until(lambda: house.ledger("heat"), "it heats", 30)
        end(house)
        with house.config.open("a") as file:
            file.write("[gate.heat]\nranges = {percent = [0, 10]}\n")
        house.start()
        reply = client.ask("call", {"id": "c1", "args": {"percent": 50}}, "heat", wait_s=40)
        assert reply.error is not None and reply.error.code == "outcome_unknown", reply
        assert "may have taken effect" in reply.error.message and "from 0 to 10" in reply.error.message
        figures = client.data("query", {}, "metrics")
    assert isinstance(figures, dict) and [one["id"] for one in figures["unknown"]["calls"]] == ["c1"]
    assert len(house.ledger("heat")) == 1
