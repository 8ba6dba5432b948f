"""What one connection is for, and what it tells its owner. Holds no connection and no paho."""

from collections.abc import Callable

from msgspec import Struct

from rea_edge.mqtt.messages import Incoming, Outgoing, Will
from rea_edge.mqtt.settings import LinkSettings


class NotAccepted(Exception):
    """`accept` said no: the message stays with the broker, and the connection must end for it to come again."""


class Ears(Struct, frozen=True, kw_only=True):
    """What a connection tells its owner.

    `acknowledged` gets the reason code, None for good, `found` what a look finds. `shorter` gives a payload of at most so
    many bytes for one that is too large for the broker, None where there is none. `before_connect` is called when the
    broker is reached, right before the CONNECT that carries its will, and `connected` when it was taken, before anything
    is accepted: whether the broker had kept our session.
    """

    accept: Callable[[Incoming], bool]
    acknowledged: Callable[[Outgoing, int | None], None]
    before_connect: Callable[[], Will | None]
    connected: Callable[[bool], None]
    shorter: Callable[[bytes, int], bytes | None]
    found: Callable[[Incoming], None]
    fence: Callable[[], str] | None


class Line(Struct, frozen=True, kw_only=True):
    """Whose session a connection takes up, what it hears, and what it once heard and must no longer. The will is
    lowered to what the broker was found to take: it says so only in its refusal."""

    settings: LinkSettings
    subscriptions: tuple[str, ...]
    dropped: tuple[str, ...] = ()
    controls: bool = False
    will_retain: bool = True
    will_qos: int = 1
    presence: tuple[str, ...] = ()  # topics of our own that are heard at once, QoS 0, also while the rest is held
    look: str = ""  # a filter: what is retained below it is looked at once
    standby: bool = False  # it only watches
