"""Runs a tool file. Holds how a file is executed and how its mistakes are named; starts no process.

`declarations` is for a trial in a short-lived child; `functions` is for the host itself, after the trial passed.
"""

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType, ModuleType, TracebackType

from rea_edge import tool as authors
from rea_edge.errors import ToolInvalid
from rea_edge.records import Tool
from rea_edge.tool import Declared


class TooSlow(BaseException):
    """Raised by the alarm inside a tool file; not an Exception, so that the file is unlikely to catch it."""


def declarations(file: str, seconds: float) -> tuple[Tool, ...]:
    """The tools of a Python or TOML file. Raises ToolInvalid, with the line where there is one."""
    from rea_edge.toolhost import declare, tables  # they stay out of the host's memory

    if not os.path.lexists(file):
        raise ToolInvalid(file, "there is no such file or folder")
    if file.endswith(".toml"):
        return tables.from_toml(source_of(file), file)
    if not file.endswith(".py"):
        raise ToolInvalid(file, "is neither a .py nor a .toml file")
    before = len(os.listdir("/proc/self/task"))
    found = run_file(file, seconds)
    if len(os.listdir("/proc/self/task")) > before:
        raise ToolInvalid(file, "starts a thread while it loads; start it inside the tool")
    for index, one in enumerate(found):
        for other in found[:index]:
            if one.name == other.name:
                raise ToolInvalid(one.place, f"{one.name} is declared already at {other.place}")
    return tuple(declare.from_function(one, file) for one in found)


def functions(file: str, seconds: float) -> dict[str, Callable[..., object]]:
    """The functions of a Python file by tool name. Raises ToolInvalid."""
    return {one.name: one.function for one in run_file(file, seconds)}


def run_file(file: str, seconds: float) -> tuple[Declared, ...]:
    """Execute a file as a module of its own and give what it declared."""
    module = ModuleType("rea_tools_" + "".join(c if c.isalnum() else "_" for c in file))
    module.__file__ = file
    sys.modules[module.__name__] = module  # annotations given as text are looked up there
    authors.declared.clear()
    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        exec(compile(source_of(file), file, "exec"), module.__dict__)  # running it is the purpose
    except ToolInvalid as exc:
        if exc.place.startswith(f"{file}:"):
            raise
        raise ToolInvalid(f"{file}:{line_of(file, exc.__traceback__)}", str(exc)) from exc
    except SyntaxError as exc:
        raise ToolInvalid(f"{file}:{exc.lineno or 1}", f"SyntaxError: {exc.msg}") from exc
    except TooSlow as exc:
        raise ToolInvalid(f"{file}:{line_of(file, exc.__traceback__)}", f"did not load in {seconds:g} s") from exc
    except BaseException as exc:  # a file may raise whatever it likes; it must not end the host
        place = f"{file}:{line_of(file, exc.__traceback__)}"
        raise ToolInvalid(place, f"{type(exc).__name__}: {exc}") from exc
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
    return tuple(one for one in authors.declared if one.function.__module__ == module.__name__)


def ring(_number: int, _frame: FrameType | None) -> None:
    raise TooSlow


def source_of(file: str) -> str:
    try:
        with open(file, encoding="utf-8") as lines:
            return lines.read()
    except (OSError, UnicodeDecodeError) as exc:
        raise ToolInvalid(file, f"cannot be read: {exc}") from exc


def line_of(file: str, trace: TracebackType | None) -> int:
    """The innermost line of the file itself."""
    line = 1
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
