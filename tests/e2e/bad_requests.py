"""A good request for each way in, and all that can be wrong with it: payload, refusal, and where the answer goes."""

import json
from collections.abc import Iterator, Mapping

from msgspec import Struct

OLD, LATE = "2026-01-31T12:00:00Z", "2099-01-31T12:00:00Z"
ANY = frozenset({"null", "bool", "int", "float", "text", "list", "object"})
VALUES: dict[str, object] = {
    "null": None, "bool": True, "int": 7, "float": 0.5, "text": "x y", "list": [1], "object": {"a": 1},
}  # fmt: skip
TEXT, TEXT_OR_NULL = frozenset({"text"}), frozenset({"text", "null"})
INT_OR_NULL, BOOL_OR_NULL = frozenset({"int", "null"}), frozenset({"bool", "null"})
OBJECT, BOOL, INT = frozenset({"object"}), frozenset({"bool"}), frozenset({"int"})
COMMON = {
    "id": TEXT, "ttl_ms": INT_OR_NULL, "sent_at": TEXT_OR_NULL, "epoch": TEXT_OR_NULL, "via": frozenset({"list", "null"}),
    "trace": TEXT_OR_NULL, "meta": OBJECT, "sig": TEXT_OR_NULL,
}  # fmt: skip
# The keys of each kind of request and the JSON types that each may have, by the wire contract.
KEYS: dict[str, dict[str, frozenset[str]]] = {
    "task": {
        **COMMON, "id": TEXT_OR_NULL, "goal": TEXT, "type": TEXT_OR_NULL, "mode": TEXT_OR_NULL, "limits": OBJECT,
        "context": OBJECT, "continues": TEXT_OR_NULL, "dry_run": BOOL,
    },
    "call": {**COMMON, "args": OBJECT, "dry_run": BOOL},
    "ctl": {
        **COMMON, "task": TEXT, "do": TEXT, "text": TEXT, "who": TEXT_OR_NULL, "n": INT_OR_NULL, "outcome": TEXT_OR_NULL,
        "good": BOOL_OR_NULL,
    },
    "query": {**COMMON, "who": TEXT_OR_NULL, "task": TEXT_OR_NULL, "after": INT, "limit": INT},
    "say": {**COMMON, "request": TEXT, "answer": ANY, "ask_hash": ANY},
    "node": {**COMMON, "do": TEXT},
}  # fmt: skip


class Bad(Struct, frozen=True, kw_only=True):
    """`words` stand in the message; `named`: the answer is under the request's id, else under `_bad`."""

    name: str
    payload: bytes
    code: str = "bad_request"
    words: str = ""
    named: bool = True
    leaf: str = ""  # of the topic, where it is another than that of the good one
    retain: bool = False
    clock: bool = False  # only a node whose clock is trusted can tell


def kind_of(leaf: str) -> str:
    return leaf.split("/")[0]


def bad(leaf: str, good: Mapping[str, object], other: str) -> Iterator[Bad]:
    """All of it for one way in. `good` has an id; `other` is a leaf of the same kind that leads nowhere."""
    yield from _keys(leaf, good)
    yield from _payloads(leaf, good)
    yield from _values(kind_of(leaf), good, other)
    for key, kinds in KEYS[kind_of(leaf)].items():
        for kind, value in VALUES.items():
            if kind not in kinds:
                yield _with(good, f"{key} as {kind}", {key: value}, words=key, named=key != "id")


def _with(good: Mapping[str, object], name: str, keys: Mapping[str, object], **how: object) -> Bad:
    payload = json.dumps({**good, **keys}).encode()
    return Bad(name=name, payload=payload, **how)  # type: ignore[arg-type]  # passed on as they come


def _keys(leaf: str, good: Mapping[str, object]) -> Iterator[Bad]:
    yield _with(good, "retained", {}, code="retained_refused", retain=True)
    yield _with(good, "sent long ago", {"sent_at": OLD}, code="expired", clock=True)
    yield _with(good, "sent long ago by its own measure", {"sent_at": OLD, "ttl_ms": 1}, code="expired", clock=True)
    yield _with(good, "from the future", {"sent_at": LATE}, words="sent_at", clock=True)
    yield _with(good, "sent at no time", {"sent_at": "yesterday"}, words="sent_at")
    yield _with(good, "sent at a time without an offset", {"sent_at": "2026-01-31T12:00:00"}, words="sent_at")
    yield _with(good, "for another state", {"epoch": "another"}, code="stale_epoch", words="another")
    yield _with(good, "a key that is none", {"nonsense": 1}, words="nonsense")
    yield _with(good, "no time to live", {"ttl_ms": 0}, words="ttl_ms")
    yield _with(good, "less than no time to live", {"ttl_ms": -1}, words="ttl_ms")
    yield _with(good, "on behalf of no name", {"via": ["a b"]}, words="via")
    yield _with(good, "on behalf of too many", {"via": ["a"] * 17}, words="via")
    yield _with(good, "a trace of two words", {"trace": "a b"}, words="trace")
    for name, given in (("of two words", "a b"), ("empty", ""), ("too long", "a" * 37), ("with a topic's dash", "a/b")):
        yield _with(good, f"an id {name}", {"id": given}, words="id", named=False)
    if kind_of(leaf) != "task":  # the node makes one for a task
        without = {key: value for key, value in good.items() if key != "id"}
        yield Bad(name="no id", payload=json.dumps(without).encode(), words="id", named=False)


def _payloads(leaf: str, good: Mapping[str, object]) -> Iterator[Bad]:
    whole = json.dumps(good).encode()

    def inside(meta: bytes) -> bytes:
        return whole[:-1] + b',"meta":{"a":' + meta + b"}}"

    raw: dict[str, bytes] = {
        "a key twice": whole[:-1] + b',"id":"again"}',
        "a key twice below": inside(b'{"b":1,"b":1}'),
        "nested without end": inside(b"[" * 20_000 + b"]" * 20_000),
        "nested too deep": inside(b"[" * 63 + b"]" * 63),
        "a number beyond a double": inside(b"1e999"),
        "an integer without end": inside(b"9" * 20_000),
        "no number": inside(b"NaN"),
        "an infinite number": inside(b"-Infinity"),
        "half a surrogate pair": inside(b'"\\ud800"'),
        "a byte that is not UTF-8": inside(b'"\xff"'),
        "a control character": inside(b'"\x00"'),
        "cut": whole[:-1],
        "with something behind it": whole + b"}",
        "a list": b"[" + whole + b"]",
        "a text": json.dumps(whole.decode()).encode(),
        "a number": b"7",
        "null": b"null",
        "empty": b"",
        "blank": b" \n ",
    }
    if kind_of(leaf) != "task":  # there it is a goal
        raw["plain text"] = b"Turn it."
    for name, payload in raw.items():
        yield Bad(name=name, payload=payload, named=False)
    yield Bad(name="not even text", payload=b"\xff\xfe\x00", named=False)
    yield Bad(name="a byte too large", payload=_padded(whole, 65_537), code="too_large", words="65536", named=False)


def _padded(whole: bytes, size: int) -> bytes:
    head = whole[:-1] + b',"meta":{"a":"'
    return head + b"x" * (size - len(head) - 3) + b'"}}'


def over_the_packet_limit(good: Mapping[str, object]) -> bytes:
    return _padded(json.dumps(good).encode(), 1_400_000)


def _values(kind: str, good: Mapping[str, object], other: str) -> Iterator[Bad]:
    """What only this kind can have wrong."""
    match kind:
        case "task":
            yield _with(good, "a task type that is none", {"type": "nope"}, words="nope")
            yield _with(good, "a mode that is none", {"mode": "maybe"}, words="act, query")
            yield _with(good, "an empty goal", {"goal": ""}, words="goal")
            yield _with(good, "a blank goal", {"goal": " \n"}, words="goal")
            yield _with(good, "a limit that is none", {"limits": {"lives": 9}}, words="lives")
            yield _with(good, "no step at all", {"limits": {"steps": 0}}, words="steps")
            yield _with(good, "seconds without end", {"limits": {"task_s": "inf"}}, words="task_s")
        case "call":
            yield _with(good, "a tool that is none", {}, leaf=other, words="doze")
            yield _with(good, "an argument less", {"args": {}}, words="seconds")
            yield _with(good, "an argument more", {"args": {"seconds": 0, "x": 1}}, words="x")
            yield _with(good, "an argument of another type", {"args": {"seconds": "soon"}}, words="seconds")
        case "ctl":
            yield _with(good, "a control that is none", {"do": "explode"}, words="cancel")
            yield _with(good, "a task that is none", {"task": "zz"}, code="unknown_task", words="zz")
            yield _with(good, "a settle of no call", {"do": "settle"}, words="n")
        case "query":
            yield _with(good, "a query that is none", {}, leaf=other, words="status")
            yield _with(good, "a page of nothing", {"limit": 0}, words="limit")
            yield _with(good, "a page of too much", {"limit": 201}, words="limit")
            yield _with(good, "a page before all", {"after": -1}, words="after")
            yield _with(good, "a page beyond all", {"after": 10**300}, words="after")
        case "say":
            yield _with(good, "an ask that is none", {"request": "r-1"}, code="unknown_task")
            yield _with(good, "an ask with an endless name", {"request": "r" * 65}, words="request")
        case _:
            yield _with(good, "an order that is none", {"do": "explode"}, words="release")
