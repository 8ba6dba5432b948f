"""GPIO lines, against the tool's own simulated chip and one that is played below it by the kernel's header (chip.c).

Both keep their lines in the same files, so that a test looks at a chip from outside. `hardware` is what a pin would be
by what the chip does with a line that nobody holds.
"""

import fcntl
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools.calling import call, refusal, start, until

LINES = (
    "horn=gpiochip0:0:out,pump=gpiochip0:1:out:keeps,door=gpiochip0:2:in:pullup,valve=gpiochip0:3:out:low:keeps,"
    "level=gpiochip0:2:in:low,bell=gpiochip0:3:out:low"
)
HEADER = Path("/usr/include/linux/gpio.h")


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> str:
    compiler = shutil.which("cc")
    if compiler is None or not HEADER.exists():
        pytest.skip("needs a C compiler and linux/gpio.h")
    made = tmp_path_factory.mktemp("chip") / "chip.so"
    source = Path(__file__).with_name("chip.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-Wall", "-Werror", "-o", made, source, "-ldl"], check=True)
    return str(made)


class Chip:
    """Four lines in a folder; `settings` are those by which the tool finds them."""

    def __init__(self, folder: Path, settings: dict[str, str]) -> None:
        self.folder = folder
        self.settings = {"REA_TOOL_GPIO_LINES": LINES, "REA_TOOL_GPIO_SYS": str(folder / "sys"), **settings}
        (folder / "dev").mkdir()
        (folder / "dev/gpiochip0").touch()
        for number in range(4):
            (folder / str(number)).write_text("in z\n")

    def do(self, name: str, **args: object) -> object:
        return call("gpio.py", name, args, **self.settings)

    def refuses(self, name: str, **args: object) -> str:
        return refusal("gpio.py", name, args, **self.settings)

    def hardware(self, number: int) -> str:
        said = (self.folder / str(number)).read_text().strip()
        with (self.folder / str(number)).open() as line:
            try:
                fcntl.flock(line, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return said
        return said if said.startswith("in") or (self.folder / "keeps").exists() else "in z"


@pytest.fixture(params=["simulated", "played"])
def chip(request: pytest.FixtureRequest, tmp_path: Path) -> Chip:
    if request.param == "simulated":
        return Chip(tmp_path, {"REA_TOOL_GPIO_CHIP": f"sim:{tmp_path}"})
    return Chip(tmp_path, {"LD_PRELOAD": request.getfixturevalue("played"), "CHIP": str(tmp_path)})


@pytest.fixture
def keeping(chip: Chip) -> Iterator[Chip]:
    (chip.folder / "keeps").touch()
    yield chip


@pytest.mark.parametrize(
    ("level", "door", "low"), [("0", "off", "on"), ("1", "on", "off"), ("z", "on", "on")], ids=["low", "high", "pulled"]
)
def test_an_input_is_read_with_its_pull_and_its_sense(chip: Chip, level: str, door: str, low: str) -> None:
    (chip.folder / "2").write_text(f"in {level}\n")
    assert chip.do("read_line", line="door") == {"state": door}
    assert chip.do("read_line", line="level") == {"state": low}
    assert chip.hardware(2) == f"in {level}"


def test_an_output_that_its_chip_keeps_is_set_and_stays(keeping: Chip) -> None:
    assert keeping.do("set_pump", state="on") == {"state": "on"}
    assert keeping.hardware(1) == "out 1"
    assert keeping.do("read_line", line="pump") == {"state": "on"}
    assert keeping.hardware(1) == "out 1", "a look changes nothing"
    assert keeping.do("set_pump", state="off") == {"state": "off"}
    assert keeping.hardware(1) == "out 0"


def test_active_low_turns_the_level_around(keeping: Chip) -> None:
    keeping.do("set_valve", state="on")
    assert keeping.hardware(3) == "out 0"
    assert keeping.do("read_line", line="valve") == {"state": "on"}


def test_how_an_output_is_driven_is_no_part_of_a_look_at_it(keeping: Chip) -> None:
    keeping.settings["REA_TOOL_GPIO_LINES"] = "wire=gpiochip0:1:out:opendrain:keeps"
    keeping.do("set_wire", state="on")
    assert keeping.do("read_line", line="wire") == {"state": "on"}


def test_a_chip_that_does_not_keep_is_found_out_after_the_set(chip: Chip) -> None:
    said = chip.refuses("set_pump", state="on")
    assert said.startswith("Unable: line 1 of gpiochip0 did not stay on when it was let go")
    assert chip.hardware(1) == "in z"


def test_an_output_is_set_where_its_chip_keeps_it_and_else_pulsed_and_not_read(chip: Chip) -> None:
    for name in ("set_horn", "pulse_pump", "set_door", "pulse_door"):
        assert f"there is no tool {name}" in chip.refuses(name)
    assert "'horn' cannot be read" in chip.refuses("read_line", line="horn")
    assert chip.refuses("read_line", line="roof").endswith("there is pump, door, valve, level")
    assert chip.hardware(0) == "in z"


def test_a_pulse_is_on_for_its_time_and_off_after(chip: Chip) -> None:
    process = start("gpio.py", [("pulse_bell", {"ms": 1500})], **chip.settings)
    until(lambda: chip.hardware(3) == "out 0")  # active low: on
    began_s = time.monotonic()
    out, _ = process.communicate(timeout=30)
    assert out == '{"ms": 1500}\n' and time.monotonic() - began_s > 1.0
    assert (chip.folder / "3").read_text() == "out 1\n" and chip.hardware(3) == "in z"


def test_a_pulse_that_is_killed_ends_with_its_process(chip: Chip) -> None:
    process = start("gpio.py", [("pulse_horn", {"ms": 5000})], **chip.settings)
    try:
        until(lambda: chip.hardware(0) == "out 1")
    finally:
        process.kill()
        process.communicate()
    assert chip.hardware(0) == "in z"
    assert chip.do("pulse_horn", ms=10) == {"ms": 10}, "the next one finds it free"


def test_a_driver_that_says_that_it_keeps_is_believed(played: str, tmp_path: Path) -> None:
    chip = Chip(tmp_path, {"LD_PRELOAD": played, "CHIP": str(tmp_path)})
    told = tmp_path / "sys/module/pinctrl_bcm2835/parameters/persist_gpio_outputs"
    told.parent.mkdir(parents=True)
    told.write_text("N\n")
    chip.do("pulse_horn", ms=10)
    told.write_text("Y\n")
    assert "dtparam=strict_gpiod" in chip.refuses("pulse_horn", ms=10)


def test_a_line_that_somebody_holds_is_in_use(chip: Chip) -> None:
    with (chip.folder / "2").open() as line:
        fcntl.flock(line, fcntl.LOCK_EX)
        assert chip.refuses("read_line", line="door").startswith("Unable: line 2 of gpiochip0: it is in use")
    assert chip.do("read_line", line="door") == {"state": "on"}


def test_who_holds_a_line_is_named(played: str, tmp_path: Path) -> None:
    chip = Chip(tmp_path, {"LD_PRELOAD": played, "CHIP": str(tmp_path)})
    with (chip.folder / "2").open() as line:
        fcntl.flock(line, fcntl.LOCK_EX)
        assert chip.refuses("read_line", line="door").endswith("it is in use by somebody-else")


def test_a_line_that_the_chip_does_not_have_is_an_error(chip: Chip) -> None:
    chip.settings["REA_TOOL_GPIO_LINES"] = "door=gpiochip0:77:in"
    assert "line 77 of gpiochip0: the chip has no such line" in chip.refuses("read_line", line="door")


def test_a_chip_is_found_by_its_label_and_an_absent_one_named_with_those_there(played: str, tmp_path: Path) -> None:
    chip = Chip(tmp_path, {"LD_PRELOAD": played, "CHIP": str(tmp_path)})
    chip.settings["REA_TOOL_GPIO_LINES"] = "door=pinctrl-played:2:in,none=gpiochip7:2:in"
    (tmp_path / "2").write_text("in 1\n")
    assert chip.do("read_line", line="door") == {"state": "on"}
    said = chip.refuses("read_line", line="none")
    assert said.endswith("gpiochip7: there is no such chip; there is gpiochip0 (pinctrl-played)")


def test_without_lines_a_call_says_what_to_set() -> None:
    assert 'set REA_TOOL_GPIO_LINES="' in refusal("gpio.py", "read_line", {"line": "door"})


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("LINES", "pump"), ("LINES", "pump=gpiochip0:1"), ("LINES", "pump=gpiochip0:x:out"),
        ("LINES", "pump=gpiochip0:1:out:fast"), ("LINES", "a=gpiochip0:1:in,a=gpiochip0:2:in"),
        ("LINES", "pump=../mem:1:out"),
        ("LINES", "door=gpiochip0:1:in:keeps"), ("PULSE_MS", "1"), ("PULSE_MS", "60001"), ("PULSE_MS", "soon"),
    ],
)  # fmt: skip
def test_a_setting_that_is_wrong_is_named_when_the_file_loads(name: str, setting: str) -> None:
    said = refusal("gpio.py", "read_line", {"line": "a"}, **{f"REA_TOOL_GPIO_{name}": setting})
    assert f"ValueError: REA_TOOL_GPIO_{name}: " in said and repr(setting.split(",")[-1]) in said
