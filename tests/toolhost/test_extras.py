"""What a declaration may say beyond its call: taken as it was meant, or refused with file, tool and key."""

from pathlib import Path

import pytest

from rea_edge.records import Criterion, Hours, Rate, Rule
from tests.toolhost.rig import started

GOOD = '''
@tool(effect="read")
def look() -> dict[str, float]:
    """Look."""
    return {"level": 1.0}


@tool(
    effect="idempotent", ranges={"percent": (0, 80)}, rate="6/minute", dwell_s=2.5, hours="07:00-22:00",
    requires=["look"], only_if=[{"tool": "look", "path": "level", "op": "<", "value": 50}],
    fields=["percent", "log.line"], redact=["addresses"], summary=True, outward=True,
)
def turn(percent: int) -> dict[str, object]:
    """Turn."""
    return {"percent": percent, "hidden": 1}
'''
TABLE = """
[louder]
description = "Turn it up."
effect = "idempotent"
command = ["true", "{percent}"]
ranges = {percent = [0, 80]}
rate = "6/minute"
dwell_s = 2.5
hours = "07:00-22:00"
requires = ["look"]
only_if = [{tool = "look", path = "level", op = "<", value = 50}]
fields = ["percent", "log.line"]
redact = ["addresses"]
summary = true
outward = true
[louder.parameters]
required = ["percent"]
properties.percent = {type = "integer"}
"""
WHOLE = Rule(
    ranges={"percent": (0, 80)},
    rate=Rate(times=6, seconds=60.0),
    dwell_s=2.5,
    hours=Hours(first=420, last=1320),
    requires=("look",),
    only_if=(Criterion(tool="look", args={}, path="level", op="<", value=50),),
)


def test_both_kinds_of_tool_say_it_in_the_same_keys(tmp_path: Path) -> None:
    with started(tmp_path, {"good.py": GOOD, "good.toml": TABLE}) as rig:
        assert rig.loaded.faults == ()
        for name in ("turn", "louder"):
            tool = rig.tools[name]
            assert tool.rule == WHOLE
            assert (tool.fields, tool.redact, tool.summary) == (("percent", "log.line"), ("addresses",), True)
            assert tool.outward
        assert rig.tools["look"].rule is None and not rig.tools["look"].outward


@pytest.mark.parametrize(
    ("key", "words"),
    [
        pytest.param('rate="often"', "turn.rate: expected a rate such as 6/minute", id="no rate"),
        pytest.param('hours="noon"', "turn.hours: expected hours", id="no hours"),
        pytest.param("dwell_s=-1", "turn.dwell_s", id="less than nothing"),
        pytest.param(
            'ranges={"percentage": (0, 1)}', "ranges.percentage: 'percentage' is not a parameter", id="no parameter"
        ),
        pytest.param('ranges={"name": (0, 1)}', "'name' is no number", id="no number"),
        pytest.param('ranges={"percent": (1, 0)}', "turn.ranges.percent: expected [least, most]", id="upside down"),
        pytest.param('fields=["a b"]', "turn.fields: 'a b' is no path", id="no path"),
        pytest.param('redact=["names"]', "expected one of addresses", id="what cannot be redacted"),
        pytest.param(
            'sandbox={"reed": ["/sys"]}',
            "turn.sandbox: 'reed' is not a key; the keys are read, write, network",
            id="no such door",
        ),
        pytest.param(
            'verify={"tool": "look", "eqals": 3}', "the keys are tool, args, path, equals, op, value", id="no such test"
        ),
        pytest.param('only_if=[{"tool": "look"}]', "turn.only_if[0]: expected either equals", id="no condition"),
        pytest.param('requires="look"', "turn.requires: expected", id="a text for a list"),
        pytest.param("cost=-1", "turn.cost: expected", id="less than free"),
        pytest.param('outward="yes"', "turn.outward: expected", id="no yes or no"),
        pytest.param('confirm="yes"', "turn.confirm: invalid enum value", id="no word of confirm"),
    ],
)
def test_a_key_that_cannot_be_is_refused_with_its_place(tmp_path: Path, key: str, words: str) -> None:
    source = f'@tool(effect="idempotent", {key})\ndef turn(percent: int, name: str = "x") -> int:\n    """Turn."""\n    return 1\n'
    with started(tmp_path, {"bad.py": source}) as rig:
        assert not rig.tools
        (fault,) = rig.loaded.faults
        assert "bad.py" in fault and words in fault, fault
