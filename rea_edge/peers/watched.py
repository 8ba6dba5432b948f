"""One peer as it is seen from here: what was accepted of it, what its card and its status say now. Sends nothing.

Changed under the lock of its owner alone; what it makes of all that, a `Standing`, is a value.
"""

from pathlib import Path

import msgspec
from msgspec import Struct

from rea_edge.config import Peer, Settings
from rea_edge.config.peers import name_here
from rea_edge.errors import OperatorError, ToolInvalid
from rea_edge.peers.pinned import pins_folder, read_pin
from rea_edge.pins import Card, CardInvalid, Pin, Terms, differences, read_card, tool_of
from rea_edge.records import Tool
from rea_edge.topics import Topics, is_name


class Standing(Struct, frozen=True, kw_only=True):
    """What comes of it: tools that may be called, the others with the reason, what an operator should know. Names are
    those on this node."""

    tools: dict[str, Tool]
    withheld: dict[str, str]
    faults: tuple[str, ...]


class _Status(Struct, frozen=True, kw_only=True):
    state: str
    epoch: str = ""


class Watched:
    """`root` is the one its topics begin with, `me` the name it knows us by."""

    def __init__(self, name: str, peer: Peer, root: str, me: str) -> None:
        self.name = name
        self.peer = peer
        self.node = peer.id_of(name)
        self.root = peer.root or root
        self.topics = Topics(self.root, self.node)
        self.key = bytes.fromhex(peer.signing_key.reveal()) if peer.signing_key is not None else None
        self.replies = f"{self.topics.base}/out/{me}/reply/+"
        self.card: Card | None = None
        self.epoch = ""
        self.state = ""  # empty: nothing is known of it
        self.pin: Pin | None = None
        self._trouble = ""
        self._card_trouble = ""
        self._tools: dict[str, Tool] = {}

    @property
    def called(self) -> dict[str, str]:
        """Its tools by their names here, with those there."""
        return {name_here(self.name, tool): tool for tool in self.peer.tools}

    @property
    def looked(self) -> bool:
        """Both its card and its status have come."""
        return self.card is not None and bool(self.state)

    @property
    def topics_heard(self) -> tuple[str, ...]:
        return (self.topics.all("card"), self.topics.all("status"), self.replies)

    def read_pin(self, folder: Path) -> None:
        """Take in what was accepted of it, as it stands in its file."""
        self.pin, self._trouble, self._tools = None, "", {}
        try:
            pin = read_pin(folder, self.name)
        except OperatorError as exc:
            self._trouble = str(exc)
            return
        if pin is not None:
            self._take(pin)

    def _take(self, pin: Pin) -> None:
        self.pin = pin
        if (pin.node, pin.root) != (self.node, self.root):
            self.pin = None
            self._trouble = f"what was accepted is of {pin.root}/{pin.node}, configured is {self.root}/{self.node}"
            return
        for tool, declared in pin.tools.items():
            try:
                self._tools[tool] = tool_of(declared, self.terms(tool))
            except ToolInvalid as exc:
                self._trouble = str(exc)

    def hear(self, topic: str, payload: bytes) -> bool:
        """Take in its card or its status; False where this is neither."""
        if topic == self.topics.all("card"):
            self._hear_card(payload)
        elif topic == self.topics.all("status"):
            self._hear_status(payload)
        else:
            return False
        return True

    def _hear_card(self, payload: bytes) -> None:
        self.card, self._card_trouble = None, ""
        if not payload:
            return
        try:
            self.card = read_card(payload, self.peer.tools)
        except CardInvalid as exc:
            self._card_trouble = str(exc)

    def _hear_status(self, payload: bytes) -> None:
        try:
            status = msgspec.json.decode(payload, type=_Status) if payload else _Status(state="")
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return  # anybody's
        # A call names the state it is for: without one nobody could tell a peer that has lost its own from one that has not.
        if is_name(status.epoch) or not payload:
            self.state, self.epoch = status.state[:40], status.epoch

    def differences(self) -> dict[str, str]:
        """The accepted tools that the card says something else of, each with what is wrong; none where there is no card."""
        if self.pin is None or self.card is None:
            return {}
        if not self.card.cut:
            return differences(self.pin.tools, self.card)
        if self.card.tools_hash and self.card.tools_hash == self.pin.tools_hash:
            return {}
        return dict.fromkeys(self.pin.tools, "may have changed: its card is cut, and of other tools than was accepted")

    def standing(self, *, due: bool) -> Standing:
        """`due`: a card that is there would have come by now."""
        tools: dict[str, Tool] = {}
        withheld: dict[str, str] = {}
        faults = self._faults(due)
        accept = f"look and `rea-edge peers accept {self.name}`"
        wrong = self.differences()
        for called, tool in self.called.items():
            if tool not in self._tools:
                withheld[called] = f"{called} may not be called: nobody has accepted {tool} of {self.node} here"
            elif tool in wrong:
                withheld[called] = f"{called} may not be called: {tool} of {self.node} is not what was accepted"
                faults.append(f"peer {self.name}: {tool} {wrong[tool]}; {accept}")
            else:
                tools[called] = self._tools[tool]
        if missing := [tool for tool in self.peer.tools if tool not in self._tools]:
            why = f": {self._trouble}" if self._trouble else ""
            faults.append(f"peer {self.name}: {', '.join(missing)} not accepted{why}; {accept}")
        return Standing(tools=tools, withheld=withheld, faults=tuple(faults))

    def _faults(self, due: bool) -> list[str]:
        where = self.topics.all("card")
        faults: list[str] = []
        if self._card_trouble:
            faults.append(f"peer {self.name}: {self._card_trouble}")
        elif self.card is None and due:
            faults.append(f"peer {self.name}: no card of {self.node}: is it there, and may this node read {where}?")
        if self.state == "offline":
            faults.append(f"peer {self.name}: {self.node} is offline")
        return faults

    def terms(self, tool: str) -> Terms:
        """What the configuration says of one of its tools."""
        return Terms(
            called=name_here(self.name, tool),
            node=self.node,
            source=f"peer {self.name}",
            effect=self.peer.effect.get(tool, "once"),
            timeout_s=self.peer.timeout_s.get(tool),
        )


def watched_in(settings: Settings, me: str) -> list[Watched]:
    """All peers of a configuration, with what was accepted of each."""
    folder = pins_folder(settings)
    watched = [Watched(name, peer, settings.broker.root, me) for name, peer in sorted(settings.peers.items())]
    for one in watched:
        one.read_pin(folder)
    return watched


def accepted_tools(settings: Settings) -> list[Tool]:
    """The tools of peers that a node with this configuration has, whatever their cards say now."""
    return [tool for one in watched_in(settings, settings.node.id) for tool in one.standing(due=False).tools.values()]
