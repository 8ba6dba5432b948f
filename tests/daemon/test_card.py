"""The card of a node: what each tool does, costs, waits for and lacks, in one message however many there are."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from rea_edge.config import Access, Broker, Node, Settings
from rea_edge.daemon.approvals import Approvals
from rea_edge.daemon.card import fitted, row, told
from rea_edge.records import Rule, Sandbox, Tool
from rea_edge.store import Store
from rea_edge.toolhost import landlock
from rea_edge.wire import PUBLISH_MAX

TURN = Tool(
    name="turn",
    description="Turn.",
    parameters={"type": "object", "properties": {"percent": {"type": "integer", "maximum": 100}}},
    effect="once",
    rule=Rule(cost=2.0, confirm="task"),
    needs=("weather_key",),
    source="/etc/rea-edge/tools/turn.py",
)
PLAIN = Tool(name="look", description="Look.", parameters={"type": "object"}, effect="read")


def settings(identity: str = "none", cost: float = 0.0) -> Settings:
    rule = Rule(cost=cost, approvers=("bob",) if identity == "broker" else ())
    access = msgspec.convert({"identity": identity}, Access)
    return Settings(node=Node(id="n"), broker=Broker(), access=access, gates={"turn": rule})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(tmp_path / "state")
    yield opened
    opened.close()


def card_of(tool: Tool, found: Settings, store: Store) -> dict[str, object]:
    return told(tool, found, Approvals(found, "n", store, lambda: 0.0))


def test_a_tool_is_told_with_what_it_does_costs_and_waits_for(store: Store) -> None:
    assert card_of(TURN, settings("broker"), store) == {
        "name": "turn",
        "effect": "once",
        "risk": "it acts, and nothing takes it back",
        "description": "Turn.",
        "parameters": TURN.parameters,
        "takes_s": 130.0,
        "cost": 2.0,
        "confirm": "task",
    }
    assert set(card_of(PLAIN, settings(), store)) == {"name", "effect", "risk", "description", "parameters", "takes_s"}


def test_the_higher_cost_is_told(store: Store) -> None:
    assert card_of(TURN, settings("broker", cost=1.0), store)["cost"] == 2.0
    assert card_of(TURN, settings("broker", cost=3.0), store)["cost"] == 3.0


def test_a_tool_whose_yes_nobody_can_give_is_told_to_run_never(store: Store) -> None:
    assert "nobody can give it" in str(card_of(TURN, settings("none"), store)["never_runs"])


def test_a_sandbox_that_this_kernel_cannot_keep_is_told(store: Store) -> None:
    shut = msgspec.structs.replace(PLAIN, sandbox=Sandbox())
    card, known = card_of(shut, settings(), store), landlock.version()
    assert ("never_runs" in card) is (known < 1)
    assert ("sandbox_unmet" in card) is (1 <= known < landlock.TCP_SINCE)


def test_a_row_of_query_tools_says_what_the_card_says_and_the_declaration(store: Store) -> None:
    found = settings("broker")
    said = row(TURN, found, Approvals(found, "n", store, lambda: 0.0))
    assert (
        said["cost"] == 2.0
        and said["parameters"] == TURN.parameters
        and not {"source", "command", "needs"} & said.keys()
    )


@pytest.mark.parametrize("count", [0, 1, 100, 150, 400, 1000, 5000])
def test_a_card_is_one_message_however_many_tools_there_are(count: int) -> None:
    tools: list[dict[str, object]] = [
        {
            "name": f"tool_{n}",
            "effect": "read",
            "risk": "it only reads",
            "description": "x" * 99,
            "parameters": {"type": "object"},
        }
        for n in range(count)
    ]
    payload = fitted({"v": 1}, tools)
    assert len(payload) <= PUBLISH_MAX
    card = msgspec.json.decode(payload)
    assert [one["name"] for one in card["tools"]] == [f"tool_{n}" for n in range(len(card["tools"]))]
    if "tools_total" in card:
        assert card["tools_total"] == count > len(card["tools"]) > 500
    else:
        assert len(card["tools"]) == count
    assert ("cut" in card) is (count > 150) and ("description" in payload.decode()) is (0 < count <= 150)
