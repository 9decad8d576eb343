import pytest

from fillmask.app import create_app
from fillmask.settings import Settings


@pytest.fixture(scope="session")
def paths() -> set[str]:
    """Paths in the service's OpenAPI document."""
    return set(create_app(Settings()).openapi()["paths"])
