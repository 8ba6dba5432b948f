"""One exchange with a device: what is asked of it, how far it has come, how it ended. Pure: time is given as a number.

Subscribed first, then looked whether the device is there, then published, then awaited. Changed by the thread of the
exchange alone, but for `Talk.give_up`, which is its caller's.
"""

import re
from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from rea_edge.mqtt.messages import Incoming, Outgoing

_WORD = re.compile(r"[A-Za-z0-9_-]{1,16}")
PRESENCE_S = 0.5  # for what is retained of the device's presence to come; brokers send it behind the SUBACK, or before

# Where a talk is, or what it waits for. From `sent` on the device may have heard it.
Stage = Literal["waiting", "subscribing", "looking", "ready", "sent", "over"]
Why = Literal[
    "no_broker", "denied", "offline", "no_reply", "unacknowledged", "broker_gone", "too_large", "cancelled", "alone"
]


class Ask(Struct, frozen=True, kw_only=True):
    """`out` is published, then a message on `reply` is awaited that `matches`; either may be absent, not both.

    With `out` only what is said after it counts, never what was retained; without it a retained message is the answer.
    `presence`: topics that say whether the device is there. `away(topic, payload)`: whether that says that it is not;
    a device of which nothing is retained may be there. Both are asked in the thread of the exchange and never raise.
    """

    out: Outgoing | None = None
    reply: str = ""
    matches: Callable[[bytes], bool] = lambda _payload: True
    presence: tuple[str, ...] = ()
    away: Callable[[str, bytes], bool] = lambda _topic, _payload: False


class Heard(Struct, frozen=True, kw_only=True):
    """It was carried out. `payload` is the reply, None where none was awaited."""

    payload: bytes | None = None


class Missed(Struct, frozen=True, kw_only=True):
    """It was not, or nobody knows. `sent`: the device may have heard it. `others`: messages that were no reply to it."""

    why: Why
    sent: bool
    detail: str = ""
    others: int = 0


class Talk:
    """`end` is None until it is over."""

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        self.stage: Stage = "waiting"
        self.end: Heard | Missed | None = None
        self.acknowledged = False
        self.others = 0
        self.due_s: float | None = None  # when it goes on though nothing comes
        self.subscribed = False
        self._kept: bytes | None = None  # the answer to a mere read, until it is known that the device is there
        self._ungranted: set[str] = set()
        self._present: set[str] = set()  # topics of `presence` that have spoken

    @property
    def topics(self) -> tuple[str, ...]:
        """What has to be heard for it."""
        return tuple(dict.fromkeys([*self.ask.presence, *([self.ask.reply] if self.ask.reply else [])]))

    @property
    def sent(self) -> bool:
        return self.stage == "sent"

    def begin(self) -> None:
        """Its topics are being subscribed to."""
        self._ungranted = set(self.topics)
        self._present = set()
        self.subscribed = True
        self.stage = "subscribing" if self._ungranted else "ready"

    def granted(self, topic: str, yes: bool, now_s: float) -> None:
        if topic not in self._ungranted:
            return
        self._ungranted.discard(topic)
        if not yes:
            self._miss("denied", f"the broker does not let this node read {topic}")
        elif not self._ungranted:
            self.stage = "looking"
            self.due_s = now_s + PRESENCE_S
            self.look(now_s)

    def look(self, now_s: float) -> None:
        """Go on where the device is there, or says nothing of it."""
        if self.stage == "looking" and (set(self.ask.presence) <= self._present or now_s >= (self.due_s or 0.0)):
            self.stage, self.due_s = "ready", None
            if self._kept is not None:
                self._over(Heard(payload=self._kept))

    def hear(self, incoming: Incoming, now_s: float) -> None:
        if incoming.topic in self.ask.presence and incoming.payload:
            self._hear_presence(incoming, now_s)
        if incoming.topic != self.ask.reply or self.end is not None:
            return
        if self.ask.out is not None and (not self.sent or incoming.retained or _same(incoming, self.ask.out)):
            return
        if not self.ask.matches(incoming.payload):
            self.others += 1
        elif self.stage in ("ready", "sent"):
            self._over(Heard(payload=incoming.payload))
        else:
            self._kept = incoming.payload

    def hear_too_large(self, topic: str) -> None:
        if topic == self.ask.reply and (self.ask.out is None or self.sent):
            self._miss("too_large", f"what came on {topic} is too large")

    def put(self) -> None:
        """It is handed over, right now."""
        self.stage = "sent"

    def taken(self, refusal: int | None) -> None:
        """The broker has what was published, or will not have it."""
        out = self.ask.out
        assert out is not None
        self.acknowledged = True
        if refusal is not None:
            self.stage = "ready"  # nobody has heard it
            self._miss("denied", f"the broker refused a message to {out.topic} (MQTT reason code {refusal})")
        elif not self.ask.reply:
            self._over(Heard())

    def cut_off(self, reason: str) -> None:
        """The connection ended. What the device cannot have heard begins anew on the next one."""
        if self.sent:
            self._miss("broker_gone", reason)
        elif self.end is None:
            self.stage, self.due_s, self.subscribed, self._kept = "waiting", None, False, None

    def forbid(self, why: str) -> None:
        """No connection may be made for it."""
        if self.stage == "waiting":
            self._miss("alone", why)

    def give_up(self, *, cancelled: bool, trouble: str) -> None:
        """Its caller waits no longer. `trouble`: what keeps the exchange from being connected, empty if nothing does."""
        if cancelled:
            self._miss("cancelled", "")
        elif self.sent and not self.acknowledged and self.ask.out is not None and self.ask.out.qos:
            self._miss("unacknowledged", "")
        elif self.sent or (self.ask.out is None and self.stage in ("looking", "ready")):
            self._miss("no_reply", "")
        else:
            self._miss("no_broker", trouble or "it did not answer")

    def _hear_presence(self, incoming: Incoming, now_s: float) -> None:
        if self.stage not in ("subscribing", "looking"):
            return
        if self.ask.away(incoming.topic, incoming.payload):
            # Its own words only where they are one plain word: they go on to whoever asked, a model included.
            word = incoming.payload.decode(errors="replace")
            self._miss("offline", f"{incoming.topic} says {word if _WORD.fullmatch(word) else 'so'}")
        else:
            self._present.add(incoming.topic)
            self.look(now_s)

    def _miss(self, why: Why, detail: str) -> None:
        self._over(Missed(why=why, sent=self.sent, detail=detail, others=self.others))

    def _over(self, end: Heard | Missed) -> None:
        if self.end is None:
            self.end = end
            self.stage, self.due_s = "over", None


def _same(incoming: Incoming, out: Outgoing) -> bool:
    """It is the request itself: a broker gives it back to a connection that hears its topic."""
    return incoming.topic == out.topic and incoming.payload == out.payload
