"""What must hold for every reply that calls a tool, however it is cut, quoted, thought or damaged."""

import json
import random
import re
import time
from collections.abc import Iterator, Mapping

import pytest

from rea_edge.records import Offer

from .cases import Case, cases, expect, message_of, outcome, same, text_of, told
from .test_dialects import CALLS

PROTOCOLS = ("native", "json", "react", "any")
ALPHABET = "{}[]()\"'`<>|/\\:,;=\n\t \x00\ud800abc0123_：“”｛▁｜~#*-"
WORDS = (
    "<tool_call>", "</tool_call>", "<think>", "</think>", "```", "Action:", "<|channel|>", "<|message|>", "[TOOL_CALLS]",
    "Final Answer:", "Observation:", "<function=", "</function>", "<|im_end|>", "<arg_key>", "<|tool_call|>", "functools",
)  # fmt: skip


def tool_replies() -> list[Case]:
    return [case for case in cases() if expect(case)["decision"] == "tool"]


def text_replies() -> list[Case]:
    return [case for case in tool_replies() if text_of(case) and not message_of(case).get("tool_calls")]


def sampled(items: list[Case], every: int) -> list[object]:
    """All of them, the rest of a sample marked slow."""
    return [
        pytest.param(case, id=str(case["id"]), marks=() if at % every == 0 else (pytest.mark.slow,))
        for at, case in enumerate(items)
    ]


@pytest.mark.parametrize("case", sampled(text_replies(), 3))
def test_a_reply_cut_anywhere_gives_no_call_but_the_full_one(case: Case, known: Mapping[str, Offer]) -> None:
    text, full = text_of(case), expect(case)["calls"]
    for length in range(0, len(text), 1 if len(text) < 400 else 97):
        got = outcome(_with_text(case, text[:length], "length"), known)
        assert got["decision"] != "finish", text[:length]
        assert got["decision"] != "tool" or same(got["calls"], full), text[:length]


def test_native_arguments_cut_anywhere_give_no_call_but_the_full_one(known: Mapping[str, Offer]) -> None:
    for case in tool_replies():
        for number, length, cut in _cut_arguments(case):
            got = outcome(cut, known)
            assert got["decision"] != "tool" or same(got["calls"], expect(case)["calls"]), (case["id"], number, length)


@pytest.mark.parametrize("fence", ["```", "~~~", "````"])
@pytest.mark.parametrize("case", sampled(text_replies(), 5))
def test_a_call_shown_in_a_fence_of_an_explanation_gives_no_call(
    case: Case, fence: str, known: Mapping[str, Offer]
) -> None:
    text = f"To do this yourself, send this:\n{fence}\n{text_of(case)}\n{fence}\nI have not run anything."
    for protocol in ("native", "react", "any"):
        assert told(text, known, protocol=protocol)["decision"] != "tool"


@pytest.mark.parametrize("case", sampled(text_replies(), 2))
def test_a_reply_quoted_in_an_answer_comes_back_byte_for_byte(case: Case, known: Mapping[str, Offer]) -> None:
    text = json.dumps({"action": "finish", "terminal_answer": text_of(case), "reason": "asked"})
    for protocol in PROTOCOLS:
        assert told(text, known, protocol=protocol) == {"decision": "finish", "answer": text_of(case).strip()}


@pytest.mark.parametrize("tags", [("<think>\n", "\n</think>\n"), ("<thinking>", "</thinking>"), ("", "\n</think>\n")])
@pytest.mark.parametrize("case", sampled(text_replies(), 5))
def test_a_reply_inside_a_closed_think_block_does_nothing(
    case: Case, tags: tuple[str, str], known: Mapping[str, Offer]
) -> None:
    for protocol in PROTOCOLS:
        alone = told(tags[0] + text_of(case) + tags[1], known, protocol=protocol)
        assert alone["decision"] == "error"
        answered = told(tags[0] + text_of(case) + tags[1] + "Done.", known, protocol=protocol)
        assert answered["decision"] == "error" or answered == {"decision": "finish", "answer": "Done."}


def test_calls_that_are_only_shown_or_thought_are_never_run(known: Mapping[str, Offer]) -> None:
    _show(300, known)


@pytest.mark.slow
def test_many_calls_that_are_only_shown_or_thought_are_never_run(known: Mapping[str, Offer]) -> None:
    _show(6_000, known)


def test_damaged_replies_never_raise_and_are_quick(known: Mapping[str, Offer]) -> None:
    _damage(1_500, known)


@pytest.mark.slow
def test_many_damaged_replies_never_raise_and_are_quick(known: Mapping[str, Offer]) -> None:
    _damage(60_000, known)


@pytest.mark.parametrize(
    "unit",
    [
        "{ ", "{a ", '{"a":', "[", "[{", "<", "<a>", "`", "```\n", "<think>", "</think>\n", "<tool_call>", "<tool_call>{",
        "<function=a>", "Action: x\n", "Thought: x\n", "Final Answer: x\n", "Observation: x\n", "<|channel|>", "[TOOL_CALLS]",
        "[f(", "[f(a=1", '"', "\\", "{'", "{/*", "{//", "<escape>", "<arg_key>a</arg_key><arg_value>", "\x1b[", "{\"a\":1111",
        "<|channel|>final<|message|>", "<|tool_call_begin|>a<|tool_sep|>", '{"name":"x","arguments":{}};', "\n", "x<think>",
        "<restart_service>\n", "<restart_service><service>", "call:get_uptime{", ">>>a\n{", "get_uptime()\n", "<|tool_arg:start|>a",
        "]" + "<]minimax[>[<a>", '<function name="a"><param name="b"><![CDATA[', '<|open|>argument key="a"<|sep|>', "don't send ",
    ],
)  # fmt: skip
def test_time_grows_with_the_length_of_a_reply_and_not_with_its_square(unit: str, known: Mapping[str, Offer]) -> None:
    def seconds(length: int) -> float:
        text = unit * (length // len(unit))
        started = time.process_time()
        told(text, known)
        return time.process_time() - started

    seconds(2_000)
    short = min(seconds(10_000) for _ in range(3))
    assert min(seconds(40_000) for _ in range(3)) < 4 * 2.5 * short + 0.02


SHOWN = (
    "<think>\n{}\n</think>", "<thinking>perhaps {}</thinking>", "[THINK]{}[/THINK]", "<reasoning>{}</reasoning>",
    "````\n{}\n````\nthat is all.", "~~~~\n{}\n~~~~\nthat is all.", "- so:\n  ````text\n{}\n  ````\n- no more",
    "Written: `{inline}` as text.", "Written: ``{inline}`` as text.", "> {quoted}", "> ```\n> {quoted}\n> ```",
    "<tool_response>\n{}\n</tool_response>", "<tool_result>{}</tool_result>", "[TOOL_RESULTS]{}[/TOOL_RESULTS]",
)  # fmt: skip
SAID = (
    "The pump is off.",
    "It reads:",
    "Nothing was run.",
    "水泵已关闭。",
    "1. First\n2. Second",
    'Note {this} and "that".',
)


def _show(count: int, known: Mapping[str, Offer]) -> None:
    """Put calls of every form where they are shown or thought, several in a reply, with words between and at the end."""
    chance = random.Random(count)
    calls = [
        text for _, text, _ in CALLS if not re.search("think|thought|reason|tool_response|RESULT", text, re.IGNORECASE)
    ]
    calls += [
        text_of(case) for case in text_replies() if "`" not in text_of(case) and "think" not in text_of(case).lower()
    ]
    for _ in range(count):
        parts = [_shown(chance, chance.choice(calls)) for _ in range(chance.randint(1, 3))]
        text = "\n\n".join([*parts, chance.choice(SAID)])
        for protocol in ("native", "react", "any"):
            assert told(text, known, protocol=protocol)["decision"] != "tool", text
        cut = text[: chance.randrange(len(text))]
        assert told(cut, known, reason="length")["decision"] != "tool", cut


def _shown(chance: random.Random, call: str) -> str:
    around = chance.choice([one for one in SHOWN if "`" not in one or "`" not in call])
    forms = {"{}": call, "{inline}": call.replace("\n", " "), "{quoted}": call.replace("\n", "\n> ")}
    shown = re.sub(r"\{\w*\}", lambda place: forms[place[0]], around)
    return chance.choice(["", chance.choice(SAID) + "\n"]) + shown


def _damage(count: int, known: Mapping[str, Offer]) -> None:
    chance = random.Random(count)
    replies = [case for case in cases() if text_of(case)]
    for _ in range(count):
        case = chance.choice(replies)
        text = text_of(case)[:5_000]
        for _ in range(chance.randint(1, 6)):
            at = chance.randrange(len(text) + 1)
            to = min(len(text), at + chance.choice([0, 0, 1, 1, 3, 20]))
            put = chance.choice(["", chance.choice(ALPHABET), chance.choice(ALPHABET) * 3, text[max(0, at - 30) : at]])
            text = text[:at] + chance.choice([put, put, chance.choice(WORDS)]) + text[to:]
        started = time.thread_time()
        got = outcome(_with_text(case, text, chance.choice(["stop", "length", None])), known)
        assert time.thread_time() - started < 0.05, text
        assert json.loads(json.dumps(got)) == got


def _cut_arguments(case: Case) -> Iterator[tuple[int, int, Case]]:
    calls = message_of(case).get("tool_calls")
    for number, call in enumerate(calls if isinstance(calls, list) else []):
        written = call["function"].get("arguments")
        for length in range(len(written) if isinstance(written, str) else 0):
            message = json.loads(json.dumps(message_of(case)))
            message["tool_calls"] = message["tool_calls"][: number + 1]
            message["tool_calls"][number]["function"]["arguments"] = written[:length]
            yield number, length, {**case, "message": message, "finish_reason": "length"}


def _with_text(case: Case, text: str, reason: str | None) -> Case:
    return {**case, "message": {**message_of(case), "content": text}, "finish_reason": reason}
