"""Each way in, with all that can be wrong: the right code each, and nothing runs, is said, ends or is let go by it."""

import itertools
import json
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from rea_edge.client import Client
from rea_edge.emulated.endpoint import Held, ScriptedEndpoint
from rea_edge.wire import AskShown, Reply
from tests.brokers import MAINLY_ON_MOSQUITTO, ONCE_ON_EACH, AnyBroker, wait_until
from tests.e2e.bad_requests import Bad, bad, kind_of, over_the_packet_limit
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import House, endpoint_table, finish, questions, script, wait_for_questions, wait_online
from tests.e2e.test_requests import Sender
from tests.e2e.test_signed import TRUSTED

PEOPLE = tuple(f"op{number}" for number in range(30))  # each is told of so many refusals only
EACH = 40
CLOCK = shutil.which("strace") is not None
NAMES = ", ".join(f'"{name}"' for name in PEOPLE)
ACCESS = (
    f'[access]\nidentity = "broker"\noperators = [{NAMES}]\nsenders = ["me"]\n'
    f'[gate.turn]\nconfirm = "always"\napprovers = [{NAMES}]\napprove_s = 600\n'
)
LEAVES = ("task", "call/doze", "ctl", "query/status", "say", "node")


class Stage:
    """A node in which each kind of request has something to do: its state is lost and not released, a task runs, a call
    waits for a person."""

    def __init__(self, house: House, endpoint: ScriptedEndpoint, client: Client, ask: AskShown) -> None:
        self.house = house
        self.client = client
        self._endpoint = endpoint
        self._ask = ask
        self._ids = itertools.count()

    def good(self, leaf: str) -> dict[str, object]:
        """A request that would be done, with an id of its own."""
        keys: dict[str, dict[str, object]] = {
            "task": {"goal": "Turn it."},
            "call": {"args": {"seconds": 0}},
            "ctl": {"task": "held", "do": "cancel", "who": "me"},
            "query": {},
            "say": {"request": self._ask.request, "answer": "yes", "ask_hash": self._ask.ask_hash},
            "node": {"do": "release"},
        }
        return {"id": f"g{next(self._ids)}", **keys[kind_of(leaf)]}

    def check_untouched(self) -> None:
        assert self.house.ledger() == [] and len(questions(self._endpoint)) == 1
        assert [one.request for one in self.client.asks()] == [self._ask.request]
        assert self.client.data("query", {"task": "held"}, "task")["state"] == "running"  # type: ignore[index]
        listed = self.client.data("query", {"limit": 200}, "tasks")
        assert isinstance(listed, list) and [row["id"] for row in listed] == ["held"]
        assert any("state lost" in fault for fault in self.client.status_asked().faults)


@contextmanager
def staged(broker: AnyBroker, make_house: MakeHouse, protocol: str = "5") -> Iterator[Stage]:
    release = threading.Event()
    with ScriptedEndpoint(lambda request: Held(finish("Done."), release)) as endpoint:
        house = make_house(broker, protocol=protocol, extra=f"{ACCESS}{endpoint_table(endpoint.url)}").start()
        with house.client() as client:
            wait_online(client)
        house.stop()
        shutil.rmtree(house.folder / "state")
        house.start(*(TRUSTED if CLOCK else ()))
        with house.client(approver=True) as client:
            wait_until(lambda: client.status().state == "degraded", "it misses its state", 30)
            client.submit({"id": "held", "goal": "Wait."})
            wait_for_questions(endpoint, 1)
            client.send("call", {"id": "waits", "args": {"percent": 5}}, "turn")
            wait_until(lambda: bool(client.asks()), "it waits for a person", 20)
            yield Stage(house, endpoint, client, client.asks()[0])
            release.set()


def refused(sender: Sender, one: Bad, leaf: str) -> Reply:
    sender.send(one.leaf or leaf, one.payload, retain=one.retain)
    reply = sender.reply(json.loads(one.payload)["id"] if one.named else "_bad")
    if one.retain:
        sender.send(one.leaf or leaf, b"", retain=True)
    return reply


@MAINLY_ON_MOSQUITTO
def test_whatever_is_wrong_with_a_request_it_is_refused_by_its_code_and_nothing_comes_of_it(
    broker: AnyBroker, make_house: MakeHouse
) -> None:
    with staged(broker, make_house) as stage:
        others = {"call/doze": "call/nope", "query/status": "query/nope"}
        table = [
            (leaf, one)
            for leaf in LEAVES
            for one in bad(leaf, stage.good(leaf), others.get(leaf, leaf))
            if CLOCK or not one.clock
        ]
        assert len(table) > 400 and len(table) <= EACH * len(PEOPLE)
        for who, part in zip(PEOPLE, batches(table), strict=False):
            sender = Sender(stage.house, broker, who)
            try:
                for leaf, one in part:
                    reply = refused(sender, one, leaf)
                    said = (leaf, one.name, reply)
                    assert not reply.ok and reply.error is not None and reply.for_ == kind_of(leaf), said
                    assert reply.error.code == one.code and one.words in reply.error.message, said
            finally:
                sender.close()
        stage.check_untouched()


def batches(table: list[tuple[str, Bad]]) -> Iterator[list[tuple[str, Bad]]]:
    for start in range(0, len(table), EACH):
        yield table[start : start + EACH]


@ONCE_ON_EACH
def test_who_is_not_let_in_may_do_nothing_and_what_is_good_is_done(
    broker: AnyBroker, make_house: MakeHouse, protocol: str
) -> None:
    with staged(broker, make_house, protocol) as stage:
        stranger, op = Sender(stage.house, broker, "stranger"), Sender(stage.house, broker, PEOPLE[0])
        me = Sender(stage.house, broker, "me")
        try:
            for leaf in LEAVES:
                asked = stage.good(leaf)
                stranger.send(leaf, asked)
                reply = stranger.reply(str(asked["id"]))
                assert reply.error is not None and reply.error.code == "policy_denied", (leaf, reply)
            for leaf in ("ctl", "say", "node"):  # a sender, but no operator, and his own call
                asked = stage.good(leaf) | ({"who": "you"} if leaf == "ctl" else {})
                me.send(leaf, asked)
                reply = me.reply(str(asked["id"]))
                assert reply.error is not None and reply.error.code == "policy_denied", (leaf, reply)
            for topic in ("zzz", "task/x", "call", "call/doze/x", "query", "ctl/x", "node/x", "say/x", ""):
                op.send(topic, stage.good("task"))
            for leaf in LEAVES:
                op.send(leaf, over_the_packet_limit(stage.good(leaf)))
            stage.check_untouched()
            for leaf in LEAVES:
                asked = stage.good(leaf)
                op.send(leaf, asked)
                if leaf != "task":
                    reply = op.reply(str(asked["id"]))
                    assert reply.ok, (leaf, reply)
            wait_until(lambda: len(stage.house.ledger("turn")) == 1, "what was approved ran", 20)
            assert len(stage.house.ledger("doze")) == 1
            assert not [one for one in op.heard if "/reply/" in one.topic], "all else went without an answer"
        finally:
            for sender in (stranger, op, me):
                sender.close()


@MAINLY_ON_MOSQUITTO
def test_the_same_id_is_the_same_request_and_with_another_body_none(broker: AnyBroker, make_house: MakeHouse) -> None:
    with staged(broker, make_house) as stage:
        op = Sender(stage.house, broker, PEOPLE[0])
        try:
            first: dict[str, object] = {"id": "d1", "args": {"seconds": 0}}
            for _ in range(3):
                op.send("call/doze", first)
                assert op.reply("d1").ok
            for other in ({"args": {"seconds": 0.5}}, {"dry_run": True}):
                op.send("call/doze", {**first, **other})
                assert code(op.reply("d1")) == "id_conflict"
            op.send("call/look", {"id": "d1", "args": {"name": "tank"}})
            assert code(op.reply("d1")) == "id_conflict"
            op.send("task", {"id": "d2", "goal": "Turn it."})
            for other in ({"goal": "Turn it"}, {"mode": "query"}, {"limits": {"steps": 3}}, {"context": {"a": 1}}):
                op.send("task", {"id": "d2", "goal": "Turn it.", **other})
                assert code(op.reply("d2")) == "id_conflict", other
            op.send("ctl", {"id": "d3", "task": "d2", "do": "cancel"})
            assert op.reply("d3").ok
        finally:
            op.close()
        assert len(stage.house.ledger()) == 1


def code(reply: Reply) -> str | None:
    return None if reply.error is None else reply.error.code


def test_what_expired_while_the_node_was_away_is_refused_or_never_comes(
    broker: AnyBroker, make_house: MakeHouse
) -> None:
    keys: dict[str, dict[str, object]] = {
        "task": {"goal": "Turn it."},
        "call/doze": {"args": {"seconds": 0}},
        "ctl": {"task": "t", "do": "cancel"},
        "query/status": {},
        "say": {"request": "r-1", "answer": "yes"},
        "node": {"do": "release"},
    }
    with ScriptedEndpoint(script(finish("Done."))) as endpoint:
        house = make_house(broker, protocol="5", extra=f"{ACCESS}{endpoint_table(endpoint.url)}").start()
        with house.client() as client:
            wait_online(client)
        assert house.stop() == 0
        sender = Sender(house, broker, PEOPLE[0])
        try:
            for number, (leaf, asked) in enumerate(keys.items()):
                gone = Properties(PacketTypes.PUBLISH)
                gone.MessageExpiryInterval = 1
                sender.send(leaf, {"id": f"gone{number}", **asked}, properties=gone)
                sender.send(leaf, {"id": f"late{number}", **asked, "ttl_ms": 1})
            away_s = time.monotonic()
            wait_until(lambda: time.monotonic() - away_s > 2.0, "the broker has let it expire", 10)
            house.start()
            for number, leaf in enumerate(keys):
                assert code(sender.reply(f"late{number}")) == "expired", leaf
            sender.send("query/status", {"id": "last"})
            assert sender.reply("last").ok
            assert not [one.topic for one in sender.heard if "/gone" in one.topic]
        finally:
            sender.close()
        assert house.ledger() == [] and questions(endpoint) == []
