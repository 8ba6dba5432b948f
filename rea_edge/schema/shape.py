"""One node of a JSON Schema as a strict msgspec type. Holds the compilation only: no coercion, no faults told."""

import math
import re
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, defstruct

from rea_edge.errors import ToolInvalid

# From here on not every integer is a float of its own, so a float no longer says which integer was meant.
EXACT_FLOAT = 2**53
_INT64 = 2**63
_MOST_LEVELS = 16
_SILENT = frozenset(
    [
        "title",
        "description",
        "default",
        "examples",
        "example",
        "$schema",
        "$id",
        "$comment",
        "$defs",
        "definitions",
        "format",
        "deprecated",
    ]
)
_NUMERIC = frozenset({"integer", "number"})
_OF_TYPE: dict[str, frozenset[str]] = {
    "properties": frozenset({"object"}),
    "required": frozenset({"object"}),
    "additionalProperties": frozenset({"object"}),
    "items": frozenset({"array"}),
    "minItems": frozenset({"array"}),
    "maxItems": frozenset({"array"}),
    "minLength": frozenset({"string"}),
    "maxLength": frozenset({"string"}),
    "pattern": frozenset({"string"}),
    "minimum": _NUMERIC,
    "maximum": _NUMERIC,
    "exclusiveMinimum": _NUMERIC,
    "exclusiveMaximum": _NUMERIC,
    "multipleOf": frozenset({"integer"}),
}
# Words that schemas outside our own tools use; understood in lenient compilation only.
_ALIASES = {
    "int": "integer", "long": "integer", "float": "number", "double": "number", "str": "string", "text": "string",
    "bool": "boolean", "list": "array", "tuple": "array", "dict": "object", "none": "null",
}  # fmt: skip
_NAMES = {
    "string": "a string", "integer": "an integer", "number": "a number", "boolean": "true or false",
    "null": "null", "array": "a list", "object": "an object",
}  # fmt: skip


class Shape(Struct, frozen=True):
    """A compiled node: `kind` decides, the rest tells how to coerce towards it and how to name it to a model."""

    kind: object = object
    types: frozenset[str] = frozenset()  # empty: any type
    expected: str = "any value"
    members: tuple[object, ...] | None = None
    properties: Mapping[str, "Shape"] = {}
    required: tuple[str, ...] = ()
    closed: bool = False
    extra: "Shape | None" = None
    items: "Shape | None" = None
    branches: tuple["Shape", ...] = ()

    def admits(self, value: object) -> bool:
        """Whether the value is valid as it stands."""
        try:
            msgspec.convert(value, self.kind)
        except (msgspec.ValidationError, RecursionError, UnicodeError):
            return False
        return True


def shape_of(schema: object, place: str, ignored: list[str] | None) -> Shape:
    """Compile a schema; a keyword outside the subset raises ToolInvalid, or is added to `ignored` if a list."""
    return _Compiler(schema, place, ignored).shape(schema, (), 0)


class _Compiler:
    def __init__(self, root: object, place: str, ignored: list[str] | None) -> None:
        self.place, self.ignored = place, ignored
        defs = root.get("$defs", root.get("definitions")) if isinstance(root, dict) else None
        self.defs = defs if isinstance(defs, dict) else {}

    def shape(self, schema: object, path: tuple[str, ...], level: int) -> Shape:
        if schema is True or schema == {}:
            return Shape()
        if not isinstance(schema, dict):
            return self.refuse(path, "", "must be an object")
        if level > _MOST_LEVELS:
            return self.refuse(path, "", "is nested too deeply or refers to itself")
        if "$ref" in schema:
            return self.referred(schema["$ref"], path, level)
        for key in ("anyOf", "oneOf"):
            if key in schema:
                return self.alternatives(schema, key, path, level)
        return self.plain(schema, path, level)

    def refuse(self, path: tuple[str, ...], keyword: str, fault: str) -> Shape:
        """What is not supported: an error, or (lenient) a node that takes anything."""
        name = ".".join((*path, keyword) if keyword else path) or "schema"
        if self.ignored is None:
            raise ToolInvalid(self.place, f"parameters: `{name}` {fault}")
        self.ignored.append(name)
        return Shape()

    def referred(self, ref: object, path: tuple[str, ...], level: int) -> Shape:
        name = str(ref).rpartition("/")[2]
        if ref not in (f"#/$defs/{name}", f"#/definitions/{name}") or name not in self.defs:
            return self.refuse(path, "$ref", "must name an entry of $defs")
        return self.shape(self.defs[name], path, level + 1)

    def alternatives(self, schema: dict[str, object], key: str, path: tuple[str, ...], level: int) -> Shape:
        listed = schema[key]
        for other in schema.keys() - _SILENT - {key}:
            # A `type` beside alternatives only repeats them (some generators write it).
            if other != "type":
                self.refuse(path, other, f"is not supported beside {key}")
        if not isinstance(listed, list) or not listed:
            return self.refuse(path, key, "must be a list of schemas")
        branches = tuple(self.shape(branch, (*path, key), level + 1) for branch in listed)
        members = None
        if all(branch.members is not None for branch in branches):
            members = tuple(member for branch in branches for member in branch.members or ())
        types = frozenset[str]().union(*(branch.types for branch in branches))
        kind = _literal(members) if members is not None else _union([branch.kind for branch in branches])
        expected = " or ".join(dict.fromkeys(branch.expected for branch in branches))
        if kind is None or not _is_type(kind):
            return self.refuse(path, key, "mixes types that cannot be told apart")
        if object in [branch.kind for branch in branches]:
            return Shape()
        return Shape(kind, types, expected, members, branches=() if members is not None else branches)

    def plain(self, schema: dict[str, object], path: tuple[str, ...], level: int) -> Shape:
        types = self.types(schema, path)
        for key in schema.keys() - _SILENT - {"type", "enum", "const"}:
            wanted = _OF_TYPE.get(key)
            if wanted is None:
                self.refuse(path, key, "is not supported")
            elif types and not types & wanted:
                self.refuse(path, key, f"says nothing about type {'/'.join(sorted(types))}")
        if "enum" in schema or "const" in schema:
            return self.enumeration(schema, types, path)
        return self.typed(schema, types, path, level)

    def types(self, schema: dict[str, object], path: tuple[str, ...]) -> frozenset[str]:
        given = schema.get("type")
        names = [given] if isinstance(given, str) else given
        if self.ignored is not None and isinstance(names, list):
            names = [_ALIASES.get(name.lower(), name.lower()) if isinstance(name, str) else name for name in names]
        if isinstance(names, list) and names and all(isinstance(name, str) and name in _NAMES for name in names):
            return frozenset(names)
        if given is not None:
            self.refuse(path, "type", f"must be one of {', '.join(_NAMES)}")
        if "enum" in schema or "const" in schema:
            return frozenset()
        implied = [_OF_TYPE[key] for key in schema if key in _OF_TYPE]
        if not implied:
            return frozenset()
        if all(wanted == implied[0] for wanted in implied):
            return frozenset({"number"}) if implied[0] == _NUMERIC else implied[0]
        self.refuse(path, "type", "is missing")
        return frozenset()

    def enumeration(self, schema: dict[str, object], types: frozenset[str], path: tuple[str, ...]) -> Shape:
        keyword = "const" if "const" in schema else "enum"
        listed = [schema["const"]] if keyword == "const" else schema["enum"]
        members = tuple(listed) if isinstance(listed, list) else ()
        if types and "null" not in types:
            members = tuple(member for member in members if member is not None)
        if members and all(isinstance(member, bool | None) for member in members):
            both = {True, False} <= set(members)
            names = {"boolean"} if None not in members else {"boolean", "null"}
            if both:
                return self.typed({}, frozenset(names), path, 0)
        kind = _literal(members)
        if kind is None:
            return self.refuse(path, keyword, "must list strings, integers or null")
        shown = ", ".join(msgspec.json.encode(member).decode() for member in members)
        return Shape(kind, types, f"one of {shown}" if len(members) > 1 else shown, members)

    def typed(self, schema: dict[str, object], types: frozenset[str], path: tuple[str, ...], level: int) -> Shape:
        if not types:
            return Shape()
        bounds = self.bounds(schema, path)
        kinds: list[object] = []
        parts = Shape()
        for name in sorted(types - {"integer"} if "number" in types else types):
            match name:
                case "string":
                    kinds.append(_annotated(str, self.text(schema, path)))
                case "integer":
                    kinds.append(_annotated(int, {**_whole(bounds), **self.multiple(schema, path)}))
                case "number":
                    kinds += [_annotated(int, _whole(bounds)), _annotated(float, bounds)]
                case "boolean":
                    kinds.append(bool)
                case "null":
                    kinds.append(None)
                case "array":
                    parts = msgspec.structs.replace(parts, items=self.items(schema, path, level))
                    kinds.append(self.listed(schema, parts.items, path))
                case _:
                    parts = self.object(schema, parts.items, path, level)
                    kinds.append(parts.kind)
        kind = _union(kinds)
        if not _is_type(kind):
            return self.refuse(path, "type", "mixes types that cannot be told apart")
        return msgspec.structs.replace(parts, kind=kind, types=types, expected=_expected(schema, types))

    def bounds(self, schema: dict[str, object], path: tuple[str, ...]) -> dict[str, int | float]:
        found: dict[str, int | float] = {}
        for key, name in (("minimum", "ge"), ("maximum", "le"), ("exclusiveMinimum", "gt"), ("exclusiveMaximum", "lt")):
            value = schema.get(key)
            if value is None:
                continue
            if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) < _INT64:
                self.refuse(path, key, "must be a number of at most 64 bits")
            else:
                found[name] = value
        if "ge" in found and "gt" in found:
            del found["ge" if found["gt"] >= found["ge"] else "gt"]
        if "le" in found and "lt" in found:
            del found["le" if found["lt"] <= found["le"] else "lt"]
        return found

    def multiple(self, schema: dict[str, object], path: tuple[str, ...]) -> dict[str, int | float]:
        step = schema.get("multipleOf")
        if step is None:
            return {}
        if not isinstance(step, int) or isinstance(step, bool) or not 0 < step < _INT64:
            self.refuse(path, "multipleOf", "must be a positive integer")
            return {}
        return {"multiple_of": step}

    def sizes(self, schema: dict[str, object], least: str, most: str, path: tuple[str, ...]) -> dict[str, object]:
        found: dict[str, object] = {}
        for key, name in ((least, "min_length"), (most, "max_length")):
            value = schema.get(key)
            if value is None:
                continue
            if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _INT64:
                self.refuse(path, key, "must be a whole number")
            else:
                found[name] = value
        return found

    def text(self, schema: dict[str, object], path: tuple[str, ...]) -> dict[str, object]:
        found = self.sizes(schema, "minLength", "maxLength", path)
        pattern = schema.get("pattern")
        if pattern is not None:
            try:
                found["pattern"] = _pattern(pattern) if isinstance(pattern, str) else re.compile("(")
            except re.error:
                self.refuse(path, "pattern", "is not a regular expression that can be used here")
        return found

    def items(self, schema: dict[str, object], path: tuple[str, ...], level: int) -> Shape | None:
        return self.shape(schema["items"], (*path, "items"), level + 1) if "items" in schema else None

    def listed(self, schema: dict[str, object], items: Shape | None, path: tuple[str, ...]) -> object:
        kind = items.kind if items is not None else object
        return _annotated(list[kind], self.sizes(schema, "minItems", "maxItems", path))  # type: ignore[valid-type]  # a type made at run time

    def object(self, schema: dict[str, object], items: Shape | None, path: tuple[str, ...], level: int) -> Shape:
        listed = schema.get("properties", {})
        if not isinstance(listed, dict):
            self.refuse(path, "properties", "must be an object")
            listed = {}
        properties = {key: self.shape(inner, (*path, key), level + 1) for key, inner in listed.items()}
        names = schema.get("required")
        required = tuple(name for name in names if isinstance(name, str)) if isinstance(names, list) else ()
        for name in required:
            properties.setdefault(name, Shape())
        more = schema.get("additionalProperties")
        extra = None
        if isinstance(more, dict):
            extra = self.shape(more, (*path, "additionalProperties"), level + 1)
            if properties:
                extra = self.refuse(path, "additionalProperties", "must be true or false beside properties")
        closed = more is False or (more is None and "properties" in schema)
        kind = _struct(properties, required, closed) if properties or closed else _mapping(extra)
        return Shape(kind, properties=properties, required=required, closed=closed, extra=extra, items=items)


def _annotated(kind: object, limits: Mapping[str, object]) -> object:
    return Annotated[kind, Meta(**limits)] if limits else kind  # type: ignore[call-overload]  # names chosen above


def _whole(bounds: Mapping[str, int | float]) -> dict[str, int | float]:
    """Bounds for integers: a bound that is no integer is moved to the next integer inside."""
    moved: dict[str, int | float] = {}
    for name, value in bounds.items():
        if isinstance(value, float) and not value.is_integer():
            moved["ge" if name in ("ge", "gt") else "le"] = (
                math.ceil(value) if name in ("ge", "gt") else math.floor(value)
            )
        else:
            moved[name] = int(value)
    return moved


def _struct(properties: Mapping[str, Shape], required: Sequence[str], closed: bool) -> object:
    names = {key: f"f{at}" for at, key in enumerate(properties)}
    fields: list[tuple[str, object] | tuple[str, object, object]] = [
        (names[key], shape.kind) if key in required else (names[key], shape.kind, UNSET)
        for key, shape in properties.items()
    ]
    fields.sort(key=len)
    back = {name: key for key, name in names.items()}
    return defstruct("Parameters", fields, rename=back, forbid_unknown_fields=closed)


def _mapping(extra: Shape | None) -> object:
    kind = extra.kind if extra is not None else object
    return dict[str, kind]  # type: ignore[valid-type]  # a type made at run time


def _literal(members: Sequence[object]) -> object | None:
    if not members or not all(
        isinstance(member, str | int | None) and not isinstance(member, bool) for member in members
    ):
        return None
    return Literal[tuple(members)]


def _union(kinds: Sequence[object]) -> object:
    return reduce(or_, [type(None) if kind is None else kind for kind in kinds])


def _is_type(kind: object) -> bool:
    """Whether msgspec can use it: a union of two lists, say, cannot be told apart."""
    try:
        msgspec.convert(None, kind)
    except msgspec.ValidationError:
        return True
    except (TypeError, ValueError):
        return False
    return True


def _pattern(pattern: str) -> str:
    """A JSON Schema pattern for Python: `$` only at the very end of the text, classes in ASCII."""
    parts = re.findall(r"\\.|\[(?:\\.|[^\]\\])*\]|.", pattern, re.DOTALL)
    written = "(?a:" + "".join(r"\Z" if part == "$" else part for part in parts) + ")"
    re.compile(written)
    return written


def _expected(schema: Mapping[str, object], types: frozenset[str]) -> str:
    names = [_NAMES[name] for name in _NAMES if name in types]
    said = [" or ".join(names)]
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        said.append(f"from {low} to {high}")
    else:
        said += [f"of at least {low}"] if low is not None else []
        said += [f"of at most {high}"] if high is not None else []
    for key, words in (
        ("exclusiveMinimum", "over {}"), ("exclusiveMaximum", "under {}"), ("multipleOf", "that is a multiple of {}"),
        ("minLength", "of at least {} characters"), ("maxLength", "of at most {} characters"),
        ("minItems", "of at least {} items"), ("maxItems", "of at most {} items"), ("pattern", "matching {}"),
    ):  # fmt: skip
        said += [words.format(schema[key])] if schema.get(key) is not None else []
    return " ".join(said)
