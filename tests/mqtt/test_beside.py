"""The connection for devices beside the node's own: where the broker allows one only, the node keeps its own."""

import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from rea_edge.dial import DEVICE_PACKET_MAX
from rea_edge.emulated.packets import Connect, Packet
from rea_edge.mqtt import LinkState, Outgoing
from rea_edge.mqtt.beside import CLASH_S, Beside
from rea_edge.mqtt.exchange import Exchange
from rea_edge.mqtt.sharing import AGAIN_S
from rea_edge.mqtt.talk import Ask, Heard, Missed
from tests.brokers import AnyBroker, Emulated, wait_until
from tests.mqtt.conftest import Settings
from tests.mqtt.station import Station, running
from tests.mqtt.test_controls import node

LONG_S = 20.0
RING = Ask(out=Outgoing(topic="bell/ring", payload=b"", qos=0))


@contextmanager
def exchange_beside(station: Station, settings: Settings, url: str, **more: object) -> Iterator[Exchange]:
    own = settings(url, "n.dev", session_expiry_s=0, packet_max=DEVICE_PACKET_MAX, **more)
    exchange = Exchange(own, lambda: station.link.state)
    try:
        yield exchange
    finally:
        exchange.stop()


def asking(exchange: Exchange, seconds: float = LONG_S) -> Heard | Missed:
    return exchange.ask(RING, seconds, threading.Event())


def test_where_a_login_has_one_session_devices_are_refused_and_the_node_keeps_its_own(
    one_session_each: AnyBroker, settings: Settings
) -> None:
    login = f"u{secrets.token_hex(4)}"
    station = node(settings, one_session_each.url, username=login)
    with exchange_beside(station, settings, one_session_each.url, username=login) as exchange:
        station.link.start()
        try:
            for _ in range(3):  # the first while the node finds it out
                end = asking(exchange)
                assert isinstance(end, Missed)
                assert (end.why, end.sent) == ("alone", False)
                assert "one connection at a time" in end.detail
            assert "one connection at a time" in exchange.forbidden
            assert station.link.state.connected
            assert len(station.ups) == 1
        finally:
            station.link.stop(None, 2.0)


def test_devices_are_not_asked_before_the_node_is_connected_itself(broker: AnyBroker, settings: Settings) -> None:
    station = node(settings, broker.url)
    with exchange_beside(station, settings, broker.url) as exchange:
        end = asking(exchange, 0.5)
        assert isinstance(end, Missed)
        assert (end.why, end.sent) == ("no_broker", False)
        assert "own connection" in end.detail
        with running(station):
            assert asking(exchange) == Heard()


def test_a_second_session_that_the_broker_refuses_is_tried_all_the_same(settings: Settings) -> None:
    with Emulated(login=lambda one, *_: one != "n.ctl") as broker:
        station = node(settings, broker.url)
        with running(station), exchange_beside(station, settings, broker.url) as exchange:
            assert asking(exchange) == Heard()


def test_a_broker_that_takes_the_oldest_of_three_connections_away_costs_the_node_two_of_them(
    settings: Settings,
) -> None:
    with Emulated() as broker:

        def push_out(client_id: str, packet: Packet) -> None:
            if client_id == "n.dev" and isinstance(packet, Connect):
                broker.kick("n.ctl")

        broker.on_recv = push_out  # type: ignore[assignment]  # it has no verdict
        station = node(settings, broker.url)
        with running(station), exchange_beside(station, settings, broker.url) as exchange:
            for ups in (2, 3):
                # Asked again where it went out over a connection that had ended already.
                wait_until(lambda ups=ups: asking(exchange) and len(station.ups) >= ups, f"up {ups} times", 20.0)  # type: ignore[misc]
                broker.kick("n.dev")
            wait_until(lambda: exchange.forbidden, "it is found out")
            for _ in range(3):
                end = asking(exchange)
                assert isinstance(end, Missed) and end.why == "alone"
            assert station.link.state.connected
            assert len(station.ups) == 3


# --- what is made of what becomes of the link


def state(sessions: int, *, connected: bool = True, alone: str = "") -> LinkState:
    return LinkState(
        phase="up" if connected else "resting", beat=0.0, connected=connected, sessions=sessions, alone=alone
    )


def beside(*states: LinkState) -> tuple[Beside, Callable[[LinkState], None]]:
    now = list(states)
    return Beside(lambda: now[-1]), now.append


def clash(one: Beside, then: Callable[[LinkState], None], now_s: float) -> bool:
    then(state(1))
    one.began(now_s)
    then(state(1, connected=False))
    return one.look(now_s + CLASH_S / 2)


def test_two_links_in_a_row_that_end_right_after_it_began_forbid_it_for_an_hour() -> None:
    one, then = beside(state(1))
    assert not clash(one, then, 10.0)
    assert one.forbidden(11.0) == ""
    assert clash(one, then, 20.0)
    assert "one connection at a time" in one.forbidden(21.0)
    assert one.forbidden(21.0 + AGAIN_S) == ""


@pytest.mark.parametrize("later", [
    pytest.param(CLASH_S, id="that ends later"),
    pytest.param(0.0, id="that was down before"),
])  # fmt: skip
def test_a_link_is_not_a_clash(later: float) -> None:
    one, then = beside(state(1))
    for now_s in (10.0, 20.0, 30.0):
        then(state(1, connected=later > 0))
        one.began(now_s)
        assert not one.look(now_s + later)
        then(state(1, connected=False))
        assert not one.look(now_s + later)
    assert one.forbidden(40.0) == ""


def test_a_link_that_came_back_at_once_is_a_clash_too() -> None:
    one, then = beside(state(1))
    for sessions in (1, 2):
        then(state(sessions))
        one.began(10.0)
        then(state(sessions + 1))
        one.look(10.5)
    assert one.forbidden(11.0)


def test_a_broker_that_takes_both_along_is_no_clash() -> None:
    one, then = beside(state(1))
    for now_s in (10.0, 20.0, 30.0):
        then(state(1))
        one.began(now_s)
        then(state(1, connected=False))
        one.ended(now_s + 0.1)
        assert not one.look(now_s + 0.2)
    assert one.forbidden(40.0) == ""


def test_a_link_that_is_back_before_it_ends_is_a_clash() -> None:
    one, then = beside(state(1))
    for sessions in (1, 2):
        then(state(sessions))
        one.began(10.0)
        then(state(sessions + 1))
        one.ended(10.5)
    assert one.forbidden(11.0)


def test_one_that_goes_well_in_between_makes_it_no_row() -> None:
    one, then = beside(state(1))
    for now_s in (10.0, 20.0, 30.0):
        assert not clash(one, then, now_s)
        then(state(1))
        one.began(now_s + 5)
        assert not one.look(now_s + 5 + CLASH_S)
    assert one.forbidden(40.0) == ""


def test_what_the_link_knows_is_believed() -> None:
    one, then = beside(state(1, alone="one at a time"))
    assert one.forbidden(0.0) == "one at a time"
    then(state(2))
    assert one.forbidden(0.0) == ""


def test_without_a_link_nothing_is_forbidden() -> None:
    one = Beside(None)
    one.began(0.0)
    assert (one.look(1.0), one.forbidden(1.0), one.early()) == (False, "", "")
