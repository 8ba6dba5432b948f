"""A session of their own for controls: what it spares them, and what happens where a broker allows none."""

import secrets
import time

from rea_edge.emulated.broker import Broker
from rea_edge.emulated.packets import Connect, Packet
from rea_edge.mqtt import Controls, Outgoing
from rea_edge.mqtt.sharing import AGAIN_S, Sharing
from tests.brokers import AnyBroker, Emulated, wait_until
from tests.mqtt.conftest import Settings
from tests.mqtt.station import Station, running

CONTROLS = Controls(client_id="n.ctl", subscriptions=("own/ctl/+", "in/+/ctl"), fence=lambda: "own/ctl/1")


def node(settings: Settings, url: str, **more: object) -> Station:
    return Station(settings(url, "n", **more), "own/+", "in/+/task", fence=lambda: "own/1", controls=CONTROLS)


def test_controls_come_over_their_own_session_and_the_rest_over_the_other(
    broker: AnyBroker, settings: Settings
) -> None:
    station = node(settings, broker.url)
    with running(station):
        wait_until(lambda: station.link.state.fenced, "the fence")
        assert station.link.state.controls == "own"
        station.link.tell(Outgoing(topic="in/me/ctl", payload=b"cancel"))
        station.link.tell(Outgoing(topic="in/me/task", payload=b"task", urgent=True))
        station.wait_payloads(b"cancel", b"task")
    assert {incoming.payload: incoming.controls for incoming in station.accepted} == {b"cancel": True, b"task": False}
    assert len(station.accepted) == 2


def test_a_control_that_waited_is_told_from_a_fresh_one(broker: AnyBroker, settings: Settings) -> None:
    with running(node(settings, broker.url)):
        pass
    sender, receiver = Station(settings(broker.url, "s")), node(settings, broker.url)
    with running(sender):
        sender.post("in/me/ctl", b"old")
        sender.wait_empty()
        with running(receiver):
            receiver.wait_payloads(b"old")
            wait_until(lambda: receiver.link.state.fenced, "the fence")
            sender.post("in/me/ctl", b"fresh")
            receiver.wait_payloads(b"fresh")
    assert [(one.payload, one.waited) for one in receiver.accepted] == [(b"old", True), (b"fresh", False)]


def test_a_session_that_once_heard_the_controls_does_no_longer(broker: AnyBroker, settings: Settings) -> None:
    with running(Station(settings(broker.url, "n"), "own/+", "in/+/task", "in/+/ctl")):
        pass
    station = node(settings, broker.url)
    with running(station):
        station.link.tell(Outgoing(topic="in/me/ctl", payload=b"cancel"))
        station.link.tell(Outgoing(topic="in/me/ctl", payload=b"again"))
        station.wait_payloads(b"cancel", b"again")
    assert station.payloads == [b"cancel", b"again"]


def test_where_a_login_has_one_session_all_goes_over_it(one_session_each: AnyBroker, settings: Settings) -> None:
    login = f"u{secrets.token_hex(4)}"
    sender = Station(settings(one_session_each.url, "s", username="sender"))
    station = node(settings, one_session_each.url, username=login)
    with running(sender):
        try:
            station.link.start()
            wait_until(lambda: station.link.state.controls.startswith("shared"), "it gives way", 10)
            sender.post("in/me/ctl", b"cancel")
            sender.post("in/me/task", b"task")
            station.wait_payloads(b"cancel", b"task")
            assert "one connection at a time" in station.link.state.controls
            assert len(station.ups) == 1
            assert not any(station.old), "the session that the controls made is nobody else's"
        finally:
            station.link.stop(None, 2.0)
    # Fences of lives that ended come too.
    assert [one.payload for one in station.accepted if one.topic.startswith("in/")] == [b"cancel", b"task"]


def test_where_a_login_has_one_session_that_of_an_earlier_node_is_still_found(
    one_session_each: AnyBroker, settings: Settings
) -> None:
    login = f"u{secrets.token_hex(4)}"
    for old in (False, True):
        station = node(settings, one_session_each.url, username=login)
        try:
            station.link.start()
            wait_until(lambda station=station: station.link.state.controls.startswith("shared"), "it gives way", 10)  # type: ignore[misc]
            station.wait_up()  # it is known with the connection after that at the latest
            assert any(station.old) == old
        finally:
            station.link.stop(None, 2.0)


def test_where_a_second_client_id_is_refused_all_goes_over_one_session(settings: Settings) -> None:
    with Broker(login=lambda one, *_: one != "n.ctl") as broker, running(station := node(settings, broker.url)):
        assert station.link.state.controls.startswith("shared: refused")
        station.link.tell(Outgoing(topic="in/me/ctl", payload=b"cancel"))
        station.wait_payloads(b"cancel")


def test_a_broker_that_restarts_in_between_does_not_cost_the_controls_their_session(settings: Settings) -> None:
    cuts = iter([True])

    def cut_once(client_id: str, packet: Packet) -> str | None:
        return "cut" if client_id == "n" and isinstance(packet, Connect) and next(cuts, False) else None

    with Emulated() as broker:
        broker.on_recv = cut_once  # type: ignore[assignment]  # a str is wider than the verdicts
        with running(station := node(settings, broker.url)):
            assert station.link.state.controls == "own"


def test_a_second_session_is_tried_again_after_an_hour() -> None:
    now_s = time.monotonic()
    sharing = Sharing(wanted=True)
    sharing.clashed("gone", now_s)
    assert sharing.own(now_s)
    sharing.clashed("gone", now_s)
    assert not sharing.own(now_s + AGAIN_S - 1)
    assert sharing.own(now_s + AGAIN_S)


def test_clashes_that_are_not_in_a_row_are_no_clashes() -> None:
    sharing = Sharing(wanted=True)
    for _ in range(5):
        sharing.clashed("gone", 0.0)
        sharing.worked(own=True)
    assert sharing.own(0.0)
