"""[access] keys: what is signed works, in every kind of request; whatever a broker can do with it besides runs nothing."""

import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest

from rea_edge.emulated.endpoint import Held, ScriptedEndpoint
from rea_edge.mqtt import LinkSettings
from rea_edge.report import rfc3339
from rea_edge.signature import signature
from rea_edge.topics import Topics
from rea_edge.wire import Reply
from tests.brokers import AnyBroker, wait_until
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import House, call, endpoint_table, finish, script, wait_online
from tests.mqtt.station import Station, running

ANN, BOB = "a1" * 32, "b2" * 32
# A test machine's clock is seldom set from outside: this kernel says that it is.
TRUSTED = (
    "strace", "-f", "-qq", "--seccomp-bpf", "-o", "/dev/null",
    "-e", "trace=adjtimex,clock_adjtime", "-e", "inject=adjtimex,clock_adjtime:retval=0",
)  # fmt: skip
OLD = "2026-01-31T12:00:00Z"


def keyed(house: House) -> House:
    """Ann operates, bob approves the bell, and there is nobody else."""
    for name, key in (("ann", ANN), ("bob", BOB)):
        file = house.folder / name
        file.write_text(key)
        file.chmod(0o600)
    house.config.write_text(
        house.config.read_text()
        + '[access]\nidentity = "keys"\nkeys = {ann = "ann", bob = "bob"}\noperators = ["ann"]\nplain_text = "act"\n'
    )
    return house


class Wire:
    """All that passes over a broker in a root, and whatever one likes to put there."""

    def __init__(self, broker: AnyBroker, house: House) -> None:
        self.topics = Topics(house.root, house.node)
        self.station = Station(LinkSettings(url=broker.url, client_id="wire"), f"{house.root}/#")

    def put(self, topic: str, payload: bytes) -> None:
        self.station.post(topic, payload)

    def passed(self, topic: str) -> list[bytes]:
        return [one.payload for one in list(self.station.accepted) if one.topic == topic]

    def answer(self, who: str, request_id: str = "_bad", place: int = 0) -> Reply:
        """The reply number `place` to this request."""
        topic = self.topics.reply(who, request_id)
        wait_until(lambda: len(self.passed(topic)) > place, f"reply {place} on {topic}", 20)
        return msgspec.json.decode(self.passed(topic)[place], type=Reply)

    def code(self, who: str, request_id: str = "_bad", place: int = 0) -> str | None:
        reply = self.answer(who, request_id, place)
        return None if reply.error is None else reply.error.code


@pytest.fixture
def house(broker: AnyBroker, make_house: MakeHouse) -> House:
    return keyed(make_house(broker))


@pytest.fixture
def wire(broker: AnyBroker, house: House) -> Iterator[Wire]:
    wire = Wire(broker, house)
    with running(wire.station):
        yield wire


def signed(topic: str, keys: dict[str, object], key: str = ANN) -> bytes:
    return json.dumps({**keys, "sig": signature(bytes.fromhex(key), topic, keys)}).encode()


def epoch_of(house: House) -> str:
    with house.client() as anyone:
        wait_online(anyone)
        return anyone.status().epoch


def test_every_kind_of_request_works_signed_and_is_denied_unsigned(broker: AnyBroker, make_house: MakeHouse) -> None:
    release = threading.Event()
    with ScriptedEndpoint(lambda request: Held(finish("Done."), release)) as endpoint:
        extra = f'{endpoint_table(endpoint.url)}\n[gate.turn]\nconfirm = "always"\napprovers = ["bob"]\n'
        house = keyed(make_house(broker, extra=extra)).start()
        with ExitStack() as stack:
            ann = stack.enter_context(house.client("ann", key=ANN))
            bob = stack.enter_context(house.client("bob", key=BOB, approver=True))
            wait_online(ann)
            assert ann.submit({"id": "t1", "goal": "Look."})[1].accepted
            assert ann.ask("call", {"id": "c1"}, "ring").ok
            assert ann.data("ctl", {"task": "t1", "do": "cancel"}) == {"task": "t1"}
            assert ann.data("node", {"do": "release"}) == {"lost": None, "halted": None}
            assert ann.ask("node", {"do": "reload"}, wait_s=60).ok
            ann.send("call", {"id": "c2", "args": {"percent": 5}}, "turn")
            wait_until(lambda: bool(bob.asks()), "it waits for bob", 20)
            ask = bob.asks()[0]
            said: dict[str, object] = {"request": ask.request, "answer": "yes", "ask_hash": ask.ask_hash}
            for name in ("ann", "bob"):
                forger = stack.enter_context(house.client(name))
                unsigned: list[tuple[str, str, dict[str, object]]] = [
                    ("task", "", {"goal": "Look."}),
                    ("call", "ring", {}),
                    ("ctl", "", {"task": "t1", "do": "cancel"}),
                    ("query", "status", {}),
                    ("say", "", said),
                    ("node", "", {"do": "release"}),
                    ("node", "", {"do": "halt"}),
                ]
                for what, leaf, keys in unsigned:
                    reply = forger.ask(what, keys, leaf)  # type: ignore[arg-type]  # one of them
                    assert reply.error is not None and reply.error.code == "policy_denied", (name, what, reply)
            assert house.ledger("turn") == []
            assert bob.ask("say", said).ok
            wait_until(lambda: len(house.ledger("turn")) == 1, "the call ran", 20)
            release.set()
            figures = ann.data("query", {}, "metrics")
            assert isinstance(figures, dict) and figures["bad_signatures"] == 14
            assert ann.data("query", {}, "tasks") != []
    assert len(house.ledger("ring")) == 1


def test_nothing_that_was_signed_can_be_moved_or_changed(
    broker: AnyBroker, house: House, wire: Wire, make_house: MakeHouse
) -> None:
    other = keyed(make_house(broker))
    other.config.write_text(other.config.read_text().replace(other.root, house.root).replace('id = "n1"', 'id = "n2"'))
    other.root, other.node = house.root, "n2"
    house.start()
    other.start()
    for one in (house, other):
        epoch_of(one)
    topic = wire.topics.send("ann", "call", "ring")
    with house.client("ann", key=ANN) as ann:
        assert ann.ask("call", {"id": "c1"}, "ring").ok
    sent = wire.passed(topic)[0]
    wire.put(topic, sent)
    assert wire.answer("ann", "c1", 1).ok, "the same again is told what came of it"
    elsewhere = [
        wire.topics.send("ann", "call", "fail"),
        wire.topics.send("ann", "task"),
        wire.topics.send("bob", "call", "ring"),
        wire.topics.send("zoe", "call", "ring"),
        Topics(house.root, "n2").send("ann", "call", "ring"),
    ]
    for place, where in enumerate(elsewhere):
        wire.put(where, sent)
        who = where.split("/in/")[1].split("/")[0]
        answered = f"{where.split('/in/')[0]}/out/{who}/reply/c1"
        before = 2 + place if answered.endswith("n1/out/ann/reply/c1") else 0
        wait_until(lambda answered=answered, before=before: len(wire.passed(answered)) > before, where, 20)
        reply = msgspec.json.decode(wire.passed(answered)[-1], type=Reply)
        assert reply.error is not None and reply.error.code == "policy_denied", where
    changed = {**json.loads(sent), "id": "c2"}
    wire.put(topic, json.dumps(changed).encode())
    assert wire.code("ann", "c2") == "policy_denied"
    wire.put(topic, signed(topic, {"id": "c3", "sent_at": rfc3339(0.0)}, BOB))
    assert wire.code("ann", "c3") == "policy_denied"
    assert len(house.ledger("ring")) == 1 and other.ledger() == [] and house.ledger("fail") == []


def test_plain_text_and_requests_without_an_id_are_not_taken(house: House, wire: Wire) -> None:
    house.start()
    epoch = epoch_of(house)
    topic = wire.topics.send("ann", "task")
    wire.put(topic, b"Ring the bell.")
    assert wire.code("ann") == "policy_denied"
    wire.put(topic, signed(topic, {"goal": "Ring the bell.", "epoch": epoch, "sent_at": OLD}))
    assert wire.code("ann", place=1) == "bad_request"
    assert house.ledger() == []


def test_while_the_clock_is_not_trusted_a_request_must_be_made_for_this_state(house: House, wire: Wire) -> None:
    house.start()
    epoch = epoch_of(house)
    topic = wire.topics.send("ann", "call", "ring")
    cases: list[tuple[dict[str, object], str | None]] = [
        ({}, "bad_request"),
        ({"sent_at": OLD}, "expired"),
        ({"sent_at": OLD, "epoch": "another"}, "stale_epoch"),
        ({"sent_at": "2026-01-31T12:05:00Z", "epoch": epoch}, None),
        ({"sent_at": OLD, "epoch": epoch}, "expired"),  # five minutes before the one that came already
    ]
    for number, (keys, code) in enumerate(cases):
        wire.put(topic, signed(topic, {"id": f"c{number}", **keys}))
        assert wire.code("ann", f"c{number}") == code, keys
    house.kill()
    house.start()
    epoch_of(house)
    wire.put(topic, signed(topic, {"id": "c9", "sent_at": OLD, "epoch": epoch}))
    assert wire.code("ann", "c9") == "expired"
    assert len(house.ledger("ring")) == 1


def test_a_trusted_clock_says_how_old_a_request_is_and_the_broker_does_not(house: House, wire: Wire) -> None:
    if shutil.which("strace") is None:
        pytest.skip("NOT CHECKED: strace is not installed (it makes the kernel say that the clock is set)")
    house.start(*TRUSTED)
    epoch_of(house)
    with house.client("ann", key=ANN) as ann:
        wait_online(ann)
        assert ann.status_asked().at is not None, "the clock is trusted"
        assert ann.ask("call", {"id": "c1"}, "ring").ok
    topic = wire.topics.send("ann", "call", "ring")
    wire.station.post(topic, signed(topic, {"id": "c2", "sent_at": OLD}), expires_in_s=60)
    assert wire.code("ann", "c2") == "expired"
    wire.put(topic, signed(topic, {"id": "c3", "sent_at": "2099-01-31T12:00:00Z"}))
    assert wire.code("ann", "c3") == "bad_request"
    assert len(house.ledger("ring")) == 1


def test_a_control_put_there_again_does_nothing_more_also_after_a_restart(house: House, wire: Wire) -> None:
    house.start()
    epoch_of(house)
    with house.client("ann", key=ANN) as ann:
        assert ann.ask("node", {"id": "r1", "do": "release"}).ok
    topic = wire.topics.send("ann", "node")
    sent = wire.passed(topic)[0]
    wire.put(topic, sent)
    assert wire.answer("ann", "r1", 1).ok
    assert house.stop() == 0
    house.start()
    epoch_of(house)
    wire.put(topic, sent)
    assert wire.code("ann", "r1", 2) == "outcome_unknown"


def test_a_request_is_sent_again_byte_by_byte_until_the_node_is_there(house: House, wire: Wire) -> None:
    topic = wire.topics.send("ann", "call", "ring")
    answers: list[Reply] = []

    def ask() -> None:
        with house.client("ann", key=ANN, silent_s=60) as ann:
            answers.append(ann.ask("call", {}, "ring"))

    house.start()
    epoch_of(house)
    assert house.stop() == 0
    asking = threading.Thread(target=ask)
    asking.start()
    try:
        wait_until(lambda: len(wire.passed(topic)) > 1, "it is sent again", 20)
        house.start()
    finally:
        asking.join(60)
    assert answers and answers[0].ok and len(set(wire.passed(topic))) == 1
    assert len(house.ledger("ring")) == 1


def test_the_command_line_signs_with_a_key_file_and_check_says_who_must(
    broker: AnyBroker, make_house: MakeHouse
) -> None:
    with ScriptedEndpoint(script(call("ring"), finish("It rang."))) as endpoint:
        house = keyed(make_house(broker, extra=endpoint_table(endpoint.url))).start()
        epoch_of(house)
        with_key = ("--signing-key-file", str(house.folder / "ann"))
        for words in (("call", "ring"), ("task", "Ring."), ("tools",), ("cancel", "t9")):
            denied = house.run_command(*words, who="ann")
            assert denied.returncode == 1 and "policy_denied" in denied.stdout + denied.stderr, denied
        assert house.ledger() == []
        assert house.run_command("call", "ring", *with_key, who="ann").returncode == 0
        assert house.run_command("task", "Ring.", *with_key, who="ann").returncode == 0
        assert "unknown_task" in house.run_command("cancel", "t9", *with_key, who="ann").stderr
        assert "policy_denied" in house.run_command("tools", *with_key, who="bob").stderr
        checked = house.run_command("check", "--config", str(house.config)).stdout
        assert (
            "identity keys: operators ann; approvers none; senders whoever has a key; what ann, bob send must be signed"
            in checked
        )
    assert len(house.ledger("ring")) == 2


def test_a_start_without_a_key_file_that_is_named_is_refused(house: House) -> None:
    Path(house.folder / "bob").unlink()
    assert house.start().wait(30) == 78
