"""Two daemons with one id: both find out, only the older acts, and each request is done once."""

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rea_edge.client import Client
from rea_edge.daemon.rival import TIE_S
from rea_edge.mqtt import LinkSettings
from tests.brokers import AnyBroker, Emulated, Mosquitto, wait_until
from tests.e2e.house import House, wait_online
from tests.mqtt.station import Station, running

CALLS = 30


class Pair:
    """A house and its twin: the same root, id and tools, one ledger, folders of their own."""

    def __init__(self, folder: Path, broker: AnyBroker, *, twin_id: str | None) -> None:
        self.older = self._house(folder / "older", broker, "")
        extra = f'client_id = "{twin_id}"' if twin_id else ""
        self.younger = self._house(folder / "younger", broker, extra)
        text = self.younger.config.read_text().replace(self.younger.root, self.older.root)
        self.younger.config.write_text(text)
        self.younger.root = self.older.root
        self.younger.ledger_file = self.older.ledger_file
        self.base = f"{self.older.root}/{self.older.node}"

    def _house(self, folder: Path, broker: AnyBroker, extra: str) -> House:
        folder.mkdir()
        return House(folder, broker.url, extra=extra)


@pytest.fixture
def any_broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AnyBroker]:
    if request.param == "emulated":
        with Emulated() as emulated:
            yield emulated
        return
    mosquitto = Mosquitto(tmp_path)
    try:
        yield mosquitto.start()
    finally:
        mosquitto.kill()


@pytest.fixture
def pair(request: pytest.FixtureRequest, tmp_path: Path, any_broker: AnyBroker) -> Iterator[Pair]:
    made = Pair(tmp_path, any_broker, twin_id=request.param)
    yield made
    made.older.close()
    made.younger.close()


OWN = "rea-n1-twin"  # a client id of its own
FEW = [("mosquitto", OWN)]
ALL = [
    pytest.param(broker, twin, marks=() if (broker, twin) in FEW else pytest.mark.slow)
    for broker in ("emulated", "mosquitto")
    for twin in (None, OWN)
]
in_every_run = pytest.mark.parametrize(("any_broker", "pair"), ALL, indirect=True)
on_all = pytest.mark.parametrize(
    ("any_broker", "pair"), [(kind, twin) for kind in ("emulated", "mosquitto") for twin in (None, OWN)], indirect=True
)


def standing_by(house: House) -> bool:
    return b"event=stands_by" in house.log.read_bytes()


def older_by_far(client: Client) -> None:
    """Wait until the first node has been up for longer than what counts as a tie."""
    wait_online(client)
    until_s = time.monotonic() + TIE_S + 0.5
    wait_until(lambda: time.monotonic() > until_s, "it is older", TIE_S + 1.0)


@in_every_run
def test_each_request_is_done_once_and_both_nodes_know_of_each_other(pair: Pair, any_broker: AnyBroker) -> None:
    pair.older.start()
    me = Station(
        LinkSettings(url=any_broker.url, client_id="me"), f"{pair.base}/out/me/#", f"{pair.base}/out/_all/status"
    )
    with pair.older.client() as client, running(me):
        older_by_far(client)
        pair.younger.start()
        for number in range(CALLS):
            me.post(f"{pair.base}/in/me/call/ring", b'{"id":"c%d","args":{}}' % number, expires_in_s=600)
            wait_until(lambda number=number: replied(me, f"c{number}"), f"reply {number}", 20)  # type: ignore[misc]
        wait_until(lambda: standing_by(pair.younger), "the younger one stands by", 20)
        wait_until(lambda: "stands by" in faults(me), "the older one knows", 20)
        assert not standing_by(pair.older)
        me.post(f"{pair.base}/in/me/call/ring", b'{"id":"last","args":{}}', expires_in_s=600)
        wait_until(lambda: replied(me, "last"), "the last reply", 20)
    assert len(pair.older.ledger("ring")) == CALLS + 1
    assert "host" in pair.younger.log.read_text()


@pytest.mark.slow
@on_all
def test_the_standby_takes_over_when_the_other_has_stopped(pair: Pair) -> None:
    pair.older.start()
    with pair.older.client() as client:
        older_by_far(client)
        pair.younger.start()
        wait_until(lambda: standing_by(pair.younger), "the younger one stands by", 20)
        pair.older.stop()
        wait_until(lambda: b"event=takes_over" in pair.younger.log.read_bytes(), "it takes over", 30)
        assert client.ask("call", {"args": {"name": "tank"}}, "look", wait_s=15).ok


@pytest.mark.slow
def test_a_copy_of_a_card_does_not_run_the_tasks_that_were_on_it(tmp_path: Path, broker: AnyBroker) -> None:
    pair = Pair(tmp_path, broker, twin_id="rea-n1-twin")
    try:
        pair.older.start()
        with pair.older.client() as client:
            older_by_far(client)
            client.send("call", {"id": "long", "args": {"seconds": 8.0}}, "ring")
            wait_until(lambda: pair.older.ledger("ring"), "it rings", 15)
            shutil.copytree(
                pair.older.folder / "state", pair.younger.folder / "state", ignore=shutil.ignore_patterns("*.sock")
            )
            pair.younger.start()
            wait_until(lambda: standing_by(pair.younger), "the younger one stands by", 20)
        assert len(pair.older.ledger("ring")) == 1
        assert b"event=ended" not in pair.younger.log.read_bytes()
    finally:
        pair.older.close()
        pair.younger.close()


def replied(station: Station, request_id: str) -> bool:
    return any(one.topic.endswith(f"/reply/{request_id}") for one in list(station.accepted))


def faults(station: Station) -> str:
    found = [json.loads(one.payload) for one in list(station.accepted) if one.topic.endswith("/_all/status")]
    return " ".join(found[-1]["faults"]) if found else ""
