"""What every simulated device is: what it says at birth, what it answers, what it did, and how it may misbehave.

Holds no sockets, no threads and no device: those are in `powered` and in the files named after them.
"""

from typing import Literal, NamedTuple

import msgspec

Mood = Literal["well", "deaf", "mute", "stubborn", "garbled", "astray"]
GARBLED = b'\xff{"state": "O'
# What some protocols repeat of a question in its answer, so that an asker knows it for his.
REPEATED = ("id", "transaction")


class Said(NamedTuple):
    """A message of a device, to be published `after_s` seconds from now."""

    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    after_s: float = 0.0


class Deed(NamedTuple):
    """What a device has really done: which one, to what of it, and the value since."""

    device: str
    what: str
    value: object


class Appliance:
    """A device apart from its connection: `births` when it comes online, `take` for each message it hears.

    mood    well; deaf (takes no notice); mute (acts, says nothing); stubborn (does not act, says how it is);
            garbled (acts, answers with rubbish); astray (acts, answers as if to another's question)
    slow_s  how long each of its answers takes
    deeds   all it did, oldest first; `heard` all that reached it
    """

    def __init__(self, client_id: str, filters: tuple[str, ...], will: Said | None, *, qos: int = 0) -> None:
        self.client_id = client_id
        self.filters = filters
        self.will = will
        self.qos = qos
        self.mood: Mood = "well"
        self.slow_s = 0.0
        self.deeds: list[Deed] = []
        self.heard: list[tuple[str, bytes]] = []

    def births(self) -> list[Said]:
        """What it says each time it comes online."""
        return []

    def farewells(self) -> list[Said]:
        """What it says before it goes in order; when its power is cut the broker says its will."""
        return [] if self.will is None else [self.will]

    def answers(self, topic: str, payload: bytes) -> list[Said]:
        """Do what a message says, if it is well, and give what it answers."""
        raise NotImplementedError

    def take(self, topic: str, payload: bytes) -> list[Said]:
        """The same in its mood."""
        self.heard.append((topic, payload))
        if self.mood == "deaf":
            return []
        said = self.answers(topic, payload)
        match self.mood:
            case "mute":
                said = []
            case "garbled":
                said = [one._replace(payload=GARBLED) for one in said]
            case "astray":
                said = [one._replace(payload=to_another(one.payload)) for one in said]
        return [one._replace(after_s=one.after_s + self.slow_s) for one in said]

    def acts(self, device: str, what: str, value: object) -> bool:
        """Note a deed, or give False: then nothing may change."""
        if self.mood == "stubborn":
            return False
        self.deeds.append(Deed(device, what, value))
        return True


def to_another(payload: bytes) -> bytes:
    """An answer as it would be to another question, where it says to which it is one."""
    found = objects(payload)
    return packed({key: "another" if key in REPEATED else value for key, value in found.items()}) if found else payload


def objects(payload: bytes) -> dict[str, object]:
    """A JSON object; empty where it is none."""
    try:
        return msgspec.json.decode(payload, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}


def packed(value: object) -> bytes:
    return msgspec.json.encode(value)


def switched(word: str, now: bool) -> bool | None:
    """What a switch that is `now` so becomes by a word such as ON; None where it is no such word."""
    match word.strip().upper():
        case "ON" | "1" | "TRUE":
            return True
        case "OFF" | "0" | "FALSE":
            return False
        case "TOGGLE" | "2":
            return not now
    return None
