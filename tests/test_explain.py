"""What `check` says of a tool: all that this node makes of its declaration, in words that say which."""

import msgspec
import pytest

from rea_edge.cli.explain import explained, lines, missing_program
from rea_edge.config import Access, Broker, Node, Settings, TaskType
from rea_edge.records import Criterion, Hours, Rate, Rule, Sandbox, Tool
from rea_edge.toolhost import landlock

VALVE = Tool(
    name="valve",
    description="Open the valve.",
    parameters={
        "type": "object",
        "properties": {
            "percent": {"type": "integer", "minimum": 0, "maximum": 100},
            "name": {"type": "string", "default": "main"},
        },
        "required": ["percent"],
    },
    effect="idempotent",
    timeout_s=5.0,
    retries=2,
    needs=("weather_key",),
    sandbox=Sandbox(read=("/sys/class/gpio",)),
    rule=Rule(ranges={"percent": (10, 100)}, rate=Rate(times=6, seconds=60), requires=("look",)),
    source="/etc/rea-edge/tools/valve.py",
)


def settings(identity: str = "broker") -> Settings:
    rule = Rule(
        ranges={"percent": (0, 80)},
        dwell_s=10,
        hours=Hours(first=420, last=1320),
        confirm="task",
        approvers=("bob", "eve") if identity == "broker" else (),
        only_if=(Criterion(tool="look", args={"name": "tank"}, path="level", op="<", value=60),),
    )
    return Settings(
        node=Node(id="n"),
        broker=Broker(),
        access=msgspec.convert({"identity": identity, "callers": {"valve": ["ann"]} if identity == "broker" else {}}, Access),
        gates={"valve": rule},
        task_types={"watch": TaskType(mode="query"), "fix": TaskType(tools=("valve",)), "other": TaskType(tools=("look",))},
    )  # fmt: skip


def test_a_tool_is_explained_line_by_line() -> None:
    said = list(lines(explained(VALVE, settings())))
    assert said[:3] == [
        "Open the valve.",
        "it acts; the same once more changes nothing more",
        "percent: a whole number from 10 to 80 (the tool itself takes a whole number from 0 to 100)",
    ]
    for words in (
        "name: a text; may be left out, else main",
        "starts at most 6 times in 60 s",
        "rests 10 s between two starts",
        "runs 07:00-22:00 only, by the clock of this node",
        "runs in a task only after look",
        'runs only with a result of look {"name":"tank"} with level < 60, read afresh',
        "at most 5 s, 2 times more after a failure; 95 % of its calls within 2 s",
        "called by ann; on offer in tasks of type default, fix",
        "each call that a model asks for waits 120 s for a yes of bob or eve",
        "is given weather_key of [secrets]",
    ):
        assert words in said, said
    assert any(
        line.startswith("sandbox: reads /sys/class/gpio, writes nothing, no TCP, as the daemon") for line in said
    )
    assert any(line.startswith("NEVER RUNS") for line in said) is (landlock.version() < 1)


def test_what_never_runs_is_said_so() -> None:
    one = explained(msgspec.structs.replace(VALVE, sandbox=None), settings("none"))
    assert "nobody can give it here" in one.never_runs and f"NEVER RUNS: {one.never_runs}" in list(lines(one))
    assert one.callers is None and "called by whoever may send; on offer in tasks of type default, fix" in list(
        lines(one)
    )


def test_what_costs_is_not_said_to_be_tried_again() -> None:
    dear = msgspec.structs.replace(VALVE, rule=Rule(cost=2))
    said = list(lines(explained(dear, settings())))
    assert "costs 2" in said and "at most 5 s; 95 % of its calls within 2 s" in said


def test_a_tool_that_reads_is_on_offer_where_tasks_may_only_read() -> None:
    look = Tool(name="look", description="Look.", parameters={}, effect="read")
    assert explained(look, settings()).task_types == ("default", "other", "watch")


@pytest.mark.parametrize(
    ("program", "says"),
    [
        pytest.param("true", "", id="in PATH"),
        pytest.param("/bin/true", "", id="by its path"),
        pytest.param("no-such-program", "'no-such-program' is nowhere in PATH", id="nowhere"),
        pytest.param("/etc/passwd", "'/etc/passwd' cannot be executed, or is not there", id="no program"),
    ],
)
def test_a_program_that_cannot_be_started_is_found_out(program: str, says: str) -> None:
    found = missing_program(msgspec.structs.replace(VALVE, kind="command", command=(program, "{percent}")))
    assert (found == "") if not says else (says in found and VALVE.source in found)
