"""Every setting as a frozen value, each with its unit and the reason for its default. Reads no file and no environment.

The tables of the TOML file are these structs, key by key; `load` fills in what depends on the machine.
"""

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct, field, structs

from rea_edge.allowance import Allowance
from rea_edge.fairness import Paces
from rea_edge.records import EffectClass, Limits, Mode, Name, Protocol, Rule
from rea_edge.rules import Wanted

Seconds = Annotated[float, Meta(ge=0.1, le=86_400)]
Mebibytes = Annotated[int, Meta(ge=16, le=65_536)]
Steps = Annotated[int, Meta(ge=1, le=10_000)]
Tokens = Annotated[int, Meta(ge=16, le=100_000_000)]


class Secret:
    """A password or key. Shows itself only to who asks with `reveal`: never in `repr`, `str`, or a listing."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return "Secret(...)"


class Table(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of a TOML table: a key that is not a field is refused."""


class Node(Table, frozen=True):
    id: str = ""
    # name in topics, `[A-Za-z0-9_-]{1,36}`; default: the broker username, else host name and 6 hex of the machine id
    state_dir: Path = Path()
    # folder of the state file; default: $STATE_DIRECTORY (systemd), else ~/.local/state/rea-edge
    tools: tuple[str, ...] = ("board",)
    # a bare name is a shipped tool file, else a file or folder; `board` only reads, so it is safe everywhere


class Broker(Table, frozen=True):
    url: str = "mqtt://127.0.0.1:1883"
    # mqtt, mqtts, ws, wss or unix:///path; a broker on the board itself is the common case
    insecure: bool = False
    # allow mqtt and ws beyond loopback: passwords and commands would be readable on the way
    root: str = "rea/v1"
    # first levels of every topic, at most four names
    username: str | None = None
    # login of this node, by the shipped access files also its id; absent: anonymous
    password: Secret | None = None
    # never in the file itself: read from password_file, else the systemd credential broker_password
    password_file: Path | None = None
    ca_file: Path | None = None
    # PEM; default: the system's authorities, or the credential broker_ca
    cert_file: Path | None = None
    key_file: Path | None = None
    # PEM, both or none; or the credentials broker_cert and broker_key
    client_id: Annotated[str, Meta(min_length=1, max_length=64)] | None = None
    # default: chosen by the MQTT side from the node's id; whoever knows it and may log in can take the session over
    protocol: Literal["auto", "5", "3.1.1"] = "auto"
    # auto: 5, then 3.1.1 where the broker refuses or does not answer
    keepalive_s: Annotated[int, Meta(ge=2, le=3_600)] = 30
    # seconds; a dead link is known after at most twice this
    reconnect_min_s: Annotated[float, Meta(ge=0.05, le=300)] = 1.0
    # seconds before the first new attempt; doubles, with jitter
    session_expiry_s: Annotated[int, Meta(ge=0, le=0xFFFF_FFFE)] = 604_800
    # seconds the broker keeps our queue while we are away: a week covers a repair


class Endpoint(Table, frozen=True):
    url: str
    # http or https, usually ending in /v1; https checks the certificate by the system's authorities
    name: Name = "local"
    # how status and journal call it
    model: Annotated[str, Meta(min_length=1, max_length=200)] = "any"
    # sent as it is; llama.cpp serves one model and ignores it
    api_key: Secret | None = None
    # never in the file itself: read from api_key_file, else the systemd credential api_key_NAME
    api_key_file: Path | None = None
    connect_s: Seconds = 5.0
    # seconds for name look-up, connection and TLS
    idle_s: Seconds = 30.0
    # seconds between two pieces of an answer that has begun: a small board may pause for a long prompt
    context_tokens: Annotated[int, Meta(ge=256, le=100_000_000)] | None = None
    # default: probed
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    # default: 0 in protocol command, else 0.2: a little freedom leaves a rut, more costs format
    protocol: Literal["auto", "native", "json", "react", "command"] = "auto"
    # auto: what the exam or the probe found best
    names: dict[str, Annotated[str, Meta(pattern=r"^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$")]] = field(default_factory=dict)
    # tool = "other name": for a name that the server or its model forbids; well-known ones are renamed anyway


class Queue(Struct, frozen=True, kw_only=True):
    """Written in `[limits]` as queue and queue_s."""

    size: int = 50
    # accepted tasks that wait; more are refused with `busy`. 50 bodies of 64 KiB are 3 MiB of state
    longest_s: float = 3_600.0
    # seconds an accepted task may wait for its start, then it ends as `expired`: an hour-old wish is seldom one


class Tools(Table, frozen=True):
    """`[tools]`: how every call runs."""

    user: str = ""
    # an unprivileged user for tools, where the daemon runs as root; default: the daemon's own
    sandbox: Literal["required", "if_possible"] = "required"
    # required: a tool that declares a sandbox does not run on a kernel without Landlock


class Sending(Table, frozen=True):
    """`[queue]`: what one sender may send. Written as in `[gate.NAME]`; more is refused with `busy`, saying when."""

    rate: str = "2/second"
    # new tasks and calls in the long run: each costs the flash about 40 KB
    burst: Annotated[int, Meta(ge=1, le=10_000)] = 60
    # and that many at once: a page of buttons, or a script
    queries: str = "30/second"
    # and 100 at once: a long listing is many, and each is answered without writing
    controls: str = "5/second"
    # and 60 at once; cancels above all, which nobody else's flood may delay


class Memory(Table, frozen=True):
    soft_mib: Mebibytes = 60
    # MiB of the daemon's resident memory; above it new requests are refused and caches dropped; a task peaks at 56
    hard_mib: Mebibytes = 85
    # MiB; above it the step is finished and committed, then exit 75 and a clean start
    tool_mib: Mebibytes = 48
    # MiB of one call: enough for a small Python program. The unit's MemoryHigh is hard_mib + tool_mib


class StoreRoom(Table, frozen=True):
    """Written as `[store]`."""

    max_mib: Annotated[int, Meta(ge=8, le=1024)] = 16
    # MiB of the state file: a task takes about 10 KB, and a run may take an eighth of it
    keep_days: Annotated[float, Meta(ge=1, le=3_650)] = 30.0
    # days after its end that the journal of a task or call is kept, if there is room
    keep_runs: Annotated[int, Meta(ge=10, le=100_000)] = 2000
    # journals of ended tasks and calls at most


class Access(Table, frozen=True):
    identity: Literal["none", "broker", "keys"] = "none"
    # none: the name in a topic is taken as it comes, anyone who may publish may send and call, nobody operates
    # broker: its access rules bind the name in a topic to a login; the operator's word for it (`check --acl` tests it)
    # keys: who has no key below sends nothing; for a broker or bridge that is not trusted
    keys: dict[str, Path] = field(default_factory=dict)
    # name = "FILE": requests in this name count only if signed with the key in it, hex digits, 32 at least. One by one
    # and not a folder: a file that is gone must stop the start, and not free a name from signing
    key_texts: dict[str, Secret] = field(default_factory=dict)
    # never in the file itself: read from keys
    plain_text: Mode = "query"
    # mode of a goal that is no JSON; query: a stray message on the topic cannot move anything
    operators: tuple[Name, ...] = ()
    # who may halt, release and reload the node, and see, cancel and settle other people's tasks; not with
    # identity = "none", nor:
    approvers: tuple[Name, ...] = ()
    # who may say yes to what needs a person's yes, where [gate.TOOL] names nobody: one list does for most nodes
    senders: tuple[Name, ...] | None = None
    # who may send anything at all, besides the operators; default: anyone
    callers: dict[str, tuple[Name, ...]] = field(default_factory=dict)
    # tool = [names]: to whom alone this tool is open, in direct calls and in tasks; default: to anyone

    @property
    def key_bytes(self) -> dict[str, bytes]:
        return {name: bytes.fromhex(text.reveal()) for name, text in self.key_texts.items()}

    def admits(self, who: str) -> bool:
        return self.senders is None or who in self.senders or who in self.operators

    def operates(self, who: str) -> bool:
        return who in self.operators

    def closed_to(self, who: str) -> tuple[str, ...]:
        """The tools that are not open to this sender."""
        return tuple(tool for tool, names in self.callers.items() if who not in names)


class TaskLimits(Table, frozen=True):
    """What a task type lowers; absent: as in `[limits]`."""

    steps: Steps | None = None
    tokens: Tokens | None = None
    answer_tokens: Tokens | None = None
    tool_s: Seconds | None = None
    task_s: Seconds | None = None
    cost: Annotated[float, Meta(ge=0, le=1e9)] | None = None

    def of(self, most: Limits) -> Limits:
        """These limits, and where none is said that of `most`."""
        said = {key: getattr(self, key) for key in most.__struct_fields__}
        return structs.replace(most, **{key: value for key, value in said.items() if value is not None})


class TaskType(Table, frozen=True):
    """`[task.NAME]`; `[task.default]` serves requests that name no type."""

    tools: tuple[str, ...] | None = None
    # names of the tools on offer; default: all
    mode: Mode | None = None
    # query offers only tools that read; default: the request's, else act
    min_observations: Annotated[int, Meta(ge=0, le=100)] | None = None
    # results the model must have seen before it may finish; default: 1 where tools are offered, else 0
    done_when: tuple[Wanted, ...] = ()
    # what must have come true before the task counts as achieved, by what tools returned since the last act
    protocol: Protocol | None = None
    # default: the endpoint's
    prompt: str | None = None
    # zh: the shipped ones in Chinese; or the name of a shipped prompt, or a text file, which then keeps its protocol
    untrusted: Literal["ask", "allow"] = "ask"
    # ask: once the model has been told free text (no number, true or false, or value of a declared enum), its calls of
    # `once` and outward tools need a person's yes, since it may follow that text; allow: they need none for that
    repeats: Annotated[int, Meta(ge=1, le=1_000)] = 2
    # times in a row that a call may give the same result, before it counts as a circle and is refused: once to make sure
    commands: Annotated[int, Meta(ge=1, le=32)] = 1
    # lines that may run in protocol command; a tiny model is right about three times in four, per line
    limits: TaskLimits = TaskLimits()


class Peer(Table, frozen=True):
    """`[peer.NAME]`: tools of another node of ours, offered here as `NAME__tool`. What is not named is not looked for."""

    tools: Annotated[tuple[str, ...], Meta(min_length=1, max_length=32)]
    # by their names there; offered once `rea-edge peers accept NAME` has pinned what its card says of them
    node: Name | None = None
    # its id; default: NAME
    root: str | None = None
    # first levels of its topics, on our broker; default: those of [broker]
    effect: dict[str, EffectClass] = field(default_factory=dict)
    # tool = its effect; the stricter of this and the card counts, and without it `once`: a card is nobody's word but its own
    timeout_s: dict[str, Annotated[float, Meta(ge=0.1, le=3_600)]] = field(default_factory=dict)
    # tool = seconds for its answer; default: as its card says and 5 for the way. One that waits for a person needs more

    signing_key_file: Path | None = None
    # this node's key there, where its [access] keys has one for it: hex digits, mode 600; or the credential peer_key_NAME
    signing_key: Secret | None = None
    # never in the file itself: read from signing_key_file

    def id_of(self, name: str) -> str:
        """The id of the node that this configuration calls `name`."""
        return self.node or name


class Log(Table, frozen=True):
    level: Literal["debug", "info", "warning", "error"] = "info"
    # debug also shows payloads


class Settings(Struct, frozen=True, kw_only=True):
    """One whole configuration, checked. Nothing in it changes; a reload makes another."""

    node: Node
    broker: Broker
    endpoints: tuple[Endpoint, ...] = ()
    # in order of preference; none: a tool node
    limits: Limits = Limits()
    # of one run: 8 steps, 20000 tokens, 1024 tokens an answer, 10 s a call, 300 active seconds; and the most that its
    # calls may cost, in the unit of the tools' `cost`: 0 is no limit, for most tools cost nothing
    allowance: Allowance = Allowance()
    # of all tasks together, in [limits]: day_tokens, month_tokens, and day_cost, month_cost for what calls cost, also
    # direct ones; 0 is none: a model on the board is free, and so are most tools
    queue: Queue = Queue()
    paces: Paces = Paces()
    # of each sender, as `[queue]` says
    memory: Memory = Memory()
    tools: Tools = Tools()
    store: StoreRoom = StoreRoom()
    access: Access = Access()
    tool_secrets: dict[str, Secret] = field(default_factory=dict)
    # by name, what `[secrets] NAME_file` or the systemd credential secret_NAME holds; for the tools that need them alone
    task_types: dict[str, TaskType] = field(default_factory=dict)
    gates: dict[str, Rule] = field(default_factory=dict)
    # by tool; what its declaration says holds as well
    peers: dict[str, Peer] = field(default_factory=dict)
    # other nodes whose tools are offered here, by the name in front of these
    log: Log = Log()
    files: tuple[Path, ...] = ()
    # what was read, in order: the file and its conf.d

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must stand in no journal, answer or listing."""
        peers = (one.signing_key for one in self.peers.values())
        keys = (*(one.api_key for one in self.endpoints), *self.access.key_texts.values(), *peers)
        given = (self.broker.password, *keys, *self.tool_secrets.values())
        return tuple(secret.reveal() for secret in given if secret is not None)

    def task_type(self, name: str) -> TaskType | None:
        """The named task type; `default` always exists; None if nobody configured the name."""
        return self.task_types.get(name, TaskType() if name == "default" else None)

    def limits_of(self, kind: TaskType) -> Limits:
        """The limits of one run of this type: `[limits]`, lowered where the type says so."""
        return kind.limits.of(self.limits)
