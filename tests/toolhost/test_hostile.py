"""Tools that do everything a tool must not: each is ended within its limit, and nothing of it is left."""

import time
from collections.abc import Iterator

import pytest

from tests.toolhost.rig import Rig, comes_true, name_of, started, value

PYTHON = """
import ctypes, mmap, threading

def sleeps(): time.sleep(60)

def twice_forked(work):
    '''Daemonise.'''
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            work()
        os._exit(0)

@tool(effect="once")
def hangs() -> None:
    "."
    sleeps()

@tool(effect="once")
def ignores_signals() -> None:
    "."
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    while True:
        sleeps()

@tool(effect="once")
def returns_too_much() -> str:
    "."
    return "x" * 100_000

@tool(effect="once")
def prints_without_end() -> None:
    "."
    while True:
        print("x" * 1000)

@tool(effect="once")
def eats_memory() -> int:
    "."
    return len(bytearray(500 << 20))

@tool(effect="once")
def eats_memory_in_pieces() -> int:
    "."
    pieces = []
    while True:
        pieces.append("x" * 1000 + str(len(pieces)))

@tool(effect="once")
def eats_shared_memory() -> None:
    "."
    memory = mmap.mmap(-1, 200 << 20)
    for offset in range(0, 200 << 20, 4096):
        memory[offset] = 1
    sleeps()

@tool(effect="once")
def daemonises() -> str:
    "."
    twice_forked(sleeps)
    return "left one behind"

@tool(effect="once")
def hands_the_pipe_on() -> str:
    "."
    subprocess.Popen(["setsid", "sleep", "60"])
    twice_forked(sleeps)
    return "still writing"

@tool(effect="once")
def forks_again_and_again() -> None:
    "."
    os.setpgid(0, 0) if os.getpgid(0) != os.getpid() else None
    while True:
        if os.fork():
            os._exit(0)

@tool(effect="once")
def leaves_one_that_forks_again_and_again() -> str:
    "."
    twice_forked(forks_again_and_again)
    return "good luck"

@tool(effect="once")
def keeps_the_processor() -> None:
    "."
    while True:
        pass

@tool(effect="once")
def keeps_the_processor_and_ignores_the_signal() -> None:
    "."
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)
    while True:
        pass

@tool(effect="once")
def reads_nowhere() -> None:
    "."
    ctypes.string_at(0)

@tool(effect="once")
def leaves() -> None:
    "."
    os._exit(0)

@tool(effect="once")
def kills_its_keeper() -> None:
    "."
    twice_forked(sleeps)
    os.kill(os.getppid(), signal.SIGKILL)
    sleeps()

@tool(effect="once")
def stops_its_keeper() -> None:
    "."
    twice_forked(sleeps)
    os.kill(os.getppid(), signal.SIGSTOP)
    sleeps()

@tool(effect="once")
def kills_its_group() -> None:
    "."
    os.killpg(0, signal.SIGKILL)

@tool(effect="once")
def writes_a_large_file() -> None:
    "."
    with open(os.path.join(HERE, "large"), "wb") as file:
        while True:
            file.write(bytes(1 << 20))

@tool(effect="once")
def opens_without_end() -> None:
    "."
    files = []
    while True:
        files.append(open("/dev/null"))

@tool(effect="once")
def forges_its_report() -> None:
    "."
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, b'{"kind":"ok","data":')
        except OSError:
            pass
    os._exit(0)

@tool(effect="once")
def forges_a_result_that_is_not_text() -> None:
    "."
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, b'{"kind":"ok","data":["' + bytes([255]) + b'"]}')
        except OSError:
            pass
    os._exit(0)

@tool(effect="once")
def forges_a_deep_result() -> None:
    "."
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, b'{"kind":"ok","data":' + b"[" * 900 + b"]" * 900 + b"}")
        except OSError:
            pass
    os._exit(0)

@tool(effect="once")
def has_threads() -> str:
    "."
    threading.Thread(target=sleeps).start()
    return "still running one"

@tool(effect="read")
def well() -> str:
    "."
    return "well"
"""


def command(name: str, script: str) -> str:
    return f'[{name}]\ndescription = "."\neffect = "once"\ncommand = ["sh", "-c", """{script}"""]\n'


COMMANDS = "".join([
    command("sh_hangs", "sleep 60"),
    command("sh_ignores_signals", "trap '' TERM INT HUP; while :; do sleep 60; done"),
    command("sh_floods", "yes"),
    command("sh_floods_the_log", "yes >&2"),
    command("sh_eats_memory", "head -c 500m /dev/zero | tail"),
    command("sh_daemonises", "setsid sh -c 'sleep 60' >/dev/null 2>&1 & echo left one"),
    command("sh_hands_the_pipe_on", "setsid sleep 60 & echo hi"),
    command("sh_keeps_the_processor", "while :; do :; done"),
    command("sh_kills_itself", "kill -SEGV $$"),
    command("sh_kills_its_keeper", "kill -9 $PPID; sleep 60"),
    command("sh_writes_a_large_file", "head -c 500m /dev/zero > $REA_STATE_DIR/large"),
])  # fmt: skip

FAULTS = [
    ("hangs", {"timeout"}),
    ("ignores_signals", {"timeout"}),
    ("returns_too_much", {"output"}),
    ("prints_without_end", {"output"}),
    ("eats_memory", {"memory"}),
    ("eats_memory_in_pieces", {"memory"}),
    ("eats_shared_memory", {"memory"}),
    ("forks_again_and_again", {"crashed"}),
    ("keeps_the_processor", {"cpu"}),
    ("keeps_the_processor_and_ignores_the_signal", {"cpu"}),
    ("reads_nowhere", {"crashed"}),
    ("leaves", {"crashed"}),
    ("kills_its_keeper", {"crashed"}),
    ("stops_its_keeper", {"timeout"}),
    ("kills_its_group", {"crashed"}),
    ("writes_a_large_file", {"tool_error"}),
    ("opens_without_end", {"tool_error"}),
    ("forges_its_report", {"bad_result"}),
    ("forges_a_result_that_is_not_text", {"bad_result"}),
    ("forges_a_deep_result", {"bad_result"}),
    ("sh_hangs", {"timeout"}),
    ("sh_ignores_signals", {"timeout"}),
    ("sh_floods", {"output"}),
    ("sh_floods_the_log", {"output"}),
    ("sh_eats_memory", {"tool_error"}),
    ("sh_keeps_the_processor", {"cpu"}),
    ("sh_kills_itself", {"crashed"}),
    ("sh_kills_its_keeper", {"crashed"}),
    ("sh_writes_a_large_file", {"tool_error", "crashed"}),
]
VALUES = [
    ("daemonises", "left one behind"),
    ("hands_the_pipe_on", "still writing"),
    ("leaves_one_that_forks_again_and_again", "good luck"),
    ("has_threads", "still running one"),
    ("sh_daemonises", "left one"),
    ("sh_hands_the_pipe_on", "hi"),
]
QUICK_S = 0.5  # the limit of those that end only by it
SLOW_S = 8.0  # enough for those that some other limit ends


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    files = {"hostile.py": PYTHON, "hostile.toml": COMMANDS}
    with started(tmp_path_factory.mktemp("hostile"), files, cpu_s=1, memory_mib=64) as rig:
        assert rig.loaded.faults == ()
        yield rig


SLOW = "keeps_the_processor_and_ignores_the_signal"  # two seconds of processor


@pytest.mark.parametrize(
    ("name", "faults"),
    [pytest.param(*row, id=row[0], marks=[pytest.mark.slow] if row[0] == SLOW else []) for row in FAULTS],
)
def test_a_hostile_tool_is_ended_within_its_limit_and_nothing_is_left(rig: Rig, name: str, faults: set[str]) -> None:
    limit_s = QUICK_S if "timeout" in faults else SLOW_S
    began = time.monotonic()
    assert name_of(rig.call(name, limit_s)) in faults
    assert rig.tools_left() == []
    assert time.monotonic() - began < limit_s + 10.0
    assert comes_true(lambda: not rig.left()), rig.left()
    assert value(rig.call("well")) == "well"


@pytest.mark.parametrize(("name", "expected"), VALUES, ids=[name for name, _ in VALUES])
def test_a_tool_that_leaves_processes_gives_its_value_at_once_and_they_are_ended(
    rig: Rig, name: str, expected: str
) -> None:
    began = time.monotonic()
    assert value(rig.call(name, SLOW_S)) == expected
    assert rig.tools_left() == []
    assert time.monotonic() - began < SLOW_S
    assert comes_true(lambda: not rig.left()), rig.left()


def test_a_hostile_tool_does_not_disturb_the_calls_beside_it(rig: Rig) -> None:
    began = time.monotonic()
    assert name_of(rig.call("stops_its_keeper", QUICK_S)) == "timeout"
    for _ in range(3):
        assert value(rig.call("well")) == "well"
    assert time.monotonic() - began < QUICK_S + 3.0
