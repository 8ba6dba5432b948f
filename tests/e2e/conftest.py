"""A house with a daemon on either broker, and one on Mosquitto alone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from tests.brokers import AnyBroker
from tests.e2e.house import House


class MakeHouse(Protocol):
    def __call__(
        self, broker: AnyBroker, *, protocol: str = "auto", extra: str = "", node: str = "n1", root: str | None = None
    ) -> House: ...


@pytest.fixture
def make_house(tmp_path: Path) -> Iterator[MakeHouse]:
    made: list[House] = []

    def make(
        broker: AnyBroker, *, protocol: str = "auto", extra: str = "", node: str = "n1", root: str | None = None
    ) -> House:
        folder = tmp_path / f"house-{len(made)}"
        folder.mkdir()
        made.append(House(folder, broker.url, protocol=protocol, extra=extra, node=node, root=root))
        return made[-1]

    yield make
    for house in made:
        house.close()
