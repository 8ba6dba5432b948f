"""What a tool that declares a sandbox can reach: nothing else, however it tries. On a kernel with Landlock."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from rea_edge.records import Fault, Ok, Result
from rea_edge.toolhost import landlock
from rea_edge.toolhost.confine import lacking
from tests.toolhost.rig import Rig, started

needs_landlock = pytest.mark.skipif(
    landlock.version() < 1, reason="NO LANDLOCK in this kernel: nothing of it is proved"
)
needs_net = pytest.mark.skipif(landlock.version() < landlock.TCP_SINCE, reason="Landlock of this kernel knows no TCP")
needs_scopes = pytest.mark.skipif(landlock.version() < landlock.SCOPES_SINCE, reason="Landlock here knows no scopes")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")

TOOLS = '''
import ctypes, json, pathlib, socket
READ, WRITE, SECRET = (os.environ["REA_TOOL_" + name] for name in ("READ", "WRITE", "SECRET"))


@tool(effect="idempotent", sandbox={"read": ["@READ@"], "write": ["@WRITE@", "$REA_STATE_DIR/own"]})
def attempt(what: str) -> str:
    """Try to reach something."""
    port = int(os.environ["REA_TOOL_PORT"])
    def linked(make, place):
        name = place + "/" + what.replace(" ", "_")
        make(SECRET, name)
        return pathlib.Path(name).read_text()
    ways = {
        "read what is named": lambda: pathlib.Path(READ, "a").read_text(),
        "write what is named": lambda: str(pathlib.Path(WRITE, "new").write_text("x")),
        "write its own": lambda: str(pathlib.Path(HERE, "own", "new").write_text("x")),
        "write where it may only read": lambda: str(pathlib.Path(READ, "b").write_text("x")),
        "read elsewhere": lambda: pathlib.Path(SECRET).read_text(),
        "read passwords": lambda: pathlib.Path("/etc/shadow").read_text(),
        "list elsewhere": lambda: str(os.listdir(os.path.dirname(SECRET))),
        "cut elsewhere": lambda: str(os.truncate(SECRET, 0)),
        "remove elsewhere": lambda: str(os.unlink(SECRET)),
        "a symbolic link": lambda: linked(os.symlink, WRITE),
        "a hard link": lambda: linked(os.link, WRITE),
        "through proc": lambda: pathlib.Path("/proc/self/root" + SECRET).read_text(),
        "through the parent's proc": lambda: pathlib.Path(f"/proc/{os.getppid()}/root" + SECRET).read_text(),
        "the parent's environment": lambda: pathlib.Path(f"/proc/{os.getppid()}/environ").read_text(),
        "another program": lambda: subprocess.run(["cat", SECRET], check=True, capture_output=True, text=True).stdout,
        "a shell": lambda: subprocess.run(f"cat < {SECRET}", shell=True, check=True, capture_output=True, text=True).stdout,
        "an inherited descriptor": lambda: str([os.read(fd, 10) for fd in range(3, 60) if os.path.exists(f"/proc/self/fd/{fd}") and "sec" in os.readlink(f"/proc/self/fd/{fd}")][0]),
        "mount": lambda: str(1 / (ctypes.CDLL(None).mount(b"/", WRITE.encode(), None, 4096, None) == 0)),
        "tcp": lambda: str(socket.create_connection(("127.0.0.1", port), 2)),
        "a port of its own": lambda: str(socket.create_server(("127.0.0.1", 0))),
        "end the keeper": lambda: str(os.kill(os.getppid(), 9)),
        "a program": lambda: subprocess.run(["true"], check=True) and "ran",
        "imports": lambda: __import__("decimal").__name__,
    }
    return ways[what]()


@tool(effect="read", sandbox={"network": True})
def dial() -> str:
    """Connect."""
    return str(bool(socket.create_connection(("127.0.0.1", int(os.environ["REA_TOOL_PORT"])), 2)))


@tool(effect="read")
def free(path: str) -> str:
    """Read anything."""
    return pathlib.Path(path).read_text()


@tool(effect="read")
def who() -> list[int]:
    """Who runs."""
    status = dict(line.split(":", 1) for line in pathlib.Path("/proc/self/status").read_text().splitlines())
    return [os.getuid(), os.getgid(), len(os.getgroups()), int(status["NoNewPrivs"])]
'''  # noqa: E501 - one way in a line

WHO = "import pathlib\n" + TOOLS[TOOLS.index('@tool(effect="read")\ndef who') :]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sandbox")
    for name in ("read", "write", "elsewhere", "state", "state/own"):
        (folder / name).mkdir()
    (folder / "read" / "a").write_text("seen")
    (folder / "elsewhere" / "secret").write_text("hidden")
    return folder


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    for number in range(20200, 32000):
        try:
            server = socket.create_server(("127.0.0.1", number))
        except OSError:
            continue
        with server:
            yield number
        return


@pytest.fixture(scope="module")
def rig(places: Path, port: int) -> Iterator[Rig]:
    given = {"READ": places / "read", "WRITE": places / "write", "SECRET": places / "elsewhere/secret", "PORT": port}
    with pytest.MonkeyPatch.context() as environ:
        for name, value in given.items():
            environ.setenv(f"REA_TOOL_{name}", str(value))
        source = TOOLS.replace("@READ@", str(places / "read")).replace("@WRITE@", str(places / "write"))
        with started(places / "state", {"sandboxed.py": source}) as rig:
            assert rig.loaded.faults == ()
            yield rig


def said(result: Result) -> str:
    assert isinstance(result, Ok), result
    return msgspec.json.decode(result.data, type=str)


@needs_landlock
@pytest.mark.parametrize("what", ["read what is named", "write what is named", "write its own", "a program", "imports"])
def test_what_is_declared_works(rig: Rig, what: str) -> None:
    assert said(rig.call("attempt", what=what))


@needs_landlock
@pytest.mark.parametrize(
    "what",
    [
        "write where it may only read", "read elsewhere", "read passwords", "list elsewhere", "cut elsewhere",
        "remove elsewhere", "a symbolic link", "a hard link", "through proc", "through the parent's proc",
        "the parent's environment", "another program", "a shell", "an inherited descriptor", "mount",
        pytest.param("tcp", marks=needs_net), pytest.param("a port of its own", marks=needs_net),
        pytest.param("end the keeper", marks=needs_scopes),
    ],
)  # fmt: skip
def test_nothing_else_can_be_reached(rig: Rig, places: Path, what: str) -> None:
    result = rig.call("attempt", what=what)
    assert isinstance(result, Fault) and result.fault == "tool_error", result
    assert (places / "elsewhere" / "secret").read_text() == "hidden"


@needs_landlock
def test_a_tool_that_declares_the_network_has_it(rig: Rig) -> None:
    assert said(rig.call("dial")) == "True"


def test_a_tool_that_declares_nothing_is_not_shut_in_but_gains_no_rights(rig: Rig, places: Path) -> None:
    assert said(rig.call("free", path=str(places / "elsewhere" / "secret"))) == "hidden"
    result = rig.call("who")
    assert isinstance(result, Ok) and msgspec.json.decode(result.data)[3] == 1


@needs_root
def test_calls_run_as_the_user_that_is_configured(tmp_path: Path) -> None:
    with started(tmp_path, {"who.py": WHO}, user="nobody") as rig:
        result = rig.call("who")
        assert isinstance(result, Ok), result
        uid, gid, groups, _ = msgspec.json.decode(result.data)
        assert uid != 0 and gid != 0 and groups == 0


@needs_root
def test_a_user_who_is_not_there_runs_nothing(tmp_path: Path) -> None:
    with started(tmp_path, {"who.py": WHO}, user="nemo-9") as rig:
        result = rig.call("who")
        assert isinstance(result, Fault) and result.fault == "unconfined" and "nemo-9" in result.message
        assert lacking(rig.loaded.tools, "nemo-9") == ["tools.user: there is no user 'nemo-9', so no tool runs"]


@pytest.mark.parametrize("path", ["relative", "~/x", "$HOME/x"])
def test_a_path_that_is_not_absolute_is_refused_at_load(tmp_path: Path, path: str) -> None:
    source = (
        f'@tool(effect="read", sandbox={{"read": ["{path}"]}})\ndef look() -> int:\n    """Look."""\n    return 1\n'
    )
    with started(tmp_path, {"bad.py": source}) as rig:
        assert not rig.tools and "look.sandbox" in rig.loaded.faults[0]


PLANTED = '''
import pathlib

@tool(effect="idempotent", sandbox={"write": ["$REA_STATE_DIR"]})
def plant(target: str) -> str:
    """Put a link where the other tool has its folder."""
    link = pathlib.Path(os.environ["REA_STATE_DIR"], "own")
    link.symlink_to(target)
    return "planted"


@tool(effect="idempotent", sandbox={"write": ["$REA_STATE_DIR/own"]})
def reach(target: str) -> str:
    """Read and write what only the link leads to."""
    pathlib.Path(target, "mine").write_text("x")
    return "reached"
'''


@needs_landlock
def test_a_link_in_the_tools_folder_lets_no_tool_out_of_its_sandbox(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.mkdir()
    (tmp_path / "state").mkdir()
    with started(tmp_path / "state", {"planted.py": PLANTED}) as rig:
        assert said(rig.call("plant", target=str(target))) == "planted"
        result = rig.call("reach", target=str(target))
    assert isinstance(result, Fault) and "PermissionError" in result.message, result
    assert list(target.iterdir()) == []
