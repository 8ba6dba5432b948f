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
from rea_edge.errors import NodeSilent, OperatorError, RequestRefused
from rea_edge.screen import Screen, Steps, verdict
from rea_edge.wire import TaskState

NODE = "boiler-room"
STOP_S = 30.0
READY_S = 30.0


class Effect(msgspec.Struct, frozen=True):
    """What must be in the boiler room's journal after a task; `tool` empty: nothing new may be there."""

    tool: str = ""
    args: dict[str, object] = {}


# Chosen by measurement (tests/bench/wordings.py): each came out right on every one of 20 fresh servers.
TASKS: tuple[tuple[str, Effect], ...] = (
    ("What is the temperature of the boiler?", Effect()),
    ("Turn the pump on.", Effect("set_pump", {"state": "on"})),
    ("Turn the fan on if the boiler is over 60.", Effect("set_fan", {"state": "on"})),
)
_BIG = "This server is yours: what it can do depends on its model."
_SMALL = (
    "The model has 135 million parameters and runs on this processor. It can turn one sentence into one command, or\n"
    "into one command under a condition that code compares; it is often wrong beyond the wordings it has examples\n"
    "for, it cannot plan, and refuses badly. The daemon lets it do no more than that."
)


def run(args: argparse.Namespace, screen: Screen) -> int:
    """Gives 0 only if all three tasks were achieved and the boiler room shows exactly their effects."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rea-edge-demo-")))
        url = args.endpoint or stack.enter_context(_small_model(screen))
        broker = stack.enter_context(EmulatedBroker())
        room = folder / "boiler.json"
        _introduce(screen, own=args.endpoint is not None, url=url, broker=broker.url, room=room)
        protocol = args.protocol or ("auto" if args.endpoint else "command")
        config = _configuration(folder, broker.url, url, args.model, protocol)
        stack.enter_context(_daemon(config, room, folder / "daemon.log", screen))
        client = stack.enter_context(Client(_settings(broker.url), silent_s=READY_S))
        client.status()
        came_true = [_task(client, screen, room, goal, effect) for goal, effect in TASKS]
        good = all(came_true)
        screen.say()
        screen.say(
            screen.paint("All three tasks came true.", "green")
            if good
            else screen.paint("Not all three tasks came true.", "red")
        )
        if not args.once and sys.stdin.isatty():
            _converse(client, screen)
        return 0 if good else 1


def _introduce(screen: Screen, *, own: bool, url: str, broker: str, room: Path) -> None:
    screen.say(screen.paint("rea-edge demo", "bold"))
    screen.say(f"  emulated: the boiler room ({room}) and the MQTT broker ({broker}, inside this process)")
    screen.say(f"  real:     the daemon, its tools in processes of their own, the journal, the model at {url}")
    for line in (_BIG if own else _SMALL).splitlines():
        screen.say(f"  {screen.paint(line, 'dim')}")


@contextmanager
def _small_model(screen: Screen) -> Iterator[str]:
    # Imported here: with --endpoint nothing of it is needed.
    from rea_edge.model_server import ModelServer

    with ModelServer(screen.say) as server:
        yield server.url


def _task(client: Client, screen: Screen, room: Path, goal: str, effect: Effect) -> bool:
    """Send one task, show it, and compare what the room's journal says with what it should."""
    before = len(_journal(room))
    state = _send(client, screen, goal)
    news = _journal(room)[before:]
    wanted = [effect] if effect.tool else []
    came_true = [Effect(entry.tool, entry.args) for entry in news] == wanted and state.outcome == "achieved"
    seen = ", ".join(f"{entry.tool} {msgspec.json.encode(entry.args).decode()}" for entry in news) or "nothing"
    mark = screen.paint("as it should be", "green") if came_true else screen.paint("NOT as it should be", "red")
    screen.say(f"  the boiler room's file shows: {seen} ({mark})")
    return came_true


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


def _configuration(folder: Path, broker: str, endpoint: str, model: str, protocol: str) -> Path:
    file = folder / "config.toml"
    lines = [
        "[node]", f'id = "{NODE}"', f'state_dir = "{folder / "state"}"', 'tools = ["boiler"]',
        "[broker]", f'url = "{broker}"',
        "[[endpoint]]", 'name = "demo"', f"url = {_quoted(endpoint)}", f"model = {_quoted(model)}",
        f'protocol = "{protocol}"',
        *(["context_tokens = 2048"] if protocol == "command" else []),
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
