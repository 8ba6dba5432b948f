"""What passes over the link and what can be seen of it, as frozen structs. Holds no behaviour and no paho."""

from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from rea_edge.mqtt.limits import Limits

Protocol = Literal["5", "3.1.1"]
Phase = Literal["new", "connecting", "up", "resting", "stopped"]


class Incoming(Struct, frozen=True, kw_only=True):
    """A message as the broker gave it.

    `expires_in_s`, `response_topic` and `correlation` are MQTT 5's, None where absent. `waited`: it arrived before
    the fence of this connection was seen, so it may have lain in the broker's queue. `controls`: it came over the
    session of the controls, which may have been away for another time than the other one.
    """

    topic: str
    payload: bytes
    retained: bool
    qos: int
    expires_in_s: int | None = None
    response_topic: str | None = None
    correlation: bytes | None = None
    waited: bool = False
    controls: bool = False


class Outgoing(Struct, frozen=True, kw_only=True):
    """A message to publish. `row` is its number in the outbox, None for what is only told. `urgent`: it goes over the
    session of the controls where there is one, else before what else was told. `until_s`: by the monotonic clock, when it
    is of no use any more; it is not sent after that, and what is left is its expiry."""

    row: int | None = None
    topic: str
    payload: bytes
    qos: int = 1
    retain: bool = False
    expires_in_s: int | None = None
    response_topic: str | None = None
    correlation: bytes | None = None
    urgent: bool = False
    until_s: float | None = None


class Controls(Struct, frozen=True, kw_only=True):
    """A session of its own for what must not wait behind the rest: its client id, what it hears, its fence."""

    client_id: str
    subscriptions: tuple[str, ...]
    fence: Callable[[], str] | None = None


class Presence(Struct, frozen=True, kw_only=True):
    """How an owner makes sure that nobody else acts in its name: the topics it hears before all else, what it does when
    the first connection is up, whether it may act (`no`: somebody else does), and the client id it watches with."""

    topics: tuple[str, ...]
    first_up: Callable[[], None]
    admitted: Callable[[], Literal["yes", "wait", "no"]]
    standby_id: str


class Will(Struct, frozen=True, kw_only=True):
    """What the broker publishes for us when the connection ends without a DISCONNECT."""

    topic: str
    payload: bytes
    qos: int = 1
    retain: bool = True
    expires_in_s: int | None = None


class Session(Struct, frozen=True, kw_only=True):
    """A connection that has its subscriptions. `count` numbers the connections of this link from 1.

    `present`: the broker had kept our session. `refused` names the filters it did not grant. `controls`: the
    controls have their own session beside it.
    """

    count: int
    protocol: Protocol
    present: bool
    refused: tuple[str, ...] = ()
    controls: bool = False


class LinkState(Struct, frozen=True, kw_only=True):
    """A snapshot for status, health and the watchdog.

    `beat` is the monotonic time of the thread's last turn; turns are at most 10 s apart, except in phase
    `connecting`, where a name look-up may block for longer.
    """

    phase: Phase
    beat: float
    connected: bool = False
    protocol: Protocol | None = None
    sessions: int = 0
    fenced: bool = False
    refused: tuple[str, ...] = ()
    limits: Limits | None = None  # of the broker, while connected
    unheard: bool = False  # what is published does not come back where it should
    last_error: str = ""
    alone: str = ""  # why nothing may be connected beside it with the same login; empty: nothing is known of that
    controls: str = ""  # `own` session or `shared` with the rest, and why; empty while not connected or not asked for
    in_flight: int = 0
    waiting: int = 0
    waiting_bytes: int = 0
    dropped_qos0: int = 0
    dropped_qos1: int = 0
    too_large: int = 0
    unreadable: int = 0
