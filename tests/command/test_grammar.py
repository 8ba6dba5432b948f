from collections.abc import Sequence

import pytest

from rea_edge.decision.command import read_line
from rea_edge.decision.grammar import call_forms, grammar, paths
from rea_edge.records import Offer, Tool
from tests.command.gbnf import Grammar
from tests.command.tools import OFFERS, TOOLS


def kinds(tools: Sequence[Tool | Offer], commands: int, *, sentences: int = 300) -> set[str]:
    """Sorts of decisions that come out when random sentences of the grammar are read."""
    written = Grammar(grammar(tools, commands))
    return {type(read_line(written.sentence(seed), OFFERS)).__name__ for seed in range(sentences)}


def test_every_sentence_of_the_grammar_is_a_line_that_is_read() -> None:
    assert kinds(TOOLS, 2, sentences=1500) == {"Calls", "Guard", "GiveUp", "Finish"}


def test_offers_give_the_same_grammar_as_their_tools() -> None:
    assert grammar(OFFERS, 1) == grammar(TOOLS, 1)


@pytest.mark.parametrize(
    ("tools", "commands", "found"),
    [
        pytest.param(TOOLS, 1, {"Calls", "Guard", "GiveUp"}, id="done only where more commands may run"),
        pytest.param(TOOLS[:1], 1, {"Calls", "GiveUp"}, id="no guard without an acting tool"),
        pytest.param(TOOLS[1:3], 1, {"Calls", "GiveUp"}, id="no guard without a reading tool"),
        pytest.param((), 1, {"GiveUp"}, id="nothing offered"),
        pytest.param((), 3, {"GiveUp", "Finish"}, id="nothing offered, more commands"),
    ],
)
def test_what_is_offered_decides_what_can_be_said(tools: Sequence[Tool], commands: int, found: set[str]) -> None:
    assert kinds(tools, commands) == found


def test_a_tool_named_like_a_word_of_the_language_is_not_offered() -> None:
    tools = tuple(
        Tool(name=name, description="x", parameters={}, effect="once") for name in ("if", "done", "cannot", "then")
    )
    assert kinds(tools, 1) == {"GiveUp"}


@pytest.mark.parametrize(
    ("at", "form"),
    [
        (0, "read_sensor boiler|flow|room"),
        (1, "set_fan on=true|false"),
        (2, "set_valve percent=0..100"),
        (3, "say <string> [volume=<number>]"),
        (5, "ping"),
    ],
)
def test_a_model_is_shown_the_form_of_a_call(at: int, form: str) -> None:
    assert call_forms(TOOLS[at]) == form


def test_the_paths_of_a_typed_result_are_listed() -> None:
    number: dict[str, object] = {"type": "number"}
    returns: dict[str, object] = {
        "type": "object",
        "properties": {
            "load": number,
            "disk": {"type": "object", "properties": {"free": {"anyOf": [number, {"type": "null"}]}}},
            "on": {"type": "boolean"},
            "zones": {"type": "array", "items": number},
            "a.b": number,
            "x" * 41: number,
            "state": {"enum": ["up", "down"]},
        },
    }
    assert [path for path, _ in paths(returns)] == ["load", "disk.free", "state"]
    assert paths(None) == []
