"""What of a changed configuration a running daemon takes, and what it keeps until a restart."""

from pathlib import Path

import pytest
from msgspec import structs

from rea_edge.config import Broker, Endpoint, Log, Memory, Node, Secret, Settings, renewed
from rea_edge.fairness import Pace, Paces
from rea_edge.records import Limits, Rule

NOW = Settings(
    node=Node(id="n", state_dir=Path("/s"), tools=("board",)),
    broker=Broker(password=Secret("a")),
    endpoints=(Endpoint(url="http://127.0.0.1/v1", api_key=Secret("k")),),
)


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"gates": {"turn": Rule(dwell_s=1.0)}}, id="a gate"),
        pytest.param({"limits": Limits(steps=3)}, id="limits"),
        pytest.param({"endpoints": ()}, id="endpoints"),
        pytest.param({"log": Log(level="debug")}, id="log level"),
        pytest.param({"node": structs.replace(NOW.node, tools=("board", "boiler"))}, id="tools"),
    ],
)
def test_what_nothing_lasting_is_built_on_is_taken(changed: dict[str, object]) -> None:
    wanted = structs.replace(NOW, **changed)
    assert renewed(NOW, wanted) == (wanted, ())


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        pytest.param({"node": structs.replace(NOW.node, id="m")}, "node.id", id="name"),
        pytest.param({"node": structs.replace(NOW.node, state_dir=Path("/t"))}, "node.state_dir", id="folder"),
        pytest.param({"broker": structs.replace(NOW.broker, url="mqtt://127.0.0.2")}, "broker.url", id="broker"),
        pytest.param({"broker": Broker(password=Secret("b"))}, "broker.password", id="a password in the same file"),
        pytest.param({"memory": Memory(tool_mib=64)}, "memory.tool_mib", id="memory"),
        pytest.param({"paces": Paces(run=Pace(per_s=1.0, burst=1))}, "queue", id="paces"),
    ],
)
def test_what_the_process_is_built_on_stays_and_is_named(changed: dict[str, object], named: str) -> None:
    rule = {"turn": Rule(dwell_s=1.0)}
    taken, later = renewed(NOW, structs.replace(NOW, gates=rule, **changed))
    assert (taken, later) == (structs.replace(NOW, gates=rule), (named,))


def test_a_secret_that_is_the_same_is_no_change() -> None:
    again = structs.replace(NOW, broker=Broker(password=Secret("a")))
    assert renewed(NOW, again) == (NOW, ())
    assert Secret("a") != Secret("b") and Secret("a") != "a"
