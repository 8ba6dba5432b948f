"""What happens inside the child: a function is called, a program takes the child's place, or a file gets its trial.

Holds what turns all of that into one `records.Result`; kills nothing and waits for nothing, its keeper does.
"""

import math
import os
import signal
import sys
from collections.abc import Callable
from enum import Enum
from typing import NoReturn, get_type_hints

from msgspec import Raw, Struct, ValidationError, convert, json, structs

from rea_edge import tool as authors
from rea_edge.errors import ToolInvalid
from rea_edge.records import Args, Fault, Ok, Result, Tool
from rea_edge.toolhost.command import BadArgs, argument_list
from rea_edge.toolhost.confine import Confinement, shut_in
from rea_edge.toolhost.faults import fault
from rea_edge.toolhost.frames import DEEPEST, Found
from rea_edge.toolhost.limits import Limits
from rea_edge.toolhost.load import declarations


class Job(Struct, frozen=True):
    """One thing to run below a keeper. `work` gives a result, or its process becomes another program."""

    request_id: str
    tool: str
    work: Callable[[], Result]
    deadline: float
    limits: Limits
    program: bool = False  # its standard output is the result
    confinement: Confinement | None = None  # None: a trial, which is the author's own file
    in_secret: bool = False  # its secrets wait on the call's socket


class NotJson(Exception):
    """A value that JSON has no place for."""


def done(job: Job) -> Result:
    """Do the job's work; whatever happens in it becomes a result."""
    try:
        if job.confinement is not None:
            shut_in(job.confinement)
    except OSError as exc:
        return fault("unconfined", f"it was not started: its sandbox cannot be made: {exc}", "tell the operator")
    try:
        return job.work()
    except BadArgs as exc:
        return fault("bad_args", str(exc))
    except NotJson as exc:
        return fault("bad_result", str(exc), "the tool must return JSON values")
    except MemoryError:
        return fault("memory", f"it needed more than {job.limits.memory_mib} MiB")
    except BaseException as exc:  # the tool's own code raised it: an observation, never an exception of ours
        sys.__excepthook__(type(exc), exc, exc.__traceback__)
        return fault("tool_error", f"{type(exc).__name__}: {without_secrets(text_of(exc))}")


def text_of(exc: BaseException) -> str:
    try:
        return str(exc)
    except Exception:  # the tool's own __str__
        return "(no text)"


def without_secrets(text: str) -> str:
    """Before a message is cut: of half a secret nobody could tell later what it is."""
    if not authors.given:
        return text
    from rea_edge import hidden  # for a call that has secrets alone

    return hidden.without(text, hidden.forms(authors.given.values()))


def function_call(function: Callable[..., object], args: Args) -> Callable[[], Result]:
    """Work: call a Python tool with its arguments."""

    def work() -> Result:
        hints = get_type_hints(function, include_extras=True)
        try:
            given = {name: convert(value, hints[name]) for name, value in args.items()}
        except (KeyError, ValidationError) as exc:
            raise BadArgs(f"{type(exc).__name__}: {exc}") from exc
        return Ok(data=Raw(encoded(function(**given))))

    return work


def program_call(tool: Tool, args: Args) -> Callable[[], Result]:
    """Work: become the program of a command tool."""

    def work() -> Result:
        parts = argument_list(tool, args)
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)  # Python ignores them; programs count on them
        try:
            become(parts, {name: authors.given[secret] for name, secret in tool.env.items()})
        except (FileNotFoundError, NotADirectoryError):
            return missing(parts[0], "is not there")
        except PermissionError:
            return missing(parts[0], "may not be executed")
        except OSError as exc:
            return missing(parts[0], f"cannot be executed: {exc.strerror}")

    return work


def become(parts: list[str], more: dict[str, str]) -> NoReturn:
    os.execvpe(parts[0], parts, {**os.environ, **more})  # an argument list; no shell sees it


def missing(program: str, what: str) -> Fault:
    return fault("missing_program", f"the program {program!r} {what}", "tell the operator to install or correct it")


def trial(file: str, seconds: float) -> Callable[[], Result]:
    """Work: load a tool file and give its declarations."""

    def work() -> Result:
        try:
            found = Found(tools=declarations(file, seconds))
        except ToolInvalid as exc:
            found = Found(faults=(str(exc),))
        return Ok(data=Raw(json.encode(found)))

    return work


def encoded(value: object) -> bytes:
    """A tool's value as JSON bytes. Raises NotJson naming the place that is none."""
    try:
        return json.encode(plain(value, "$", 0))
    except UnicodeEncodeError as exc:
        raise NotJson("a text in the result is not Unicode (lone surrogate)") from exc


def plain(value: object, place: str, depth: int) -> object:
    """The same value, made of what JSON has."""
    if depth > DEEPEST:
        raise NotJson(f"the result is nested deeper than {DEEPEST} levels")
    match value:
        case Enum():
            return plain(value.value, place, depth + 1)
        case None | bool() | int() | str():
            return value
        case float():
            if math.isfinite(value):
                return value
            raise NotJson(f"{value} at {place} is not JSON")
        case list() | tuple():
            return [plain(item, f"{place}[{index}]", depth + 1) for index, item in enumerate(value)]
        case dict():
            return {text_key(key, place): plain(item, f"{place}.{key}", depth + 1) for key, item in value.items()}
        case Struct():
            return plain(structs.asdict(value), place, depth)
    if hasattr(value, "__dataclass_fields__"):
        return plain({name: getattr(value, name) for name in value.__dataclass_fields__}, place, depth)
    raise NotJson(f"a value of type {type(value).__name__} at {place} is not JSON")


def text_key(key: object, place: str) -> str:
    if isinstance(key, str):
        return key
    raise NotJson(f"the key {key!r} at {place} is not a text")
