"""A run in memory, on the real machine: what the model says is given, and what readings return."""

from collections.abc import Callable, Sequence

import msgspec
from msgspec import Raw

from rea_edge import decision, evidence, loop, opening
from rea_edge.bounds import Bounds
from rea_edge.records import (
    Act,
    Answered,
    Ask,
    Begin,
    Begun,
    Call,
    Intended,
    Job,
    Malformed,
    Offer,
    Ok,
    Protocol,
    Record,
    Rest,
    Returned,
    Run,
    Switch,
    Tool,
)
from tests.command.gbnf import Grammar

Readings = Callable[[Call], object]


def offers_of(tools: Sequence[Tool]) -> tuple[Offer, ...]:
    return tuple(Offer.of(tool) for tool in tools)


def heard(goal: str, tools: Sequence[Tool], commands: int = 1) -> tuple[tuple[Offer, ...], Bounds]:
    kept, bounds = evidence.narrowed(goal, tools, commands)
    return offers_of(kept), bounds


def lines(goal: str, tools: Sequence[Tool], commands: int = 1) -> set[str]:
    """All that the grammar of a question lets a model say, but for `cannot` and `done`."""
    kept, bounds = evidence.narrowed(goal, tools, commands)
    body = opening.constraint("command", kept, llama_cpp=True, commands=commands, bounds=bounds)
    written = Grammar(msgspec.json.decode("{" + body + "}")["grammar"])
    return {written.sentence(seed) for seed in range(200)} - {"cannot", "done"}


def begun(goal: str, tools: Sequence[Tool], commands: int = 1, protocol: Protocol = "command") -> Begun:
    lines_only = protocol == "command"
    offers, bounds = heard(goal, tools, commands) if lines_only else (offers_of(tools), None)
    return Begun(
        endpoint="local",
        model="any",
        protocol=protocol,
        offers=offers,
        opening=opening.opening(protocol, "rules", tools, goal, {}, commands=commands),
        ask='"temperature":0',
        context_tokens=8192,
        min_observations=1,
        answer_tokens=100,
        commands=commands,
        bounds=bounds,
        only_if=None if lines_only else evidence.condition_of(goal, tools),
    )


def read(line: str, offers: Sequence[Offer], bounds: Bounds) -> decision.Decision | Malformed:
    """What a line comes to in this run, as the daemon reads it."""
    return decision.read_or_fault({"role": "assistant", "content": line}, "stop", offers, "command", {}, bounds)


def played(start: Begun, lines: Sequence[str], readings: Readings) -> Run:
    """The run to its end. The model says these texts one after another, and then `done` for ever; acts succeed."""
    run = loop.start("rtest-1", Job(goal=""))
    said = iter(lines)
    while True:
        match loop.next_effect(run):
            case Begin():
                run = loop.apply(run, start)
            case Ask(asked=asked):
                message = {"role": "assistant", "content": next(said, "done")}
                answer = Answered(
                    step=asked.step,
                    turn=Raw(msgspec.json.encode(message)),
                    decision=decision.read_or_fault(message, "stop", start.offers, start.protocol, {}, start.bounds),
                    prompt_tokens=10,
                    completion_tokens=10,
                    seconds=0.0,
                )
                run = loop.apply(loop.apply(run, asked), answer)
            case Act(n=n, call=call, effect=effect):
                if effect == "once":
                    run = loop.apply(run, Intended(n=n))
                result = readings(call) if effect == "read" else {"done": True}
                run = loop.apply(run, Returned(n=n, result=Ok(data=Raw(msgspec.json.encode(result))), seconds=0.0))
            case Record(event=event):
                run = loop.apply(run, event)
            case Rest() | Switch():
                return run


def acted(run: Run, tools: Sequence[Tool]) -> list[Call]:
    """The acts that ran, in their order."""
    reads = {tool.name for tool in tools if tool.effect == "read"}
    return [Call(name=one.tool, args=one.args) for one in run.done if one.tool not in reads and one.result == "ok"]
