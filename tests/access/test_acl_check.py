"""`rea-edge check --acl`: all well under the shipped rules; each rule that is missing is found and named; nothing acts."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rea_edge.emulated.broker import Action, Peer
from tests.access.conftest import Doors
from tests.access.test_approving import node
from tests.brokers import AnyBroker, Emulated, wait_until
from tests.e2e.conftest import MakeHouse
from tests.e2e.conftest import make_house as make_house
from tests.e2e.house import ROOT, wait_online

ALL = (
    "own requests", "own answers", "requests under another's name", "what nodes say", "answers to others",
    "what waits for approvers", "requests", "what the node's login may write", "requests to other nodes", "client id",
)  # fmt: skip


def written(folder: Path, url: str, protocol: str, *, login: str = "boiler-1") -> Path:
    (folder / "node.password").write_text("boiler-1's")
    (folder / "person.password").write_text("ann's")
    file = folder / "config.toml"
    file.write_text(
        f'[node]\nid = "boiler-1"\nstate_dir = "{folder / "state"}"\ntools = []\n'
        f'[broker]\nurl = "{url}"\nprotocol = "{protocol}"\nusername = "{login}"\npassword_file = "node.password"\n'
        '[access]\nidentity = "broker"\noperators = ["eve"]\n[gate.ring]\napprovers = ["bob"]\n'
    )
    return file


def checked(config: Path, *words: str, who: str = "ann", protocol: str = "auto") -> tuple[int, dict[str, str], str]:
    """The exit code; what is wrong, by its name; and all that was said."""
    asked = ("--config", str(config), "--as", who, "--password-file", str(config.parent / "person.password"))
    done = subprocess.run(
        [sys.executable, "-m", "rea_edge", "check", "--acl", "--json", *asked, *words],
        cwd=ROOT, env={**os.environ, "HOME": str(config.parent), "REA_EDGE_PROTOCOL": protocol}, capture_output=True,
        text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.stdout, done
    found = {one["what"]: one for one in json.loads(done.stdout)}
    wrong = {what.removeprefix("acl: "): one["words"] for what, one in found.items() if not one["ok"]}
    if not wrong:
        assert {what.removeprefix("acl: ") for what in found if what.startswith("acl")} == set(ALL)
    return done.returncode, wrong, done.stdout


def test_under_the_shipped_rules_all_is_well(doors: Doors, tmp_path: Path, protocol: str) -> None:
    config = written(tmp_path, f"mqtt://127.0.0.1:{doors.nodes}", protocol)
    code, wrong, said = checked(config, "--broker", f"mqtt://127.0.0.1:{doors.people}", protocol=protocol)
    assert (code, wrong) == (0, {}), said
    assert ("not known over MQTT 3.1.1" in said) == (protocol == "3.1.1")


def test_an_approver_sees_what_waits_and_that_is_right_for_him_alone(doors: Doors, tmp_path: Path) -> None:
    config = written(tmp_path, f"mqtt://127.0.0.1:{doors.nodes}", "auto")
    (tmp_path / "person.password").write_text("bob's")
    people = ("--broker", f"mqtt://127.0.0.1:{doors.people}")
    assert checked(config, *people, who="bob")[:2] == (0, {})
    config.write_text(config.read_text().replace('approvers = ["bob"]', 'approvers = ["ann"]'))
    assert set(checked(config, *people, who="bob")[1]) == {"what waits for approvers"}
    (tmp_path / "person.password").write_text("ann's")
    code, wrong, _ = checked(config, *people)
    assert code == 1 and "does not arrive" in wrong["what waits for approvers"]


def test_an_open_broker_fails_every_trial_and_a_node_that_runs_there_does_nothing_for_them(
    broker: AnyBroker, make_house: MakeHouse, protocol: str
) -> None:
    house = make_house(broker).start()
    with house.client() as client:
        wait_online(client)
        config = written(house.folder, broker.url, protocol)
        config.write_text(config.read_text().replace('"boiler-1"\nstate', '"n1"\nstate'))
        config.write_text(config.read_text().replace("[broker]", f'[broker]\nroot = "{house.root}"'))
        code, wrong, said = checked(config, "--broker", broker.url, protocol=protocol)
        assert code == 1 and set(wrong) == set(ALL) - {"own requests", "own answers"}, said
        assert all(f"{house.root}/" in words for what, words in wrong.items() if what != "client id")
        metrics = client.data("query", {}, "metrics")
        assert isinstance(metrics, dict) and metrics["link"]["sessions"] == 1, "its connection was not ended"
        assert client.data("query", {}, "tasks") == [] and house.ledger() == []
        assert client.status_asked().state == "online"


RULES: dict[str, object] = {
    "requests under another's name": lambda who, action, topic: who == "ann" and action == "write" and "/in/" in topic,
    "what nodes say": lambda who, action, topic: who == "ann" and action == "write" and "/out/_all/" in topic,
    "answers to others": lambda who, action, topic: who == "ann" and action == "read" and "/out/eve/" in topic,
    "what waits for approvers": lambda who, action, topic: (
        who == "ann" and action == "read" and "/_approvers/" in topic
    ),
    "requests": lambda who, action, topic: who == "ann" and action == "read" and "/in/" in topic,
    "what the node's login may write": lambda who, action, topic: who == "boiler-1" and action == "write",
    "requests to other nodes": lambda who, action, topic: who == "boiler-1" and action == "read" and "/in/" in topic,
}


def shipped(who: str, action: Action, topic: str) -> bool:
    """What the shipped files allow, for a broker that has none."""
    levels = topic.removeprefix("rea/v1/").split("/")
    if action == "subscribe":
        return True
    if not topic.startswith("rea/v1/") or len(levels) < 4:
        return False
    node_, direction, name = levels[:3]
    if who == "boiler-1":
        return node_ == who and (direction == "out" or action == "read")
    return (direction, name) == ("in", who) if action == "write" else direction == "out" and name in (who, "_all")


@contextmanager
def ruled(hole: str) -> Iterator[Emulated]:
    open_ = RULES.get(hole)

    def access(peer: Peer, action: Action, topic: str) -> bool:
        who = peer.username or ""
        return shipped(who, action, topic) or (callable(open_) and bool(open_(who, action, topic)))

    with Emulated(access=access) as broker:
        yield broker


@pytest.mark.parametrize("protocol", ["5", pytest.param("3.1.1", marks=pytest.mark.slow)])
@pytest.mark.parametrize("hole", RULES)
def test_a_rule_that_is_missing_is_named_and_no_other(tmp_path: Path, hole: str, protocol: str) -> None:
    with ruled(hole) as broker:
        config = written(tmp_path, broker.url, protocol)
        code, wrong, said = checked(config, "--broker", broker.url, protocol=protocol)
    # One door, and client ids as clients choose them: that is always found here.
    assert code == 1 and set(wrong) == {hole, "client id"}, said


@pytest.mark.slow
def test_rules_that_keep_back_too_much_are_named_and_nothing_is_said_to_be_proved(tmp_path: Path) -> None:
    def access(peer: Peer, action: Action, topic: str) -> bool:
        return action == "subscribe" or (action == "read" and "/out/ann/" in topic)

    with Emulated(access=access) as broker:
        config = written(tmp_path, broker.url, "5")
        code, wrong, said = checked(config, "--broker", broker.url)
    assert code == 1 and "ann write rea/v1/+/in/ann/#" in wrong["own requests"]
    assert "proves nothing" in wrong["acl"] and "client id" not in said


@pytest.mark.parametrize(
    ("login", "who", "people", "words"),
    [
        pytest.param("boiler-1", "boiler-1", True, "a second login is needed", id="the node's own"),
        pytest.param("boiler-1", "mallory", True, "does not answer", id="a wrong password", marks=pytest.mark.slow),
        pytest.param(
            "boiler-1", "ann", False, "--broker URL for the door of people", id="the wrong door", marks=pytest.mark.slow
        ),
        pytest.param(
            "boiler-9", "ann", True, "does not answer", id="a node that is not let in", marks=pytest.mark.slow
        ),
    ],
)
def test_without_two_logins_it_says_what_it_needs(
    doors: Doors, tmp_path: Path, login: str, who: str, words: str, *, people: bool
) -> None:
    config = written(tmp_path, f"mqtt://127.0.0.1:{doors.nodes}", "auto", login=login)
    port = doors.people if people else doors.nodes
    code, wrong, _ = checked(config, "--broker", f"mqtt://127.0.0.1:{port}", who=who)
    assert code == 1 and words in wrong["acl"]


def test_a_second_login_for_nothing_is_no_usage() -> None:
    words = [sys.executable, "-m", "rea_edge", "check", "--as", "ann"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and "go with --acl" in done.stderr


def test_a_node_that_runs_under_the_shipped_rules_is_not_disturbed(tmp_path: Path) -> None:
    (tmp_path / "doors").mkdir()
    # A broker of its own: it knows a node with this state from then on.
    with Doors(tmp_path / "doors") as doors, node(doors, tmp_path):
        log = tmp_path / "log"
        wait_until(lambda: b"event=up" in log.read_bytes(), "the node is there", 30)
        config = tmp_path / "config.toml"
        (tmp_path / "person.password").write_text("ann's")
        assert checked(config, "--broker", f"mqtt://127.0.0.1:{doors.people}")[:2] == (0, {})
        assert b"event=down" not in log.read_bytes() and b"event=accepted" not in log.read_bytes()
        assert b"code=bad_request" in log.read_bytes(), "it has met what ann may send"
