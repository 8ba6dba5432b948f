"""What the shipped access files allow on a real Mosquitto, and above all what they do not.

Mosquitto grants subscriptions it will deliver nothing for, and acknowledges 3.1.1 messages it drops. So each test sends
what must not arrive, then a fence over the same way, and looks at what came before the fence.
"""

import uuid
from pathlib import Path

import pytest

from rea_edge.mqtt import Controls, LinkSettings
from rea_edge.topics import Topics
from tests.access.conftest import SHIPPED, Doors, Join, Login
from tests.brokers import wait_until
from tests.mqtt.station import Station, running

IN = "rea/v1/boiler-1/in"
OUT = "rea/v1/boiler-1/out"


@pytest.fixture
def fence() -> str:
    return f"fence-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def node(join: Join) -> Login:
    return join("boiler-1").subscribe(f"{IN}/#", f"{OUT}/#")


def test_a_person_asks_and_reads_the_reply(join: Join, node: Login, fence: str) -> None:
    ann = join("ann").subscribe("rea/v1/+/out/ann/#", "rea/v1/+/out/_all/#")
    ann.publish(f"{IN}/ann/task", fence)
    assert node.until(fence) == [f"{IN}/ann/task"]
    node.publish(f"{OUT}/_all/health", "ok")
    node.publish(f"{OUT}/ann/reply/c1", fence)
    assert ann.until(fence) == [f"{OUT}/_all/health", f"{OUT}/ann/reply/c1"]


def test_a_person_reaches_any_node(join: Join, fence: str) -> None:
    other = join("boiler-2").subscribe("rea/v1/boiler-2/in/#")
    join("ann").publish("rea/v1/boiler-2/in/ann/query/status", fence)
    assert other.until(fence) == ["rea/v1/boiler-2/in/ann/query/status"]


@pytest.mark.parametrize(
    "topic",
    [
        pytest.param(f"{IN}/bob/task", id="a task in another's name"),
        pytest.param(f"{IN}/bob/say", id="an approval in another's name"),
        pytest.param(f"{IN}/annabel/task", id="a name that only begins like one's own"),
        pytest.param(f"{IN}", id="no name at all"),
        pytest.param(f"{OUT}/_all/status", id="the status of a node"),
        pytest.param(f"{OUT}/bob/reply/c1", id="a reply to another"),
        pytest.param(f"{OUT}/mallory/reply/c1", id="a reply to oneself"),
        pytest.param(f"{OUT}/_self/7", id="the fence of a node"),
        pytest.param(f"{OUT}/_approvers/r-1/decided", id="a decision"),
        pytest.param("rea/v1/boiler-1/other", id="neither in nor out"),
        pytest.param("other/v1/boiler-1/in/mallory/task", id="another root"),
        pytest.param("homeassistant/switch/x/config", id="another world"),
    ],
)
def test_a_person_can_write_nothing_but_requests_in_their_own_name(
    join: Join, node: Login, fence: str, topic: str, protocol: str
) -> None:
    bob = join("bob").subscribe("rea/v1/+/out/bob/#", "rea/v1/+/out/_all/#", "rea/v1/+/out/_approvers/#")
    mallory = join("mallory").subscribe("#")
    code = mallory.publish(topic, "forged", retain=True)
    mallory.publish(f"{IN}/mallory/call/x", fence)
    assert node.until(fence) == [f"{IN}/mallory/call/x"]
    for who in ("bob", "mallory"):
        node.publish(f"{OUT}/{who}/last", fence)
    assert bob.until(fence) == [f"{OUT}/bob/last"]
    assert mallory.until(fence) == [f"{OUT}/mallory/last"]
    assert protocol == "3.1.1" or code.value == 135
    # Nor is it kept for those who come later.
    late = join("boiler-1", client_id="late").subscribe(f"{IN}/#", f"{OUT}/#")
    node.publish(f"{OUT}/_self/1", f"{fence}-late")
    assert topic not in late.until(f"{fence}-late")


def test_a_last_will_opens_no_other_way(join: Join, node: Login, fence: str) -> None:
    mallory = join("mallory", will=f"{OUT}/_all/status")
    if not mallory.refused:
        mallory.cut()
    node.publish(f"{OUT}/_self/1", fence)
    assert node.until(fence) == [f"{OUT}/_self/1"]


@pytest.mark.parametrize(
    "wish",
    [
        "#",
        "rea/v1/#",
        "rea/v1/+/out/#",
        "rea/v1/+/in/#",
        "rea/v1/boiler-1/out/bob/#",
        "rea/v1/+/out/+/reply/+",
        "$share/thieves/rea/v1/+/out/#",
        "$share/thieves/#",
    ],
)
def test_a_person_reads_nothing_but_what_is_for_them_or_for_all(join: Join, node: Login, fence: str, wish: str) -> None:
    node.publish(f"{OUT}/bob/last", "kept for bob", retain=True)
    mallory = join("mallory").subscribe(wish, "rea/v1/+/out/mallory/#")
    join("bob").publish(f"{IN}/bob/task", "bob's task")
    node.until("bob's task")
    for topic in ("bob/reply/t1", "bob/task/t1/state", "_approvers/r-1/ask", "_self/7"):
        node.publish(f"{OUT}/{topic}", "not for mallory")
    node.publish(f"{OUT}/mallory/reply/x", fence)
    assert set(mallory.until(fence)) == {f"{OUT}/mallory/reply/x"}
    node.publish(f"{OUT}/bob/last", "", retain=True)


def test_an_approver_sees_what_waits_and_still_their_own(join: Join, node: Login, fence: str) -> None:
    bob = join("bob").subscribe("rea/v1/+/out/bob/#", "rea/v1/+/out/_approvers/#")
    node.publish(f"{OUT}/_approvers/r-1/ask", "open?")
    node.publish(f"{OUT}/bob/reply/s1", fence)
    assert bob.until(fence) == [f"{OUT}/_approvers/r-1/ask", f"{OUT}/bob/reply/s1"]


@pytest.mark.parametrize(
    "topic",
    [
        pytest.param("rea/v1/boiler-2/out/_all/status", id="another node's status"),
        pytest.param("rea/v1/boiler-2/out/ann/reply/c1", id="another node's reply"),
        pytest.param("rea/v1/boiler-2/in/boiler-1/task", id="a task for another node"),
        pytest.param(f"{IN}/ann/task", id="a task for itself"),
    ],
)
def test_a_node_writes_nothing_but_its_own_word(join: Join, node: Login, fence: str, topic: str) -> None:
    other = join("boiler-2").subscribe("rea/v1/boiler-2/in/#", "rea/v1/boiler-2/out/#")
    ann = join("ann").subscribe("rea/v1/+/out/ann/#", "rea/v1/+/out/_all/#")
    node.publish(topic, "forged")
    node.publish(f"{OUT}/ann/last", fence)
    assert ann.until(fence) == [f"{OUT}/ann/last"]
    assert node.until(fence) == [f"{OUT}/ann/last"]
    other.publish("rea/v1/boiler-2/out/_self/1", fence)
    assert other.until(fence) == ["rea/v1/boiler-2/out/_self/1"]


def test_a_node_reads_nothing_of_another(join: Join, node: Login, fence: str) -> None:
    nosy = join("boiler-2").subscribe("#", "rea/v1/+/in/#", "rea/v1/boiler-1/out/#", "$share/x/#")
    ann = join("ann")
    ann.publish(f"{IN}/ann/task", "for boiler-1")
    node.until("for boiler-1")
    node.publish(f"{OUT}/ann/reply/t1", "from boiler-1")
    ann.publish("rea/v1/boiler-2/in/ann/task", fence)
    assert set(nosy.until(fence)) == {"rea/v1/boiler-2/in/ann/task"}


def test_a_person_with_a_nodes_client_id_does_not_end_its_connection(join: Join, fence: str) -> None:
    node = join("boiler-1", client_id="boiler-1-client", persistent=True).subscribe(f"{IN}/#")
    thief = join("mallory", client_id="boiler-1-client")
    thief.publish(f"{IN}/mallory/task", fence)
    assert node.until(fence) == [f"{IN}/mallory/task"]
    assert not node.ended


def test_a_person_cannot_take_what_waits_for_a_node_that_is_away(join: Join, fence: str) -> None:
    join("boiler-1", client_id="boiler-1-away", persistent=True).subscribe(f"{IN}/#").leave()
    join("bob").publish(f"{IN}/bob/task", fence)
    for persistent in (True, False):
        thief = join("mallory", client_id="boiler-1-away", persistent=persistent)
        thief.subscribe("rea/v1/+/out/mallory/#")
        assert not thief.refused
        assert not thief.session_present or not persistent
        thief.leave()
    back = join("boiler-1", client_id="boiler-1-away", persistent=True)
    assert back.session_present
    assert back.until(fence) == [f"{IN}/bob/task"]


def test_a_node_has_a_second_session_for_controls_under_the_shipped_rules(doors: Doors, protocol: str) -> None:
    topics = Topics("rea/v1", "boiler-1")
    settings = LinkSettings(
        url=f"mqtt://127.0.0.1:{doors.nodes}",
        client_id="boiler-1",
        username="boiler-1",
        password="boiler-1's",
        protocol="5" if protocol == "5" else "3.1.1",
        session_expiry_s=0,
    )
    controls = Controls(
        client_id="boiler-1.ctl",
        subscriptions=(topics.control_fences, *topics.controls),
        fence=lambda: topics.control_fence(1),
    )
    node = Station(settings, topics.fences, *topics.requests, fence=lambda: topics.fence(1), controls=controls)
    with running(node):
        wait_until(lambda: node.link.state.fenced, "both fences are heard")
        assert node.link.state.controls == "own"


@pytest.mark.parametrize(
    ("name", "password", "door"),
    [
        pytest.param(None, None, "nodes", id="nobody at the nodes' door"),
        pytest.param(None, None, "people", id="nobody at the people's door"),
        pytest.param("ann", "guess", "people", id="a wrong password"),
        pytest.param("ann", "", "people", id="an empty password"),
        pytest.param("zoe", "zoe's", "people", id="an unknown name"),
        pytest.param("ann", None, "nodes", id="a person at the nodes' door"),
        pytest.param("boiler-1", None, "people", id="a node at the people's door"),
    ],
)
def test_who_does_not_belong_is_not_let_in(join: Join, name: str | None, password: str | None, door: str) -> None:
    assert join(name, password=password, door=door).refused


def test_as_shipped_nobody_is_let_in(tmp_path: Path, doors: Doors) -> None:
    assert doors.people  # what it needs is installed
    assert (SHIPPED / "nodes.passwd").read_bytes() == (SHIPPED / "people.passwd").read_bytes() == b""
    with Doors(tmp_path, logins=False) as shut:
        for port in (shut.nodes, shut.people):
            login = Login(port, "ann", "3.1.1")
            assert login.refused
            login.leave()


def test_the_rules_are_the_five_patterns_of_the_documented_grammar() -> None:
    lines = [
        line
        for file in ("nodes.acl", "people.acl")
        for line in (SHIPPED / file).read_text().splitlines()
        if line and not line.startswith("#")
    ]
    assert lines == [
        "pattern read rea/v1/%u/in/#",
        "pattern readwrite rea/v1/%u/out/#",
        "pattern write rea/v1/+/in/%u/#",
        "pattern read rea/v1/+/out/%u/#",
        "pattern read rea/v1/+/out/_all/#",
    ]
