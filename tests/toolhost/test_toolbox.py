"""Devices, retries and time limits above a real tool host."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec import structs

from rea_edge.records import Tool
from rea_edge.toolbox import Toolbox, carriers_of
from tests.toolhost.rig import Rig, comes_true, name_of, started, value

PYTHON = """
def note(name):
    with open(os.path.join(HERE, name), "a") as file:
        file.write(request_id() + "\\n")

def busy(seconds):
    '''Give begin and end on the clock that all processes share.'''
    began = time.monotonic()
    note("began")
    time.sleep(seconds)
    return [began, time.monotonic()]

@tool(effect="once", device="valve")
def turn(seconds: float) -> list[float]:
    "."
    return busy(seconds)

@tool(effect="idempotent", device="valve")
def set_to(seconds: float) -> list[float]:
    "."
    return busy(seconds)

@tool(effect="read", device="valve")
def look(seconds: float) -> list[float]:
    "."
    return busy(seconds)

@tool(effect="once")
def here(seconds: float) -> list[float]:
    "."
    return busy(seconds)

@tool(effect="once")
def here_too(seconds: float) -> list[float]:
    "."
    return busy(seconds)

@tool(effect="read", retries=2)
def third_time() -> str:
    "."
    note("third")
    if len(open(os.path.join(HERE, "third")).readlines()) % 3:
        raise OSError("line noise")
    return "worked"

@tool(effect="idempotent", retries=1, timeout_s=0.3)
def always_hangs() -> None:
    "."
    note("hung")
    time.sleep(60)

@tool(effect="once")
def fails_once() -> None:
    "."
    note("failed")
    raise OSError("stuck")

@tool(effect="read", retries=3)
def wrong_result() -> object:
    "."
    note("wrong")
    return b""
"""
COMMANDS = '[alone]\ndescription = "."\neffect = "once"\ncommand = ["sleep", "0.3"]\n'


NOTES = ("began", "third", "hung", "failed", "wrong")


@pytest.fixture(scope="module")
def shared_rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    files = {"tools.py": PYTHON, "commands.toml": COMMANDS}
    with started(tmp_path_factory.mktemp("toolbox"), files) as rig:
        assert rig.loaded.faults == ()
        yield rig


@pytest.fixture
def rig(shared_rig: Rig) -> Rig:
    for name in NOTES:
        (shared_rig.state_dir / name).unlink(missing_ok=True)
    return shared_rig


@pytest.fixture
def box(rig: Rig) -> Toolbox:
    return Toolbox(carriers_of(rig.host), rig.loaded.tools)


def lines(rig: Rig, name: str) -> list[str]:
    path = rig.state_dir / name
    return path.read_text().splitlines() if path.exists() else []


def spans(box: Toolbox, names: list[str], seconds: float = 0.25) -> list[tuple[float, float]]:
    """Begin and end of these calls, started together."""
    with ThreadPoolExecutor(len(names)) as pool:
        results = [pool.submit(box.run, name, {"seconds": seconds}, f"s-{i}", 9.0) for i, name in enumerate(names)]
    found = [value(result.result()) for result in results]
    return [(span[0], span[1]) for span in found if isinstance(span, list)]


def overlap(spans: list[tuple[float, float]]) -> bool:
    return max(begin for begin, _ in spans) < min(end for _, end in spans)


@pytest.mark.parametrize(
    ("names", "together"),
    [
        pytest.param(["turn", "set_to"], False, id="two that act on one device exclude each other"),
        pytest.param(["turn", "turn"], False, id="a tool excludes itself"),
        pytest.param(["look", "turn"], False, id="acting waits for reading"),
        pytest.param(["turn", "look"], False, id="reading waits for acting that came first"),
        pytest.param(["look", "look"], True, id="reading shares"),
        pytest.param(["turn", "here"], True, id="two devices do not"),
        pytest.param(["here", "here_too"], False, id="without a device it is the file"),
    ],
)
def test_calls_on_one_device_exclude_each_other_and_reading_shares(
    box: Toolbox, names: list[str], together: bool
) -> None:
    assert overlap(spans(box, names)) is together


def test_a_call_that_waits_to_act_is_not_starved_by_overlapping_reads(rig: Rig, box: Toolbox) -> None:
    stop = threading.Event()

    def read(n: int) -> None:
        while not stop.is_set():
            box.run("look", {"seconds": 0.2}, f"look-{n}-{time.monotonic_ns()}", 9.0)

    readers = [threading.Thread(target=read, args=(n,)) for n in range(2)]
    try:
        readers[0].start()
        assert comes_true(lambda: lines(rig, "began"))
        readers[1].start()
        assert comes_true(lambda: len(lines(rig, "began")) > 2)
        began = time.monotonic()
        value(box.run("turn", {"seconds": 0}, "act", 9.0))
        assert time.monotonic() - began < 1.0
    finally:
        stop.set()
        for reader in readers:
            reader.join()


def test_waiting_for_a_device_counts_and_ends_in_busy_with_nothing_run(rig: Rig, box: Toolbox) -> None:
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(box.run, "turn", {"seconds": 1.0}, "first", 9.0)
        assert comes_true(lambda: lines(rig, "began"))
        began = time.monotonic()
        assert name_of(box.run("turn", {"seconds": 0}, "second", 0.2)) == "busy"
        assert 0.15 < time.monotonic() - began < 0.6
        value(first.result())
    assert lines(rig, "began") == ["first"]
    assert value(box.run("turn", {"seconds": 0}, "third", 5.0))


def test_a_call_can_be_cancelled_while_it_waits_for_its_device(rig: Rig, box: Toolbox) -> None:
    cancel = threading.Event()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(box.run, "turn", {"seconds": 1.0}, "first", 9.0)
        assert comes_true(lambda: lines(rig, "began"))
        second = pool.submit(box.run, "turn", {"seconds": 0}, "second", 9.0, cancel)
        cancel.set()
        assert name_of(second.result(0.5)) == "cancelled"
        value(first.result())
    assert lines(rig, "began") == ["first"]


def test_starting_is_asked_once_when_the_device_is_free_and_its_no_starts_nothing(rig: Rig, box: Toolbox) -> None:
    asked: list[list[str]] = []
    answers = [False, True]

    def starting() -> bool:
        asked.append(lines(rig, "began"))
        return answers.pop(0)

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(box.run, "turn", {"seconds": 0.3}, "first", 9.0)
        assert comes_true(lambda: lines(rig, "began"))
        assert name_of(box.run("turn", {"seconds": 0}, "second", 9.0, None, starting)) == "cancelled"
        assert first.done()
    assert asked == [["first"]] and lines(rig, "began") == ["first"]
    assert name_of(box.run("always_hangs", {}, "r", 5.0, None, starting)) == "timeout"
    assert len(asked) == 2 and lines(rig, "hung") == ["r", "r"]


def test_what_starting_raises_gets_through_and_frees_the_device(box: Toolbox) -> None:
    def starting() -> bool:
        raise OSError("no room for the intent")

    with pytest.raises(OSError, match="no room"):
        box.run("turn", {"seconds": 0}, "first", 5.0, None, starting)
    assert value(box.run("turn", {"seconds": 0}, "second", 5.0))


def test_a_read_is_tried_again_with_the_same_request_id(rig: Rig, box: Toolbox) -> None:
    assert value(box.run("third_time", {}, "r-1", 9.0)) == "worked"
    assert lines(rig, "third") == ["r-1"] * 3


def test_what_another_attempt_cannot_mend_is_not_tried_again(rig: Rig, box: Toolbox) -> None:
    assert name_of(box.run("wrong_result", {}, "r-1", 9.0)) == "bad_result"
    assert lines(rig, "wrong") == ["r-1"]


def test_a_once_tool_is_started_once_whatever_comes_of_it(rig: Rig, box: Toolbox) -> None:
    assert name_of(box.run("fails_once", {}, "r-1", 9.0)) == "tool_error"
    assert lines(rig, "failed") == ["r-1"]


@pytest.mark.parametrize(
    ("seconds", "attempts", "at_least_s", "at_most_s"),
    [
        pytest.param(9.0, 2, 0.6, 2.5, id="the tool's own limit bounds each attempt"),
        pytest.param(0.45, 1, 0.3, 1.0, id="no attempt is begun that the caller has no time for"),
        pytest.param(0.1, 1, 0.1, 0.6, id="the caller's limit bounds the first"),
    ],
)
def test_both_limits_bound_a_call(
    rig: Rig, box: Toolbox, seconds: float, attempts: int, at_least_s: float, at_most_s: float
) -> None:
    began = time.monotonic()
    assert name_of(box.run("always_hangs", {}, "r-1", seconds)) == "timeout"
    assert at_least_s <= time.monotonic() - began < at_most_s
    assert len(lines(rig, "hung")) <= attempts


def test_an_unknown_tool_is_a_fault(box: Toolbox) -> None:
    assert name_of(box.run("nothing", {}, "r-1", 1.0)) == "unknown_tool"


def test_the_hash_changes_with_a_declaration_and_not_with_the_folder(rig: Rig, box: Toolbox) -> None:
    tools = list(rig.loaded.tools)

    def hash_of(tools: list[Tool]) -> str:
        return Toolbox(carriers_of(rig.host), tools).tools_hash

    assert box.tools_hash.startswith("sha256:") and len(box.tools_hash) == 71
    assert hash_of(tools[::-1]) == box.tools_hash
    assert hash_of([structs.replace(tool, source="/elsewhere/tools.py") for tool in tools]) == box.tools_hash
    assert hash_of([structs.replace(tools[0], description="Another."), *tools[1:]]) != box.tools_hash
    assert hash_of(tools[1:]) != box.tools_hash
