"""Parameters whose values the node's owner names in a setting: `enum_from = "PUMPS"` in a TOML tool's parameter.

`REA_TOOL_PUMPS="main,spare"` makes it `enum = ["main", "spare"]`, and of several settings all that they name; while
they are empty or absent, what else the parameter says holds. Examples that speak of other values are told of the named
ones. Imported in short-lived children only; raises ToolInvalid. Whether the names can be used is found out with the
rest of the tool.
"""

import re
from collections.abc import Mapping

from rea_edge.errors import ToolInvalid
from rea_edge.records import Args

KEY = "enum_from"
PREFIX = "REA_TOOL_"
MOST = 256
_SETTING = re.compile(r"[A-Z][A-Z0-9_]{0,47}")


def with_names(place: str, table: Args, environ: Mapping[str, str]) -> Args:
    """The table of a tool with the owner's names in place of the settings that hold them."""
    parameters = table.get("parameters")
    properties = parameters.get("properties") if isinstance(parameters, dict) else None
    if not isinstance(parameters, dict) or not isinstance(properties, dict):
        return table
    named: dict[str, list[str]] = {}
    shapes: Args = {}
    for key, shape in properties.items():
        shapes[key] = shape
        if isinstance(shape, dict) and KEY in shape:
            names = names_in(f"{place}.parameters.{key}.{KEY}", shape, environ)
            shapes[key] = narrowed(shape, names)
            if names:
                named[key] = names
    told = {**table, "parameters": {**parameters, "properties": shapes}}
    return {**told, "examples": retold(table["examples"], named)} if named and "examples" in table else told


def names_in(place: str, shape: Args, environ: Mapping[str, str]) -> list[str]:
    """What the settings name, in their order; empty where none is set."""
    said = shape[KEY]
    settings = [str(one) for one in said] if isinstance(said, list) else [str(said)]
    for setting in settings:
        if not _SETTING.fullmatch(setting):
            raise ToolInvalid(place, f"{setting!r} is no name of a setting such as PUMPS, which is {PREFIX}PUMPS")
    if shape.get("type") != "string" or "enum" in shape:
        raise ToolInvalid(place, 'is for a parameter with type = "string" and without enum')
    listed = (one.strip() for setting in settings for one in environ.get(PREFIX + setting, "").split(","))
    names = list(dict.fromkeys(one for one in listed if one))
    if len(names) > MOST:
        raise ToolInvalid(place, f"{PREFIX}{settings[0]} holds {len(names)} names; {MOST} are the most")
    return names


def narrowed(shape: Args, names: list[str]) -> Args:
    if not names:
        return {key: value for key, value in shape.items() if key != KEY}
    said = {key: shape[key] for key in ("description",) if key in shape}
    return {**said, "enum": names}


def retold(pairs: object, named: Mapping[str, list[str]]) -> object:
    """The examples, each of one of the named values in turn; those whose words do not say the value are left out."""
    if not isinstance(pairs, list):
        return pairs
    told: list[object] = []
    for turn, pair in enumerate(pairs):
        match pair:
            case [str() as say, dict() as args]:
                retold_pair = of_named(say, args, named, turn)
                told += [] if retold_pair is None else [retold_pair]
            case _:
                told.append(pair)
    return told


def of_named(say: str, args: Args, named: Mapping[str, list[str]], turn: int) -> list[object] | None:
    for key, names in named.items():
        value = args.get(key)
        if not isinstance(value, str) or value in names:
            continue
        name = names[turn % len(names)]
        said = name.join(re.split(rf"\b{re.escape(value)}\b", say, flags=re.IGNORECASE))
        if said == say:
            return None
        say, args = said, {**args, key: name}
    return [say, args]
