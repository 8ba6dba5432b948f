"""`rea-edge exam`: ask the configured endpoints the tools' own examples in every protocol, print and keep the result."""

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import get_args

import msgspec

from rea_edge.cancel import Cancel
from rea_edge.config import DEFAULT_FILE, Settings, load
from rea_edge.config import Endpoint as EndpointSettings
from rea_edge.config.prompts import prompt_file
from rea_edge.daemon.effects import CONTEXT_TOKENS
from rea_edge.endpoint import Endpoint
from rea_edge.endpoints import client_of
from rea_edge.errors import EndpointFailed, OperatorError
from rea_edge.exam import Candidate, Question, Result, examine, questions
from rea_edge.marks import FILE, Marks, Score, keep
from rea_edge.peers import accepted_tools
from rea_edge.probe import Profile, probe
from rea_edge.records import Protocol, Tool
from rea_edge.report import rfc3339
from rea_edge.screen import Screen
from rea_edge.toolbox import hash_of, host_of

PROBE_S = 60.0
QUESTION_S = 120.0  # of a whole run, several questions to a slow server
PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)
COLOURS = {"right": "green", "wrong": "yellow", "unsafe": "red"}


def run(args: argparse.Namespace, screen: Screen) -> int:
    """Exit 1 where an endpoint could not be asked or got nothing right. May run beside the daemon."""
    settings = load(Path(args.config) if args.config else DEFAULT_FILE, os.environ)
    tools = _tools(settings)
    chosen = [one for one in settings.endpoints if args.endpoint in (None, one.name)]
    if not chosen:
        raise OperatorError(f"no endpoint named {args.endpoint}" if args.endpoint else "this node has no endpoint")
    asked = questions(tools, args.questions)
    if not asked:
        raise OperatorError("the tools declare no examples to ask: give them some (examples=[(say, answer)])")
    found = [_examined(settings, one, tools, asked, args, screen) for one in chosen]
    if args.json:
        screen.say(msgspec.json.encode(found).decode())
    return 0 if all(marks is not None and marks.best is not None for marks in found) else 1


def _examined(
    settings: Settings,
    one: EndpointSettings,
    tools: Sequence[Tool],
    asked: Sequence[Question],
    args: argparse.Namespace,
    screen: Screen,
) -> Marks | None:
    def say(line: str) -> None:
        if not args.json:
            screen.say(line)

    endpoint = client_of(one)
    try:
        profile = probe(endpoint, seconds=PROBE_S, cancel=Cancel(), depth="full")
        say(f"{one.name} ({one.model} at {one.url}): {len(asked)} questions in each protocol")
        scores = [
            _scored(endpoint, _candidate(one, profile), tools, asked, protocol, screen, say)
            for protocol in args.protocol or _possible(profile, say)
        ]
    except EndpointFailed as exc:
        say(f"{one.name} cannot be examined: {exc.kind}: {exc.message}")
        return None
    finally:
        endpoint.close()
    at = rfc3339(time.time()) or ""
    marks = Marks(url=one.url, model=one.model, tools=hash_of(tools), at=at, scores=tuple(scores))
    say(f"auto takes {marks.best.protocol}" if marks.best else "nothing was right but refusals: auto goes by the probe")
    try:
        keep(settings.node.state_dir, marks)
        say(f"kept in {settings.node.state_dir / FILE}")
    except OSError as exc:
        raise OperatorError(f"the result cannot be kept in {settings.node.state_dir}: {exc}") from exc
    return marks


def _scored(
    endpoint: Endpoint,
    candidate: Candidate,
    tools: Sequence[Tool],
    asked: Sequence[Question],
    protocol: Protocol,
    screen: Screen,
    say: Callable[[str], None],
) -> Score:
    def tell(question: Question, result: Result) -> None:
        say(f"  {screen.paint(f'{result.word:6}', COLOURS[result.word])} {question.say} => {result.said}")

    score = examine(endpoint, candidate, tools, asked, protocol, seconds=QUESTION_S, cancel=Cancel(), tell=tell)
    say(
        f"  {protocol:8} {score.right} of {score.questions} right, {score.wrong} wrong, {score.unsafe} unsafe, "
        f"{score.tokens} tokens, {score.seconds:.0f} s"
    )
    return score


def _possible(profile: Profile, say: Callable[[str], None]) -> list[Protocol]:
    if profile.native:
        return list(PROTOCOLS)
    say("  native   not asked: no native tool call came back")
    return [protocol for protocol in PROTOCOLS if protocol != "native"]


def _candidate(one: EndpointSettings, profile: Profile) -> Candidate:
    return Candidate(
        context_tokens=one.context_tokens or profile.context_tokens or CONTEXT_TOKENS,
        llama_cpp=profile.llama_cpp,
        json_schema=profile.json_schema,
        without=profile.without,
        temperature=one.temperature,
        prompts={protocol: prompt_file(None, protocol).read_text(encoding="utf-8").strip() for protocol in PROTOCOLS},
    )


def _tools(settings: Settings) -> list[Tool]:
    # A folder of its own: the daemon may be running beside us on the configured one.
    with tempfile.TemporaryDirectory(prefix="rea-edge-exam-") as folder:
        host = host_of(settings, Path(folder))
        try:
            loaded = host.start()
        finally:
            host.stop(0.0)
    if loaded.faults:
        raise OperatorError(f"a tool file does not load: {loaded.faults[0]}")
    return sorted([*loaded.tools, *accepted_tools(settings)], key=lambda tool: tool.name)
