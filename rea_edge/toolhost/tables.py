"""Command and MQTT tools: one TOML table a tool, parameters in the closed JSON Schema subset. Reads text, runs nothing.

Imported in short-lived children only (it pulls in `tomllib`). Raises ToolInvalid with file, tool and key.
"""

import os
import re
import tomllib

import msgspec

from rea_edge.errors import ToolInvalid
from rea_edge.keys import expected
from rea_edge.parameters import PLACE, shape_of, shapes_of
from rea_edge.records import Args, Tool, ToolKind
from rea_edge.tool import KEYS, MORE_KEYS, NAME, PARAMETER_NAME, check_keys, checked_pair, first_line
from rea_edge.toolhost.exchanges import MQTT_KEYS, SCALARS, check_repeatable, exchange_of
from rea_edge.toolhost.extras import check_filled, with_extras
from rea_edge.toolhost.limits import PASSED_ON
from rea_edge.toolhost.named import with_names
from rea_edge.toolhost.subset import checked_answer, supported

TABLE_KEYS = ("description", "command", "env", "parameters", "returns", *KEYS, *MQTT_KEYS)
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


def from_toml(text: str, source: str) -> tuple[Tool, ...]:
    """The command and MQTT tools of a TOML file, one table each."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        line = re.search(r"at line (\d+)", str(exc))
        raise ToolInvalid(f"{source}:{line[1]}" if line else source, str(exc)) from exc
    return tuple(from_table(source, name, table) for name, table in tables.items())


def from_table(source: str, name: str, table: object) -> Tool:
    place = f"{source}: {name}"
    if not NAME.fullmatch(name):
        raise ToolInvalid(place, f"{name!r} is not a tool name: {NAME.pattern}")
    if not isinstance(table, dict):
        raise ToolInvalid(place, "is not a table; a file of tools has one table a tool")
    table = with_names(place, table, os.environ)
    keys: Args = {"timeout_s": 10.0, "retries": 0, "device": "", "parameters": {}, "examples": [], **table}
    unsupported = {key: value for key, value in keys.items() if key not in TABLE_KEYS}
    if "retain" in table:
        raise ToolInvalid(
            f"{place}.retain", "is never set: a broker would repeat the message at each start of the device"
        )
    check_keys(place, keys.get("effect"), keys["timeout_s"], keys["retries"], keys["device"], unsupported, TABLE_KEYS)
    parameters = closed_object(place, keys["parameters"])
    declared = {
        "name": name,
        "description": described(place, keys.get("description")),
        "parameters": parameters,
        "effect": keys["effect"],
        "kind": kind_of(place, keys),
        "timeout_s": keys["timeout_s"],
        "retries": keys["retries"],
        "device": keys["device"],
        "examples": examples(place, keys["examples"], parameters),
        "returns": supported(f"{place}.returns", keys["returns"]) if "returns" in keys else None,
        "source": source,
    }
    if declared["kind"] == "mqtt":
        declared["exchange"] = exchange_of(place, keys, parameters)
    else:
        declared["command"] = checked_command(place, keys.get("command"), parameters)
    more = {key: value for key, value in table.items() if key in MORE_KEYS}
    tool = with_extras(msgspec.convert(declared, Tool), place, more)
    if tool.exchange is not None:
        check_repeatable(place, tool)
    return with_env(tool, place, table.get("env", {}))


def kind_of(place: str, keys: Args) -> ToolKind:
    """A tool is a command or an exchange with a device, by the keys it has."""
    said = [key for key in MQTT_KEYS if key in keys]
    if "command" not in keys and not said:
        raise ToolInvalid(place, "is neither a command nor an MQTT tool: command, or publish and await, are missing")
    if "command" in keys and said:
        raise ToolInvalid(f"{place}.{said[0]}", "cannot stand beside command: a tool is one or the other")
    for key in ("sandbox", "env", "needs"):
        if said and key in keys:
            raise ToolInvalid(f"{place}.{key}", "is for what runs on this machine; an MQTT tool does not")
    return "mqtt" if said else "command"


def with_env(tool: Tool, place: str, env: object) -> Tool:
    """The tool with the environment variables that its secrets are given in. Arguments of a program can be read by
    every user of the machine, its environment by its own user alone."""
    place = f"{place}.env"
    if not isinstance(env, dict) or not all(isinstance(name, str) for name in env.values()):
        raise ToolInvalid(place, expected("env", env))
    for variable in env:
        if not VARIABLE.fullmatch(variable) or variable in PASSED_ON or variable.startswith(("REA_", "LD_")):
            ours = f"{VARIABLE.pattern}, and not {', '.join(PASSED_ON)}, REA_... or LD_..."
            raise ToolInvalid(place, f"{variable!r} cannot be given to a program; a variable is {ours}")
    for name in sorted({*tool.needs} ^ {*env.values()}):
        raise ToolInvalid(place, f"needs and env must name the same secrets, and {name!r} is in one of them alone")
    return msgspec.structs.replace(tool, env=env)


def described(place: str, description: object) -> str:
    if not isinstance(description, str):
        raise ToolInvalid(f"{place}.description", expected("description", description))
    return first_line(f"{place}.description", description)


def examples(place: str, pairs: object, parameters: Args) -> list[Args]:
    place = f"{place}.examples"
    if not isinstance(pairs, list):
        raise ToolInvalid(place, expected("examples", pairs))
    checked = [checked_pair(place, tuple(pair) if isinstance(pair, list) else pair) for pair in pairs]
    return [{"say": say, "answer": checked_answer(place, answer, parameters)} for say, answer in checked]


def closed_object(place: str, schema: object) -> Args:
    """The parameters of a command tool."""
    place = f"{place}.parameters"
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        raise ToolInvalid(place, expected("parameters", schema))
    properties = schema.get("properties", {})
    required = schema.get("required", [])
    if not isinstance(properties, dict) or not isinstance(required, list):
        raise ToolInvalid(place, "properties is not a table, or required not a list")
    for name in properties:
        if not PARAMETER_NAME.fullmatch(name):
            raise ToolInvalid(place, f"{name!r} is not a parameter name: {PARAMETER_NAME.pattern}")
    for name in required:
        if name not in properties:
            raise ToolInvalid(place, f"required names {name!r}, which is not among the properties")
    return supported(
        place,
        {**schema, "type": "object", "properties": properties, "required": required, "additionalProperties": False},
    )


def checked_command(place: str, command: object, parameters: Args) -> list[str]:
    place = f"{place}.command"
    if not isinstance(command, list) or not command or not all(isinstance(part, str) for part in command):
        raise ToolInvalid(place, expected("command", command))
    if PLACE.search(command[0]) or not command[0]:
        raise ToolInvalid(place, "the program itself cannot be a parameter")
    used = {name for part in command for name in PLACE.findall(part)}
    for name in sorted(used):
        check_filled(place, parameters, name)
        schema = shape_of(parameters, name)
        if "enum" not in schema and "const" not in schema and schema.get("type") not in SCALARS:
            raise ToolInvalid(place, f"{{{name}}} must be one of {', '.join(SCALARS)}, or have an enum")
    for name in sorted(shapes_of(parameters).keys() - used):
        raise ToolInvalid(place, f"the parameter {name!r} is used nowhere")
    return command
