"""The demonstration: a simulated boiler room, an embedded broker and a small model on this machine, and the daemon.

Everything that acts is real (the daemon in a process of its own, its tool children, the model, MQTT on loopback);
what is emulated is said on the screen. What came true is read from the boiler room's file, not from the model.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from rea_edge.client import Client
from rea_edge.config import Broker
from rea_edge.config.client import Client as ClientSettings
from rea_edge.emulated.broker import Broker as EmulatedBroker
from rea_edge.errors import EndpointFailed, NodeSilent, OperatorError, RequestRefused
from rea_edge.screen import Screen, Steps, verdict
from rea_edge.wire import TaskState

NODE = "boiler-room"
STOP_S = 30.0
READY_S = 30.0
LOOK_S = 10.0


class Effect(msgspec.Struct, frozen=True):
    """One act that must be in the boiler room's journal after a task."""

    tool: str
    args: dict[str, object]


Tasks = tuple[tuple[str, tuple[Effect, ...]], ...]

# Chosen by measurement (tests/bench/wordings.py): each came out right on every one of 20 fresh servers.
TASKS: Tasks = (
    ("What is the temperature of the boiler?", ()),
    ("Turn the pump on.", (Effect("set_pump", {"state": "on"}),)),
    ("Turn the fan on if the boiler is over 60.", (Effect("set_fan", {"state": "on"}),)),
)
# For the larger model: several steps each.
LONGER: Tasks = (
    ("Read the boiler, the flow and the room.", ()),
    (
        "Turn the pump on, then set the valve to 30 percent.",
        (Effect("set_pump", {"state": "on"}), Effect("set_valve", {"percent": 30})),
    ),
    ("Turn the fan on if the boiler is over 60.", (Effect("set_fan", {"state": "on"}),)),
)
_BIG = "This server is yours: what it can do depends on its model."
_SMALL = (
    "The model has 135 million parameters and runs on this processor. It can turn one sentence into one command, or\n"
    "into one command under a condition that code compares; it cannot plan. The daemon lets it choose only among what\n"
    "the goal's own words speak for, by the tools' examples; anything else is refused."
)
_QWEN = (
    "The model has 1.5 billion parameters and runs on this processor, in 1.3 GB of memory: its first answer takes a\n"
    "minute or so. It can do several commands after another; conditions are compared by code all the same."
)


class Cast(msgspec.Struct, frozen=True):
    """What is played with which model: its url, how it is asked, and the words that introduce it."""

    url: str
    words: str
    protocol: str
    model: str = "any"
    tasks: Tasks = TASKS
    settings: tuple[str, ...] = ()  # more lines of the configuration, its endpoint's first


def run(args: argparse.Namespace, screen: Screen) -> int:
    """Gives 0 only if all three tasks were achieved and the boiler room shows exactly their effects."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rea-edge-demo-")))
        cast = stack.enter_context(_cast(args, screen))
        broker = stack.enter_context(EmulatedBroker())
        room = folder / "boiler.json"
        _introduce(screen, cast, broker=broker.url, room=room)
        config = _configuration(folder, broker.url, cast)
        stack.enter_context(_daemon(config, room, folder / "daemon.log", screen))
        client = stack.enter_context(Client(_settings(broker.url), silent_s=READY_S))
        client.status()
        good = _all_tasks(client, screen, room, cast.tasks)
        screen.say()
        screen.say(
            screen.paint("All three tasks came true.", "green")
            if good
            else screen.paint("Not all three tasks came true.", "red")
        )
        if not args.once and sys.stdin.isatty():
            _converse(client, screen)
        return 0 if good else 1


def _all_tasks(client: Client, screen: Screen, room: Path, tasks: Tasks) -> bool:
    """Whether all came true. Without a model there is nothing to show: the first task that finds none is the last."""
    good = True
    for goal, effects in tasks:
        state, came_true = _task(client, screen, room, goal, effects)
        good = good and came_true
        if state.error == "endpoint_unavailable":
            screen.say("  the model does not answer any more: the other tasks are left out")
            return False
    return good


def _introduce(screen: Screen, cast: Cast, *, broker: str, room: Path) -> None:
    screen.say(screen.paint("rea-edge demo", "bold"))
    screen.say(f"  emulated: the boiler room ({room}) and the MQTT broker ({broker}, inside this process)")
    screen.say(f"  real:     the daemon, its tools in processes of their own, the journal, the model at {cast.url}")
    for line in cast.words.splitlines():
        screen.say(f"  {screen.paint(line, 'dim')}")


@contextmanager
def _cast(args: argparse.Namespace, screen: Screen) -> Iterator[Cast]:
    """Who plays: a server of one's own, the larger model, or the small one."""
    if args.endpoint:
        _look_at(args.endpoint, args.model)
        yield Cast(args.endpoint, _BIG, args.protocol or "auto", args.model)
        return
    # Imported here: with --endpoint nothing of it is needed.
    from rea_edge.model_server import CONTEXT_TOKENS, ModelServer

    if args.model == "qwen":
        from rea_edge.big_model import QWEN

        with ModelServer(screen.say, _qwen(args, screen), QWEN) as server:
            settings = (f"context_tokens = {QWEN.context_tokens}", "[task.default]", "commands = 6")
            yield Cast(server.url, _QWEN, "command", tasks=LONGER, settings=settings)
        return
    if args.model not in ("any", "smollm2"):
        raise OperatorError(f"there is no model {args.model!r} to fetch: smollm2 or qwen, or give --endpoint URL")
    with ModelServer(screen.say) as server:
        yield Cast(server.url, _SMALL, "command", settings=(f"context_tokens = {CONTEXT_TOKENS}",))


def _look_at(url: str, model: str) -> None:
    """Whether a server of one's own answers at all. Raises `OperatorError` with what it did instead."""
    from rea_edge.cancel import Cancel
    from rea_edge.endpoint import Endpoint
    from rea_edge.probe import probe

    endpoint = Endpoint(name="demo", url=url, model=model)
    try:
        probe(endpoint, seconds=LOOK_S, cancel=Cancel())
    except EndpointFailed as exc:
        if exc.kind != "loading":  # the daemon waits for that
            hint = f" ({exc.suggestion})" if exc.suggestion else ""
            raise OperatorError(f"no model answers at {url}: {exc.kind}: {exc.message}{hint}") from exc
    finally:
        endpoint.close()


def _qwen(args: argparse.Namespace, screen: Screen) -> Path:
    """The folder of the larger model, which is fetched only where somebody says yes."""
    from rea_edge.big_model import MEGABYTES, fetch_qwen, is_fetched

    if not is_fetched() and not args.yes:
        screen.say(f"The larger model is {MEGABYTES} MB to fetch, and needs twice that on the disk meanwhile.")
        if not sys.stdin.isatty():
            raise OperatorError("say --yes to fetch it")
        if input("Fetch it? [y/N] ").strip().lower() not in ("y", "yes"):
            raise OperatorError("not fetched")
    return fetch_qwen(screen.say)


def _task(client: Client, screen: Screen, room: Path, goal: str, effects: tuple[Effect, ...]) -> tuple[TaskState, bool]:
    """Send one task, show it, and compare what the room's journal says with what it should."""
    before = len(_journal(room))
    state = _send(client, screen, goal)
    news = _journal(room)[before:]
    came_true = [Effect(entry.tool, entry.args) for entry in news] == list(effects) and state.outcome == "achieved"
    seen = ", ".join(f"{entry.tool} {msgspec.json.encode(entry.args).decode()}" for entry in news) or "nothing"
    mark = screen.paint("as it should be", "green") if came_true else screen.paint("NOT as it should be", "red")
    screen.say(f"  the boiler room's file shows: {seen} ({mark})")
    return state, came_true


def _send(client: Client, screen: Screen, goal: str) -> TaskState:
    screen.say()
    screen.say(f"{screen.paint('Task', 'bold')}: {goal}")
    task_id, _ = client.submit({"goal": goal, "mode": "act"})
    steps = Steps(screen)
    state = client.watch(task_id, steps.show, steps.quiet)
    screen.say(verdict(screen, state))
    return state


def _converse(client: Client, screen: Screen) -> None:
    """Goals typed by a person, until the end of input."""
    screen.say("Type a goal for the boiler room (its tools: read_sensor, set_pump, set_fan, set_valve, sound_alarm).")
    screen.say("An empty line or end of input ends the demo.")
    while True:
        try:
            goal = input("> ").strip()
        except EOFError:
            return
        if not goal:
            return
        try:
            _send(client, screen, goal)
        except (NodeSilent, RequestRefused) as exc:
            screen.say(str(exc))


class Entry(msgspec.Struct, frozen=True):
    tool: str
    args: dict[str, object]


class Room(msgspec.Struct, frozen=True):
    journal: list[Entry] = []


def _journal(room: Path) -> list[Entry]:
    return msgspec.json.decode(room.read_bytes(), type=Room).journal if room.exists() else []


def _configuration(folder: Path, broker: str, cast: Cast) -> Path:
    file = folder / "config.toml"
    lines = [
        "[node]", f'id = "{NODE}"', f'state_dir = "{folder / "state"}"', 'tools = ["boiler"]',
        "[broker]", f'url = "{broker}"',
        "[[endpoint]]", 'name = "demo"', f"url = {_quoted(cast.url)}", f"model = {_quoted(cast.model)}",
        f'protocol = "{cast.protocol}"', *cast.settings,
    ]  # fmt: skip
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()  # a JSON string is a TOML basic string


def _settings(broker: str) -> ClientSettings:
    return ClientSettings(broker=Broker(url=broker), node=NODE, who="demo")


@contextmanager
def _daemon(config: Path, room: Path, log: Path, screen: Screen) -> Iterator[None]:
    """The daemon as a process of its own, as systemd would run it; its log is shown if it ends on its own."""
    environ = {**os.environ, "REA_TOOL_BOILER_FILE": str(room)}
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "rea_edge", "run", "--config", str(config)],
            env=environ, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
        )  # fmt: skip
    try:
        yield
    except NodeSilent as exc:
        screen.say(log.read_text(errors="replace")[-4000:])
        raise OperatorError(f"the daemon did not come up: {exc}") from exc
    finally:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
