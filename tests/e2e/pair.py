"""Two nodes on one broker, of which the near one offers the tools of the far one: what the tests of peers are built on."""

import json

import msgspec

from rea_edge.client import Client
from rea_edge.wire import NodeStatus, Reply
from tests.brokers import AnyBroker, wait_until
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import wait_online

SOAK = '''

@tool(effect="idempotent", device="tub", timeout_s=20.0)
def soak(seconds: float = 0.0) -> dict[str, bool]:
    """Soak the plants."""
    note("soak")
    time.sleep(seconds)
    return {"wet": True}
'''
NAMES = ("look", "turn", "ring", "doze", "soak")
EFFECTS = 'effect = {look = "read", turn = "idempotent", doze = "read", soak = "idempotent"}\n'


class Pair:
    """`more` goes into the table `[peer.far]`, `near` and `far` below the rest of either's configuration."""

    def __init__(
        self, make_house: MakeHouse, broker: AnyBroker, *, near: str = "", far: str = "", more: str = EFFECTS
    ) -> None:
        self.far = make_house(broker, node="far-1", extra=far)
        with (self.far.folder / "devices.py").open("a") as file:
            file.write(SOAK)
        table = f'[peer.far]\nnode = "far-1"\ntools = {json.dumps(NAMES)}\n{more}'
        self.near = make_house(broker, node="near-1", root=self.far.root, extra=table + near)

    def begin(self) -> "Pair":
        self.far.start()
        with self.far.client() as client:
            wait_online(client)
        self.accept()
        self.near.start()
        with self.near.client() as client:
            wait_online(client)
        return self

    def accept(self) -> str:
        said = self.near.run_command("peers", "accept", "far", "--config", str(self.near.config))
        assert said.returncode == 0, said.stderr
        return said.stdout

    def peers(self) -> dict[str, object]:
        """What `rea-edge peers` says of the far one."""
        said = self.near.run_command("peers", "--json", "--config", str(self.near.config))
        assert said.returncode == 0, said.stderr
        (row,) = msgspec.json.decode(said.stdout, type=list[dict[str, object]])
        return row


def result(client: Client, tool: str, wait_s: float = 30.0, **args: object) -> Reply:
    """Call a tool of the far node by way of the near one."""
    return client.ask("call", {"args": args}, f"far__{tool}", wait_s=wait_s)


def code_of(reply: Reply) -> str | None:
    return None if reply.error is None else reply.error.code


def reply_to(client: Client, call_id: str, seconds: float = 40.0) -> Reply:
    """The answer to a call that was only sent."""
    heard = client.hear(client.topics.reply(client.who, call_id), seconds)
    assert heard is not None, f"no reply to {call_id}"
    return msgspec.json.decode(heard.payload, type=Reply)


def wait_fault(client: Client, words: str, *, gone: bool = False) -> NodeStatus:
    """The node's status once a fault with these words is in it, or is no more."""
    told: list[NodeStatus] = []

    def said() -> bool:
        told.append(client.status_asked())
        return any(words in fault for fault in told[-1].faults) != gone

    wait_until(said, f"{'no fault' if gone else 'a fault'} with {words!r}", 30.0)
    return told[-1]
