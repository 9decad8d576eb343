"""Settings of pytest's plugins for all tests."""

import pytest


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Event loop of async tests, the only one that the service supports."""
    return "asyncio"
