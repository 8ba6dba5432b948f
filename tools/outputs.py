"""Outputs that the kernel itself holds: switched, pulsed, read. They stay as they are set, whoever dies.

Each is a `gpio-leds` entry of the device tree, whatever it drives: on a Raspberry Pi
`dtoverlay=gpio-led,gpio=17,label=pump,trigger=none` in config.txt. $REA_TOOL_OUTPUTS_NAMES names them by their label:
"pump,horn:pulse,lamp=green:lamp". Each is a tool of its own, `set_pump` or, with `:pulse`, `pulse_horn`, so that each can
have its own `[gate.NAME]`. A pulse is timed by the kernel (its trigger `transient`, module ledtrig-transient): it ends in
time even if the call and the daemon do not. Writing needs `ProtectKernelTunables=no` in the service and a udev rule that
gives its user the files.

$REA_TOOL_OUTPUTS_PULSE_MS is the longest pulse (5000). $REA_TOOL_OUTPUTS_SYS stands for /sys; as "sim:/folder" the
kernel's timer is simulated too.
"""

import os
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, TypedDict

from msgspec import Meta

from rea_edge.tool import tool

MOST_OUTPUTS = 32
OUTPUT = re.compile(r"([a-z][a-z0-9_]{0,30})(?:=([A-Za-z0-9_][A-Za-z0-9_:.-]{0,62}))?")


class Output(NamedTuple):
    label: str
    pulse: bool


def outputs_of(said: str) -> dict[str, Output]:
    """The outputs by name. Raises ValueError, which is a fault of this file that names the setting."""
    found: dict[str, Output] = {}
    for part in filter(None, (part.strip() for part in said.split(","))):
        match = OUTPUT.fullmatch(part.removesuffix(":pulse"))
        if match is None or match[1] in found:
            raise ValueError(f"REA_TOOL_OUTPUTS_NAMES: {part!r} is not name, name=LABEL or name:pulse, each name once")
        found[match[1]] = Output(match[2] or match[1], part.endswith(":pulse"))
    if len(found) > MOST_OUTPUTS:
        raise ValueError(f"REA_TOOL_OUTPUTS_NAMES: {len(found)} outputs; at most {MOST_OUTPUTS}")
    return found


def longest_of(said: str) -> int:
    if not said.isdecimal() or not 10 <= int(said) <= 60_000:
        raise ValueError(f"REA_TOOL_OUTPUTS_PULSE_MS: {said!r} is not a number of milliseconds from 10 to 60000")
    return int(said)


OUTPUTS = outputs_of(os.environ.get("REA_TOOL_OUTPUTS_NAMES", ""))
LONGEST_MS = longest_of(os.environ.get("REA_TOOL_OUTPUTS_PULSE_MS", "5000"))
FIRST = next(iter(OUTPUTS), "siren")

if TYPE_CHECKING:
    Name = str
else:  # an enumeration where it can be one: a model then cannot miss it
    Name = Literal[tuple(OUTPUTS)] if OUTPUTS else str

Switch = Literal["on", "off"]


class State(TypedDict):
    state: Switch


class Pulse(TypedDict):
    ms: int


class Unable(Exception):
    """It was not done; the text says why, and what to do."""


@tool(
    effect="read",
    timeout_s=5.0,
    examples=[
        (f"Is the {FIRST} on?", {"output": FIRST}),
        (f"What is the state of the {FIRST}?", {"output": FIRST}),
        (f"Does the {FIRST} run?", {"output": FIRST}),
        ("How much power does it use?", "cannot"),
    ],
)
def read_output(output: Name) -> State:
    """Read whether an output of the board is on or off."""
    return {"state": "on" if _led(output).lit() else "off"}


def declare_set(name: str) -> None:
    """The tool `set_NAME`."""
    spoken = name.replace("_", " ")

    def act(state: Switch) -> State:
        _led(name).light(state == "on")
        return {"state": state}

    act.__name__, act.__doc__ = f"set_{name}", f"Turn the {spoken} on or off; it stays so."
    tool(
        effect="idempotent",
        timeout_s=5.0,
        device=f"output {name}",
        examples=[
            (f"Turn the {spoken} on.", {"state": "on"}),
            (f"Switch the {spoken} off.", {"state": "off"}),
            (f"Turn off the {spoken}.", {"state": "off"}),
            (f"Switch on the {spoken}.", {"state": "on"}),
            (f"Repair the {spoken}.", "cannot"),
        ],
        verify={"tool": "read_output", "args": {"output": name}, "path": "state", "equals": "{state}"},
    )(act)


def declare_pulse(name: str) -> None:
    """The tool `pulse_NAME`."""
    spoken = name.replace("_", " ")

    # Without a default: "turn it off" says no time, and so can never be heard as a pulse.
    def act(ms: Annotated[int, Meta(ge=10, le=LONGEST_MS)]) -> Pulse:
        _led(name).pulse(ms)
        return {"ms": ms}

    act.__name__, act.__doc__ = f"pulse_{name}", f"Turn the {spoken} on for some milliseconds, then off."
    tool(
        effect="once",
        timeout_s=LONGEST_MS / 1000 + 3.0,
        p95_s=LONGEST_MS / 1000 + 1.0,
        device=f"output {name}",
        examples=[
            (f"Pulse the {spoken}.", {"ms": min(500, LONGEST_MS)}),
            (f"Pulse the {spoken} for 200 ms.", {"ms": min(200, LONGEST_MS)}),
            (f"Trigger the {spoken} for {min(1000, LONGEST_MS)} milliseconds.", {"ms": min(1000, LONGEST_MS)}),
            (f"Replace the {spoken}.", "cannot"),
        ],
    )(act)


for output_name, one in OUTPUTS.items():
    (declare_pulse if one.pulse else declare_set)(output_name)


# --- the entry


class Led:
    """An entry of /sys/class/leds."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise Unable(f"there is no {folder}: the device tree has no gpio-leds entry with that label")
        self.folder = folder

    def lit(self) -> bool:
        return self._said("brightness") != "0"

    def light(self, on: bool) -> None:
        self._say("trigger", "none")
        self._say("brightness", self._said("max_brightness") if on else "0")

    def pulse(self, ms: int) -> None:
        """One pulse that the kernel ends, whatever becomes of us."""
        if "transient" not in re.findall(r"[\w-]+", self._said("trigger")):
            raise Unable(f"{self.folder} has no trigger `transient`: load the module ledtrig-transient")
        self.light(False)
        for file, word in (("trigger", "transient"), ("duration", str(ms)), ("state", "1"), ("activate", "1")):
            self._say(file, word)
        self.wait(ms)
        self._say("trigger", "none")

    def wait(self, ms: int) -> None:
        """Until the kernel has ended the pulse. Not waited for, `trigger` would cut it short."""
        time.sleep(ms / 1000)
        until_s = time.monotonic() + 1.0
        while self.lit():
            if time.monotonic() > until_s:
                self.light(False)
                raise Unable(f"{self.folder} was still on after {ms} ms, and was turned off")
            time.sleep(0.005)

    def _said(self, file: str) -> str:
        return (self.folder / file).read_text().strip()

    def _say(self, file: str, word: str) -> None:
        try:
            (self.folder / file).write_text(word)
        except OSError as exc:
            needs = "the service needs ProtectKernelTunables=no and a udev rule that lets its user write it"
            raise Unable(f"{self.folder / file}: {exc.strerror}; {needs}") from exc


class SimulatedLed(Led):
    """An entry of plain files. The file `off_at` is the kernel's timer: what is past it is off. So it is written before
    what it ends, and goes after it: whoever is killed in between leaves nothing on."""

    def lit(self) -> bool:
        with suppress(FileNotFoundError, ValueError):  # or not yet written whole: nothing is on by it
            if time.time() >= float(self._said("off_at")):
                self.light(False)
        return super().lit()

    def light(self, on: bool) -> None:
        if not on:
            super().light(False)
        (self.folder / "off_at").unlink(missing_ok=True)
        if on:
            super().light(True)

    def wait(self, ms: int) -> None:
        self._say("off_at", str(time.time() + ms / 1000))
        self._say("brightness", self._said("max_brightness"))
        super().wait(ms)

    def _say(self, file: str, word: str) -> None:
        if file == "trigger":
            names = re.findall(r"[\w-]+", self._said("trigger"))
            word = " ".join(f"[{name}]" if name == word else name for name in names)
        super()._say(file, word)


def _led(output: str) -> Led:
    if output not in OUTPUTS:
        known = ", ".join(OUTPUTS) or 'none: set REA_TOOL_OUTPUTS_NAMES="pump,horn:pulse" for the daemon'
        raise Unable(f"{output!r} is no output that is named here; there is {known}")
    _, simulated, root = os.environ.get("REA_TOOL_OUTPUTS_SYS", "/sys").rpartition("sim:")
    return (SimulatedLed if simulated else Led)(Path(root) / "class/leds" / OUTPUTS[output].label)
