"""The exam: how well a model turns the tools' own examples into calls, per protocol. Runs no tool and keeps nothing.

Each question is a declared example, held out of the prompt while it is asked. A question is a whole run of the real
machine (`loop`), whose calls return samples made from what the tools declare. A guarded example is asked twice, once
on each side of its condition. See `marks` for what is kept of it.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Literal, assert_never
from typing import Protocol as Port

import msgspec
from msgspec import Raw, Struct

from rea_edge import condition, evidence, loop, opening
from rea_edge.cancel import Cancel
from rea_edge.context import body
from rea_edge.decision.command import read_line
from rea_edge.errors import DecisionRejected, EndpointFailed
from rea_edge.marks import Score
from rea_edge.records import (
    Act,
    Answer,
    Args,
    Ask,
    Asked,
    Begin,
    Begun,
    Call,
    Calls,
    Guard,
    Job,
    Limits,
    Offer,
    Ok,
    Protocol,
    Recall,
    Record,
    Rest,
    Returned,
    Run,
    Switch,
    Tool,
    Unanswered,
    Verify,
    Wait,
)
from rea_edge.runner import answered

STEPS = 4  # a model that needs more for one example goes round in circles
ANSWER_TOKENS = 192
LEAST_OBSERVATIONS = 1
Word = Literal["right", "wrong", "unsafe"]
_SAMPLE = 50.0


class Server(Port):
    """The part of an endpoint that is asked."""

    @property
    def model(self) -> str: ...

    def ask(self, body: bytes, *, seconds: float, cancel: Cancel) -> Answer: ...


class Question(Struct, frozen=True):
    """What is said, and the call that must come of it: none for `cannot`, `guard` where it has a condition."""

    say: str
    call: Call | None
    guard: Guard | None = None


class Candidate(Struct, frozen=True, kw_only=True):
    """Who is examined and how it may be asked. `llama_cpp`, `json_schema`: what the server keeps to."""

    context_tokens: int
    llama_cpp: bool = False
    json_schema: bool = False
    without: tuple[str, ...] = ()
    temperature: float | None = None
    prompts: Mapping[Protocol, str] = {}


class Result(Struct, frozen=True):
    word: Word
    said: str
    tokens: int
    seconds: float


def questions(tools: Sequence[Tool], most: int) -> list[Question]:
    """At most `most` of the examples, each said only once: plain calls, guards and refusals in turns, and among each
    sort the tools in turns, so that a few questions are of every sort. Always the same ones."""
    found: dict[str, Question] = {}
    for at in range(max((len(tool.examples) for tool in tools), default=0)):
        for tool in tools:
            if at < len(tool.examples):
                example = tool.examples[at]
                question = _question(tool, example.say, example.answer, tools)
                if question is not None:
                    found.setdefault(example.say, question)
    sorts = [[one for one in found.values() if _sort(one) == sort] for sort in ("plain", "guard", "refusal")]
    dealt = [one for turn in zip_longest(*sorts) for one in turn if one is not None]
    return dealt[:most]


def examine(
    server: Server,
    candidate: Candidate,
    tools: Sequence[Tool],
    asked: Sequence[Question],
    protocol: Protocol,
    *,
    seconds: float,
    cancel: Cancel,
    tell: Callable[[Question, Result], None],
) -> Score:
    """Ask all questions in one protocol; `seconds` are for each run. Raises `EndpointFailed` when it cannot be asked."""
    results = []
    for question in asked:
        result = _result(server, candidate, tools, question, protocol, seconds, cancel)
        tell(question, result)
        results.append(result)
    words = [result.word for result in results]
    return Score(
        protocol=protocol,
        questions=len(results),
        right=words.count("right"),
        wrong=words.count("wrong"),
        unsafe=words.count("unsafe"),
        refused=sum(one.call is None and word == "right" for one, word in zip(asked, words, strict=True)),
        tokens=sum(result.tokens for result in results),
        seconds=round(sum(result.seconds for result in results), 1),
    )


# --- questions


def _sort(question: Question) -> str:
    return "refusal" if question.call is None else "guard" if question.guard else "plain"


def _question(tool: Tool, say: str, answer: Args | str, tools: Sequence[Tool]) -> Question | None:
    if not isinstance(answer, str):
        return Question(say, Call(name=tool.name, args=answer))
    try:
        match read_line(answer, [Offer.of(tool) for tool in tools]):
            case Calls(calls=(call, *_)):
                return Question(say, call)
            case Guard() as guard:
                return Question(say, guard.then, guard)
    except DecisionRejected:
        return None
    return Question(say, None)


def held_out(tools: Sequence[Tool], say: str) -> list[Tool]:
    """The tools without the example that says this."""
    return [
        msgspec.structs.replace(tool, examples=tuple(one for one in tool.examples if one.say != say)) for tool in tools
    ]


# --- one question


def _result(
    server: Server,
    candidate: Candidate,
    tools: Sequence[Tool],
    question: Question,
    protocol: Protocol,
    seconds: float,
    cancel: Cancel,
) -> Result:
    begun = _begun(server, candidate, held_out(tools, question.say), question, protocol)
    words, said, tokens, spent = list[Word](), list[str](), 0, 0.0
    for holds in (True, False) if question.guard else (True,):
        run = _played(server, begun, tools, question, holds=holds, seconds=seconds, cancel=cancel)
        words.append(_word(run, tools, question, holds=holds))
        said.append(_said(run))
        tokens, spent = tokens + run.used.tokens, spent + run.used.seconds
    worst: Word = "unsafe" if "unsafe" in words else "wrong" if "wrong" in words else "right"
    return Result(worst, " | ".join(said), tokens, spent)


def _begun(
    server: Server, candidate: Candidate, tools: Sequence[Tool], question: Question, protocol: Protocol
) -> Begun:
    kept, bounds = evidence.narrowed(question.say, tools, 1) if protocol == "command" else (tuple(tools), None)
    return Begun(
        endpoint="exam",
        model=server.model,
        protocol=protocol,
        offers=tuple(Offer.of(tool) for tool in kept),
        opening=opening.opening(protocol, candidate.prompts.get(protocol, ""), tools, question.say, {}),
        ask=opening.constraint(
            protocol,
            kept,
            llama_cpp=candidate.llama_cpp,
            json_schema=candidate.json_schema,
            commands=1,
            temperature=candidate.temperature,
            bounds=bounds,
            without=candidate.without,
        ),
        context_tokens=candidate.context_tokens,
        min_observations=LEAST_OBSERVATIONS,
        answer_tokens=ANSWER_TOKENS,
        bounds=bounds,
        without=candidate.without,
    )


def _played(
    server: Server,
    begun: Begun,
    tools: Sequence[Tool],
    question: Question,
    *,
    holds: bool,
    seconds: float,
    cancel: Cancel,
) -> Run:
    """A whole run, in memory: the answers are real, the results of calls are samples."""
    run = loop.start("exam", Job(goal=question.say, limits=Limits(steps=STEPS, task_s=seconds)))
    while True:
        match loop.next_effect(run):
            case Begin():
                run = loop.apply(run, begun)
            case Ask(asked=asked, seconds=left_s):
                run = _asked(server, loop.apply(run, asked), asked, left_s, cancel)
            case Act(n=n, call=call):
                result = Ok(data=Raw(msgspec.json.encode(_sample(call, tools, question, holds=holds))))
                run = loop.apply(run, Returned(n=n, result=result, seconds=0.0))
            case Record(event=event):
                run = loop.apply(run, event)
            # One protocol is offered, nothing is in doubt, nobody is asked.
            case Rest() | Switch() | Verify() | Recall() | Wait():
                return run
            case other:
                assert_never(other)


def _asked(server: Server, run: Run, asked: Asked, seconds: float, cancel: Cancel) -> Run:
    assert run.begun is not None
    began_s = time.monotonic()
    try:
        answer = server.ask(body(run, asked), seconds=seconds, cancel=cancel)
    except EndpointFailed as exc:
        if exc.retryable:
            raise
        # What the server will not do in this protocol is a wrong answer, not the end of the exam.
        spent_s = round(time.monotonic() - began_s, 3)
        return loop.apply(run, Unanswered(step=asked.step, fault=exc.kind, message=exc.message, seconds=spent_s))
    return loop.apply(run, answered(run.begun, asked, answer, time.monotonic() - began_s))


def _sample(call: Call, tools: Sequence[Tool], question: Question, *, holds: bool) -> object:
    """What a tool might return. The reading of a guard is on the side of its condition that is asked for."""
    tool = next(tool for tool in tools if tool.name == call.name)
    sample = _of_shape(tool.returns or {"type": "object", "properties": {"ok": {"const": True}}})
    guard = question.guard
    if guard is None or call != guard.read:
        return sample
    for value in _values_near(guard.value):
        candidate = _with_value(sample, guard.path.split("."), value)
        if condition.holds(candidate, guard.path, guard.op, guard.value) is holds:
            return candidate
    return sample


def _values_near(value: int | float | str) -> Iterator[object]:
    if isinstance(value, str):
        yield value
        yield from ("other", "")
    else:
        yield from (value + 1, value - 1, value)


def _with_value(sample: object, path: Sequence[str], value: object) -> object:
    if not path:
        return value
    inner = sample if isinstance(sample, dict) else {}
    return {**inner, path[0]: _with_value(inner.get(path[0]), path[1:], value)}


def _of_shape(shape: object) -> object:
    match shape:
        case {"const": value} | {"enum": [value, *_]}:
            return value
        case {"anyOf": [first, *_]}:
            return _of_shape(first)
        case {"properties": dict(shapes)}:
            return {key: _of_shape(inner) for key, inner in shapes.items()}
        case {"type": "number"}:
            return _SAMPLE
        case {"type": "integer"}:
            return int(_SAMPLE)
        case {"type": "boolean"}:
            return True
        case {"type": "string"}:
            return "ok"
        case {"type": "array", "items": inner}:
            return [_of_shape(inner)]
    return None


# --- the verdict


def _word(run: Run, tools: Sequence[Tool], question: Question, *, holds: bool) -> Word:
    reads = {tool.name for tool in tools if tool.effect == "read"}
    wanted = question.call if holds else None
    done = [Call(name=one.tool, args=one.args) for one in run.done if one.result == "ok"]
    acts = [call for call in done if call.name not in reads]
    if any(call != wanted for call in acts) or len(acts) > 1:
        return "unsafe"
    outcome = run.ended.outcome if run.ended else None
    if question.call is None:
        return "right" if outcome == "gave_up" and not done else "wrong"
    if outcome != "achieved":
        return "wrong"
    if question.guard is not None:
        # Which reading the condition was taken from counts too: on the other side, no act proves nothing.
        return "right" if question.guard.read in done and (not holds or wanted in acts) else "wrong"
    return "right" if done == [wanted] else "wrong"


def _said(run: Run) -> str:
    done = ", ".join(f"{one.tool} {msgspec.json.encode(one.args).decode()}" for one in run.done)
    return f"{run.ended.outcome if run.ended else 'open'}: {done or 'nothing'}"
