"""Fixture for the tests of the deployment files."""

import pytest

from service.app import create_app
from service.settings import Settings


@pytest.fixture(scope="session")
def paths() -> set[str]:
    """Paths of the service's routes."""
    return set(create_app(Settings()).openapi()["paths"])
