"""No guarded act ever runs against its condition, whatever the model answers and whatever is read.

Each goal is played on the real machine with every line that its own grammar has and with a thousand that it has not:
every reading, operator, operand and act of its tools. What must be so is said here by Python's own comparisons, on
both sides of the border and on it.
"""

import operator
import random
from collections.abc import Callable, Iterator, Sequence
from itertools import product

import pytest
from msgspec import Struct

from rea_edge.decision.command import call_line
from rea_edge.decision.grammar import choices
from rea_edge.decision.grammar import paths as result_paths
from rea_edge.evidence.chosen import parameters
from rea_edge.records import Call, Malformed, Tool
from tests.evidence.houses import tools_of
from tests.evidence.playing import acted, begun, heard, played, read
from tests.forty.held_out import HELD_OUT
from tests.forty.tasks import TASKS, House

Holds = Callable[[object, object], bool]
OPERATORS: dict[str, Holds] = {
    ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
SAMPLED = 30


class Case(Struct, frozen=True):
    """A goal, the act it asks for, and when: `read` compared by `op` with `value`."""

    house: House
    goal: str
    act: Call
    read: Call
    op: str
    value: float | str


def reading(house: House, name: str) -> Call:
    tools = {"boiler": "read_sensor", "greenhouse": "read_probe", "yard": "read_level"}
    return Call(name=tools[house], args={"name": name})


# What each guarded task of the two sets says, written out by hand.
MEANT: dict[str, tuple[Call, str, float | str]] = {
    "If the boiler is over 68 degrees, switch the fan on.": (reading("boiler", "boiler"), ">", 68),
    "Turn the pump off if the flow is below 30.": (reading("boiler", "flow"), "<", 30),
    "Open the valve to 75 percent if the room is under 19.": (reading("boiler", "room"), "<", 19),
    "Sound the alarm for 25 seconds if the pressure goes above 1.8.": (reading("boiler", "pressure"), ">", 1.8),
    "Stop the fan if the boiler is cooler than 50.": (reading("boiler", "boiler"), "<", 50),
    "Start the pump when the boiler is hotter than 64.": (reading("boiler", "boiler"), ">", 64),
    "Turn on the porch lamp if the light is under 100.": (reading("yard", "light"), "<", 100),
    "Restart nginx if it is not active.": (Call(name="service_status", args={"name": "nginx"}), "!=", "active"),
    "If the battery is below 20, turn the garage lamp off.": (reading("yard", "battery"), "<", 20),
    "Set the heater to 23 if the humidity is over 70.": (reading("yard", "humidity"), ">", 70),
    "If the air is above 31, open the vents.": (reading("greenhouse", "air"), ">", 31),
    "Close the vents if the air is colder than 9.": (reading("greenhouse", "air"), "<", 9),
    "Close the vents if the rain is over 2.": (reading("greenhouse", "rain"), ">", 2),
    "Give the herbs 4 minutes of water if the soil is below 25.": (reading("greenhouse", "soil"), "<", 25),
    "Water the orchids for 6 minutes if the soil moisture drops under 35.": (reading("greenhouse", "soil"), "<", 35),
    "Lower the blind to 90 percent when the sun is stronger than 800.": (reading("greenhouse", "sun"), ">", 800),
    "Unlock the south door if it is locked.": (Call(name="door_state", args={"name": "south"}), "==", "locked"),
}
TASKED = [
    Case(task.house, task.goal, Call(name=task.step.tool, args=task.step.args), *MEANT[task.goal])
    for task in (*TASKS, *HELD_OUT)
    if task.kind == "guarded" and task.step is not None
]
WAYS = {
    "is over": ">", "is above": ">", "is more than": ">", "goes above": ">", "exceeds": ">", "is hotter than": ">",
    "is at least": ">=", ">=": ">=", "is under": "<", "is below": "<", "is less than": "<", "drops under": "<",
    "is cooler than": "<", "is at most": "<=", "<=": "<=",
}  # fmt: skip
ORDERS = {
    "stop the fan": Call(name="set_fan", args={"state": "off"}),
    "start the pump": Call(name="set_pump", args={"state": "on"}),
    "set the valve to 40 percent": Call(name="set_valve", args={"percent": 40}),
}
SAID = [
    Case("boiler", form.format(condition=f"the flow {way} 40", order=order), act, reading("boiler", "flow"), op, 40)
    for (order, act), (way, op), form in product(
        ORDERS.items(), WAYS.items(), ("If {condition}, {order}.", "{order} if {condition}.")
    )
]
STATES = [
    Case("yard", f"Restart nginx if {said}.", Call(name="restart_service", args={"name": "nginx"}),
         Call(name="service_status", args={"name": name}), op, value)
    for said, name, op, value in [
        ("it is active", "nginx", "==", "active"), ("it isn't active", "nginx", "!=", "active"),
        ("telegraf is not active", "telegraf", "!=", "active"), ("mosquitto has failed", "mosquitto", "==", "failed"),
    ]
]  # fmt: skip
CASES = [*TASKED, *SAID, *STATES]


def borders(case: Case) -> list[object]:
    """Readings on both sides of the border and on it."""
    if isinstance(case.value, str):
        return ["active", "failed", "locked", "unlocked"]
    return [case.value + step for step in (-1, -0.1, 0, 0.1, 1)]


def calls(tools: Sequence[Tool], *, reads: bool, numbers: Sequence[object]) -> Iterator[Call]:
    """Every call of the tools that read or act; a number is one of these."""
    for tool in tools:
        if (tool.effect == "read") == reads:
            few = [choices(shape) or [] for _, shape, _ in parameters(tool)]
            some = [values if len(values) < 9 else [n for n in numbers if n in values] for values in few]
            for values in product(*some):
                yield Call(name=tool.name, args=dict(zip((key for key, _, _ in parameters(tool)), values, strict=True)))


def hostile(case: Case) -> list[str]:
    """Lines that a model without any grammar might say: each act by itself and under each condition there is."""
    tools = tools_of(case.house)
    shapes = {tool.name: tool.parameters for tool in tools}
    paths = {tool.name: [path for path, _ in result_paths(tool.returns)] for tool in tools}
    values = [case.value] if isinstance(case.value, str) else [case.value, case.value - 1, case.value + 1]
    numbers = [*values, *case.act.args.values(), 7]
    acts = [call_line(call, shapes[call.name]) for call in calls(tools, reads=False, numbers=numbers)]
    tests = [
        f"if {call_line(call, shapes[call.name])} -> {path} {op} {value} then "
        for call in calls(tools, reads=True, numbers=[])
        for path in paths[call.name]
        for op in OPERATORS
        for value in values
    ]
    return [*acts, *(test + act for test in tests for act in acts)]


def path_of(call: Call) -> str:
    return {"service_status": "state", "door_state": "latch"}.get(call.name, "value")


def right_line(case: Case) -> str:
    shapes = {tool.name: tool.parameters for tool in tools_of(case.house)}
    read_line, act_line = (call_line(call, shapes[call.name]) for call in (case.read, case.act))
    return f"if {read_line} -> {path_of(case.read)} {case.op} {case.value} then {act_line}"


def acts_in_every_world(case: Case, line: str, commands: int) -> list[tuple[object, list[Call]]]:
    """What a line does for each reading of what is compared. All else reads as if the condition did not hold."""
    tools, worlds = tools_of(case.house), borders(case)
    other = next(value for value in worlds if not OPERATORS[case.op](value, case.value))
    start = begun(case.goal, tools, commands)
    found = []
    for value in worlds:

        def read_as(call: Call, value: object = value) -> object:
            return {path_of(call): value if call == case.read else other}

        found.append((value, acted(played(start, [line], read_as), tools)))
    return found


def accepted(case: Case, lines: Sequence[str], commands: int) -> list[str]:
    offers, bounds = heard(case.goal, tools_of(case.house), commands)
    return [line for line in lines if not isinstance(read(line, offers, bounds), Malformed)]


def test_every_guarded_task_of_both_sets_is_here() -> None:
    assert {case.goal for case in TASKED} == set(MEANT)


@pytest.mark.parametrize("commands", [1, 3])
@pytest.mark.parametrize("case", CASES, ids=[case.goal for case in CASES])
def test_the_line_that_a_goal_means_acts_exactly_where_its_condition_holds(case: Case, commands: int) -> None:
    assert acts_in_every_world(case, right_line(case), commands) == [
        (value, [case.act] if OPERATORS[case.op](value, case.value) else []) for value in borders(case)
    ]


@pytest.mark.parametrize("case", CASES, ids=[case.goal for case in CASES])
def test_no_other_line_can_act(case: Case) -> None:
    lines = random.Random(case.goal).sample(hostile(case), SAMPLED)
    assert set(accepted(case, lines, 1)) <= {right_line(case)}


@pytest.mark.slow
@pytest.mark.parametrize("commands", [1, 3])
@pytest.mark.parametrize("case", CASES, ids=[case.goal for case in CASES])
def test_no_other_line_of_all_there_are_can_act(case: Case, commands: int) -> None:
    assert set(accepted(case, hostile(case), commands)) == {right_line(case)}
