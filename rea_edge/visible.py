"""What of a tool's result may be seen at all: its allow-list of fields, then redaction, then a summary if it is large.

Applied once, before anything keeps a result: what is taken out here stands in no context, journal, log or message.
Pure; a value that is not touched keeps its bytes.
"""

import math
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Raw

from rea_edge.records import Fault, Ok, Result, Tool
from rea_edge.redact import redacted, without_credentials

LARGE = 2048  # bytes of a result, as JSON, above which `summary` gives its summary instead
_SHOWN = 3  # items of a list at each end of it
_TEXT = 200  # characters of one text in a summary
_DEPTH = 6


def visible(result: Result, tool: Tool, secrets: Sequence[str]) -> Result:
    """The result as it may be kept. `secrets` are texts that stand nowhere; `redact` of the tool asks for more."""
    if isinstance(result, Fault):
        said = [without_credentials(text, tool.redact) for text in (result.message, result.suggestion)]
        message, suggestion = msgspec.json.decode(
            redacted(Raw(msgspec.json.encode(said)), secrets), type=tuple[str, str]
        )
        return msgspec.structs.replace(result, message=message, suggestion=suggestion)
    value: object = msgspec.json.decode(result.data)
    shown = _only(value, _tree(tool.fields)) if tool.fields else value
    shown = without_credentials(shown, tool.redact)
    data = result.data if shown is value or shown == value else Raw(msgspec.json.encode(shown))
    data = redacted(data, secrets)
    if tool.summary and len(data) > LARGE:
        data = Raw(msgspec.json.encode(summary(msgspec.json.decode(data))))
    return Ok(data=data)


def summary(value: object, depth: int = 0) -> object:
    """What a large value says in short: of lists their count, ends and figures, of texts their beginning."""
    match value:
        case dict():
            if depth >= _DEPTH:
                return {"keys": len(value)}
            return {key: summary(inner, depth + 1) for key, inner in value.items()}
        case list() if len(value) > 2 * _SHOWN:
            return {"count": len(value), **_figures(value), **_ends(value, depth)}
        case list():
            return [summary(inner, depth + 1) for inner in value]
        case str() if len(value) > _TEXT:
            return f"{value[:_TEXT]}... ({len(value)} characters)"
        case _:
            return value


def _ends(items: list[object], depth: int) -> dict[str, object]:
    first, last = ([summary(item, depth + 1) for item in part] for part in (items[:_SHOWN], items[-_SHOWN:]))
    return {"first": first, "last": last}


def _figures(items: list[object]) -> dict[str, object]:
    """Numbers in figures, texts by their longest, objects by the figures of their fields."""
    if numbers := _numbers(items):
        return {"min": min(numbers), "max": max(numbers), "mean": round(math.fsum(numbers) / len(numbers), 4)}
    if texts := [item for item in items if isinstance(item, str)]:
        return {"longest": max(texts, key=len)[:_TEXT]}
    objects = [item for item in items if isinstance(item, dict)]
    keys = list(dict.fromkeys(key for item in objects for key in item))[:20]
    by_key = {key: _figures([item[key] for item in objects if key in item]) for key in keys}
    return {"fields": figures} if (figures := {key: found for key, found in by_key.items() if found}) else {}


def _numbers(items: list[object]) -> list[int | float]:
    found = [item for item in items if isinstance(item, int | float) and not isinstance(item, bool)]
    return found if len(found) == len(items) else []


# --- fields: a tree of the keys that may be seen


Tree = Mapping[str, "Tree | None"]


def _tree(fields: Sequence[str]) -> Tree:
    tree: dict[str, dict[str, object] | None] = {}
    for path in fields:
        head, _, rest = path.partition(".")
        if not rest:
            tree[head] = None  # all below it, whatever else is said
        elif tree.get(head, {}) is not None:
            tree.setdefault(head, {})
    return {
        key: None if whole is None else _tree([p.partition(".")[2] for p in fields if p.partition(".")[0] == key])
        for key, whole in tree.items()
    }


def _only(value: object, tree: Tree) -> object:
    """The value without what the tree does not name; lists are looked through, item by item."""
    match value:
        case dict():
            kept = {key: inner for key, inner in value.items() if key in tree}
            return {key: inner if (below := tree[key]) is None else _only(inner, below) for key, inner in kept.items()}
        case list():
            return [_only(item, tree) for item in value]
        case _:
            return value
