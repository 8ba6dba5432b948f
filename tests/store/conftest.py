"""An open store in a folder of its own."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rea_edge.store import Store


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def opened() -> Iterator[Callable[..., Store]]:
    """`Store.open`, closing all that a test leaves open."""
    stores: list[Store] = []

    def open_(folder: Path, **options: float) -> Store:
        stores.append(Store.open(folder, **options))  # type: ignore[arg-type]  # whatever the test asks for
        return stores[-1]

    yield open_
    for store in stores:
        store.close()


@pytest.fixture
def store(folder: Path, opened: Callable[..., Store]) -> Store:
    return opened(folder)
