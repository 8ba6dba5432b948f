"""systemd units that the node's owner names: status, start, stop, restart, the latest log lines. No shell.

$REA_TOOL_SERVICES_UNITS names them: "nginx,mosquitto.service,ssh:look"; `look` means that it is never started or
stopped from here. `systemctl` and `journalctl` are found in the PATH, or named by $REA_TOOL_SERVICES_SYSTEMCTL and
$REA_TOOL_SERVICES_JOURNALCTL. Under the shipped unit, acting needs a polkit rule for its user, and the log the group
`systemd-journal`. The node's own unit is looked at only: to stop it would end the call that asks for it, and a call
that is run again after a crash would stop it again.
"""

import json
import os
import re
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict, TypeVar, get_args

from msgspec import Meta

from rea_edge.tool import tool

MOST_UNITS = 32
LONGEST_LINE = 300
LOOK_S = 4.0
ACT_S = 8.0  # below `timeout_s` and the usual `tool_s`, so that a slow unit gets a sentence of its own
UNIT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@\\-]{0,100}")  # never begins with a dash: it is no option
SHOWN = "LoadState,ActiveState,UnitFileState,Type,NRestarts,MemoryCurrent,ActiveEnterTimestampMonotonic"
KINDS = (".service", ".socket", ".timer", ".target", ".path", ".mount", ".automount", ".swap", ".slice", ".device")
UNSET = 2**64 - 1  # how systemd writes a number that it does not know


def units_of(said: str) -> dict[str, bool]:
    """Each unit, and whether it may be acted on. Raises ValueError, a fault of this file that names the setting."""
    found: dict[str, bool] = {}
    for part in filter(None, (part.strip() for part in said.split(","))):
        name = part.removesuffix(":look")
        if not UNIT.fullmatch(name) or name in found:
            raise ValueError(f"REA_TOOL_SERVICES_UNITS: {part!r} is not a unit such as nginx or nginx:look, each once")
        found[name] = name == part
    if len(found) > MOST_UNITS:
        raise ValueError(f"REA_TOOL_SERVICES_UNITS: {len(found)} units; at most {MOST_UNITS}")
    return found


UNITS = units_of(os.environ.get("REA_TOOL_SERVICES_UNITS", ""))
OURS = tuple(name for name, may_act in UNITS.items() if may_act)
ANY, FIRST = next(iter(UNITS), "nginx"), next(iter(OURS), "nginx")

if TYPE_CHECKING:
    Unit = str
    Acted = str
else:  # enumerations where they can be: a model then cannot miss them
    Unit = Literal[tuple(UNITS)] if UNITS else str
    Acted = Literal[OURS] if OURS else str

Active = Literal["active", "inactive", "failed", "activating", "deactivating", "reloading", "maintenance", "other"]
Enabled = Literal["enabled", "disabled", "static", "masked", "generated", "indirect", "alias", "linked", "other"]
Level = Literal["emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"]
T = TypeVar("T")
STATES: tuple[Active, ...] = get_args(Active)
BOOTS: tuple[Enabled, ...] = get_args(Enabled)
LEVELS: tuple[Level, ...] = get_args(Level)


class Status(TypedDict):
    """`running` is null while it changes, and for what runs once and ends (oneshot): nobody can tell then."""

    state: Active
    running: bool | None
    at_boot: Enabled
    restarts: int
    for_s: int | None
    memory_mib: float | None


class Changed(TypedDict):
    unit: Acted
    state: Active


class Line(TypedDict):
    at: str
    level: Level
    text: str


class Log(TypedDict):
    lines: list[Line]


class Failed(Exception):
    """systemd refused, or is not there; the text is what it said."""


@tool(
    effect="read",
    timeout_s=5.0,
    examples=[
        (f"Is {ANY} running?", {"unit": ANY}),
        (f"What is the state of {ANY}?", {"unit": ANY}),
        (f"How often was {ANY} restarted?", {"unit": ANY}),
        ("Which services are there on the router?", "cannot"),
    ],
)
def service_status(unit: Unit) -> Status:
    """Read whether a service runs, since when, its restarts and its memory."""
    return _status(_named(unit, UNITS))


@tool(
    effect="idempotent",
    timeout_s=10.0,
    p95_s=ACT_S,  # it waits for the unit
    examples=[
        (f"Start {FIRST}.", {"unit": FIRST}),
        (f"Start the service {FIRST}.", {"unit": FIRST}),
        (
            f"Start {FIRST} if it is not active.",
            f"if service_status {ANY} -> state != active then service_start {FIRST}",
        ),
        ("Install a service.", "cannot"),
    ],
    verify={"tool": "service_status", "args": {"unit": "{unit}"}, "path": "running", "equals": True},
)
def service_start(unit: Acted) -> Changed:
    """Start a service."""
    return _changed("start", unit)


@tool(
    effect="idempotent",
    timeout_s=10.0,
    p95_s=ACT_S,  # it waits for the unit
    examples=[
        (f"Stop {FIRST}.", {"unit": FIRST}),
        (f"Stop the service {FIRST}.", {"unit": FIRST}),
        (f"Shut {FIRST} down.", {"unit": FIRST}),
        ("Remove the service for good.", "cannot"),
    ],
    verify={"tool": "service_status", "args": {"unit": "{unit}"}, "path": "running", "equals": False},
)
def service_stop(unit: Acted) -> Changed:
    """Stop a service."""
    return _changed("stop", unit)


@tool(
    effect="once",  # it interrupts each time
    timeout_s=10.0,
    p95_s=ACT_S,  # it waits for the unit
    examples=[
        (f"Restart {FIRST}.", {"unit": FIRST}),
        (f"Restart the service {FIRST}.", {"unit": FIRST}),
        (f"Restart {FIRST} if it failed.", f"if service_status {ANY} -> state == failed then service_restart {FIRST}"),
        ("Restart the board.", "cannot"),
    ],
)
def service_restart(unit: Acted) -> Changed:
    """Restart a service."""
    return _changed("restart", unit)


@tool(
    effect="read",
    timeout_s=5.0,
    summary=False,
    examples=[
        (f"Show the log of {ANY}.", {"unit": ANY}),
        (f"Show the last 5 log lines of {ANY}.", {"unit": ANY, "lines": 5}),
        (f"What did {ANY} write last?", {"unit": ANY}),
        ("Delete the log.", "cannot"),
    ],
)
def service_log(unit: Unit, lines: Annotated[int, Meta(ge=1, le=50)] = 20) -> Log:
    """Read the latest lines that a service wrote to the system's log."""
    wanted = ["--unit", _named(unit, UNITS), "--lines", str(lines), "--output", "json", "--no-pager", "--quiet"]
    done = _run("JOURNALCTL", [*wanted, "--output-fields", "MESSAGE,PRIORITY"], LOOK_S)
    if not done.stdout.strip() and done.stderr.strip():
        raise Failed(f"no log: {_short(done.stderr)}; the daemon's user needs the group systemd-journal")
    return {"lines": [line for text in done.stdout.splitlines() if (line := _line(text)) is not None]}


# --- systemd


def _named(unit: str, allowed: dict[str, bool] | tuple[str, ...]) -> str:
    """The full name of a unit that is in the settings: "nginx" is nginx.service."""
    if unit not in allowed:
        known = ", ".join(allowed) or 'none: set REA_TOOL_SERVICES_UNITS="nginx,mosquitto" for the daemon'
        raise Failed(f"{unit!r} is no unit that may be named here; there is {known}")
    return unit if unit.endswith(KINDS) else f"{unit}.service"


def _changed(verb: str, unit: str) -> Changed:
    name = _named(unit, OURS)
    if name in _own():
        raise Failed(f"{name} is this node itself, which would end in the middle of the call")
    before = _show(name)["LoadState"]
    if before != "loaded":
        raise Failed(f"{name} cannot be used: its unit file is {before}")
    try:
        # Not --quiet: that would also swallow why a start failed.
        _run("SYSTEMCTL", [verb, "--no-ask-password", "--", name], ACT_S)
    except subprocess.TimeoutExpired as exc:
        raise Failed(f"{name} is not there yet after {ACT_S:g} s; systemd goes on: look at its status") from exc
    return {"unit": unit, "state": _status(name)["state"]}


def _status(name: str) -> Status:
    found = _show(name)
    if found["LoadState"] not in ("loaded", "masked"):
        raise Failed(f"{name} cannot be used: its unit file is {found['LoadState']}")
    state = found["ActiveState"]
    settled = {"active": True, "inactive": False, "failed": False}.get(state)
    since_s = _number(found, "ActiveEnterTimestampMonotonic") / 1e6
    return {
        "state": _one_of(state, STATES),
        "running": None if found.get("Type") == "oneshot" else settled,
        "at_boot": _one_of(found.get("UnitFileState", ""), BOOTS),
        "restarts": _number(found, "NRestarts"),
        "for_s": max(0, int(time.monotonic() - since_s)) if settled and since_s else None,
        "memory_mib": round(memory / 2**20, 1) if (memory := _number(found, "MemoryCurrent")) else None,
    }


def _show(name: str) -> dict[str, str]:
    done = _run("SYSTEMCTL", ["show", "--property", SHOWN, "--no-pager", "--", name], LOOK_S)
    found = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    if not {"LoadState", "ActiveState"} <= found.keys():
        raise Failed(f"systemctl says nothing of {name}: {_short(done.stderr or done.stdout)}")
    return found


def _run(which: str, args: list[str], seconds: float) -> "subprocess.CompletedProcess[str]":
    """Run systemctl or journalctl. What it prints is cut by the caller; a failure is its own words."""
    setting = f"REA_TOOL_SERVICES_{which}"
    program = os.environ.get(setting) or which.lower()
    try:
        done = subprocess.run(
            [program, *args], capture_output=True, encoding="utf-8", errors="replace", timeout=seconds, check=False,
            stdin=subprocess.DEVNULL, env={**os.environ, "LC_ALL": "C", "SYSTEMD_COLORS": "0"},
        )  # fmt: skip
    except OSError as exc:
        raise Failed(f"{program} cannot be run: {exc.strerror}; {setting} names another") from exc
    if done.returncode:
        raise Failed(_short(done.stderr or done.stdout) or f"{program} ended with {done.returncode}")
    return done


def _own() -> set[str]:
    """The units that this process runs in, such as rea-edge.service."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return set()
    return {part for line in lines for part in line.split("/") if part.endswith(".service")}


def _line(text: str) -> Line | None:
    """A line of `journalctl -o json`. A message that is no UTF-8 comes as a list of bytes, one that is large as null."""
    try:
        match json.loads(text):
            case {"__REALTIME_TIMESTAMP": str(at), **rest}:
                return {
                    "at": _said(int(at)),
                    "level": _level(rest.get("PRIORITY")),
                    "text": _message(rest.get("MESSAGE")),
                }
    except ValueError:
        return None
    return None


def _message(said: object) -> str:
    match said:
        case str():
            text = said
        case list():
            text = bytes(byte for byte in said if isinstance(byte, int) and 0 <= byte < 256).decode("utf-8", "replace")
        case _:
            text = "(too large to show)"
    return text if len(text) <= LONGEST_LINE else text[: LONGEST_LINE - 1] + "…"


def _level(said: object) -> Level:
    return LEVELS[int(said)] if isinstance(said, str) and said in tuple("01234567") else "info"


def _said(microseconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(microseconds // 1_000_000))


def _number(found: dict[str, str], key: str) -> int:
    said = found.get(key, "")
    return int(said) if said.isdecimal() and int(said) < UNSET else 0


def _one_of(said: str, known: tuple[T, ...]) -> T:
    return next((one for one in known if one == said), known[-1])


def _short(text: str) -> str:
    return " ".join(text.split())[:LONGEST_LINE]
