"""From a command tool and its arguments to the argument list of a program. No shell, no process, no file.

`{name}` in a part of `command` stands for the value of that parameter; a part stays one argument whatever the value.
"""

from rea_edge.parameters import PLACE, shape_of, text_of
from rea_edge.records import Args, Tool


class BadArgs(Exception):
    """Arguments that cannot be given to the tool; nothing was started."""


def argument_list(tool: Tool, args: Args) -> list[str]:
    """The filled command. Raises BadArgs where a value could be read as an option, or is not one value."""
    parts: list[str] = []
    for part in tool.command:
        filled = PLACE.sub(lambda found: filling(tool, args, found[1]), part)
        if filled.startswith("-") and not part.startswith("-") and "--" not in parts:
            refuse_option(tool, part, filled)
        parts.append(filled)
    return parts


def filling(tool: Tool, args: Args, name: str) -> str:
    value = args.get(name, shape_of(tool.parameters, name).get("default"))
    text = text_of(value)
    if text is None:
        raise BadArgs(f"{name} is {value!r}, not one text, number or boolean")
    if "\0" in text:
        raise BadArgs(f"{name} holds a NUL character")
    return text


def refuse_option(tool: Tool, part: str, filled: str) -> None:
    """A leading `-` that came from a value must be one that the declaration names."""
    first = PLACE.match(part)
    schema = shape_of(tool.parameters, first[1]) if first else {}
    if "enum" not in schema and "pattern" not in schema:
        raise BadArgs(f"{filled!r} begins with '-' and would be read as an option")
