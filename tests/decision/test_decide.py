"""`rea-edge decide`: one outcome a line out for each line in, in pure ASCII, quickly."""

import io
import json
import time
from pathlib import Path

import pytest

from rea_edge import decide
from rea_edge.errors import ToolInvalid

from .cases import CORPUS, TOOLS


def run(lines: list[str | bytes], tools: Path = TOOLS) -> tuple[list[dict[str, object]], str]:
    out, err = io.StringIO(), io.StringIO()
    decide.main_loop(lines, out, tools, err)
    assert out.getvalue().isascii()
    return [json.loads(line) for line in out.getvalue().splitlines()], err.getvalue()


def test_each_line_gives_one_outcome_and_a_bad_line_gives_an_error() -> None:
    call = {"tool_calls": [{"function": {"name": "get_uptime", "arguments": "{}"}}]}
    lines: list[str | bytes] = [
        json.dumps({"message": call, "finish_reason": "tool_calls", "tools": ["get_uptime"], "protocol": "native"}),
        json.dumps({"message": {"content": "好 \ud83d"}, "finish_reason": "stop", "tools": [], "protocol": "native"}),
        "not JSON", "", "[]", b"\xff\xfe", "[" * 100_000,
        json.dumps({"message": {"refusal": "no"}}),
        json.dumps({"message": {"content": "fly_away x=1"}, "tools": ["fly_away"], "protocol": "command"}),
    ]  # fmt: skip
    outcomes, _ = run(lines)
    assert [outcome["decision"] for outcome in outcomes] == [
        "tool", "finish", "error", "error", "error", "error", "error", "give_up", "tool",
    ]  # fmt: skip
    assert outcomes[0] == {"decision": "tool", "calls": [{"name": "get_uptime", "args": {}}]}
    assert outcomes[1] == {"decision": "finish", "answer": "好 \ufffd"}
    assert outcomes[7] == {"decision": "give_up", "reason": "no"}
    assert outcomes[8]["calls"] == [{"name": "fly_away", "args": {"x": 1}}]


def test_a_guard_is_written_beside_the_call_it_guards(tmp_path: Path) -> None:
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps([
        {"name": "read", "effect": "read", "parameters": {"type": "object", "properties": {}}},
        {"type": "function", "function": {"name": "fan", "parameters": {"type": "object", "properties": {}}}},
    ]))  # fmt: skip
    outcomes, _ = run(
        [json.dumps({"message": {"content": "if read -> a.0 >= 1.5 then fan"}, "protocol": "command"})], tools
    )
    assert outcomes == [
        {
            "decision": "tool",
            "calls": [{"name": "fan", "args": {}}],
            "guard": {"name": "read", "args": {}, "path": "a.0", "op": ">=", "value": 1.5},
        }
    ]


def test_keywords_that_are_not_known_are_named_and_ignored(tmp_path: Path) -> None:
    tools = tmp_path / "tools.json"
    parameters = {"type": "object", "properties": {"a": {"type": "string", "contentMediaType": "x"}}}
    tools.write_text(json.dumps({"tools": [{"function": {"name": "Odd.Tool-1", "parameters": parameters}}]}))
    call = {"tool_calls": [{"function": {"name": "Odd.Tool-1", "arguments": {"a": "x", "more": 1}}}]}
    outcomes, err = run([json.dumps({"message": call})], tools)
    assert outcomes[0]["calls"] == [{"name": "Odd.Tool-1", "args": {"a": "x", "more": 1}}]
    assert err == "Odd.Tool-1: a.contentMediaType is not checked\n"


@pytest.mark.parametrize("text", ["", "{}", "[1]", '[{"name": 1}]', "[" * 100_000])
def test_a_tool_file_that_is_none_is_refused(text: str, tmp_path: Path) -> None:
    tools = tmp_path / "tools.json"
    tools.write_text(text)
    with pytest.raises(ToolInvalid, match=r"tools\.json"):
        run([], tools)


def test_a_thousand_lines_take_less_than_a_second() -> None:
    lines: list[str | bytes] = list((CORPUS / "decisions.jsonl").read_text("utf-8").splitlines() * 4)
    started = time.process_time()
    outcomes, _ = run(lines)
    assert len(outcomes) == len(lines)
    assert len(lines) / (time.process_time() - started) > 1_000
