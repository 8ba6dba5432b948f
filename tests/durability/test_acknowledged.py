"""What a broker was told is taken is on disk: a request that is sent once and meets a crash comes again by itself."""

import pytest

from tests.brokers import AnyBroker, wait_until
from tests.durability.tampering import KILL, attached
from tests.e2e.conftest import MakeHouse
from tests.e2e.house import wait_online


@pytest.mark.parametrize(("what", "code"), [pytest.param(KILL, -9, id="kill"), pytest.param("error=EIO", 74, id="EIO")])
def test_a_request_sent_once_is_not_lost_by_a_crash_in_the_commit_that_takes_it(
    broker: AnyBroker, make_house: MakeHouse, what: str, code: int
) -> None:
    house = make_house(broker).start()
    with house.client(silent_s=30) as client:
        wait_online(client)
        with attached(house.pid, house.folder / "state", house.folder / "trace", "pwrite64", 1, what):
            client.send("call", {"id": "once", "args": {"percent": 5}}, "turn")
            assert house.wait(20) == code
        assert house.ledger() == []
        house.start()
        wait_until(lambda: house.ledger("turn"), "the call comes again and is run", 15)
        reply = client.ask("call", {"id": "once", "args": {"percent": 5}}, "turn")
    assert reply.ok and len(house.ledger("turn")) == 1
