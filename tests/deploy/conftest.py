"""Fixtures from the service that the deployment files must fit."""

import pytest

from service.app import create_app
from service.settings import Settings


@pytest.fixture(scope="session")
def paths() -> set[str]:
    """Paths that the service answers."""
    return set(create_app(Settings()).openapi()["paths"])
