"""Settings of pytest's plugins for all tests."""

import pytest


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The event loop of async tests, which is the only one that the service knows."""
    return "asyncio"
