"""Every key of a declaration, with values that it does not take: each is refused naming file, tool, key and what it takes."""

import json
from pathlib import Path

import pytest

from rea_edge.errors import ToolInvalid
from rea_edge.keys import TAKES
from rea_edge.tool import KEYS
from rea_edge.toolhost.load import declarations
from rea_edge.toolhost.tables import TABLE_KEYS, from_toml

# key, a value as JSON that it does not take, and what is said instead where that is more precise than `TAKES`
WRONG: list[tuple[str, object, str]] = [
    ("effect", "write", ""),
    ("effect", 3, ""),
    ("effect", ["read"], ""),
    ("timeout_s", 0, ""),
    ("timeout_s", 3601, ""),
    ("timeout_s", "5", ""),
    ("timeout_s", True, ""),
    ("retries", -1, ""),
    ("retries", 6, ""),
    ("retries", 1.5, ""),
    ("retries", True, ""),
    ("device", 3, ""),
    ("examples", 3, ""),
    ("examples", "Go.", ""),
    ("examples", ["Go."], ""),
    ("examples", [["Go.", 3]], ""),
    ("examples", [["Go.", {"percent": "far"}]], "must be an integer"),
    ("examples", [["Go.", {"speed": 1}]], "speed"),
    ("ranges", 3, ""),
    ("ranges", {"percent": 80}, "expected [least, most], such as [0, 80], got 80"),
    ("ranges", {"percent": [80]}, "expected [least, most], such as [0, 80], got"),
    ("ranges", {"percent": ["0", "80"]}, "expected [least, most], such as [0, 80], got"),
    ("ranges", {"percent": [80, 0]}, "expected [least, most]"),
    ("ranges", {"speed": [0, 1]}, "'speed' is not a parameter; there are percent"),
    ("rate", 6, ""),
    ("rate", "often", "expected a rate such as 6/minute"),
    ("dwell_s", 0, ""),
    ("dwell_s", "1", ""),
    ("hours", 7, ""),
    ("hours", "noon", "expected hours such as 07:00-22:00"),
    ("requires", "look", ""),
    ("requires", ["Look"], "expected the name of a tool"),
    ("only_if", "look", ""),
    ("only_if", [{"tool": "look"}], "expected either equals, or op and value"),
    ("only_if", [{"tool": "look", "op": "=", "value": 1}], "one of >, >=, <, <=, ==, !="),
    ("only_if", [{"tool": "look", "is": 1}], "the keys are tool, args, path, equals, op, value"),
    ("fields", "level", ""),
    ("fields", ["a b"], "such as value or disks.free"),
    ("redact", "addresses", ""),
    ("redact", ["names"], "expected one of addresses"),
    ("summary", "yes", ""),
    ("outward", "yes", ""),
    ("sandbox", True, ""),
    ("sandbox", {"read": "/sys"}, ""),
    ("sandbox", {"reed": []}, "the keys are read, write, network"),
    ("sandbox", {"read": ["sys"]}, "no absolute path, nor below $REA_STATE_DIR"),
    ("verify", "look", ""),
    ("verify", {"tool": "look"}, "expected either equals, or op and value"),
    ("confirm", "yes", "expected one of never, task, always"),
    ("needs", "weather_key", ""),
    ("needs", ["Weather"], ""),
    ("needs", ["k"] * 9, ""),
    ("cost", -1, ""),
    ("cost", "5", ""),
    ("p95_s", 0, ""),
    ("p95_s", 3601, ""),
]
WRONG_TABLES: list[tuple[str, object, str]] = [
    ("description", 3, ""),
    ("command", "true", ""),
    ("command", [], ""),
    ("command", ["true", 3], ""),
    ("env", "API_KEY", ""),
    ("env", {"API_KEY": 3}, ""),
    ("parameters", 3, ""),
    ("parameters", {"type": "array"}, ""),
    ("returns", 3, ""),
]

WRONG_EXCHANGES: list[tuple[str, object, str]] = [
    ("publish", 3, "3 is not a topic"),
    ("publish", "a/#", "the topic 'a/#' cannot be used"),
    ("payload", '{"on": {percent}}', "write it as a TOML table"),
    ("qos", 2, "2 is neither 0 nor 1"),
    ("await", ["a"], "is not a topic"),
    ("await_path", "a b", "is no path of at most 40 characters such as state"),
    ("await_error", "a b", "is no path of at most 40 characters such as state"),
    ("await_match", {"a b": 1}, "is no path of at most 40 characters such as state"),
    ("availability", 3, "is no topic, nor {topic, path, online}"),
    ("availability", {"topic": "a", "is": "on"}, "the keys are topic, path, online"),
]


def said_of(place: str, said: str, key: str, words: str) -> None:
    assert said.startswith(f"{place}: t.{key}"), said
    assert (words or TAKES[key]) in said, said


@pytest.mark.parametrize(
    ("key", "value", "words"), WRONG, ids=[f"{key} {json.dumps(value)[:40]}" for key, value, _ in WRONG]
)
def test_a_python_tool_is_refused_by_the_key_that_is_wrong(tmp_path: Path, key: str, value: object, words: str) -> None:
    file = tmp_path / "t.py"
    keys = {"effect": "idempotent", key: value}
    text = ", ".join(f"{name}={inner!r}" for name, inner in keys.items())
    file.write_text(
        f"from rea_edge.tool import tool\n@tool({text})\ndef t(percent: int = 0) -> int:\n    'T.'\n    return 1\n"
    )
    with pytest.raises(ToolInvalid) as caught:
        declarations(str(file), 10.0)
    said_of(f"{file}:2", str(caught.value), key, words)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    WRONG + WRONG_TABLES,
    ids=[f"{key} {json.dumps(value)[:40]}" for key, value, _ in WRONG + WRONG_TABLES],
)
def test_a_table_is_refused_by_the_key_that_is_wrong(key: str, value: object, words: str) -> None:
    keys = {
        "description": "T.",
        "effect": "idempotent",
        "command": ["true", "{percent}"],
        "parameters": {"required": ["percent"], "properties": {"percent": {"type": "integer"}}},
        key: value,
    }
    with pytest.raises(ToolInvalid) as caught:
        from_toml(table_of(keys), "f.toml")
    said_of("f.toml", str(caught.value), key, words)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    WRONG_EXCHANGES,
    ids=[f"{key} {json.dumps(value)[:40]}" for key, value, _ in WRONG_EXCHANGES],
)
def test_an_exchange_is_refused_by_the_key_that_is_wrong(key: str, value: object, words: str) -> None:
    keys = {
        "description": "T.",
        "effect": "idempotent",
        "publish": "lamp/{percent}/set",
        "payload": "on",
        "await": "lamp",
        "parameters": {"required": ["percent"], "properties": {"percent": {"type": "integer"}}},
        key: value,
    }
    with pytest.raises(ToolInvalid) as caught:
        from_toml(table_of(keys), "f.toml")
    said_of("f.toml", str(caught.value), key, words)


def table_of(keys: dict[str, object]) -> str:
    return "[t]\n" + "".join(f"{name} = {toml(inner)}\n" for name, inner in keys.items())


def toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml(inner)}" for key, inner in value.items()) + "}"
    return "[" + ", ".join(map(toml, value)) + "]" if isinstance(value, list) else json.dumps(value)


def test_every_key_has_its_words_and_its_wrong_values() -> None:
    assert set(TAKES) == set(TABLE_KEYS) | set(KEYS)
    assert {key for key, _, _ in WRONG} == set(KEYS)
    assert {key for key, _, _ in WRONG + WRONG_TABLES + WRONG_EXCHANGES} == set(TABLE_KEYS)
