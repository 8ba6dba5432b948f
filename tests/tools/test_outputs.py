"""Outputs that the kernel holds: an entry that the tool simulates, and one whose kernel is played beside it.

The played kernel is a thread that watches the files of an entry and does what `ledtrig-transient` says it does, by
itself: so that the end of a pulse is nobody's merit in the tool.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.tools.calling import call, refusal, start, until

TRIGGERS = "[none] timer transient default-on"


class Entry:
    """One entry, `pump`, in a folder that stands for /sys."""

    def __init__(self, folder: Path, simulated: bool) -> None:
        self.folder = folder / "class/leds/green:pump"
        self.folder.mkdir(parents=True)
        for file, text in (("brightness", "0"), ("max_brightness", "255"), ("trigger", TRIGGERS)):
            (self.folder / file).write_text(f"{text}\n")
        self.settings = {
            "REA_TOOL_OUTPUTS_NAMES": "pump=green:pump,horn=green:pump:pulse,siren",
            "REA_TOOL_OUTPUTS_SYS": f"{'sim:' if simulated else ''}{folder}",
        }

    def do(self, name: str, **args: object) -> object:
        return call("outputs.py", name, args, **self.settings)

    def refuses(self, name: str, **args: object) -> str:
        return refusal("outputs.py", name, args, **self.settings)

    def state(self) -> object:
        return self.do("read_output", output="pump")

    def said(self, file: str) -> str:
        with suppress(FileNotFoundError):
            return (self.folder / file).read_text().strip()
        return ""


@contextmanager
def kernel(entry: Entry) -> Iterator[None]:
    """The transient trigger: at `activate` on for `duration`, then off; whether or not anybody is still there."""
    done = threading.Event()

    def play() -> None:
        while not done.wait(0.002):
            if entry.said("activate") == "1" and entry.said("trigger") == "transient":
                (entry.folder / "activate").write_text("0")
                (entry.folder / "brightness").write_text("255")
                end_s = time.monotonic() + int(entry.said("duration")) / 1000
                while time.monotonic() < end_s and entry.said("trigger") == "transient":
                    done.wait(0.002)
                if entry.said("trigger") == "transient":  # another trigger takes the timer away
                    (entry.folder / "brightness").write_text("0")

    thread = threading.Thread(target=play)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@pytest.fixture(params=["simulated", "played"])
def entry(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Entry]:
    made = Entry(tmp_path, request.param == "simulated")
    if request.param == "simulated":
        yield made
    else:
        with kernel(made):
            yield made


def test_an_output_stays_as_it_is_set(entry: Entry) -> None:
    assert entry.state() == {"state": "off"}
    assert entry.do("set_pump", state="on") == {"state": "on"}
    assert entry.said("brightness") == "255" and entry.state() == {"state": "on"}
    assert entry.do("set_pump", state="off") == {"state": "off"}
    assert entry.said("brightness") == "0"


def test_a_pulse_is_on_for_its_time_and_off_after(entry: Entry) -> None:
    process = start("outputs.py", [("pulse_horn", {"ms": 800})], **entry.settings)
    until(lambda: entry.said("brightness") == "255")
    began_s = time.monotonic()
    out, _ = process.communicate(timeout=30)
    assert out == '{"ms": 800}\n' and 0.5 < time.monotonic() - began_s < 10
    assert entry.state() == {"state": "off"}


def test_a_pulse_that_is_killed_is_ended_by_the_kernel(entry: Entry) -> None:
    process = start("outputs.py", [("pulse_horn", {"ms": 700})], **entry.settings)
    try:
        until(lambda: entry.said("brightness") == "255")
    finally:
        process.kill()
        process.communicate()
    until(lambda: entry.state() == {"state": "off"})
    assert entry.do("pulse_horn", ms=20) == {"ms": 20}, "the next one works"


def test_a_set_outlives_the_pulse_that_it_came_into(entry: Entry) -> None:
    process = start("outputs.py", [("pulse_horn", {"ms": 1500})], **entry.settings)
    try:
        until(lambda: entry.said("brightness") == "255")
    finally:
        process.kill()
        process.communicate()
    began_s = time.monotonic()
    entry.do("set_pump", state="on")
    until(lambda: time.monotonic() > began_s + 1.6)  # by now the pulse would have ended
    assert entry.state() == {"state": "on"}


def test_without_the_trigger_there_is_no_pulse(entry: Entry) -> None:
    (entry.folder / "trigger").write_text("[none] timer\n")
    assert "load the module ledtrig-transient" in entry.refuses("pulse_horn", ms=20)
    assert entry.said("brightness") == "0"


def test_a_pulse_that_the_kernel_does_not_end_is_ended_and_said(tmp_path: Path) -> None:
    entry = Entry(tmp_path, simulated=False)  # and no kernel
    (entry.folder / "trigger").write_text("transient")
    process = start("outputs.py", [("pulse_horn", {"ms": 300})], err=-1, **entry.settings)
    until(lambda: entry.said("activate") == "1")
    (entry.folder / "brightness").write_text("255")
    _, err = process.communicate(timeout=30)
    assert process.returncode == 1 and "was still on after 300 ms, and was turned off" in err
    assert entry.said("brightness") == "0"


def test_an_entry_that_is_not_there_is_named(entry: Entry) -> None:
    said = entry.refuses("set_siren", state="on")
    assert said.startswith("Unable: there is no ") and "/class/leds/siren: the device tree" in said


def test_only_named_outputs_are_there_and_each_is_set_or_pulsed(entry: Entry) -> None:
    said = entry.refuses("read_output", output="boiler")
    assert said.endswith("'boiler' is no output that is named here; there is pump, horn, siren")
    for name in ("set_horn", "pulse_pump", "set_boiler"):
        assert f"there is no tool {name}" in entry.refuses(name)


def test_without_names_a_call_says_what_to_set() -> None:
    assert 'set REA_TOOL_OUTPUTS_NAMES="' in refusal("outputs.py", "read_output", {"output": "pump"})


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("NAMES", "Pump"),
        ("NAMES", "a,a:pulse"),
        ("NAMES", "a:flash"),
        ("NAMES", "a=../b"),
        ("NAMES", "a=.."),
        ("NAMES", "a=b/c"),
        ("PULSE_MS", "9"),
    ],
)
def test_a_setting_that_is_wrong_is_named_when_the_file_loads(name: str, setting: str) -> None:
    said = refusal("outputs.py", "read_output", {"output": "a"}, **{f"REA_TOOL_OUTPUTS_{name}": setting})
    assert f"ValueError: REA_TOOL_OUTPUTS_{name}: " in said
