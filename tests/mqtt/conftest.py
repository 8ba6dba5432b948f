"""Fixtures of the link's tests: settings that reconnect quickly."""

from collections.abc import Callable
from typing import Literal

import pytest

from rea_edge.mqtt import LinkSettings

Settings = Callable[..., LinkSettings]


@pytest.fixture
def settings(protocol: Literal["5", "3.1.1"]) -> Settings:
    """Makes settings for a URL and client id, in the protocol of the test."""

    def make(url: str, client_id: str, **more: object) -> LinkSettings:
        fields = {"protocol": protocol, "reconnect_min_s": 0.05, "reconnect_max_s": 0.4, **more}
        return LinkSettings(url=url, client_id=client_id, **fields)  # type: ignore[arg-type]  # checked by its tests

    return make
