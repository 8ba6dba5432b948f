"""Python and command tools through a real host: what a call gives, and what a tool sees around it."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs

from rea_edge.records import Fault, Result
from tests.toolhost.rig import Rig, comes_true, name_of, started, value

PYTHON = """
from enum import Enum
from typing import Annotated, Literal, TypedDict
from msgspec import Meta, Struct

class Point(Struct):
    x: int
    label: str = "p"

class Colour(Enum):
    RED = "red"

@tool(effect="read")
def echo(count: int, mode: Literal["a", "b"] = "a", ratio: float | None = None) -> dict[str, object]:
    '''Give the arguments back.'''
    return {"count": count, "mode": mode, "ratio": ratio, "id": request_id()}

@tool(effect="read")
def shapes(point: Point) -> object:
    '''Many kinds of values.'''
    return {"point": point, "moved": point.x + 1, "colour": Colour.RED, "pair": (1, 2.5), "none": None, "big": 2**70}

@tool(effect="read")
def nothing() -> None:
    '''Give nothing.'''

@tool(effect="read")
def surroundings() -> dict[str, object]:
    '''What a tool sees.'''
    print("printed, not returned")
    fds = sorted(map(int, os.listdir("/proc/self/fd")))
    return {"names": sorted(os.environ), "fds": fds, "stdin": sys.stdin.read(),
            "session": os.getsid(0) == os.getpid(), "oom": open("/proc/self/oom_score_adj").read().strip()}

@tool(effect="read")
def wrong(what: str) -> object:
    '''Return what JSON has no place for.'''
    loop = []
    loop.append(loop)
    return {"bytes": b"x", "set": {1}, "nan": float("nan"), "inf": [float("inf")], "key": {1: 2}, "object": object(),
            "surrogate": "\\udc80", "loop": loop}[what]

@tool(effect="read")
def raises(what: str) -> object:
    '''Fail.'''
    class Odd(Exception):
        def __str__(self):
            raise ValueError
    raise {"plain": RuntimeError("pump 3 is stuck"), "exit": SystemExit(0), "odd": Odd(), "long": OSError("x" * 9999)
           }[what]

@tool(effect="read")
def nap(seconds: float) -> str:
    '''Sleep.'''
    open(os.path.join(HERE, "napping-" + request_id()), "w").close()
    time.sleep(seconds)
    return "rested"
"""

COMMANDS = """
[say]
description = "Print a text."
effect = "read"
command = ["printf", "%s", "{text}"]
parameters = {required = ["text"], properties = {text = {type = "string", pattern = "^[^$]*$"}}}
[count]
description = "Print JSON."
effect = "read"
command = ["echo", '{"count": {n}}']
parameters = {required = ["n"], properties = {n = {type = "integer"}}}
[option]
description = "Refuses a value that looks like an option."
effect = "read"
command = ["echo", "{text}"]
parameters = {required = ["text"], properties = {text = {type = "string"}}}
[environment]
description = "Print the environment."
effect = "read"
command = ["env"]
[fails]
description = "Fail, saying why."
effect = "read"
command = ["sh", "-c", "echo to the log; echo unit nginx not found >&2; exit 5"]
[absent]
description = "A program that is not there."
effect = "read"
command = ["/usr/bin/no-such-program"]
[plain_file]
description = "A file that is no program."
effect = "read"
command = ["/etc/hostname"]
[binary]
description = "Print bytes that are not text."
effect = "read"
command = ["printf", '\\377\\000\\376']
"""


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with started(tmp_path_factory.mktemp("calls"), {"calls.py": PYTHON, "calls.toml": COMMANDS}) as rig:
        assert rig.loaded.faults == ()
        yield rig


def test_a_python_tool_gets_its_arguments_and_its_request_id(rig: Rig) -> None:
    answer = value(rig.host.call(rig.tools["echo"], {"count": 3, "mode": "b"}, "rk3-7", 5.0))
    assert answer == {"count": 3, "mode": "b", "ratio": None, "id": "rk3-7"}


def test_structs_enums_and_tuples_become_json(rig: Rig) -> None:
    answer = value(rig.call("shapes", point={"x": 4}))
    assert answer == {
        "point": {"x": 4, "label": "p"}, "moved": 5, "colour": "red", "pair": [1, 2.5], "none": None, "big": 2**70
    }  # fmt: skip


def test_none_is_the_json_null(rig: Rig) -> None:
    assert value(rig.call("nothing")) is None


@pytest.mark.parametrize("what", ["bytes", "set", "nan", "inf", "key", "object", "surrogate", "loop"])
def test_a_value_that_json_has_no_place_for_is_a_bad_result(rig: Rig, what: str) -> None:
    assert name_of(rig.call("wrong", what=what)) == "bad_result"


def test_an_exception_is_its_type_and_text_without_a_traceback(rig: Rig) -> None:
    assert rig.call("raises", what="plain") == Fault(fault="tool_error", message="RuntimeError: pump 3 is stuck")
    assert rig.call("raises", what="exit") == Fault(fault="tool_error", message="SystemExit: 0")
    assert rig.call("raises", what="odd") == Fault(fault="tool_error", message="Odd: (no text)")


def test_a_long_message_is_cut(rig: Rig) -> None:
    result = rig.call("raises", what="long")
    assert isinstance(result, Fault) and len(result.message) == 500


def test_arguments_of_another_type_reach_no_tool(rig: Rig) -> None:
    assert name_of(rig.call("echo", count="three")) == "bad_args"
    assert name_of(rig.call("echo", count=1, colour="red")) == "bad_args"
    assert name_of(rig.call("echo", count="x" * 300_000)) == "bad_args"


def test_a_tool_sees_neither_descriptors_nor_credentials_of_the_daemon(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_TOKEN", "secret")
    monkeypatch.setenv("REA_TOOL_PORT", "5")
    with started(tmp_path_factory.mktemp("clean"), {"calls.py": PYTHON, "calls.toml": COMMANDS}) as rig:
        answer = value(rig.call("surroundings"))
        printed = str(value(rig.call("environment")))
    assert isinstance(answer, dict)
    assert {"REA_REQUEST_ID", "REA_STATE_DIR", "REA_TOOL_PORT", "PATH"} <= set(answer["names"])
    assert not {"API_TOKEN", "PYTHONPATH"} & set(answer["names"])
    assert "REA_REQUEST_ID=r-2" in printed and "secret" not in printed and "PYTHONPATH" not in printed
    # Standard streams, the pipe for the result, and the listing itself.
    assert len(answer["fds"]) == 5
    assert answer["stdin"] == "" and answer["session"] is True and answer["oom"] == "800"


def test_what_a_tool_prints_goes_to_the_log_under_the_name_of_its_call(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with started(tmp_path, {"calls.py": PYTHON}) as rig:
        value(rig.call("surroundings"))
    assert "event=tool_output tool=surroundings request_id=r-1 text=printed, not returned\n" in capfd.readouterr().err


def test_a_log_that_nobody_reads_holds_no_call(tmp_path: Path) -> None:
    with started(tmp_path, {"calls.py": PYTHON}, full_log=True) as rig:
        began = time.monotonic()
        value(rig.call("surroundings"))
        assert time.monotonic() - began < 1.0


@pytest.mark.parametrize("text", ["two words", "; rm -rf /", "$(id)", "", 'a"b', "ünïcode", "a\nb", "*"])
def test_a_value_fills_one_argument_and_no_shell_sees_it(rig: Rig, text: str) -> None:
    assert value(rig.call("say", text=text)) == text


def test_standard_output_that_is_json_is_that_value(rig: Rig) -> None:
    assert value(rig.call("count", n=3)) == {"count": 3}


@pytest.mark.parametrize(
    ("text", "is_text"),
    [
        pytest.param("[" * 60 + "]" * 60, False, id="deep"),
        pytest.param("[" * 70 + "]" * 70, True, id="deeper than a result may be"),
        pytest.param('{"a":' * 900 + "0" + "}" * 900, True, id="so deep that only some stacks take it"),
        pytest.param("[" * 30_000 + "]" * 30_000, True, id="deeper than any stack"),
        pytest.param("1e999", True, id="a number beyond all"),
        pytest.param("1" * 5000, True, id="an integer beyond all"),
    ],
)
def test_standard_output_that_no_reader_could_take_as_json_is_a_text(rig: Rig, text: str, is_text: bool) -> None:
    found = value(rig.call("say", text=text))
    assert (found == text) is is_text and isinstance(found, list) is not is_text


def test_an_argument_that_would_be_an_option_is_refused_before_anything_runs(rig: Rig) -> None:
    assert name_of(rig.call("option", text="-n")) == "bad_args"
    assert name_of(rig.call("option", text="a\0b")) == "bad_args"


def test_a_program_that_fails_gives_its_exit_code_and_what_it_said(rig: Rig) -> None:
    assert rig.call("fails") == Fault(fault="tool_error", message="exit 5: unit nginx not found")


@pytest.mark.parametrize("name", ["absent", "plain_file"])
def test_a_program_that_cannot_be_executed_is_missing(rig: Rig, name: str) -> None:
    assert name_of(rig.call(name)) == "missing_program"


def test_bytes_that_are_not_text_come_out_as_text(rig: Rig) -> None:
    assert value(rig.call("binary")) == "\ufffd\0\ufffd"


def test_a_tool_that_changed_since_it_was_declared_is_not_called(rig: Rig) -> None:
    other = structs.replace(rig.tools["echo"], description="Something else.")
    assert name_of(rig.host.call(other, {"count": 1}, "r-x", 5.0)) == "unknown_tool"


def test_calls_run_side_by_side(rig: Rig) -> None:
    began = time.monotonic()
    threads = [
        threading.Thread(target=rig.host.call, args=(rig.tools["nap"], {"seconds": 0.5}, f"s-{n}", 5.0))
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert time.monotonic() - began < 1.5


def test_a_second_call_with_an_id_that_is_under_way_is_refused(rig: Rig) -> None:
    with napping(rig, "twice"):
        assert name_of(rig.host.call(rig.tools["echo"], {"count": 1}, "twice", 5.0)) == "busy"


@pytest.mark.parametrize("way", ["by id", "by event", "halt"])
def test_a_cancelled_call_ends_within_200_ms_and_leaves_nothing(rig: Rig, way: str) -> None:
    took = []
    for n in range(3):  # the machine may be busy with something else once
        event = threading.Event()
        with napping(rig, f"{way[-2:]}{n}", event) as results:
            began = time.monotonic()
            match way:
                case "by id":
                    assert rig.host.cancel(f"{way[-2:]}{n}")
                case "by event":
                    event.set()
                case _:
                    assert rig.host.halt() == 1
            assert comes_true(lambda: results)
            took.append(time.monotonic() - began)
        assert name_of(results[0]) == "cancelled"
        assert comes_true(lambda: not rig.left())
    assert min(took) < 0.2


def test_cancelling_what_is_not_under_way_changes_nothing(rig: Rig) -> None:
    assert rig.host.cancel("never") is False
    assert rig.host.halt() == 0
    assert value(rig.call("nothing")) is None


class napping:
    """A call of `nap` under way in another thread; its result appears in the list."""

    def __init__(self, rig: Rig, request_id: str, cancel: threading.Event | None = None) -> None:
        self.rig, self.request_id = rig, request_id
        self.results: list[Result] = []
        self.thread = threading.Thread(
            target=lambda: self.results.append(rig.host.call(rig.tools["nap"], {"seconds": 9}, request_id, 9.0, cancel))
        )

    def __enter__(self) -> list[Result]:
        self.thread.start()
        assert comes_true((self.rig.state_dir / f"napping-{self.request_id}").exists)
        return self.results

    def __exit__(self, *_: object) -> None:
        self.rig.host.cancel(self.request_id)
        self.thread.join()
