"""From a decorated function to a `records.Tool`: its annotations become JSON Schemas of the closed subset.

Imported in short-lived children only (msgspec's schemas pull in `inspect`). Raises ToolInvalid with file and line.
"""

from typing import get_type_hints

import msgspec

from rea_edge.errors import ToolInvalid
from rea_edge.records import Args, EffectClass, Example, Tool
from rea_edge.tool import Declared
from rea_edge.toolhost.extras import with_extras
from rea_edge.toolhost.subset import checked_answer, supported

ALLOWED = (
    "str, int, float, bool, None, list, dict, Literal, Enum, TypedDict, dataclass, Struct, Annotated and | of these"
)


def from_function(found: Declared, source: str) -> Tool:
    """The tool that a decorated function is."""
    place = f"{found.place}: {found.name}"
    parameters = supported(place, parameters_of(found))
    returns = returned(found)
    examples = tuple(
        Example(say=say, answer=checked_answer(f"{place}.examples", answer, parameters))
        for say, answer in found.examples
    )
    tool = Tool(
        name=found.name,
        description=found.description,
        parameters=parameters,
        effect=msgspec.convert(found.effect, EffectClass),
        kind="python",
        timeout_s=found.timeout_s,
        retries=found.retries,
        device=found.device,
        examples=examples,
        returns=returns,
        source=source,
    )
    return with_extras(tool, place, found.more)


def parameters_of(found: Declared) -> Args:
    parameters = schema_of(found.place, arguments_type(found))
    properties = parameters["properties"]
    assert isinstance(properties, dict)
    for name, default in defaults_of(found).items():
        if isinstance(default, list | dict):  # msgspec leaves those out
            properties[name]["default"] = default
    return parameters


def arguments_type(found: Declared) -> type[msgspec.Struct]:
    """A struct with the function's parameters as fields."""
    function = found.function
    try:
        hints = get_type_hints(function, include_extras=True)
    except (NameError, TypeError, AttributeError, SyntaxError) as exc:
        raise ToolInvalid(found.place, f"an annotation of {found.name} cannot be read: {exc}") from exc
    hints.pop("return", None)
    for name, hint in hints.items():
        checked(f"{found.place}: {found.name}.{name}", hint)
    defaults = defaults_of(found)
    fields = [(name, hint, field_of(defaults, name)) for name, hint in hints.items()]
    return msgspec.defstruct(found.name, fields, kw_only=True, forbid_unknown_fields=True)


def field_of(defaults: Args, name: str) -> object:
    """What makes a struct's field required, optional, or a copy of a list or dictionary."""
    if name not in defaults:
        return msgspec.field()
    default = defaults[name]
    if isinstance(default, list | dict | set):
        return msgspec.field(default_factory=default.copy)
    return default


def defaults_of(found: Declared) -> Args:
    code, defaults = found.function.__code__, found.function.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount][code.co_argcount - len(defaults) :]
    return dict(zip(names, defaults, strict=True)) | dict(found.function.__kwdefaults__ or {})


def schema_of(place: str, annotation: object) -> Args:
    """The JSON Schema of an annotation, references put in place."""
    try:
        (schema,), named = msgspec.json.schema_components([annotation], schema_hook=any_value, ref_template="{name}")
    except (TypeError, NotImplementedError, ValueError) as exc:
        why = str(exc).splitlines()[-1]
        raise ToolInvalid(place, f"{named_as(annotation)} is no JSON value ({why}); allowed are {ALLOWED}") from exc
    whole = inlined(place, schema, named, 0)
    return whole if isinstance(whole, dict) else {}


def checked(place: str, annotation: object) -> Args:
    """The schema of what one parameter takes, or a function returns. Raises ToolInvalid with what may stand there."""
    schema = schema_of(place, annotation)
    if b'"contentEncoding"' in msgspec.json.encode(schema):
        raise ToolInvalid(place, f"bytes are no JSON value: take a str, such as base64; allowed are {ALLOWED}")
    try:
        return supported(place, schema)
    except ToolInvalid as exc:
        said = str(exc).removeprefix(f"{exc.place}: ")
        raise ToolInvalid(place, f"{named_as(annotation)}: {said}; allowed are {ALLOWED}") from exc


def named_as(annotation: object) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def any_value(annotation: type) -> Args:
    if annotation is object:
        return {"title": "anything"}  # an empty schema would count as none; titles are dropped
    raise NotImplementedError  # msgspec's way for a hook to say that it does not know a type; caught in `schema_of`


def inlined(place: str, schema: object, named: dict[str, Args], depth: int) -> object:
    if depth > 16:
        raise ToolInvalid(place, "an annotation contains itself")
    if isinstance(schema, list):
        return [inlined(place, item, named, depth + 1) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        inner = inlined(place, named[schema["$ref"]], named, depth + 1)
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        return {**inner, **beside} if isinstance(inner, dict) else inner
    return {
        key: value if key in ("default", "enum", "const") else inlined(place, value, named, depth + 1)
        for key, value in schema.items()
        if key != "title" or isinstance(value, dict)  # `title` may also be the name of a property
    }


def returned(found: Declared) -> Args | None:
    """The schema of the result, or None where it says nothing."""
    hint = get_type_hints(found.function, include_extras=True)["return"]
    return checked(f"{found.place}: {found.name}.returns", hint) or None
