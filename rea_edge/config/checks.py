"""One TOML table tree to the structs of `settings`, and what must hold between settings. Reads no file.

Raises ConfigInvalid whose place is the path of the key, such as `limits.steps`, with what was expected and what came.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NoReturn, TypeVar
from urllib.parse import SplitResult, urlsplit

import msgspec
from msgspec import Meta, Struct, field

from rea_edge.allowance import Allowance
from rea_edge.config.peers import check_peers
from rea_edge.config.settings import (
    Access,
    Broker,
    Endpoint,
    Log,
    Memory,
    Node,
    Peer,
    Queue,
    Secret,
    Sending,
    Settings,
    StoreRoom,
    Table,
    TaskLimits,
    TaskType,
    Tools,
)  # fmt: skip
from rea_edge.errors import ConfigInvalid
from rea_edge.fairness import Pace, Paces
from rea_edge.records import Limits, Rule
from rea_edge.rules import NodeGate, RuleInvalid, check_pairs, check_tool, check_wanted, rate_of, rule_of
from rea_edge.takes import choices, keys_of, plainly
from rea_edge.topics import is_name, is_root

MAX_ENDPOINTS = 8
ROOT_MOST = 120  # characters; with the longest names below it a topic has 256 bytes then, and some brokers refuse more
IDENTIFIED = 'identity = "broker" or "keys"'
Shared = Annotated[int, Meta(ge=0, le=10**12)]

_LOOPBACK = re.compile(r"localhost|::1|127\.\d+\.\d+\.\d+")
_NEVER_WRITTEN = {"password", "api_key", "key_texts"}  # they are read from files of their own
_SECRET = re.compile(r"[a-z][a-z0-9_]{0,47}_file")
_TLS = {"mqtts", "wss"}


class _Limits(TaskLimits, frozen=True):
    day_tokens: Shared = 0
    month_tokens: Shared = 0
    day_cost: Annotated[float, Meta(ge=0, le=1e9)] = 0.0
    month_cost: Annotated[float, Meta(ge=0, le=1e9)] = 0.0
    queue: Annotated[int, Meta(ge=1, le=10_000)] = Queue().size
    queue_s: Annotated[float, Meta(ge=0.1, le=2_592_000)] = Queue().longest_s


class _File(Table, frozen=True):
    node: Node = Node()
    broker: Broker = Broker()
    endpoint: tuple[Endpoint, ...] = ()
    limits: _Limits = _Limits()
    queue: Sending = Sending()
    memory: Memory = Memory()
    tools: Tools = Tools()
    store: StoreRoom = StoreRoom()
    access: Access = Access()
    secrets: dict[str, Path] = field(default_factory=dict)
    task: dict[str, dict[str, object]] = field(default_factory=dict)
    gate: dict[str, dict[str, object]] = field(default_factory=dict)
    peer: dict[str, dict[str, object]] = field(default_factory=dict)
    log: Log = Log()


_T = TypeVar("_T", bound=Struct)


def settings(keys: dict[str, object]) -> Settings:
    """Check one table tree and give its settings; what depends on the machine is still empty (see `load`)."""
    found, task_types, gates, peers = _shaped(keys)
    checked = Settings(
        node=found.node,
        broker=found.broker,
        endpoints=found.endpoint,
        limits=found.limits.of(Limits()),
        allowance=Allowance(
            day_tokens=found.limits.day_tokens,
            month_tokens=found.limits.month_tokens,
            day_cost=found.limits.day_cost,
            month_cost=found.limits.month_cost,
        ),
        queue=Queue(size=found.limits.queue, longest_s=found.limits.queue_s),
        paces=_paces(found.queue),
        memory=found.memory,
        tools=found.tools,
        store=found.store,
        access=found.access,
        task_types=task_types,
        gates={name: _rule(gate, f"gate.{name}") for name, gate in gates.items()},
        peers=peers,
        log=found.log,
    )
    check_node(checked.node.id, "node.id")
    check_broker(checked.broker)
    _check_endpoints(checked.endpoints)
    _check_access(checked.access)
    _check_approvers(checked)
    _check_limits(checked)
    check_peers(checked.peers)
    return checked


def check_shape(keys: dict[str, object]) -> None:
    """Refuse unknown keys, wrong types and ranges of one file on its own; the rest of it may stand in another."""
    _shaped(keys)


def convert(keys: dict[str, object], table: type[_T], place: str = "") -> _T:
    """Give one table as its struct. `place` is the path of the table itself."""
    try:
        return msgspec.convert(keys, table, dec_hook=_special)
    except msgspec.ValidationError as exc:
        _refuse(str(exc), keys, table, place)


def secret_files(keys: dict[str, object]) -> dict[str, Path]:
    """The files of `[secrets]` by the names of the secrets."""
    return {key.removesuffix("_file"): file for key, file in _shaped(keys)[0].secrets.items()}


def check_node(name: str, place: str) -> None:
    """Refuse a node or person name that no topic can carry; an empty one is not chosen yet."""
    if name and (not is_name(name) or name.startswith("_")):
        raise ConfigInvalid(place, f"expected 1 to 36 of A-Z a-z 0-9 _ - and no _ in front, got {name!r}")


def check_broker(broker: Broker, table: str = "broker") -> None:
    """Refuse an address that cannot be used or would show passwords, and TLS files that would not be used."""
    if len(broker.root) > ROOT_MOST:
        raise ConfigInvalid(
            f"{table}.root",
            f"has {len(broker.root)} characters, at most {ROOT_MOST} leave room for topics in 256 bytes",
        )
    if not is_root(broker.root):
        raise ConfigInvalid(f"{table}.root", f"expected one to four names with / between, got {broker.root!r}")
    address = _address(broker.url, f"{table}.url", ("mqtt", "mqtts", "ws", "wss", "unix"))
    if address.scheme in {"mqtt", "ws"} and not (broker.insecure or _LOOPBACK.fullmatch(address.hostname or "")):
        raise ConfigInvalid(
            f"{table}.url",
            f"{address.scheme} beyond loopback can be read on the way: use {address.scheme}s, or insecure = true",
        )
    if (broker.cert_file is None) != (broker.key_file is None):
        raise ConfigInvalid(f"{table}.cert_file", "cert_file and key_file go together")
    if address.scheme not in _TLS and (broker.ca_file or broker.cert_file):
        raise ConfigInvalid(f"{table}.url", f"ca_file, cert_file and key_file need mqtts or wss, got {address.scheme}")
    if broker.password_file and not broker.username:
        raise ConfigInvalid(f"{table}.password_file", "needs a username")


def _shaped(
    keys: dict[str, object],
) -> tuple[_File, dict[str, TaskType], dict[str, NodeGate], dict[str, Peer]]:
    found = convert(keys, _File)
    for key in found.secrets:
        if not _SECRET.fullmatch(key):
            raise ConfigInvalid(f"secrets.{key}", "unknown key; each is the name of a secret, such as weather_key_file")
    for name, gate in found.gate.items():
        with _rule_at(f"gate.{name}"):
            check_tool(name, "")
            check_pairs(gate.get("ranges"))
    task_types = {name: convert(table, TaskType, f"task.{name}") for name, table in found.task.items()}
    gates = {name: convert(table, NodeGate, f"gate.{name}") for name, table in found.gate.items()}
    peers = {name: convert(table, Peer, f"peer.{name}") for name, table in found.peer.items()}
    return found, task_types, gates, peers


def _rule(gate: NodeGate, place: str) -> Rule:
    with _rule_at(place):
        return rule_of(gate)


@contextmanager
def _rule_at(place: str) -> Iterator[None]:
    try:
        yield
    except RuleInvalid as exc:
        raise ConfigInvalid(_join(place, exc.key), str(exc)) from exc


def _special(kind: type, value: object) -> object:
    if kind is object:
        return value
    if kind is Secret:
        raise ValueError("never in the file itself: write it to a file of its own and name that in `..._file`")
    if not isinstance(value, str) or not value:
        raise ValueError(f"Expected a path, got {value!r}")
    return Path(value)


def _refuse(said: str, keys: dict[str, object], table: type[Struct], above: str) -> NoReturn:
    """Turn msgspec's sentence into ours: the path as people write it, what was expected, what came."""
    sentence, _, path = said.partition(" - at `$")
    place = path.strip("`.")
    if unknown := re.search(r"unknown field `(.*)`", sentence):
        known = [key for key in keys_of(table, place) if key not in _NEVER_WRITTEN]
        raise ConfigInvalid(_join(above, place, unknown[1]), f"unknown key; there are {', '.join(known)}")
    if missing := re.search(r"missing required field `(.*)`", sentence):
        raise ConfigInvalid(_join(above, place, missing[1]), "missing")
    got = "" if ", got " in sentence or "never in" in sentence else f", got {_short(_at(keys, place))}"
    if sentence.startswith("Invalid enum value"):
        sentence = "Expected one of " + ", ".join(choices(table, place))
    raise ConfigInvalid(_join(above, place), plainly(sentence) + got)


def _join(*parts: str) -> str:
    return ".".join(part for part in parts if part)


def _at(value: object, place: str) -> object:
    for name, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", place):
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, list) and index:
            value = value[int(index)]
    return value


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _address(url: str, place: str, schemes: tuple[str, ...]) -> SplitResult:
    try:
        address = urlsplit(url)
        port = address.port
    except ValueError:
        # Not shown either: what stands where a port should may be a password.
        raise ConfigInvalid(place, "not a URL: expected SCHEME://HOST:PORT") from None
    if address.username is not None or address.password is not None:
        raise ConfigInvalid(place, "no user or password in a URL: use username and password_file, or api_key_file")
    if address.scheme not in schemes:
        raise ConfigInvalid(place, f"expected a URL of {', '.join(schemes)}, got {url!r}")
    lacking = address.netloc != "" or len(address.path) < 2 if address.scheme == "unix" else not address.hostname
    if lacking or port == 0 or address.query or address.fragment:
        raise ConfigInvalid(place, f"expected SCHEME://HOST:PORT or unix:///PATH, got {url!r}")
    return address


def _check_endpoints(endpoints: tuple[Endpoint, ...]) -> None:
    if len(endpoints) > MAX_ENDPOINTS:
        raise ConfigInvalid(f"endpoint[{MAX_ENDPOINTS}]", f"expected at most {MAX_ENDPOINTS} endpoints")
    names = [endpoint.name for endpoint in endpoints]
    for index, endpoint in enumerate(endpoints):
        if endpoint.name in names[:index]:
            raise ConfigInvalid(f"endpoint[{index}].name", f"there is an endpoint {endpoint.name!r} already")
        _address(endpoint.url, f"endpoint[{index}].url", ("http", "https"))


def _check_access(access: Access) -> None:
    named = {
        "operators": access.operators,
        "approvers": access.approvers,
        "senders": access.senders,
        "callers": access.callers,
    }
    for key, given in named.items():
        if given and access.identity == "none":
            raise ConfigInvalid(f"access.{key}", f"needs {IDENTIFIED}: else anyone may take any name")
    _check_keys(access)
    listed = (("operators", access.operators), ("approvers", access.approvers), ("senders", access.senders or ()))
    for key, names in listed:
        for index, name in enumerate(names):
            _check_person(access, name, f"access.{key}[{index}]")
    for tool, names in access.callers.items():
        with _rule_at(f"access.callers.{tool}"):
            check_tool(tool, "")
        for index, name in enumerate(names):
            _check_person(access, name, f"access.callers.{tool}[{index}]")


def _check_keys(access: Access) -> None:
    if access.identity == "none" and access.keys:
        raise ConfigInvalid("access.keys", f"needs {IDENTIFIED}: else anyone may send under a name that has no key")
    if access.identity == "keys" and not access.keys:
        raise ConfigInvalid("access.keys", 'with identity = "keys" nobody could send: name = "FILE" for each person')
    for name in access.keys:
        check_node(name or "_", f"access.keys.{name}")


def _check_person(access: Access, name: str, place: str) -> None:
    check_node(name or "_", place)
    if access.identity == "keys" and name not in access.keys:
        raise ConfigInvalid(place, f"{name} has no key in [access] keys, and could say nothing")


def _check_approvers(found: Settings) -> None:
    for tool, rule in found.gates.items():
        if rule.approvers and found.access.identity == "none":
            raise ConfigInvalid(f"gate.{tool}.approvers", f"needs [access] {IDENTIFIED}: else anyone may take any name")
        for index, name in enumerate(rule.approvers):
            _check_person(found.access, name, f"gate.{tool}.approvers[{index}]")


def _paces(table: Sending) -> Paces:
    def pace(key: str, text: str, usual: Pace, burst: int | None = None) -> Pace:
        try:
            rate = rate_of(text)
        except ValueError as exc:
            raise ConfigInvalid(f"queue.{key}", f"{exc}, got {text!r}") from exc
        return Pace(per_s=rate.times / rate.seconds, burst=burst or max(usual.burst, rate.times))

    usual = Paces()
    run = pace("rate", table.rate, usual.run, table.burst)
    queries = pace("queries", table.queries, usual.query)
    return Paces(run=run, again=run, query=queries, control=pace("controls", table.controls, usual.control))


def _check_limits(found: Settings) -> None:
    if found.memory.soft_mib >= found.memory.hard_mib:
        raise ConfigInvalid(
            "memory.soft_mib", f"expected less than hard_mib, {found.memory.hard_mib}, got {found.memory.soft_mib}"
        )
    if found.limits.answer_tokens > found.limits.tokens:
        raise ConfigInvalid(
            "limits.answer_tokens", f"expected at most tokens, {found.limits.tokens}, got {found.limits.answer_tokens}"
        )
    for name, kind in found.task_types.items():
        _check_task_type(name, kind, found.limits)


def _check_task_type(name: str, kind: TaskType, most: Limits) -> None:
    place = f"task.{name}"
    if not is_name(name):
        raise ConfigInvalid(place, "expected a name of 1 to 36 of A-Z a-z 0-9 _ -")
    for index, tool in enumerate(kind.tools or ()):
        with _rule_at(place):
            check_tool(tool, f"tools[{index}]")
    for index, wanted in enumerate(kind.done_when):
        with _rule_at(place):
            check_wanted(wanted, f"done_when[{index}]")
    if kind.commands > 1 and kind.protocol not in (None, "command"):
        raise ConfigInvalid(f"{place}.commands", f"only for protocol command, got {kind.protocol}")
    own = msgspec.structs.asdict(kind.limits)
    for limit, highest in msgspec.structs.asdict(most).items():
        if limit == "cost" and highest == 0:
            continue  # no limit
        if own[limit] is not None and (own[limit] > highest or (limit == "cost" and own[limit] == 0)):
            raise ConfigInvalid(
                f"{place}.limits.{limit}", f"expected at most that of [limits], {highest}, got {own[limit]}"
            )
