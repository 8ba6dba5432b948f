"""What a model is asked with: rules in two languages, and bytes that stay the same from step to step."""

import re
from typing import get_args

import msgspec
import pytest

from rea_edge import context, opening
from rea_edge.config.prompts import fits_every_protocol, languages, prompt_file, shipped_prompts
from rea_edge.loop import apply, next_effect, start
from rea_edge.records import Ask, Job, Limits, Protocol
from tests.command.tools import TOOLS
from tests.test_loop import COLD, HOT, READ, answer, begun, call, returned

PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)
# What a protocol's answers are made of; it is the same in every language.
FORMS = re.compile(
    r'\{"action".*?\}(?=[ ,.]| )|(?<=say )cannot|(?<=回答 )cannot|^(?:Thought|Action|Action Input|Final Answer):|"Observation:"',
    re.M,
)


def text(prompt: str | None, protocol: Protocol) -> str:
    return prompt_file(prompt, protocol).read_text(encoding="utf-8")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_rules_are_there_in_english_and_chinese_with_the_same_forms(protocol: Protocol) -> None:
    english, chinese = text(None, protocol), text("zh", protocol)
    assert re.search("[一-鿿]", chinese) and not re.search("[一-鿿]", english)
    assert FORMS.findall(english) == FORMS.findall(chinese.replace("“", '"').replace("”", '"'))
    assert len(english.splitlines()) == len(chinese.splitlines()), "rule for rule"


def test_a_language_fits_every_protocol_and_a_text_of_ones_own_only_its_own() -> None:
    assert languages() == ("zh",)
    assert fits_every_protocol(None) and fits_every_protocol("zh")
    assert not fits_every_protocol("json") and not fits_every_protocol("/etc/rules.txt")
    assert prompt_file("json", "native").name == "json.txt"
    assert shipped_prompts() == ("command", "json", "native", "react", "zh")


@pytest.mark.parametrize("llama_cpp", [True, False])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_tools_constraint_and_all_that_was_said_stay_byte_identical_from_step_to_step(
    protocol: Protocol, llama_cpp: bool
) -> None:
    ask = opening.constraint(protocol, TOOLS, llama_cpp=llama_cpp, commands=9)
    first = opening.opening(protocol, text(None, protocol), TOOLS, "Look.", {"room": "b"}, commands=9)
    asked = msgspec.structs.replace(begun(protocol, commands=9), ask=ask, opening=first)
    run = apply(start("rtest-1", Job(goal="Look.", limits=Limits(steps=20))), asked)
    bodies = []
    for number in range(4):
        effect = next_effect(run)
        assert isinstance(effect, Ask)
        bodies.append(context.body(apply(run, effect.asked), effect.asked))
        run = returned(answer(run, call(READ)), COLD if number % 2 else HOT)
    rests = {body[body.rindex(b"]," + ask.encode() if ask else b'],"max_tokens"') :] for body in bodies}
    assert len(rests) == 1, "what stands after the messages"
    said = [msgspec.json.encode(msgspec.json.decode(body)["messages"])[:-1] for body in bodies]
    for earlier, later in zip(said, said[1:], strict=False):
        assert later.startswith(earlier)
