"""A tool that is slower than it declares is named in the status, with figures in health, until it is fast again."""

from tests.brokers import Mosquitto, wait_until
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import wait_online

TOOLS = """
import time
from rea_edge.tool import tool


@tool(effect="read", p95_s=0.2)
def rest(seconds: float) -> float:
    '''Rest.'''
    time.sleep(seconds)
    return seconds
"""
SLOW = "tool rest is slow: more than 5 % of its calls take longer than 0.2 s (p95_s); see health"


def test_a_slow_tool_is_told_of_until_it_is_fast_again(mosquitto: Mosquitto, make_house: MakeHouse) -> None:
    house = make_house(mosquitto, extra="[queue]\nburst = 500")
    (house.folder / "devices.py").write_text(TOOLS)
    house.start()
    with house.client() as client:

        def rest(seconds: float, times: int) -> None:
            assert all(client.ask("call", {"args": {"seconds": seconds}}, "rest").ok for _ in range(times))

        def slow_now() -> bool:
            seen = client.ask("query", {}, "status").data
            assert isinstance(seen, dict)
            return SLOW in seen["status"]["faults"]

        wait_online(client)
        rest(0.25, 19)
        metrics = client.ask("query", {}, "metrics").data
        assert isinstance(metrics, dict) and metrics["tools"]["rest"]["calls"] == 19
        assert metrics["tools"]["rest"]["p50_s"] >= 0.25 and metrics["tools"]["rest"]["objective_s"] == 0.2
        assert not slow_now()
        rest(0.25, 1)
        assert slow_now()
        wait_until(lambda: SLOW in client.status().faults, "all are told", 30)
        rest(0.0, 64)
        assert not slow_now()
