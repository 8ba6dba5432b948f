"""The house: floors, owners and purity, read from the source of every file (imports inside functions too)."""

import ast
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "rea_edge"

# Floor by module (the first part below rea_edge). Inside one floor the order of the tuple is the order of imports.
FLOORS: tuple[tuple[str, ...], ...] = (
    ("errors", "keys", "bounds", "basics", "events", "records", "wire"),
    (
        "topics",
        "takes",
        "timeline",
        "allowance",
        "fairness",
        "budget",
        "canonical",
        "signature",
        "parameters",
        "condition",
        "device",
        "rules",
        "schema",
        "trouble",
        "hidden",
        "redact",
        "markup",
        "visible",
        "members",
        "pins",
    ),
    (
        "taint",
        "telling",
        "aliases",
        "decision",
        "evidence",
        "replay",
        "context",
        "retold",
        "opening",
        "gate",
        "phrasing",
        "premise",
        "circles",
        "criteria",
        "outcome",
        "changes",
        "settled",
        "approval",
        "doubt",
        "lines",
        "questions",
    ),
    ("loop",),
    (
        "cancel",
        "clock",
        "memory",
        "systemd",
        "marks",
        "config",
        "store",
        "endpoint",
        "probe",
        "mqtt",
        "toolhost",
        "model_server",
        "big_model",
    ),
    (
        "intake",
        "signers",
        "unsettled",
        "journal",
        "report",
        "asks",
        "early",
        "controls",
        "desk",
        "answers",
        "mailbox",
        "latency",
        "toolbox",
        "exchanged",
        "endpoints",
        "effects",
        "runner",
        "dial",
        "peers",
    ),
    ("exam", "daemon", "client", "screen", "decide", "workbench", "pytest_plugin"),
    ("demo", "cli"),
    ("__main__",),
)
ASIDE = {"emulated": 2, "tool": 1, "__init__": 0}  # may import only from floors below this number
PURE = {name for floor in FLOORS[1:4] for name in floor} | {
    "errors",
    "keys",
    "bounds",
    "basics",
    "events",
    "records",
    "wire",
}
IMPURE = {
    "asyncio", "ctypes", "io", "logging", "multiprocessing", "os", "pathlib", "queue", "random", "secrets", "select",
    "signal", "socket", "sqlite3", "ssl", "subprocess", "sys", "tempfile", "threading", "time", "urllib", "uuid",
    "httpx", "httpcore", "paho",
}  # fmt: skip
OWNERS = {
    "sqlite3": {"store"},
    "httpx": {"endpoint"},
    "httpcore": {"endpoint"},
    "paho": {"mqtt"},
    "tomllib": {"config", "toolhost"},
    "asyncio": set(),
    "multiprocessing": set(),
}
PLACE = {name: (number, place) for number, floor in enumerate(FLOORS) for place, name in enumerate(floor)}


def sources() -> list[Path]:
    return sorted(file for file in PACKAGE.rglob("*.py") if "_data" not in file.parts)


def module_of(file: Path) -> str:
    head = file.relative_to(PACKAGE).parts[0]
    return head.removesuffix(".py")


def imports_of(file: Path) -> Iterator[str]:
    """Full names of what a file imports, at any depth of its code; `from a import b` gives `a.b`."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def ours(file: Path) -> Iterator[str]:
    for name in imports_of(file):
        parts = name.split(".")
        if parts[0] == "rea_edge" and len(parts) > 1 and parts[1] != "__version__":
            yield parts[1]


@pytest.mark.parametrize("file", sources(), ids=lambda file: str(file.relative_to(PACKAGE)))
def test_a_file_imports_only_from_below(file: Path) -> None:
    module = module_of(file)
    if module in ASIDE:
        wrong = [name for name in ours(file) if name != module and PLACE[name][0] >= ASIDE[module]]
        assert not wrong, f"{file} imports {wrong}"
        return
    assert module in PLACE, f"{file} has no floor: give it one in FLOORS"
    number, place = PLACE[module]
    for name in ours(file):
        if name == module or (name in ASIDE and number >= ASIDE[name]):
            continue
        below, order = PLACE[name]
        assert (below, order) < (number, place), f"{file} imports {name}, which is not below it"


@pytest.mark.parametrize("package", sorted({file.parent for file in sources()} - {PACKAGE}), ids=lambda path: path.name)
def test_no_files_of_a_package_import_each_other_in_a_circle(package: Path) -> None:
    inside = f"rea_edge.{package.name}."
    names = {file.stem for file in package.glob("*.py")}
    below = {
        file.stem: {name.split(".")[2] for name in imports_of(file) if name.startswith(inside)} & names - {file.stem}
        for file in package.glob("*.py")
        if file.stem != "__init__"
    }
    assert list(TopologicalSorter(below).static_order())


@pytest.mark.parametrize(
    "file", [file for file in sources() if module_of(file) in PURE], ids=lambda file: str(file.relative_to(PACKAGE))
)
def test_a_pure_file_touches_nothing_outside(file: Path) -> None:
    wrong = {name.split(".")[0] for name in imports_of(file)} & IMPURE
    assert not wrong, f"{file} imports {sorted(wrong)}"
    calls = {
        node.func.id
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not calls & {"open", "eval", "exec", "input", "print", "__import__"}


@pytest.mark.parametrize("file", sources(), ids=lambda file: str(file.relative_to(PACKAGE)))
def test_an_outside_thing_has_one_owner(file: Path) -> None:
    for name in imports_of(file):
        owners = OWNERS.get(name.split(".")[0])
        assert owners is None or module_of(file) in owners, (
            f"{file} imports {name}; its owner is {sorted(owners or ())}"
        )


@pytest.mark.parametrize("file", sorted((ROOT / "tools").glob("*.py")), ids=lambda file: file.name)
def test_a_tool_file_imports_only_what_tool_authors_get(file: Path) -> None:
    assert set(ours(file)) <= {"tool"}
    outside = {name.split(".")[0] for name in imports_of(file)} - sys.stdlib_module_names
    assert outside <= {"rea_edge", "msgspec"}


@pytest.mark.parametrize("file", sources(), ids=lambda file: str(file.relative_to(PACKAGE)))
def test_importing_a_file_only_defines(file: Path) -> None:
    allowed = (
        ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign, ast.If, ast.Try,
    )  # fmt: skip
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        assert docstring or isinstance(node, allowed), f"{file}:{node.lineno} does something when imported"


@pytest.mark.parametrize(
    "file", [*sources(), *sorted((ROOT / "tools").glob("*.py"))], ids=lambda file: str(file.relative_to(ROOT))
)
def test_a_file_has_one_subject(file: Path) -> None:
    assert len(file.read_text(encoding="utf-8").splitlines()) <= 400, "find the second noun"
