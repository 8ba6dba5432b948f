"""Fixtures of the link's tests: settings that reconnect quickly, a broker that allows each login one session."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest

from rea_edge.mqtt import LinkSettings
from tests.brokers import AnyBroker, Emulated, Mosquitto

Settings = Callable[..., LinkSettings]


@pytest.fixture
def settings(protocol: Literal["5", "3.1.1"]) -> Settings:
    """Makes settings for a URL and client id, in the protocol of the test."""

    def make(url: str, client_id: str, **more: object) -> LinkSettings:
        fields = {"protocol": protocol, "reconnect_min_s": 0.05, "reconnect_max_s": 0.4, **more}
        return LinkSettings(url=url, client_id=client_id, **fields)  # type: ignore[arg-type]  # checked by its tests

    return make


@pytest.fixture(params=["emulated", "mosquitto"])
def one_session_each(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AnyBroker]:
    """A broker that makes logins client ids: the second connection of a login takes the session of the first."""
    if request.param == "emulated":
        with Emulated(login_is_id=True) as emulated:
            yield emulated
        return
    mosquitto = Mosquitto(tmp_path, extra=("use_username_as_clientid true",))
    try:
        yield mosquitto.start()
    finally:
        mosquitto.kill()
