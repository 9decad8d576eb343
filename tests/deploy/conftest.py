"""What the deployment files are held against."""

import pytest

from service.app import create_app
from service.settings import Settings


@pytest.fixture(scope="session")
def paths() -> set[str]:
    """The paths that the service answers."""
    return set(create_app(Settings()).openapi()["paths"])
