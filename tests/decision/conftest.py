"""The tools of the corpus, read once."""

import pytest

from rea_edge.records import Offer

from . import cases


@pytest.fixture(scope="session")
def known() -> dict[str, Offer]:
    return cases.offers()
