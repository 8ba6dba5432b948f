"""What each key of a tool's declaration takes, in words for its author. Holds words only; the checks are elsewhere."""

PROBE = "{tool, args, path, and equals or op and value}"
TAKES = {
    "description": "a text; its first line is what the model reads",
    "command": 'a list of texts, the program first; "{name}" stands for the parameter of that name',
    "env": "a table of environment variables, each with the name of a secret that needs names too",
    "publish": "the topic of a device, without wildcards",
    "payload": "what is published: a text, a table or a list",
    "qos": "0 or 1",
    "await": "the topic that the device answers on",
    "await_path": "a path into the answer, such as state or sensors.0.value",
    "await_match": "what the answer must be, whole or by path",
    "await_error": "the path where an answer says what went wrong",
    "availability": "a topic, or a list of {topic, path, online}",
    "parameters": 'a JSON Schema with type = "object"',
    "returns": "a JSON Schema",
    "effect": "one of read, idempotent, once",
    "timeout_s": "seconds, more than 0 and at most 3600",
    "retries": "a whole number from 0 to 5",
    "device": "a text",
    "examples": 'pairs of what a person says, and the arguments, a command line or "cannot"',
    "ranges": "for each parameter [least, most], such as [0, 80]",
    "rate": "a rate such as 6/minute, per second, minute, hour or day",
    "dwell_s": "seconds, from 0.1 to 86400",
    "hours": "hours such as 07:00-22:00",
    "requires": "a list of names of tools",
    "only_if": f"a list of {PROBE}",
    "fields": "a list of paths into the result, such as value or disks.free",
    "redact": "a list of: addresses",
    "summary": "true or false",
    "sandbox": "{read, write, network}: two lists of paths, and true or false",
    "verify": PROBE,
    "confirm": "one of never, task, always",
    "needs": "a list of names of [secrets], at most 8",
    "outward": "true or false",
    "cost": "a number, 0 or more",
    "p95_s": "seconds, more than 0 and at most 3600",
}


def expected(key: str, value: object) -> str:
    """What is wrong with a value, and what would be right."""
    return f"expected {TAKES.get(key, 'something else')}, got {value!r:.100}"
