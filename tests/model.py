"""The real small model for tests, as a pytest plugin: fixture `model_server` starts it once per test session.

The model is fetched into the user's cache and kept there. Where it cannot be fetched, the tests that need it are
skipped with the reason, and fail if `CI` is set. Holds no prompts and no assertions.
"""

import os
from collections.abc import Iterator

import pytest

from rea_edge.errors import OperatorError
from rea_edge.model_server import ModelServer, fetch


@pytest.fixture(scope="session")
def model_server() -> Iterator[ModelServer]:
    """SmolLM2-135M behind llama.cpp's own server on a free loopback port; its URL is `model_server.url`."""
    try:
        folder = fetch(print)
    except OperatorError as error:
        reason = f"NO MODEL, its tests are not run: {error}"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with ModelServer(print, folder) as server:
        yield server
