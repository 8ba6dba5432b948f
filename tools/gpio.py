"""GPIO lines by name: read one, set an output, pulse an output. By the kernel's character device, no library.

$REA_TOOL_GPIO_LINES names them: "door=gpiochip0:27:in:pullup,horn=gpiochip0:17:out". The chip is a device or a label
(`pinctrl-bcm2711`, which does not change between boots), then the line's number, `in` or `out`, and any of pullup,
pulldown, nobias, low (active low), opendrain, opensource, keeps. Each output is a tool of its own, `set_NAME` where its
chip keeps it, else `pulse_NAME`, so that each can have its own `[gate.NAME]`.

What the kernel promises: a line is as it was asked for until its descriptor is closed, also by the death of the
process; then it is nobody's, and *may* return to its default. Most chips make it an input, so that a pull decides;
others leave it driven (PL061; Raspberry Pi OS, unless `dtparam=strict_gpiod`; not every kernel says so). So an output
stays as it is set only on a chip that leaves it: `keeps` is your word for that, and its level is looked at after each
set. And a pulse ends whatever happens to us only on a chip that lets go. What can be neither promised nor seen is
refused: the pack `outputs` does both, by lines that the kernel itself holds. An output that does not keep cannot be
read: to ask for it and let go could change it.

$REA_TOOL_GPIO_PULSE_MS is the longest pulse (5000). $REA_TOOL_GPIO_CHIP="sim:/folder" is a simulated chip: a file for
each line with its direction and level ("in 0", "out 1", "in z" for nothing connected), a file `keeps` if it keeps.
$REA_TOOL_GPIO_SYS stands for /sys.
"""

import errno
import fcntl
import os
import re
import struct
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, Protocol, TypedDict

from msgspec import Meta

from rea_edge.tool import tool

# linux/gpio.h, version 2 of the interface: _IOR and _IOWR of 0xB4, with the size of what is passed.
CHIPINFO, LINEINFO, GET_LINE = 0x8044B401, 0xC100B405, 0xC250B407
GET_VALUES, SET_VALUES = 0xC010B40E, 0xC010B40F
CHIP = struct.Struct("=32s32sI")  # name, label, lines
INFO = struct.Struct("=32s32sIIQ160x16x")  # name, consumer, offset, attributes, flags
# offsets, consumer, flags, attributes, (kind, value, mask of the first), lines, event buffer, descriptor
REQUEST = struct.Struct("=64I32sQI20xI4xQQ216xII20xi")
VALUES = struct.Struct("=QQ")  # bits, mask
OUTPUT_VALUES = 2
ACTIVE_LOW, INPUT, OUTPUT, PULL_UP = 1 << 1, 1 << 2, 1 << 3, 1 << 8
FLAGS = {
    "low": ACTIVE_LOW,
    "opendrain": 1 << 6,
    "opensource": 1 << 7,
    "pullup": PULL_UP,
    "pulldown": 1 << 9,
    "nobias": 1 << 10,
}

OF_OUTPUTS = {"opendrain", "opensource", "keeps"}
MOST_LINES = 64
LINE = re.compile(r"([a-z][a-z0-9_]{0,30})=([A-Za-z0-9_.-]{1,60}):([0-9]{1,5}):(in|out)((?::[a-z]+)*)")


class Line(NamedTuple):
    """A line of the settings."""

    chip: str
    number: int
    out: bool
    keeps: bool
    flags: int

    def __str__(self) -> str:
        return f"line {self.number} of {self.chip}"


def lines_of(said: str) -> dict[str, Line]:
    """The lines by name. Raises ValueError, which is a fault of this file that names the setting."""
    found: dict[str, Line] = {}
    for part in filter(None, (part.strip() for part in said.split(","))):
        match = LINE.fullmatch(part)
        words = match[5].split(":")[1:] if match else []
        allowed = {*FLAGS, *OF_OUTPUTS} if match and match[4] == "out" else {*FLAGS} - OF_OUTPUTS
        if match is None or match[1] in found or not set(words) <= allowed:
            raise ValueError(
                f"REA_TOOL_GPIO_LINES: {part!r} is not name=CHIP:NUMBER:in or :out, each name once, then any of "
                f":{', :'.join(FLAGS)}, :keeps ({', '.join(sorted(OF_OUTPUTS))} only with :out)"
            )
        flags = sum(FLAGS[word] for word in set(words) - {"keeps"})
        found[match[1]] = Line(match[2], int(match[3]), match[4] == "out", "keeps" in words, flags)
    if len(found) > MOST_LINES:
        raise ValueError(f"REA_TOOL_GPIO_LINES: {len(found)} lines; at most {MOST_LINES}")
    return found


def longest_pulse_of(said: str) -> int:
    if not said.isdecimal() or not 10 <= int(said) <= 60_000:
        raise ValueError(f"REA_TOOL_GPIO_PULSE_MS: {said!r} is not a number of milliseconds from 10 to 60000")
    return int(said)


LINES = lines_of(os.environ.get("REA_TOOL_GPIO_LINES", ""))
LONGEST_MS = longest_pulse_of(os.environ.get("REA_TOOL_GPIO_PULSE_MS", "5000"))
SEEN = tuple(name for name, line in LINES.items() if line.keeps or not line.out)
FIRST = next(iter(SEEN), "door")

if TYPE_CHECKING:
    Seen = str
else:  # an enumeration where it can be one: a model then cannot miss it
    Seen = Literal[SEEN] if SEEN else str

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
    device="gpio",
    examples=[
        (f"Is the {FIRST} on?", {"line": FIRST}),
        (f"What is the state of the {FIRST}?", {"line": FIRST}),
        (f"Read the line {FIRST}.", {"line": FIRST}),
        ("How hot is the chip?", "cannot"),
    ],
)
def read_line(line: Seen) -> State:
    """Read whether a line of the board is on (active) or off."""
    found = _seen(line)
    with _requested(found, found.flags & ACTIVE_LOW if found.out else found.flags | INPUT) as held:
        return _state(held.active())


def declare_set(name: str, line: Line) -> None:
    """The tool `set_NAME`."""
    spoken = name.replace("_", " ")

    def act(state: Switch) -> State:
        with _requested(line, line.flags | OUTPUT, active=state == "on"):
            pass
        with _requested(line, line.flags & ACTIVE_LOW) as held:
            if _state(held.active())["state"] != state:
                raise Unable(
                    f"{line} did not stay {state} when it was let go: its chip does not keep, as it is said to"
                )
        return {"state": state}

    act.__name__, act.__doc__ = f"set_{name}", f"Turn the {spoken} on or off; it stays so."
    tool(
        effect="idempotent",
        timeout_s=5.0,
        device=str(line),
        examples=[
            (f"Turn the {spoken} on.", {"state": "on"}),
            (f"Switch the {spoken} off.", {"state": "off"}),
            (f"Turn off the {spoken}.", {"state": "off"}),
            (f"Switch on the {spoken}.", {"state": "on"}),
            (f"Paint the {spoken}.", "cannot"),
        ],
        verify={"tool": "read_line", "args": {"line": name}, "path": "state", "equals": "{state}"},
    )(act)


def declare_pulse(name: str, line: Line) -> None:
    """The tool `pulse_NAME`."""
    spoken = name.replace("_", " ")

    # Without a default: "turn it off" says no time, and so can never be heard as a pulse.
    def act(ms: Annotated[int, Meta(ge=10, le=LONGEST_MS)]) -> Pulse:
        if _sticky(line):
            raise Unable(
                f"{line} would stay on if this call were ended, as Raspberry Pi OS has it: put dtparam=strict_gpiod into "
                "config.txt, or use the pack `outputs`"
            )
        with _requested(line, line.flags | OUTPUT, active=True) as held:
            try:
                time.sleep(ms / 1000)
            finally:
                held.put(False)
        return {"ms": ms}

    act.__name__, act.__doc__ = f"pulse_{name}", f"Turn the {spoken} on for some milliseconds, then off."
    tool(
        effect="once",
        timeout_s=LONGEST_MS / 1000 + 3.0,
        p95_s=LONGEST_MS / 1000 + 1.0,
        device=str(line),
        examples=[
            (f"Pulse the {spoken}.", {"ms": min(500, LONGEST_MS)}),
            (f"Pulse the {spoken} for 200 ms.", {"ms": min(200, LONGEST_MS)}),
            (f"Trigger the {spoken} for {min(1000, LONGEST_MS)} milliseconds.", {"ms": min(1000, LONGEST_MS)}),
            (f"Sell the {spoken}.", "cannot"),
        ],
    )(act)


for line_name, one in LINES.items():
    if one.out:
        (declare_set if one.keeps else declare_pulse)(line_name, one)


# --- which line


def _seen(name: str) -> Line:
    if name in SEEN:
        return LINES[name]
    if name in LINES:
        raise Unable(f"{name!r} cannot be read: to ask for an output that does not keep its level could change it")
    known = ", ".join(SEEN) or 'none: set REA_TOOL_GPIO_LINES="door=gpiochip0:27:in:pullup" for the daemon'
    raise Unable(f"{name!r} is no line that is named here; there is {known}")


def _state(active: bool) -> State:
    return {"state": "on" if active else "off"}


def _sim() -> Path | None:
    kind, _, folder = os.environ.get("REA_TOOL_GPIO_CHIP", "").partition(":")
    if kind not in ("", "sim"):
        raise Unable(f"REA_TOOL_GPIO_CHIP={kind!r} is not sim:/folder")
    return Path(folder) if folder else None


def _sticky(line: Line) -> bool:
    """Whether the kernel says that the chip's driver leaves an output driven when nobody holds it."""
    modules = Path(os.environ.get("REA_TOOL_GPIO_SYS", "/sys")) / "module"
    told = [modules / f"{driver}/parameters/persist_gpio_outputs" for driver in ("pinctrl_bcm2835", "pinctrl_rp1")]
    if not any(file.exists() and file.read_text().strip() in ("Y", "1") for file in told):
        return False
    return _chips().get(line.chip, line.chip).startswith("pinctrl-")


# --- a line that is held


class Hold(Protocol):
    """A line that is ours until the end of the `with`, or of the process."""

    def __enter__(self) -> "Hold": ...
    def __exit__(self, *_: object) -> None: ...
    def active(self) -> bool: ...
    def put(self, active: bool) -> None: ...


def _requested(line: Line, flags: int, *, active: bool = False) -> Hold:
    """Ask the chip for a line; without INPUT or OUTPUT it stays as it is. Raises Unable."""
    try:
        sim = _sim()
        return SimulatedHold(sim, line, flags, active) if sim else KernelHold(line, flags, active)
    except OSError as exc:
        raise Unable(f"{line}: {_why(line, exc)}") from exc


def _why(line: Line, exc: OSError) -> str:
    match exc.errno:
        case errno.EBUSY:
            return f"it is in use{_consumer(line)}"
        case errno.EINVAL:
            return "the chip has no such line, or cannot do that with it"
        case errno.EACCES | errno.EPERM:
            return "not allowed: the service needs the group of the device and DeviceAllow=char-gpiochip rw"
        case errno.ENOENT:
            labels = [f"{device} ({label})" for device, label in _chips().items()]
            return f"there is no such chip; there is {', '.join(labels) or 'none'}"
    return str(exc)


def _consumer(line: Line) -> str:
    if _sim():
        return ""
    block = bytearray(INFO.pack(b"", b"", line.number, 0, 0))
    with suppress(OSError):
        _ask(_device(line.chip), LINEINFO, block)
    return f" by {_words(INFO.unpack(block)[1]) or 'somebody'}"


class KernelHold:
    """A line of /dev/gpiochipN."""

    def __init__(self, line: Line, flags: int, active: bool) -> None:
        attribute = (1, OUTPUT_VALUES, int(active), 1) if flags & OUTPUT else (0, 0, 0, 0)
        block = bytearray(REQUEST.pack(line.number, *[0] * 63, b"rea-edge", flags, *attribute, 1, 0, -1))
        _ask(_device(line.chip), GET_LINE, block)
        self.descriptor: int = REQUEST.unpack(block)[-1]

    def __enter__(self) -> "KernelHold":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.descriptor)

    def active(self) -> bool:
        block = bytearray(VALUES.pack(0, 1))
        fcntl.ioctl(self.descriptor, GET_VALUES, block)
        return bool(VALUES.unpack(block)[0] & 1)

    def put(self, active: bool) -> None:
        fcntl.ioctl(self.descriptor, SET_VALUES, VALUES.pack(int(active), 1))


def _ask(device: str, what: int, block: bytearray) -> None:
    """One request to a chip, answered in `block`. A line that it gives has a descriptor of its own."""
    chip = os.open(f"/dev/{device}", os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.ioctl(chip, what, block)
    finally:
        os.close(chip)


def _device(chip: str) -> str:
    """The device of a chip that is named by device or label."""
    return next((device for device, label in _chips().items() if label == chip), chip)


def _chips() -> dict[str, str]:
    """The label of each device, the lowest number first."""
    devices = [name for name in os.listdir("/dev") if re.fullmatch(r"gpiochip[0-9]+", name)]
    found: dict[str, str] = {}
    for device in sorted(devices, key=lambda name: int(name[8:])):
        block = bytearray(CHIP.size)
        with suppress(OSError):
            _ask(device, CHIPINFO, block)
            found[device] = _words(CHIP.unpack(block)[1])
    return found


def _words(field: bytes) -> str:
    return field.split(b"\0")[0].decode("utf-8", "replace")


class SimulatedHold:
    """A line of a simulated chip. A lock on its file is what holds it, and ends with the process like a descriptor."""

    def __init__(self, folder: Path, line: Line, flags: int, active: bool) -> None:
        if not (folder / str(line.number)).exists():
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        self.flags = flags
        self.file = (folder / str(line.number)).open("r+")
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            self.file.close()
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY)) from exc
        if self._said()[0] == "out" and not (folder / "keeps").exists():
            self._say("in", "z")  # nobody held it: it has returned to its default
        if flags & OUTPUT:
            self.put(active)

    def __enter__(self) -> "SimulatedHold":
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def active(self) -> bool:
        level = self._said()[1]
        high = bool(self.flags & PULL_UP) if level == "z" else level == "1"
        return high != bool(self.flags & ACTIVE_LOW)

    def put(self, active: bool) -> None:
        self._say("out", "1" if active != bool(self.flags & ACTIVE_LOW) else "0")

    def _said(self) -> list[str]:
        self.file.seek(0)
        return self.file.read().split()

    def _say(self, direction: str, level: str) -> None:
        self.file.seek(0)
        self.file.truncate()
        self.file.write(f"{direction} {level}\n")
        self.file.flush()
